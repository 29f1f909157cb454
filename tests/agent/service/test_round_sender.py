"""One request of a run: sent, shortened, and found again in the record."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from sightline.agent.core.conversation import Amendment
from sightline.agent.core.facts import Replied
from sightline.agent.core.rounds import CallRecord, Round
from sightline.agent.service.round_sender import Opening, RunGate, behind_marker, is_forgotten, recall_reply
from sightline.catalog.provider import Provider, Quirks
from sightline.dialects.dialect import Client
from sightline.editing.operations import operation
from sightline.errors import Code, Fault
from sightline.exchange.interception.core.reply_writing import write_reply
from sightline.exchange.outbound import Prepared
from sightline.model.exchange import Answered, Budgeted
from sightline.model.parts import Image, Link, Text, ToolCall
from sightline.model.reply import Reply
from sightline.model.request import Message, Options, Request
from sightline.store.entries import FactEntry
from tests.loop_stage import calls, count, plan, reply, says
from tests.relay_stage import DIALECTS
from tests.running_stage import RunStage, begins, on_stage, open_stage, plays, wrong
from tests.upstream import Play, Upstream, streams
from tests.upstream import says as answers


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
async def test_stepping_holds_each_request_and_an_edit_goes_on_through_later_rounds(
    tmp_path: Path, spoken: str
) -> None:
    async with open_stage(tmp_path, spoken) as (stage, upstream):
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


@on_stage
async def test_a_request_that_is_dropped_ends_the_run_as_a_person_would(stage: RunStage, upstream: Upstream) -> None:
    upstream.script = [plays(calls(count(1)))]
    async with asyncio.TaskGroup() as group:
        task = group.create_task(stage.run(is_stepping=True))
        release(stage, await held(stage, 1))
        stage.relay.holds.drop(await held(stage, 2), "not like this")
    ended = task.result()
    assert (ended.why, len(upstream.seen), ended.request.messages[-1].role) == ("cancelled", 1, "tool")
    assert (ended.reply.fault.code, "not like this" in ended.reply.fault.message) == (Code.CANCELLED, True)


@on_stage
async def test_a_request_can_be_answered_by_hand(stage: RunStage, upstream: Upstream) -> None:
    written: dict[str, Any] = {"parts": [{"type": "text", "text": "By hand."}], "finish": "stop"}
    async with asyncio.TaskGroup() as group:
        task = group.create_task(stage.run(is_stepping=True))
        stage.relay.holds.answer(await held(stage, 1), written)
    assert (task.result().why, task.result().rounds[0].text, upstream.seen) == ("answered", "By hand.", [])


@on_stage
async def test_a_held_request_can_be_stopped(stage: RunStage, upstream: Upstream) -> None:
    async with asyncio.TaskGroup() as group:
        task = group.create_task(stage.run(is_stepping=True))
        await held(stage, 1)
        stage.runner.stop("r_1", now=True)
    assert (task.result().why, task.result().rounds, upstream.seen) == ("cancelled", (), [])
    assert stage.relay.holds.waiting == ()


@on_stage
async def test_only_the_first_request_is_opened_otherwise(stage: RunStage, upstream: Upstream) -> None:
    upstream.script = [plays(calls(count(1))), plays(says())]
    heard: list[str] = []
    opening = Opening(hold=True, waits=False, budgeted=({"stage": "attempt"},))
    async with asyncio.TaskGroup() as group:
        task = group.create_task(stage.run(opening=opening, on_recorded=lambda entry: heard.append(entry.exchange)))
        release(stage, await held(stage, 1))
    assert (task.result().why, set(heard)) == ("answered", {"x_001", "x_002"})
    await stage.store.settle()
    planned = [
        [noted.fact for noted in await stage.store.facts(name) if isinstance(noted.fact, Budgeted)]
        for name in ("x_001", "x_002")
    ]
    assert planned == [[Budgeted({"stage": "attempt"})], []]


@pytest.mark.parametrize("spoken", DIALECTS)
@pytest.mark.parametrize("stream", [True, False])
async def test_runs_go_through_in_every_dialect_streamed_and_whole_and_replies_are_recalled_as_they_came(
    tmp_path: Path, spoken: str, *, stream: bool
) -> None:
    async with open_stage(tmp_path, spoken) as (stage, upstream):
        asked = reply(Text("Let me see."), count(1, "c1"), ToolCall("c2", "edit_file", '{"filePath": "x"}'))
        upstream.script = [plays(asked, spoken, stream=stream), plays(says("Done."), spoken, stream=stream)]
        ended = await stage.run(plan(spoken), prompt=stage.prompt(stream=stream))
        assert [call.name for call in stage.tools.used] == ["count", "edit_file"]
        assert b"count 1.1 did it" in upstream.seen[1].body
        assert wrong([ended.request], spoken) == []
        assert (ended.why, ended.rounds[-1].text) == ("answered", "Done.")
        for done, exchange in zip(ended.rounds, ("x_001", "x_002"), strict=True):
            found = await recall_reply(stage.store, exchange, stage.choice)
            assert (found.reply, found.sent) == (done.reply, None)


@on_stage
async def test_a_gate_lets_each_request_go_and_hears_when_it_has(stage: RunStage, upstream: Upstream) -> None:
    upstream.script = [plays(calls(count(1))), plays(says())]
    heard: list[str] = []

    async def admitted(prepared: Prepared) -> Callable[[], None]:
        heard.append(f"{len(prepared.request.messages)} at {len(upstream.seen)}")
        return lambda: heard.append("sent")

    ended = await stage.run(gate=RunGate(admitted))
    assert ended.why == "answered"
    assert heard == ["1 at 0", "sent", "sent", "3 at 1", "sent", "sent"]


@on_stage
async def test_what_a_gate_refuses_is_not_sent(stage: RunStage, upstream: Upstream) -> None:
    async def admitted(_prepared: Prepared) -> Callable[[], None]:
        raise Fault(Code.RATE_LIMITED, "not today", hint="Come back.")

    ended = await stage.run(gate=RunGate(admitted))
    assert (ended.why, upstream.seen) == ("failed", [])
    assert ended.reply.fault.message == "not today"


SPOKEN = "openai-responses"
SYSTEM, ASKED = Message("system", (Text("Be brief."),)), Message("user", (Text("Do it."),))
SPOKE, RESULT = Message("assistant", (Text("Well"),)), Message("tool", (Text("3"),))
REQUEST = Request("m", (SYSTEM, ASKED, SPOKE, RESULT), options=Options(store=True))
LAST = Round(number=1, reply=Reply(marker="resp_1"))


def test_only_what_came_after_the_marker_is_sent_with_the_instructions() -> None:
    shorter = behind_marker(REQUEST, LAST)
    assert shorter.messages == (SYSTEM, RESULT)
    assert shorter.options == Options(store=True, previous_response_id="resp_1")
    pictured = Message("system", (Image(Link("u")),))
    without = behind_marker(msgspec.structs.replace(REQUEST, messages=(pictured, SPOKE, RESULT)), LAST)
    assert without.messages == (RESULT,)


EDITED = CallRecord(key="1.1", id="a", name="f", arguments="{}", fate="ran", is_edited=True)
RESPELLED = CallRecord(key="1.1", id="a", name="f", arguments="{}", fate="ran", sent_id="b")


@pytest.mark.parametrize(
    ("request_", "last"),
    [
        (REQUEST, None),
        (REQUEST, Round(number=1, reply=Reply())),
        (REQUEST, Round(number=1, reply=Reply(marker="r", fault=Fault(Code.NETWORK, "x")))),
        (REQUEST, Round(number=1, reply=Reply(marker="r"), amendments=(Amendment("part", "a", "b"),))),
        (REQUEST, Round(number=1, reply=Reply(marker="r"), calls=(EDITED,))),
        (REQUEST, Round(number=1, reply=Reply(marker="r"), calls=(RESPELLED,))),
        (msgspec.structs.replace(REQUEST, options=Options(store=False)), LAST),
        (msgspec.structs.replace(REQUEST, messages=(ASKED,)), LAST),
        (msgspec.structs.replace(REQUEST, messages=(ASKED, SPOKE)), LAST),
    ],
)
def test_where_the_provider_may_have_another_conversation_all_is_sent(request_: Request, last: Round | None) -> None:
    assert behind_marker(request_, last) is None


def test_a_marker_that_is_not_known_any_more_is_recognised() -> None:
    assert is_forgotten(Fault(Code.INVALID_REQUEST, "Previous response with id 'resp_1' not found."))
    assert is_forgotten(Fault(Code.MODEL_UNKNOWN, "no", details={"param": "previous_response_id"}))
    assert not is_forgotten(Fault(Code.INVALID_REQUEST, "no"))
    assert not is_forgotten(Fault(Code.OVERLOADED, "previous response"))
    assert not is_forgotten(None)


def stored(reply: Reply, name: str) -> Play:
    """A streamed reply that the provider keeps under this name."""
    reply = msgspec.structs.replace(reply, id=name)
    data = write_reply(reply, SPOKEN, Client(id=name, model="m", created=1), is_stream=True)
    assert b'"object":"response"' in data
    return streams(data.replace(b'"object":"response"', b'"object":"response","store":true'))


def _stage(stage: RunStage, upstream: Upstream, *script: Play) -> None:
    acme = stage.catalog.providers["acme"]
    assert isinstance(acme, Provider)
    stage.catalog.providers["acme"] = msgspec.structs.replace(acme, quirks=Quirks(store=True))
    upstream.script = list(script)


async def test_a_run_whose_replies_are_kept_sends_what_is_new(tmp_path: Path) -> None:
    async with open_stage(tmp_path, SPOKEN) as (stage, upstream):
        _stage(stage, upstream, stored(calls(count(1)), "resp_1"), stored(says("Done."), "resp_2"))
        ended = await stage.run(plan(SPOKEN))
        first, second = (seen.json() for seen in upstream.seen)
        assert "previous_response_id" not in first
        assert second["previous_response_id"] == "resp_1"
        assert [item["type"] for item in second["input"]] == ["function_call_output"]
        assert (ended.why, [message.role for message in ended.request.messages]) == (
            "answered", ["user", "assistant", "tool", "assistant"],
        )  # fmt: skip


async def test_a_provider_that_has_forgotten_gets_all_of_it_once(tmp_path: Path) -> None:
    async with open_stage(tmp_path, SPOKEN) as (stage, upstream):
        gone = answers({"error": {"message": "Previous response with id 'resp_1' not found.", "code": "x"}}, 400)
        _stage(stage, upstream, stored(calls(count(1)), "resp_1"), gone, stored(says("Done."), "resp_2"))
        ended = await stage.run(plan(SPOKEN))
        _, second, third = (seen.json() for seen in upstream.seen)
        assert (second["previous_response_id"], "previous_response_id" in third) == ("resp_1", False)
        assert len(third["input"]) == 3
        assert (ended.why, len(ended.rounds)) == ("answered", 2)


async def test_stepping_through_a_run_shows_the_full_request(tmp_path: Path) -> None:
    async with open_stage(tmp_path, SPOKEN) as (stage, upstream):
        _stage(stage, upstream, stored(calls(count(1)), "resp_1"), stored(says("Done."), "resp_2"))
        async with asyncio.TaskGroup() as group:
            group.create_task(stage.run(plan(SPOKEN), is_stepping=True))
            release(stage, await held(stage, 1))
            release(stage, await held(stage, 2))
        assert [len(seen.json()["input"]) for seen in upstream.seen] == [1, 3]


@on_stage
async def test_what_is_not_on_record_whole_is_not_recalled(stage: RunStage, upstream: Upstream) -> None:
    upstream.script = [begins(calls(count(1))), answers({"error": {"message": "no"}}, 400), plays(says())]
    for run in ("r_1", "r_2", "r_3"):
        await stage.run(run=run)
    assert await recall_reply(stage.store, "x_000", stage.choice) is None
    assert await recall_reply(stage.store, "x_001", stage.choice) is None
    assert await recall_reply(stage.store, "x_002", stage.choice) is None
    assert await recall_reply(stage.store, "x_003", stage.choice) is not None
    after = len(await stage.store.facts("x_003"))
    stage.store.record([FactEntry("x_003", after, 0.0, Answered("00"))])
    assert await recall_reply(stage.store, "x_003", stage.choice) is None


async def test_reply_with_unreliable_finish_reason_is_not_recalled(tmp_path: Path) -> None:
    async with open_stage(tmp_path, "openai-responses") as (stage, upstream):
        upstream.script = [plays(says(), "openai-responses")]
        await stage.run(plan("openai-responses"))
        provider = msgspec.structs.replace(stage.choice.provider, quirks=Quirks(reports_length=False))
        stage.catalog.providers["acme"] = provider
        assert await recall_reply(stage.store, "x_001", stage.choice) is None


@on_stage
async def test_reply_whose_body_was_deleted_by_retention_is_not_recalled(stage: RunStage, upstream: Upstream) -> None:
    upstream.script = [plays(says())]
    await stage.run()
    await stage.store.settle()

    async def gone(_exchange: str, _sha256: str) -> None:
        return None

    stage.store.body = gone
    assert await recall_reply(stage.store, "x_001", stage.choice) is None
