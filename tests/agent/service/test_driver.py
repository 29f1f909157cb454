"""A run from its first step to its end."""

import asyncio
from pathlib import Path

import msgspec
import pytest

from sightline.agent.core.approval import Policy
from sightline.agent.core.facts import Replied, RunEnded, ToolStarted
from sightline.agent.core.limits import RunLimits
from sightline.agent.core.rounds import CANCELLED
from sightline.agent.core.steps import RunnableCall
from sightline.agent.core.tool import Definition, Toolbox, ToolOutcome, text_outcome
from sightline.agent.service.driver import RunParticipants, ToolChanges
from sightline.agent.tools.tools import Progress
from sightline.errors import Code, Fault
from sightline.model.events import TextReceived
from sightline.model.exchange import ExchangeCancelled
from sightline.model.parts import Text, ToolCall
from tests.loop_stage import COUNT, EDIT, OFF, SHELL, TOOLBOX, calls, count, limited, plan, reply, says
from tests.running_stage import KEY, FakeTools, Person, RunStage, begins, news, on_stage, open_stage, plays, stuck_tools
from tests.stepping_clock import SteppingClock
from tests.upstream import Upstream, after, stall
from tests.upstream import says as answers


@on_stage
async def test_a_run_is_exchanges_on_record_and_facts_in_a_log(stage: RunStage, upstream: Upstream) -> None:
    upstream.script = [plays(calls(count(1, "a"), count(2, "b"))), plays(says("Both done."))]
    ended = await stage.run()
    assert (ended.why, ended.rounds[-1].text, [call.key for call in stage.tools.used]) == (
        "answered", "Both done.", ["1.1", "1.2"],
    )  # fmt: skip
    assert await stage.kinds() == [
        "run_began", "run_taken", "request_started", "replied", "tool_started", "tool_started", "tool_finished",
        "tool_finished", "used", "request_started", "replied", "run_ended",
    ]  # fmt: skip
    await stage.store.settle()
    for exchange in ("x_001", "x_002"):
        facts = [noted.fact for noted in await stage.store.facts(exchange)]
        assert facts[0].session == "s"
        assert type(facts[-1]).__name__ == "ExchangeFinished"
    results = [message for message in upstream.seen[1].json()["messages"] if message["role"] == "tool"]
    assert [each["content"] for each in results] == ["count 1.1 did it", "count 1.2 did it"]
    assert "".join(event.text for event in stage.heard if isinstance(event, TextReceived)) == "Both done."


@on_stage
async def test_a_tool_begins_when_that_is_written_down(stage: RunStage, upstream: Upstream) -> None:
    known: list[bool] = []

    async def act(call: RunnableCall) -> ToolOutcome:
        facts = await stage.facts()
        known.append(facts[-1] == ToolStarted(call.key))
        return text_outcome("ok")

    upstream.script = [plays(calls(ToolCall("s", "shell", "ls"))), plays(says())]
    await stage.run(tools=FakeTools(act))
    assert known == [True]


@on_stage
async def test_calls_that_may_run_beside_each_other_do_and_others_wait_for_their_turn(
    stage: RunStage, upstream: Upstream
) -> None:
    both = asyncio.Barrier(2)
    running: set[str] = set()

    async def act(call: RunnableCall) -> ToolOutcome:
        running.add(call.key)
        if call.name == "count":
            await both.wait()  # it never ends unless the other one runs too
        else:
            assert running == {call.key}
        running.discard(call.key)
        return text_outcome(call.key)

    shell = ToolCall("s", "shell", "ls")
    upstream.script = [plays(calls(count(1, "a"), count(2, "b"), shell, count(3, "c"))), plays(says())]

    async def lonely(call: RunnableCall) -> ToolOutcome:
        return text_outcome("alone") if call.key == "1.4" else await act(call)

    ended = await stage.run(tools=FakeTools(lonely))
    assert [call.fate for call in ended.rounds[0].calls] == ["ran"] * 4


async def test_time_stops_a_tool_under_way_and_none_begins_after_it(tmp_path: Path) -> None:
    clock = SteppingClock()
    async with open_stage(tmp_path, clock=clock) as (stage, upstream):
        begun = asyncio.Event()

        async def act(call: RunnableCall) -> ToolOutcome:
            if call.key == "1.1":
                return text_outcome("in time")
            begun.set()
            await asyncio.Event().wait()
            raise AssertionError("nobody wakes it")

        shells = [ToolCall(each, "shell", "ls") for each in "abc"]
        upstream.script = [plays(calls(*shells))]
        tools = FakeTools(act)
        running = asyncio.get_running_loop().create_task(stage.run(plan(limits=RunLimits(seconds=5)), tools=tools))
        await begun.wait()
        await clock.forward(5)
        ended = await running
        assert (ended.why, ended.spent.seconds, len(upstream.seen)) == ("limit", 5, 1)
        assert (len(tools.used), tools.cut_off) == (2, ["1.2"])
        assert [call.fate for call in ended.rounds[0].calls] == ["ran", "limit", "limit"]
        cut_off = ended.rounds[0].calls[1].outcome
        assert cut_off == text_outcome(
            "This call was not run to its end: the limit of 5 seconds is reached.", is_error=True
        )


