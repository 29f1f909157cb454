"""Requests of a run on their way: held for a person, edited, dropped, answered by hand, or asked for as they are."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sightline.agent.core.facts import Replied
from sightline.agent.core.rounds import FinishedRun
from sightline.agent.service.round_sender import Opening, RunGate
from sightline.editing.operations import operation
from sightline.errors import Code, Fault
from sightline.exchange.prepare import Prepared
from sightline.model.exchange import Budgeted
from sightline.model.parts import Text, ToolCall
from tests.loop_stage import calls, count, plan, reply, says
from tests.relay_stage import DIALECTS
from tests.running_stage import RunStage, play, plays, wrong
from tests.upstream import Upstream


async def held(stage: RunStage, number: int) -> str:
    """The exchange that is held next, which is of this number."""
    watch = stage.hub.watch()
    name = f"x_{number:03}"
    with watch:
        while stage.relay.holds.find(name) is None:
            await anext(watch)
    return name


def edit(stage: RunStage, exchange: str, old: str, new: str) -> None:
    """Change the words of a message, as a person would."""
    sections = stage.relay.holds.hold_of(exchange).draft.sections
    (found,) = [each.id for each in sections if any(part.text == old for part in each.parts)]
    stage.relay.holds.edit(exchange, operation({"op": "set_text", "section": found, "text": new}))


def release(stage: RunStage, exchange: str) -> None:
    stage.relay.holds.release(exchange, stage.relay.holds.hold_of(exchange).draft.sha256)


@pytest.mark.parametrize("spoken", DIALECTS)
def test_stepping_holds_each_request_and_an_edit_goes_on_through_later_rounds(tmp_path: Path, spoken: str) -> None:
    async def story(stage: RunStage, upstream: Upstream) -> None:
        upstream.script = [plays(calls(count(n, f"c{n}")), spoken) for n in (1, 2)] + [plays(says(), spoken)]
        async with asyncio.TaskGroup() as group:
            task = group.create_task(stage.run(plan(spoken), is_stepping=True, prompt=stage.prompt("Do it.")))
            first = await held(stage, 1)
            shown = await stage.runner.show("r_1")
            assert (shown.state, shown.is_stepping, getattr(shown.pending, "exchange", "")) == ("waiting", True, first)
            assert upstream.seen == []
            edit(stage, first, "Do it.", "Do it well.")
            release(stage, first)
            release(stage, await held(stage, 2))
            third = await held(stage, 3)
            stage.runner.step("r_1", is_on=False)
            release(stage, third)
        ended = task.result()
        assert ended.why == "answered"
        for seen in upstream.seen:
            assert (b"Do it well." in seen.body, b"Do it." in seen.body) == (True, False)
        assert len(upstream.seen) == 3
        replied = [fact for fact in await stage.facts() if isinstance(fact, Replied)]
        assert [fact.sent is not None for fact in replied] == [True, False, False]
        assert wrong([ended.request], spoken) == []

    play(story, tmp_path, spoken)


def test_a_request_that_is_dropped_ends_the_run_as_a_person_would(tmp_path: Path) -> None:
    async def story(stage: RunStage, upstream: Upstream) -> None:
        upstream.script = [plays(calls(count(1)))]
        async with asyncio.TaskGroup() as group:
            task = group.create_task(stage.run(is_stepping=True))
            release(stage, await held(stage, 1))
            stage.relay.holds.drop(await held(stage, 2), "not like this")
        ended = task.result()
        assert (ended.why, len(upstream.seen), ended.request.messages[-1].role) == ("cancelled", 1, "tool")
        assert ended.reply is not None
        assert ended.reply.fault is not None
        assert (ended.reply.fault.code, "not like this" in ended.reply.fault.message) == (Code.CANCELLED, True)

    play(story, tmp_path)


def test_a_request_can_be_answered_by_hand(tmp_path: Path) -> None:
    async def story(stage: RunStage, upstream: Upstream) -> None:
        written: dict[str, Any] = {"parts": [{"type": "text", "text": "By hand."}], "finish": "stop"}
        async with asyncio.TaskGroup() as group:
            task = group.create_task(stage.run(is_stepping=True))
            stage.relay.holds.answer(await held(stage, 1), written)
        assert (task.result().why, task.result().rounds[0].text, upstream.seen) == ("answered", "By hand.", [])

    play(story, tmp_path)


def test_a_held_request_can_be_stopped(tmp_path: Path) -> None:
    async def story(stage: RunStage, upstream: Upstream) -> None:
        async with asyncio.TaskGroup() as group:
            task = group.create_task(stage.run(is_stepping=True))
            await held(stage, 1)
            stage.runner.stop("r_1", now=True)
        assert (task.result().why, task.result().rounds, upstream.seen) == ("cancelled", (), [])
        assert stage.relay.holds.waiting == ()

    play(story, tmp_path)


def test_only_the_first_request_is_opened_otherwise(tmp_path: Path) -> None:
    async def story(stage: RunStage, upstream: Upstream) -> None:
        upstream.script = [plays(calls(count(1))), plays(says())]
        heard: list[str] = []
        opening = Opening(hold=True, waits=False, budgeted=({"stage": "attempt"},))
        async with asyncio.TaskGroup() as group:
            task = group.create_task(stage.run(opening=opening, noted=lambda noted: heard.append(noted.exchange)))
            release(stage, await held(stage, 1))
        assert (task.result().why, set(heard)) == ("answered", {"x_001", "x_002"})
        await stage.store.settle()
        planned = [
            [noted.fact for noted in await stage.store.facts(name) if isinstance(noted.fact, Budgeted)]
            for name in ("x_001", "x_002")
        ]
        assert planned == [[Budgeted({"stage": "attempt"})], []]

    play(story, tmp_path)


@pytest.mark.parametrize("spoken", DIALECTS)
@pytest.mark.parametrize("stream", [True, False])
def test_runs_go_through_in_every_dialect_streamed_and_whole(tmp_path: Path, spoken: str, *, stream: bool) -> None:
    ends: list[FinishedRun] = []

    async def story(stage: RunStage, upstream: Upstream) -> None:
        asked = reply(Text("Let me see."), count(1, "c1"), ToolCall("c2", "edit_file", '{"filePath": "x"}'))
        upstream.script = [plays(asked, spoken, stream=stream), plays(says("Done."), spoken, stream=stream)]
        ends.append(await stage.run(plan(spoken), prompt=stage.prompt(stream=stream)))
        assert [call.name for call in stage.tools.used] == ["count", "edit_file"]
        assert b"count 1.1 did it" in upstream.seen[1].body
        assert wrong([ends[0].request], spoken) == []

    play(story, tmp_path, spoken)
    assert (ends[0].why, ends[0].rounds[-1].text) == ("answered", "Done.")


def test_a_gate_lets_each_request_go_and_hears_when_it_has(tmp_path: Path) -> None:
    async def story(stage: RunStage, upstream: Upstream) -> None:
        upstream.script = [plays(calls(count(1))), plays(says())]
        heard: list[str] = []

        async def admitted(prepared: Prepared) -> Callable[[], None]:
            heard.append(f"{len(prepared.request.messages)} at {len(upstream.seen)}")
            return lambda: heard.append("sent")

        ended = await stage.run(gate=RunGate(admitted))
        assert ended.why == "answered"
        assert heard == ["1 at 0", "sent", "sent", "3 at 1", "sent", "sent"]

    play(story, tmp_path)


def test_what_a_gate_refuses_is_not_sent(tmp_path: Path) -> None:
    async def story(stage: RunStage, upstream: Upstream) -> None:
        async def admitted(_prepared: Prepared) -> Callable[[], None]:
            raise Fault(Code.RATE_LIMITED, "not today", hint="Come back.")

        ended = await stage.run(gate=RunGate(admitted))
        assert (ended.why, upstream.seen) == ("failed", [])
        assert ended.reply is not None
        assert ended.reply.fault is not None
        assert ended.reply.fault.message == "not today"

    play(story, tmp_path)
