import asyncio

import msgspec
import pytest

from sightline.errors import Code, Fault
from sightline.evals.service.cluster import line as line_module
from sightline.evals.service.cluster.line import HostLine
from sightline.evals.service.cluster.messages import Answer, Ask, Left, ListLogs, Spent, Told, for_home
from tests.cluster_stage import heard


def test_everything_arrives_in_its_order_and_once() -> None:
    async def story() -> None:
        line = HostLine()
        for cost in (1.0, 2.0, 3.0):
            line.tell(Spent(cost))
        assert await heard(line) == [Spent(1.0), Spent(2.0), Spent(3.0)]
        assert await heard(line) == []

    asyncio.run(story())


def test_whoever_listens_hears_of_it_at_once() -> None:
    async def story() -> None:
        line = HostLine()
        listening = asyncio.get_running_loop().create_task(line.next(60))
        await asyncio.sleep(0)
        line.tell(Left())
        assert list(for_home(await listening)) == [Left()]

    asyncio.run(story())


def test_what_is_large_is_told_in_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_module, "MOST_AT_ONCE", 10)

    async def story() -> None:
        line = HostLine()
        line.tell(Spent(1.0))
        line.tell(Spent(2.0))
        assert await heard(line) == [Spent(1.0)]
        assert await heard(line) == [Spent(2.0)]

    asyncio.run(story())


def test_a_question_gets_its_own_answer_or_fault() -> None:
    async def story() -> None:
        line, loop = HostLine(), asyncio.get_running_loop()
        one = loop.create_task(line.ask(ListLogs("a"), int))
        two = loop.create_task(line.ask(ListLogs("b"), int))
        await asyncio.sleep(0)
        assert await heard(line) == [Ask(1, ListLogs("a")), Ask(2, ListLogs("b"))]
        assert line.answered(Answer(2, msgspec.Raw(b"7")))
        assert line.answered(Answer(1, fault=Told(Code.USAGE, "no")))
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
        assert not line.answered(Answer(1, msgspec.Raw(b"7")))

    asyncio.run(story())
