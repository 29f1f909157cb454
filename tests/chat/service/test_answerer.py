"""Answers by one request, and by a run with tools."""

import asyncio
from pathlib import Path

import pytest

from sightline.agent.core.approval import Allowed
from sightline.agent.core.steps import RunnableCall
from sightline.agent.core.tool import ToolOutcome, text_outcome
from sightline.agent.service.approvers import SavedRule, SavedRules
from sightline.agent.service.round_sender import Opening
from sightline.agent.tools.hooks import Hook, Hooks
from sightline.chat.core.facts import TopicAdded
from sightline.chat.core.topics import Topic
from sightline.chat.service.answerer import AnswerRequest
from sightline.chat.service.blocks import CallBlock, TextBlock, blocks_of
from sightline.errors import Fault
from sightline.model.events import StreamEvent
from sightline.model.exchange import Budgeted
from sightline.model.reply import Usage
from sightline.model.request import Message
from sightline.settings import ChatSettings
from sightline.store.entries import FactEntry
from tests.chat.service.chat_stage import ChatStage, overflows, played
from tests.chat.service.chat_stage import says as answering_says
from tests.chat.service.chat_stage import says as speaks
from tests.chat.service.workshop import Workshop, begin, equipped, open_workshop, runner_of
from tests.holding import held, let_go
from tests.loop_stage import calls, count, says
from tests.running_stage import plays


async def test_hook_context_is_included_in_later_questions(tmp_path: Path) -> None:
    workshop = Workshop()
    hook = Hook("after_tool", lambda _event: {"context": "By the way."})
    workshop.tools.hooks = Hooks([hook], folder=tmp_path, environment={})
    async with open_workshop(tmp_path, workshop) as stage:
        await begin(stage, plays(calls(count(1, "a"))), plays(says("Done.")), plays(says("Four.")))
        pair = await stage.ask("count")
        assert [type(block) for block in blocks_of(pair.answer)] == [CallBlock, TextBlock]
        await stage.ask("and then?")
        second, third = (seen.json()["messages"] for seen in stage.upstream.seen[1:])
        assert [message["role"] for message in second] == ["user", "assistant", "tool", "user"]
        assert third[: len(second)] == second
        assert second[-1]["content"] == "By the way."


@equipped
async def test_the_answer_of_a_run_has_all_of_its_rounds(stage: ChatStage, workshop: Workshop) -> None:
    await begin(stage, plays(calls(count(1, "a"), count(2, "b"))), plays(says("Both done.")))
    pair = await stage.ask("count")
    assert (pair.state, pair.assistant_text) == ("complete", "Both done.")
    assert pair.answer.run.startswith("r_")
    assert pair.answer.usage == Usage(input_tokens=20, output_tokens=10), "of both"
    assert pair.answer.predicted is not None
    first, second, last = blocks_of(pair.answer)
    assert isinstance(second, CallBlock)
    assert (first.name, first.result.text) == ("count", "count 1.1 did it")
    assert last == TextBlock("Both done.")
    assert len(stage.upstream.seen[0].json()["tools"]) == 3
    facts = stage.relays.facts("x_r2")
    assert [fact.telemetry["stage"] for fact in facts if isinstance(fact, Budgeted)] == ["attempt"]
    facts = stage.relays.facts(pair.exchange)
    assert [fact.telemetry["stage"] for fact in facts if isinstance(fact, Budgeted)] == ["success"]
    stage.upstream.script = [plays(says("Four."))]
    stage.upstream._played = 0
    await stage.ask("and then?")
    roles = [message["role"] for message in stage.upstream.seen[-1].json()["messages"]]
    assert roles == ["user", "assistant", "tool", "tool", "assistant", "user"], "later questions have them, too"


@equipped
async def test_topic_without_tools_is_answered_without_a_run(stage: ChatStage, workshop: Workshop) -> None:
    await stage.begin(model="huge", script=[speaks("hello")])
    pair = await stage.ask()
    assert (pair.assistant_text, pair.answer.run, workshop.opened) == ("hello", "", [])


async def test_broken_off_in_the_middle_the_rounds_so_far_stay(tmp_path: Path) -> None:
    is_running = asyncio.Event()

    async def act(call: RunnableCall) -> ToolOutcome:
        if call.key != "1.1":
            is_running.set()
            await asyncio.Event().wait()
        return text_outcome("done")

    workshop = Workshop(act)
    async with open_workshop(tmp_path, workshop) as stage:
        await begin(stage, plays(calls(count(1, "a"))), plays(calls(count(2, "b"))))
        name = await stage.service.sends.send("v", "count")
        await is_running.wait()
        await stage.service.sends.cancel()
        pair = stage.pair(name)
        assert (pair.state, pair.answer.finish) == ("complete", "cancelled")
        first = blocks_of(pair.answer)[0]
        assert first.result.text == "done"
        assert workshop.tools.cut_off == ["2.1"]


@equipped
async def test_a_run_that_fails_later_leaves_its_rounds_and_the_fault_and_trims_nothing(
    stage: ChatStage, workshop: Workshop
) -> None:
    await begin(stage, plays(calls(count(1, "a"))), overflows())
    pair = await stage.ask("count")
    assert (pair.state, pair.trouble.code) == ("error", "context_overflow")
    assert isinstance(blocks_of(pair.answer)[0], CallBlock)
    assert len(stage.upstream.seen) == 2


@equipped
async def test_a_first_request_that_is_too_large_is_trimmed_as_ever(stage: ChatStage, workshop: Workshop) -> None:
    await begin(stage, speaks("one"), overflows(), speaks("two"))
    await stage.ask("first")
    pair = await stage.ask("second")
    assert (pair.state, pair.assistant_text) == ("complete", "two")
    assert [len(seen.json()["messages"]) for seen in stage.upstream.seen] == [1, 3, 1]


