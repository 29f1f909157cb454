import asyncio
from collections.abc import Coroutine

import pytest

from sightline.agent.core.approval import Allowed, Denied
from sightline.agent.core.limits import Reached
from sightline.agent.core.steps import Approve, Confirm, RunnableCall
from sightline.agent.service.approvers import Questions
from sightline.errors import Fault

CALLS = tuple(RunnableCall(key=f"1.{n}", id=str(n), name="f", arguments={}) for n in (1, 2))
ASKED = Approve(1, CALLS)


async def begun(asking: Coroutine[object, object, object]) -> "asyncio.Task[object]":
    task = asyncio.get_running_loop().create_task(asking)
    await asyncio.sleep(0)
    return task


def test_calls_are_decided_one_by_one_and_the_run_goes_on_with_the_last() -> None:
    async def story() -> None:
        changes: list[str] = []
        questions = Questions(changes.append)
        task = await begun(questions.approve("r_1", ASKED))
        assert questions.open_keys("r_1") == {"1.1", "1.2"}
        questions.decide("r_1", {"1.1": Allowed()})
        questions.decide("r_1", {"1.1": Denied("On second thoughts.")})
        assert (questions.open_keys("r_1"), task.done()) == ({"1.2"}, False)
        questions.decide("r_1", {"1.2": Allowed()})
        assert await task == {"1.1": Denied("On second thoughts."), "1.2": Allowed()}
        assert (changes, questions.open_keys("r_1")) == (["r_1"] * 3, frozenset())

    asyncio.run(story())


def test_what_nobody_asks_cannot_be_answered() -> None:
    async def story() -> None:
        questions = Questions(lambda _run: None)
        with pytest.raises(Fault, match="no call of this run") as caught:
            questions.decide("r_1", {"1.1": Allowed()})
        assert caught.value.status == 409
        with pytest.raises(Fault, match="no limit of this run"):
            questions.confirm_with("r_1", goes_on=True)
        task = await begun(questions.approve("r_1", ASKED))
        with pytest.raises(Fault, match=r"no call 1\.9 waits") as unknown:
            questions.decide("r_1", {"1.1": Allowed(), "1.9": Allowed()})
        assert (unknown.value.status, questions.open_keys("r_1")) == (409, {"1.1", "1.2"})
        task.cancel()
        await asyncio.wait({task})
        with pytest.raises(Fault, match="no call of this run"):
            questions.decide("r_1", {"1.1": Allowed()})

    asyncio.run(story())


def test_an_answer_counts_once() -> None:
    async def story() -> None:
        questions = Questions(lambda _run: None)
        task = await begun(questions.confirm("r_1", Confirm(1, Reached("requests", 2, 2, 3))))
        questions.confirm_with("r_1", goes_on=False)
        with pytest.raises(Fault, match="no limit"):
            questions.confirm_with("r_1", goes_on=True)
        assert await task is False

    asyncio.run(story())


def test_interrupted_calls_can_be_told_of_before_and_after_they_are_asked_about() -> None:
    async def story() -> None:
        questions = Questions(lambda _run: None)
        questions.tell("r_1", {"1.1": "again", "9.9": "skip"})
        task = await begun(questions.mid_flight("r_1", CALLS))
        assert questions.open_keys("r_1") == {"1.2"}
        questions.tell("r_1", {"1.2": "skip"})
        assert await task == {"1.1": "again", "1.2": "skip"}
        questions.tell("r_1", {"1.1": "again", "1.2": "again"})
        assert await questions.mid_flight("r_1", CALLS) == {"1.1": "again", "1.2": "again"}
        questions.tell("r_1", {"1.1": "again", "1.2": "again"})
        questions.tell("r_1", {})
        third = await begun(questions.mid_flight("r_1", CALLS))
        assert questions.open_keys("r_1") == {"1.1", "1.2"}
        third.cancel()
        await asyncio.wait({third})

    asyncio.run(story())