async def test_time_stops_a_model_that_does_not_come_to_an_end(tmp_path: Path) -> None:
    clock = SteppingClock()
    async with open_stage(tmp_path, clock=clock) as (stage, upstream):
        gate = asyncio.Event()
        upstream.script = [begins(reply(Text("Four and more.")), gate)]
        running = asyncio.get_running_loop().create_task(stage.run(plan(limits=RunLimits(seconds=5))))
        await gate.wait()
        await clock.forward(5)
        ended = await running
        assert (ended.why, ended.spent.seconds, len(upstream.seen)) == ("limit", 5, 1)
        await stage.store.settle()
        ending = (await stage.store.facts("x_001"))[-1].fact
        assert isinstance(ending, ExchangeCancelled)
        assert ending.reason == "timeout"


# --- what goes wrong ------------------------------------------------------------------------------


@on_stage
async def test_a_provider_that_refuses_ends_the_run_with_its_fault(stage: RunStage, upstream: Upstream) -> None:
    upstream.script = [plays(calls(count(1))), answers({"error": {"message": f"bad {KEY}"}}, 400)]
    ended = await stage.run()
    assert ended.why == "failed"
    assert ended.reply.fault.code is Code.INVALID_REQUEST
    assert ended.request.messages[-1].role == "tool"
    lines = await stage.store.logbook.lines("run:r_1")
    assert not [line for line in lines if KEY.encode() in line.data]


@on_stage
async def test_keys_are_in_no_log_and_one_that_a_tool_tells_does_not_reach_the_model(
    stage: RunStage, upstream: Upstream
) -> None:
    async def act(_call: RunnableCall) -> ToolOutcome:
        return ToolOutcome((Text(f"the key is {KEY}!"),), structured={"key": KEY})

    upstream.script = [plays(calls(count(1))), plays(says(f"It was {KEY}."))]
    ended = await stage.run(tools=FakeTools(act), prompt=stage.prompt("Use it."), origin={"why": KEY})
    lines = await stage.store.logbook.lines("run:r_1")
    assert not [line.n for line in lines if KEY.encode() in line.data]
    outcome = ended.rounds[0].calls[0].outcome
    assert outcome == ToolOutcome((Text("the key is ***!"),), structured={"key": "***"})
    assert KEY not in upstream.seen[1].body.decode()


# --- stopping -------------------------------------------------------------------------------------


@on_stage
async def test_immediate_stop_during_streaming_keeps_the_partial_reply(stage: RunStage, upstream: Upstream) -> None:
    came = asyncio.Event()
    upstream.script = [begins(reply(Text("Half of"), count(1)), came)]
    heard = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(stage.run(on_event=lambda _event: heard.set()))
        await came.wait()
        await heard.wait()
        stage.runner.stop("r_1", now=True)
    ended = task.result()
    assert (ended.why, ended.rounds[0].text) == ("cancelled", "Half of")
    await upstream.gone()
    (replied,) = [fact for fact in await stage.facts() if isinstance(fact, Replied)]
    assert (replied.reply.fault.reason, ended.reason) == ("user", "user")
    assert (await stage.facts())[-1] == RunEnded("cancelled", "user")
    assert (await stage.runner.show("r_1")).reason == "user"
    await stage.store.settle()
    ending = (await stage.store.facts("x_001"))[-1].fact
    assert isinstance(ending, ExchangeCancelled)
    assert ending.reason == "user"


@on_stage
async def test_to_stop_at_once_before_the_model_spoke_keeps_the_question(stage: RunStage, upstream: Upstream) -> None:
    upstream.script = [stall()]
    async with asyncio.TaskGroup() as group:
        task = group.create_task(stage.run())
        await upstream.arrived(1)
        stage.runner.stop("r_1", now=True)
    ended = task.result()
    assert (ended.why, ended.rounds, len(ended.request.messages)) == ("cancelled", (), 1)


@on_stage
async def test_to_stop_after_the_step_lets_the_model_end_and_runs_nothing(stage: RunStage, upstream: Upstream) -> None:
    gate, came = asyncio.Event(), asyncio.Event()
    upstream.script = [after(gate, plays(calls(count(1))), came)]
    async with asyncio.TaskGroup() as group:
        task = group.create_task(stage.run())
        await came.wait()
        stage.runner.stop("r_1", now=False)
        gate.set()
    ended = task.result()
    assert (ended.why, stage.tools.used) == ("cancelled", [])
    assert [call.fate for call in ended.rounds[0].calls] == ["cancelled"]
    assert ended.request.messages[-1].role == "tool"