@equipped
async def test_the_first_request_can_be_held(stage: ChatStage, workshop: Workshop) -> None:
    await begin(stage, speaks("hello"))
    name = await stage.service.sends.send("v", "hi", hold=True)
    let_go(stage.relays, await held(stage.relays))
    assert (await stage.ended(name)).assistant_text == "hello"


@played(answering=Workshop().answering, settings=ChatSettings())
async def test_a_toolset_that_cannot_be_had_keeps_from_sending(stage: ChatStage) -> None:
    await stage.happen(TopicAdded(Topic(id="t", name="T", toolsets=("feet",))))
    await stage.service.views.set_view("v", model="huge", topic="t")
    with pytest.raises(Fault, match="no toolset 'feet'"):
        await stage.service.sends.send("v", "hello")


@equipped
async def test_broken_off_before_its_run_has_begun_nothing_runs(stage: ChatStage, workshop: Workshop) -> None:
    await begin(stage)
    name = await stage.service.sends.send("v", "count")
    has_begun = asyncio.Event()
    workshop.runs.before_append = lambda _log: has_begun.set()
    await has_begun.wait()
    await stage.service.sends.cancel()
    assert stage.pair(name).trouble.code == "cancelled"
    assert stage.upstream.seen == []


@equipped
async def test_a_page_knows_the_run_while_it_waits_for_a_person(stage: ChatStage, workshop: Workshop) -> None:
    workshop.tools.rules = ()
    await begin(stage)
    stage.watch()
    stage.upstream.script = [plays(calls(count(1, "a"))), plays(says("Done."))]
    name = await stage.service.sends.send("v", "count")
    while (so_far := stage.service.sends.so_far(name)) is None or not so_far.messages:
        assert (await stage.news("changed"))["ids"] == [name]
    runner = runner_of(stage)
    with workshop.hub.watch() as watch:
        while (await runner.show(so_far.run)).pending is None:
            await anext(watch)
    (call,) = blocks_of(so_far)
    assert isinstance(call, CallBlock)
    runner.questions.decide(so_far.run, {"1.1": Allowed()})
    pair = await stage.ended(name)
    assert (pair.assistant_text, pair.answer.run) == ("Done.", so_far.run)


async def test_tool_results_are_visible_as_soon_as_each_tool_finishes(tmp_path: Path) -> None:
    is_running, gate = asyncio.Event(), asyncio.Event()

    async def act(call: RunnableCall) -> ToolOutcome:
        if call.key == "1.2":
            is_running.set()
            await gate.wait()
        return text_outcome(f"{call.key} done")

    workshop = Workshop(act)
    workshop.tools.rules = ()
    async with open_workshop(tmp_path, workshop) as stage:
        await begin(stage)
        stage.watch()
        stage.upstream.script = [plays(calls(count(1, "a"), count(2, "b"))), plays(says("Done."))]
        name = await stage.service.sends.send("v", "count")
        runner = runner_of(stage)
        with workshop.hub.watch() as watch:
            while not (run := stage.pair(name).run) or (await runner.show(run)).pending is None:
                await anext(watch)
        runner.questions.decide(run, {"1.1": Allowed({"n": 9}), "1.2": Allowed()})
        await is_running.wait()
        while True:
            so_far = stage.service.sends.so_far(name)
            first, second = blocks_of(so_far)
            if first.result is not None:
                break
            await stage.news("changed")
        assert (first.arguments, first.result.text) == ('{"n":9}', "1.1 done"), "as it ran, with what it said"
        assert second.result is None
        gate.set()
        pair = await stage.ended(name)
        assert blocks_of(pair.answer)[0] == first


async def test_call_allowed_for_all_runs_needs_no_approval(tmp_path: Path) -> None:
    workshop = Workshop()
    workshop.tools.rules = ()
    workshop.kept = SavedRules(tmp_path)
    workshop.kept.keep(SavedRule("count", "here", {"/n": "1"}))
    workshop.kept.keep(SavedRule("count", "elsewhere"))
    async with open_workshop(tmp_path, workshop) as stage:
        await begin(stage, plays(calls(count(1, "a"))), plays(calls(count(2, "b"))))
        name = await stage.service.sends.send("v", "count")
        runner = runner_of(stage)
        with workshop.hub.watch() as watch:
            while not (run := stage.pair(name).run) or (await runner.show(run)).pending is None:
                await anext(watch)
        assert [call.key for call in workshop.tools.used] == ["1.1"], "the second is asked about"
        assert (await runner.show(run)).limits.behaviour == "confirm"
        await stage.service.sends.cancel()


async def no_run(_run: str) -> None:
    raise AssertionError


def no_rounds(_messages: tuple[Message, ...]) -> None:
    raise AssertionError


@played()
async def test_an_answer_is_one_request_with_the_label_of_the_chat(stage: ChatStage) -> None:
    await stage.begin(script=[answering_says("ok")])
    prepared = (await stage.service.sends.preview("v", "hello")).prepared
    heard, noted = list[StreamEvent](), list[FactEntry]()
    opening = Opening(waits=False, budgeted=({"stage": "attempt"},))
    wanted = AnswerRequest("p", prepared, opening, "main", "chat", False, (), no_run, no_rounds, "")
    given = await stage.answering.answer(wanted, heard.append, noted.append)
    assert (given.rounds, given.run, given.reply.choice.finish) == ((), "", "stop")
    assert stage.relays.kinds() == ["received", "budgeted", "attempt", "finished"]
    assert len(noted) == 4
    assert heard
