import asyncio

import msgspec
import pytest

from sightline.errors import Code, Fault
from sightline.evals.service.cluster import host_services as line_module
from sightline.evals.service.cluster.host_services import HostLine
from sightline.evals.service.cluster.messages import (
    CostSpent,
    HomeAnswer,
    HostFault,
    HostLeft,
    HostQuestion,
    ListLogs,
    for_home,
)
from tests.cluster_stage import heard


def test_everything_arrives_in_its_order_and_once() -> None:
    async def story() -> None:
        line = HostLine()
        for cost in (1.0, 2.0, 3.0):
            line.tell(CostSpent(cost))
        assert await heard(line) == [CostSpent(1.0), CostSpent(2.0), CostSpent(3.0)]
        assert await heard(line) == []

    asyncio.run(story())


def test_whoever_listens_hears_of_it_at_once() -> None:
    async def story() -> None:
        line = HostLine()
        listening = asyncio.get_running_loop().create_task(line.next(60))
        await asyncio.sleep(0)
        line.tell(HostLeft())
        assert list(for_home(await listening)) == [HostLeft()]

    asyncio.run(story())


def test_what_is_large_is_told_in_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_module, "MOST_AT_ONCE", 10)

    async def story() -> None:
        line = HostLine()
        line.tell(CostSpent(1.0))
        line.tell(CostSpent(2.0))
        assert await heard(line) == [CostSpent(1.0)]
        assert await heard(line) == [CostSpent(2.0)]

    asyncio.run(story())


def test_a_question_gets_its_own_answer_or_fault() -> None:
    async def story() -> None:
        line, loop = HostLine(), asyncio.get_running_loop()
        one = loop.create_task(line.ask(ListLogs("a"), int))
        two = loop.create_task(line.ask(ListLogs("b"), int))
        await asyncio.sleep(0)
        assert await heard(line) == [HostQuestion(1, ListLogs("a")), HostQuestion(2, ListLogs("b"))]
        assert line.resolve(HomeAnswer(2, msgspec.Raw(b"7")))
        assert line.resolve(HomeAnswer(1, fault=HostFault(Code.USAGE, "no")))
        assert await two == (2, 7)
        with pytest.raises(Fault, match="no"):
            await one

    asyncio.run(story())


def test_an_answer_that_nobody_waits_for_is_known_as_such() -> None:
    async def story() -> None:
        line = HostLine()
        asking = asyncio.get_running_loop().create_task(line.ask(ListLogs(), int))
        await asyncio.sleep(0)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        assert not line.resolve(HomeAnswer(1, msgspec.Raw(b"7")))

    asyncio.run(story())