@pytest.mark.parametrize("now", [True, False])
async def test_to_stop_while_tools_run(tmp_path: Path, *, now: bool) -> None:
    async with open_stage(tmp_path) as (stage, upstream):
        begun, gate = asyncio.Event(), asyncio.Event()

        async def act(call: RunnableCall) -> ToolOutcome:
            if call.key == "1.2":
                begun.set()
                await gate.wait()
            return text_outcome(call.key)

        tools = FakeTools(act)
        upstream.script = [plays(calls(*(ToolCall(f"s{n}", "shell", "ls") for n in range(3))))]
        async with asyncio.TaskGroup() as group:
            task = group.create_task(stage.run(tools=tools))
            await begun.wait()
            stage.runner.stop("r_1", now=now)
            if not now:
                gate.set()
        ended = task.result()
        assert ended.why == "cancelled"
        fates = [call.fate for call in ended.rounds[0].calls]
        assert fates == ["ran", "cancelled" if now else "ran", "cancelled"]
        assert (tools.cut_off, len(tools.used)) == (["1.2"] if now else [], 2)
        assert CANCELLED in str(ended.request.messages[-1])


@pytest.mark.parametrize("what", ["approve", "confirm"])
async def test_stop_while_waiting_for_a_decision_cancels_the_run(tmp_path: Path, what: str) -> None:
    async with open_stage(tmp_path) as (stage, upstream):
        stage.person.waits = asyncio.Event()
        upstream.script = [plays(calls(count(1)))]
        wanted = plan(policy=Policy()) if what == "approve" else limited(requests=1, behaviour="confirm")
        async with asyncio.TaskGroup() as group:
            task = group.create_task(stage.run(wanted))
            await stage.person.is_asked.wait()
            stage.runner.stop("r_1", now=False)
        assert (task.result().why, stage.tools.used) == ("cancelled", [])


@on_stage
async def test_a_run_that_is_cancelled_from_outside_ends_what_runs_and_can_be_taken_up(
    stage: RunStage, upstream: Upstream
) -> None:
    tools, begun = stuck_tools()
    upstream.script = [plays(calls(count(1))), plays(says())]
    task = asyncio.ensure_future(stage.run(tools=tools))
    await begun.wait()
    task.cancel()
    await asyncio.wait({task})
    assert (task.cancelled(), tools.cut_off) == (True, ["1.1"])
    assert (await stage.runner.show("r_1")).state == "interrupted"
    ended = await stage.runner.resume("r_1", RunParticipants(stage.tools, Person(interrupted="again")))
    assert (ended.why, [call.key for call in stage.tools.used]) == ("answered", ["1.1"])


@on_stage
async def test_excessive_tool_progress_does_not_flood_watchers(stage: RunStage, upstream: Upstream) -> None:
    class Chatty(FakeTools):
        async def use(self, call: RunnableCall, progress: Progress) -> ToolOutcome:
            for number in range(20_000):
                progress(f"{number} of many")
            shown = await stage.runner.show("r_1")
            return text_outcome(shown.rounds[0].calls[0].progress)

    upstream.script = [plays(calls(count(1))), plays(says())]
    watch = stage.hub.watch()
    ended = await stage.run(tools=Chatty())
    assert len(await news(watch, "ended")) < 50
    assert "19999 of many" in str(ended.rounds[0].calls[0].outcome)
    watch.close()


@on_stage
async def test_stop_while_waiting_about_interrupted_calls_cancels_the_run(stage: RunStage, upstream: Upstream) -> None:
    tools, begun = stuck_tools()
    upstream.script = [plays(calls(count(1)))]
    task = asyncio.ensure_future(stage.run(tools=tools))
    await begun.wait()
    task.cancel()
    await asyncio.wait({task})
    stage.person.waits = asyncio.Event()
    again = asyncio.ensure_future(stage.runner.resume("r_1", RunParticipants(stage.tools, stage.person)))
    await stage.person.is_asked.wait()
    stage.runner.stop("r_1", now=False)
    ended = await again
    assert (ended.why, stage.tools.used, [call.fate for call in ended.rounds[0].calls]) == (
        "cancelled",
        [],
        ["cancelled"],
    )


