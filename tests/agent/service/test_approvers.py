"""Approvers: a person at the page, and a policy."""

import asyncio
from collections.abc import Coroutine
from pathlib import Path

import msgspec
import pytest

from sightline.agent.core.approval import Allowed, AnsweredByHand, Decision, Denied
from sightline.agent.core.limits import Reached
from sightline.agent.core.steps import Approve, Confirm, RunnableCall
from sightline.agent.core.tool import ToolOutcome, text_outcome
from sightline.agent.service.approvers import Approval, FunctionApprover, Questions, Said, deny_unattended
from sightline.agent.service.run_view import RunPaused
from sightline.agent.service.runner import Runner
from sightline.agent.tools.tools import Progress
from sightline.errors import Fault
from sightline.model.parts import Text
from sightline.tokens.ledger import Wait
from tests.fake_clock import FakeClock
from tests.loop_stage import COUNT, calls, count, says
from tests.running_stage import FakeTools, RunStage, on_stage, open_stage, plays
from tests.upstream import Upstream


class LookingClock(FakeClock):
    """Looks at a run whenever somebody sleeps."""

    runner: Runner | None = None

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[RunPaused | None] = []

    async def sleep(self, seconds: float) -> None:
        self.seen.append((await self.runner.show("r_1")).paused)
        await super().sleep(seconds)


async def test_a_wait_for_the_providers_limits_is_shown_until_it_is_over(tmp_path: Path) -> None:
    clock = LookingClock()
    async with open_stage(tmp_path, clock=clock) as (stage, upstream):
        clock.runner, waits = stage.runner, list[Wait]()
        stage.catalog.models["m"] = msgspec.structs.replace(stage.catalog.models["m"], rpm=1)

        async def act(_call: RunnableCall) -> ToolOutcome:
            clock.time += 55
            return text_outcome("done")

        upstream.script = [plays(calls(count(1))), plays(says())]
        ended = await stage.run(tools=FakeTools(act), on_pause=waits.append)
        assert (ended.why, len(waits), waits[0].limit) == ("answered", 1, "rpm")
        (paused,) = clock.seen
        assert (paused.line.partition(": ")[2], paused.can_go_at) == ("requests per minute (1)", clock.time)
        assert (await stage.runner.show("r_1")).paused is None


@on_stage
async def test_watcher_receives_tool_progress_once_a_second(stage: RunStage, upstream: Upstream) -> None:
    class Slow(FakeTools):
        async def use(self, call: RunnableCall, progress: Progress) -> ToolOutcome:
            for number in range(30):
                progress(f"{number} of 30")
                await stage.clock.sleep(0.1)
            return text_outcome("done")

    upstream.script = [plays(calls(count(1))), plays(says())]
    told: list[tuple[str, str]] = []
    await stage.run(tools=Slow(), on_progress=lambda *progress: told.append(progress))
    assert [key for key, _ in told] == ["1.1"] * 3
    assert told[0][1] == "0 of 30"


@on_stage
async def test_changed_tools_are_noted_in_the_run(stage: RunStage, upstream: Upstream) -> None:
    class Changing(FakeTools):
        async def use(self, call: RunnableCall, progress: Progress) -> ToolOutcome:
            self.definitions = (msgspec.structs.replace(COUNT, schema={"type": "object"}),)
            return text_outcome("done")

    upstream.script = [plays(calls(count(1))), plays(calls(count(2))), plays(says())]
    await stage.run(tools=Changing())
    shown = await stage.runner.show("r_1")
    assert shown.notes == ("the tools are not as they were: edit_file, shell gone; count changed",)


CALL = RunnableCall(key="1.1", id="a", name="count", arguments={"n": 1})
BY_HAND = AnsweredByHand((Text("7"),))


def decided(approve: Approval, objection: str = "") -> Decision:
    step = Approve(1, (CALL,), {"1.1": objection} if objection else {})
    return asyncio.run(FunctionApprover(approve).approve("r_1", step))["1.1"]


@pytest.mark.parametrize(
    ("said", "decision"),
    [
        (True, Allowed()),
        (False, Denied()),
        ("not now", Denied("not now")),
        ({"n": 2}, Allowed({"n": 2})),
        (BY_HAND, BY_HAND),
        (Denied("no"), Denied("no")),
    ],
)
def test_what_a_function_says_is_what_is_decided(said: Said, decision: Decision) -> None:
    async def later(_call: RunnableCall) -> Said:
        return said

    assert decided(lambda _call: said) == decision
    assert decided(later) == decision


def test_yes_allows_the_call_and_unattended_mode_denies_it() -> None:
    assert decided("yes") == Allowed()
    assert decided(deny_unattended) == Denied(by="nobody")


def test_unusable_arguments_are_denied_without_asking_again() -> None:
    assert decided("yes", "n is missing") == Denied("n is missing")


def test_limits_are_kept_and_interrupted_calls_skipped_by_default() -> None:
    async def told(judge: FunctionApprover) -> tuple[bool, object]:
        confirmed = await judge.confirm("r_1", Confirm(1, Reached("requests", 1, 1, 2)))
        return confirmed, await judge.mid_flight("r_1", [CALL])

    assert asyncio.run(told(FunctionApprover("yes"))) == (False, {"1.1": "skip"})
    assert asyncio.run(told(FunctionApprover("yes", interrupted="again"))) == (False, {"1.1": "again"})


CALLS = tuple(RunnableCall(key=f"1.{n}", id=str(n), name="f", arguments={}) for n in (1, 2))
ASKED = Approve(1, CALLS)


async def begun(asking: Coroutine[object, object, object]) -> "asyncio.Task[object]":
    task = asyncio.get_running_loop().create_task(asking)
    await asyncio.sleep(0)
    return task


async def test_calls_are_decided_one_by_one_and_the_run_goes_on_with_the_last() -> None:
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


async def test_answer_to_a_question_that_is_not_open_is_rejected() -> None:
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


async def test_an_answer_counts_once() -> None:
    questions = Questions(lambda _run: None)
    task = await begun(questions.confirm("r_1", Confirm(1, Reached("requests", 2, 2, 3))))
    questions.confirm_with("r_1", goes_on=False)
    with pytest.raises(Fault, match="no limit"):
        questions.confirm_with("r_1", goes_on=True)
    assert await task is False
    interrupted = await begun(questions.mid_flight("r_1", CALLS))
    questions.tell("r_1", {"1.1": "again", "1.2": "skip"})
    with pytest.raises(Fault, match="no interrupted call"):
        questions.tell("r_1", {"1.1": "again", "1.2": "again"})
    assert await interrupted == {"1.1": "again", "1.2": "skip"}


async def test_interrupted_calls_can_be_decided_before_or_after_the_question() -> None:
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
