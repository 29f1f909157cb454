"""Runs as they are shown."""

import asyncio

import msgspec

from sightline.agent.core.approval import Allowed, ApprovalRule, Denied, Policy
from sightline.agent.core.facts import RequestStarted, RunFact, ToolFinished, ToolStarted
from sightline.agent.core.rounds import Round
from sightline.agent.core.steps import RunnableCall
from sightline.agent.core.tool import ToolOutcome, text_outcome
from sightline.agent.service.driver import RunParticipants
from sightline.agent.service.run_view import ApprovePending, ConfirmPending, MidFlightPending, RunShown
from sightline.agent.service.runner import NewRun
from sightline.catalog.facts import Model
from sightline.model.parts import Image, Inline, Text, Thinking, ToolCall
from tests.loop_stage import calls, count, limited, plan, reply, says
from tests.running_stage import FakeTools, RunStage, begins, news, on_stage, plays, stuck_tools
from tests.upstream import Upstream


@on_stage
async def test_a_run_that_ended_is_shown_with_all_that_happened(stage: RunStage, upstream: Upstream) -> None:
    async def act(call: RunnableCall) -> ToolOutcome:
        await stage.clock.sleep(2)
        if call.name == "shell":
            return ToolOutcome((Image(Inline("image/png", "aGk=")),), structured={"ok": True})
        return text_outcome("three", is_error=True)

    thought = Thinking("Hm.")
    upstream.script = [
        plays(reply(thought, Text("Look:"), count('"3"', "a"), ToolCall("b", "shell", "ls"), count('"x"', "c"))),
        plays(says("Done.")),
    ]
    await stage.run(tools=FakeTools(act), prompt=stage.prompt("Count  to\nthree. " + "x" * 90), origin={"chat": "p"})
    shown = await stage.runner.show("r_1")
    assert (shown.state, shown.why, shown.provider, shown.model, shown.pending) == (
        "ended", "answered", "acme", "m", None,
    )  # fmt: skip
    assert (len(shown.title), shown.title[:16], shown.origin) == (80, "Count to three. ", {"chat": "p"})
    first, second = shown.rounds
    assert (first.number, first.exchange, first.text, first.thinking) == (1, "x_001", "Look:", "Hm.")
    assert (second.exchange, second.text, second.finish) == ("x_002", "Done.", "stop")
    one, two, three = first.calls
    assert (one.fate, one.arguments, one.ran, one.seconds) == ("ran", '{"n": "3"}', {"n": 3}, 2.0)
    assert [repair.pointer for repair in one.repairs] == ["/n"]
    assert (one.result.text, one.result.is_error) == ("three", True)
    assert (two.result.text, two.result.structured, two.result.media) == ('{"ok":true}', {"ok": True}, 1)
    assert (three.fate, three.ran, three.seconds) == ("refused", None, None)
    assert shown.spent.tool_calls == 2
    assert shown.limits.requests == 50
    assert shown.version == len(await stage.facts())
    assert msgspec.json.decode(msgspec.json.encode(shown), type=RunShown) == shown
    (line,) = await stage.runner.list_runs(10)
    assert (line.id, line.title, line.state, line.why, line.rounds, line.spent) == (
        "r_1", shown.title, "ended", "answered", 2, shown.spent,
    )  # fmt: skip


@on_stage
async def test_a_round_that_failed_says_why(stage: RunStage, upstream: Upstream) -> None:
    upstream.script = [begins(reply(Text("I"), count(1)))]
    await stage.run()
    shown = await stage.runner.show("r_1")
    assert (shown.why, shown.rounds[0].text, [call.fate for call in shown.rounds[0].calls]) == (
        "failed", "I", ["cut"],
    )  # fmt: skip
    assert shown.rounds[0].fault.message


@on_stage
async def test_a_call_that_waits_for_a_person_is_shown_as_pending(stage: RunStage, upstream: Upstream) -> None:
    upstream.script = [plays(calls(count('"1"', "a"), ToolCall("u", "unheard_of", "{}"))), plays(says())]
    watch = stage.hub.watch()
    new = NewRun(stage.prompt(), stage.choice, plan(policy=Policy()), "s", "r_1")
    task = asyncio.ensure_future(stage.runner.run(new, RunParticipants(stage.tools, stage.runner.questions)))
    assert (await news(watch, "waiting"))[-1][1] == "waiting"
    shown = await stage.runner.show("r_1")
    assert isinstance(shown.pending, ApprovePending)
    assert [(call.key, call.arguments) for call in shown.pending.calls] == [("1.1", {"n": 1})]
    assert [(call.key, call.fate, call.is_running) for call in shown.rounds[0].calls] == [
        ("1.1", None, False),
        ("1.2", "refused", False),
    ]
    (line,) = await stage.runner.list_runs(1)
    assert (line.state, line.rounds) == ("waiting", 1)
    stage.runner.questions.decide("r_1", {"1.1": Allowed({"n": "x"})})
    await news(watch, "running")
    await news(watch, "waiting")
    again = (await stage.runner.show("r_1")).pending
    assert isinstance(again, ApprovePending)
    assert list(again.objections) == ["1.1"]
    stage.runner.questions.decide("r_1", {"1.1": Allowed({"n": 2}, ApprovalRule("count", "allow"))})
    assert (await news(watch, "ended"))[-1] == (len(await stage.facts()), "ended")
    assert (await task).why == "answered"
    watch.close()