@on_stage
async def test_a_run_that_is_left_while_tools_run_goes_on_with_those_that_did_not(
    stage: RunStage, upstream: Upstream
) -> None:
    begun, gate = asyncio.Event(), asyncio.Event()

    async def act(call: RunnableCall) -> ToolOutcome:
        begun.set()
        await gate.wait()
        return text_outcome(call.key)

    tools = FakeTools(act)
    upstream.script = [plays(calls(*(ToolCall(f"s{n}", "shell", "ls") for n in range(2)))), plays(says())]
    task = asyncio.ensure_future(stage.run(tools=tools))
    await begun.wait()
    stage.runner.leave("r_1")
    gate.set()
    with pytest.raises(Fault, match="was left") as caught:
        await task
    assert (caught.value.code, caught.value.hint) == (Code.CANCELLED, "Resume it: sightline resume r_1")
    assert (await stage.kinds())[-2:] == ["tool_finished", "run_taken"], "by nobody"
    ended = await stage.runner.resume("r_1", RunParticipants(tools, Person()))
    assert (ended.why, [call.key for call in tools.used]) == ("answered", ["1.1", "1.2"])


@on_stage
async def test_a_run_that_is_left_while_the_model_speaks_keeps_its_reply(stage: RunStage, upstream: Upstream) -> None:
    gate, came = asyncio.Event(), asyncio.Event()
    upstream.script = [after(gate, plays(calls(count(1))), came), plays(says())]
    task = asyncio.ensure_future(stage.run())
    await came.wait()
    stage.runner.leave("r_1")
    gate.set()
    with pytest.raises(Fault, match="was left"):
        await task
    assert ((await stage.kinds())[-2], stage.tools.used) == ("replied", [])
    other = stage.another("elsewhere", "here")
    assert (await other.show("r_1")).state == "interrupted", "although its process lives"
    ended = await stage.runner.resume("r_1", RunParticipants(stage.tools, Person()))
    assert (ended.why, len(upstream.seen)) == ("answered", 2)


@on_stage
async def test_open_approval_question_is_asked_again_on_resume(stage: RunStage, upstream: Upstream) -> None:
    stage.person.waits = asyncio.Event()
    upstream.script = [plays(calls(count(1))), plays(says())]
    task = asyncio.ensure_future(stage.run(plan(policy=Policy())))
    await stage.person.is_asked.wait()
    stage.runner.leave("r_1")
    with pytest.raises(Fault, match="was left"):
        await task
    again = Person()
    ended = await stage.runner.resume("r_1", RunParticipants(stage.tools, again))
    assert (ended.why, len(again.asked)) == ("answered", 1)


@on_stage
async def test_a_run_that_is_left_with_its_last_word_has_ended(stage: RunStage, upstream: Upstream) -> None:
    upstream.script = [plays(says("Bye."))]

    def heard(event: object) -> None:
        if isinstance(event, TextReceived):
            stage.runner.leave("r_1")

    ended = await stage.run(on_event=heard)
    assert ended.why == "answered"


@on_stage
async def test_listener_receives_each_fact_and_can_read_the_rounds(stage: RunStage, upstream: Upstream) -> None:
    upstream.script = [plays(calls(count(1))), plays(says())]
    heard: list[tuple[str, int]] = []

    def told(fact: object) -> None:
        heard.append((type(fact).__name__, len(stage.runner.rounds("r_1")) if len(heard) > 1 else 0))

    await stage.run(on_fact=told)
    kinds = [kind for kind, _ in heard]
    assert kinds == [type(fact).__name__ for fact in await stage.facts()]
    assert [rounds for kind, rounds in heard if kind in ("RequestStarted", "RunEnded")] == [0, 1, 2]


FRESH = Definition(name="fresh")
COUNT_ANEW = msgspec.structs.replace(COUNT, schema={"type": "object"})


def test_tools_that_stay_as_they_are_are_not_spoken_of() -> None:
    offered = ToolChanges(TOOLBOX, (EDIT, COUNT, SHELL))
    assert offered.changes((EDIT, COUNT, SHELL)) == ""
    assert offered.changes((SHELL, COUNT, EDIT)) == ""


def test_tool_changes_are_reported_only_once() -> None:
    offered = ToolChanges(TOOLBOX, (EDIT, COUNT, SHELL))
    now = (COUNT_ANEW, SHELL, FRESH)
    words = "edit_file gone; count changed; fresh new, for the next run"
    assert offered.changes(now) == f"the tools are not as they were: {words}"
    assert offered.changes(now) == ""
    assert offered.changes((EDIT, *now)) == "the tools are not as they were: edit_file there again"


def test_resumed_run_reports_tool_changes_since_its_start() -> None:
    now = (COUNT_ANEW, FRESH)
    words = "edit_file, shell gone; count changed"
    assert ToolChanges(TOOLBOX, now).changes(now) == f"the tools are not as they were: {words}"


def test_a_run_with_some_of_the_tools_does_not_miss_the_others() -> None:
    offered = ToolChanges(Toolbox((COUNT, OFF)), (EDIT, COUNT))
    assert offered.changes((EDIT, COUNT)) == ""
    assert offered.changes((COUNT,)) == ""
