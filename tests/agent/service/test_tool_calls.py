"""Calls of a round: run side by side or in turn, capped, and interrupted."""

import asyncio
from collections.abc import Sequence

import pytest

from sightline.agent.core.facts import RunFact, ToolFinished, ToolStarted
from sightline.agent.core.steps import RunnableCall, Use
from sightline.agent.core.tool import Cap, ToolOutcome, text_outcome
from sightline.agent.service.driver import INTERRUPTED, ToolRunner
from sightline.agent.service.run_log import RunLog
from sightline.agent.tools.hooks import Event, HookSubject, HookVerdict
from sightline.catalog.facts import Facts
from sightline.errors import Fault
from sightline.journal.journal import StopSignal
from sightline.model.parts import Image, Inline
from tests.logbook_fake import MemoryLogbook
from tests.running_stage import FakeTools
from tests.store.traffic import NOON


def call(key: str, *, parallel: bool = False) -> RunnableCall:
    return RunnableCall(key=key, id=key, name="count", arguments={}, is_parallel=parallel)


@pytest.fixture
def logbook() -> MemoryLogbook:
    return MemoryLogbook()


@pytest.fixture
def log(logbook: MemoryLogbook) -> RunLog:
    return RunLog(logbook, "r_1", now=lambda: NOON)


async def no_hook(_event: Event, _number: int, **_subjects: HookSubject) -> HookVerdict | None:
    return None


def using(
    log: RunLog, tools: FakeTools, stop: StopSignal | None = None, cap: Cap | None = None, facts: Facts | None = None
) -> ToolRunner:
    return ToolRunner(
        tools, log, stop or StopSignal(), cap or Cap(), facts or Facts(), no_hook, lambda _key, _words: None
    )


def noted(log: RunLog) -> Sequence[tuple[type[RunFact], str]]:
    return [(type(fact), fact.key) for fact in log.facts if isinstance(fact, ToolStarted | ToolFinished)]


async def test_what_has_an_outcome_does_not_run_again(log: RunLog) -> None:
    tools = FakeTools()
    at = using(log, tools)
    at.begin({"1.1": text_outcome("before")}, {"1.1": "Psst."})
    await at.use(Use(1, (call("1.1"), call("1.2"))))
    assert ([each.key for each in tools.used], at.outcomes["1.1"], at.context) == (
        ["1.2"],
        text_outcome("before"),
        "Psst.",
    )
    assert noted(log) == [(ToolStarted, "1.2"), (ToolFinished, "1.2")]


async def test_what_is_too_long_is_cut_before_it_is_written_down(logbook: MemoryLogbook, log: RunLog) -> None:

    async def floods(_call: RunnableCall) -> ToolOutcome:
        return text_outcome("x" * 5_000_000)

    at = using(log, FakeTools(floods), cap=Cap(characters=1000))
    await at.use(Use(1, (call("1.1"),)))
    (line,) = await logbook.lines("run:r_1", after=1)
    assert len(line.data) < 2000
    assert "are left out here" in str(at.outcomes["1.1"])


async def test_a_picture_does_not_go_to_a_model_that_cannot_see(log: RunLog) -> None:
    async def shoots(_call: RunnableCall) -> ToolOutcome:
        return ToolOutcome((Image(Inline("image/png", "aGk=")),))

    at = using(log, FakeTools(shoots), facts=Facts(input=("text",)))
    await at.use(Use(1, (call("1.1"),)))
    assert "cannot take an image" in str(at.outcomes["1.1"])


async def test_a_call_that_is_skipped_says_so(log: RunLog) -> None:
    at = using(log, FakeTools())
    await at.skip((call("1.1"),))
    assert at.outcomes == {"1.1": text_outcome(INTERRUPTED, is_error=True)}
    assert noted(log) == [(ToolFinished, "1.1")]


async def test_a_fault_of_the_log_ends_those_that_run_beside_it(logbook: MemoryLogbook, log: RunLog) -> None:
    both = asyncio.Barrier(2)

    async def act(each: RunnableCall) -> ToolOutcome:
        await both.wait()
        if each.key == "1.1":
            await logbook.append("run:r_1", 2, [b"{}"], NOON)
            return text_outcome("one")
        await asyncio.Event().wait()
        raise AssertionError

    tools = FakeTools(act)
    with pytest.raises(Fault, match="taken over"):
        await using(log, tools).use(Use(1, (call("1.1", parallel=True), call("1.2", parallel=True))))
    assert tools.cut_off == ["1.2"]


async def test_no_further_call_is_started_after_a_stop_request(log: RunLog) -> None:
    stop = StopSignal()

    async def act(_call: RunnableCall) -> ToolOutcome:
        stop.stop(now=False)
        return text_outcome("ok")

    tools = FakeTools(act)
    await using(log, tools, stop).use(Use(1, (call("1.1"), call("1.2"))))
    assert [each.key for each in tools.used] == ["1.1"]