@on_stage
async def test_a_tool_that_runs_is_shown_running_with_its_progress(stage: RunStage, upstream: Upstream) -> None:
    begun, gate = asyncio.Event(), asyncio.Event()

    async def act(call: RunnableCall) -> ToolOutcome:
        if call.key == "1.1":
            return text_outcome("one")
        begun.set()
        await gate.wait()
        return text_outcome("two")

    upstream.script = [plays(calls(ToolCall("a", "shell", "ls"), ToolCall("b", "shell", "pwd"))), plays(says())]
    task = asyncio.ensure_future(stage.run(tools=FakeTools(act)))
    await begun.wait()
    shown = await stage.runner.show("r_1")
    one, two = shown.rounds[0].calls
    assert (shown.state, one.fate, one.is_running, two.fate, two.is_running) == (
        "running", "ran", False, None, True,
    )  # fmt: skip
    assert (two.ran, two.progress) == ("pwd", "shell began")
    task.cancel()
    await asyncio.wait({task})
    left = await stage.runner.show("r_1")
    assert (left.state, left.rounds[0].calls[1].is_running) == ("interrupted", False)
    assert isinstance(left.pending, MidFlightPending)
    assert [call.key for call in left.pending.calls] == ["1.2"]


@on_stage
async def test_pending_limit_confirmation_is_described_in_words(stage: RunStage, upstream: Upstream) -> None:
    upstream.script = [plays(calls(count(1)))]
    stage.person.waits = asyncio.Event()
    task = asyncio.ensure_future(stage.run(limited(requests=1, behaviour="confirm")))
    await stage.person.is_asked.wait()
    shown = await stage.runner.show("r_1")
    assert isinstance(shown.pending, ConfirmPending)
    assert shown.pending.words == "the limit of 1 model requests is reached"
    stage.person.waits.set()
    await task
    ended = await stage.runner.show("r_1")
    assert (ended.why, ended.reached is not None) == ("limit", True)


@on_stage
async def test_a_cost_that_is_not_known_is_null_and_not_nothing(stage: RunStage, upstream: Upstream) -> None:
    stage.catalog.models["m"] = Model(providers=("acme",), tools=True)
    upstream.script = [plays(says("Done."))]
    await stage.run()
    shown = await stage.runner.show("r_1")
    assert (shown.spent.cost, shown.spent.unmeasured, shown.spent.tokens) == (None, ("cost",), 15)
    (line,) = await stage.runner.list_runs(10)
    assert line.spent.cost is None


@on_stage
async def test_what_was_estimated_is_shown_and_marked(stage: RunStage, upstream: Upstream) -> None:
    upstream.script = [plays(reply(Text("Done."), usage=None))]
    await stage.run()
    shown = await stage.runner.show("r_1")
    assert (shown.spent.is_estimated, shown.spent.unmeasured) == (True, ())
    assert shown.spent.tokens > 0
    assert shown.spent.cost == shown.rounds[0].cost != 0


@on_stage
async def test_the_open_round_has_what_is_known_of_its_calls(stage: RunStage, upstream: Upstream) -> None:
    gate, seen = asyncio.Event(), list[tuple[Round, ...]]()

    async def act(call: RunnableCall) -> ToolOutcome:
        if call.key == "1.3":
            await gate.wait()
        return text_outcome(f"{call.key} done")

    def told(fact: RunFact) -> None:
        if isinstance(fact, ToolStarted | ToolFinished):
            seen.append(stage.runner.so_far("r_1"))
        if isinstance(fact, ToolFinished) and fact.key == "1.1":
            gate.set()

    upstream.script = [plays(calls(count(1, "a"), count(2, "b"), count(3, "c"))), plays(says())]
    stage.person.decisions = [{"1.1": Allowed({"n": 9}), "1.2": Denied("no"), "1.3": Allowed()}]
    ended = await stage.run(plan(policy=Policy()), tools=FakeTools(act), on_fact=told)
    first = seen[0][-1].calls
    assert [(call.fate, call.is_edited, call.ran) for call in first] == [
        ("cancelled", True, {"n": 9}),
        ("denied", False, None),
        ("cancelled", False, {"n": 3}),
    ]
    assert first[1].outcome is not None
    then = next(each for each in seen if each[-1].calls[0].outcome is not None)[-1].calls
    assert (then[0].fate, then[2].outcome) == ("ran", None)
    assert then[0].outcome.parts == (Text("1.1 done"),)
    assert await stage.runner.result_of("r_1") == (ended.rounds, ended)


@on_stage
async def test_a_run_that_was_left_has_what_it_came_to(stage: RunStage, upstream: Upstream) -> None:
    tools, begun = stuck_tools()
    upstream.script = [plays(calls(count(1)))]
    task = asyncio.get_running_loop().create_task(stage.run(tools=tools))
    await begun.wait()
    assert len(stage.runner.so_far("r_1")) == 1
    task.cancel()
    await asyncio.wait({task})
    (open_round,), ended = await stage.runner.result_of("r_1")
    assert (open_round.number, open_round.calls[0].outcome, ended) == (1, None, None)


@on_stage
async def test_before_a_reply_there_is_nothing(stage: RunStage, upstream: Upstream) -> None:
    upstream.script = [plays(says())]
    seen: list[int] = []

    def told(fact: RunFact) -> None:
        if isinstance(fact, RequestStarted):
            seen.append(len(stage.runner.so_far("r_1")))

    await stage.run(on_fact=told)
    assert seen == [0]
