"""The tool calls of a reply, held before the client sees the first of them: looked at, changed, taken out, refused."""

import asyncio
import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from sightline.dialects.dialect import Client
from sightline.editing.operations import Delete, SetText
from sightline.exchange.interception.core.reply_writing import write_reply
from sightline.model.exchange import Answered, Edited, ExchangeFinished
from sightline.model.parts import Refusal, Text, Thinking, ToolCall
from sightline.model.reply import Reply
from tests.contract.cases import cases
from tests.holding import CODED, JSON, SSE, asking, coded, held, let_go, promptly, said_by
from tests.relay_stage import DIALECTS, asks, is_error_of, open_stage
from tests.reply_samples import SAYS, heard, streamed, whole
from tests.stepping_clock import SteppingClock
from tests.upstream import LAST, answer, chunk, head, pieces, says


def digest(data: bytes) -> str:
    return sha256(data).hexdigest()


@pytest.mark.parametrize("name", ["stream.sse", "reply.json"])
def test_a_reply_that_is_written_anew_says_the_same(name: str) -> None:
    for case in cases(name):
        reply = heard(case.dialect, case.file(name))
        if reply.fault is None:
            client = Client(id=reply.id or "", model=reply.model or "")
            for is_stream in (False, True):
                again = heard(case.dialect, write_reply(reply, case.dialect, client, is_stream=is_stream))
                assert seen(again) == seen(reply), (str(case), is_stream)


def seen(reply: Reply) -> list[Any]:
    """What a client does something with, or has to send back: words, signatures, calls, and why it ended."""
    told: list[Any] = [reply.choice.finish, reply.usage and (reply.usage.input_tokens, reply.usage.output_tokens)]
    for part in reply.choice.parts:
        match part:
            case ToolCall():
                told.append((part.name, part.arguments, part.kind, part.signature))
            case Thinking():
                told.append((part.text, part.signature, part.id, part.redacted))
            case Text() | Refusal():
                told.append((type(part), part.text))
            case _:
                told.append(type(part))
    return told


CALLS = [{"filter": "", "phase": "tool_calls"}]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("spoken", DIALECTS)
async def test_calls_that_were_only_looked_at_pass_as_they_came(tmp_path: Path, spoken: str, stream: bool) -> None:
    reply = b"".join(streamed(spoken)) if stream else whole(spoken)
    async with open_stage(tmp_path, spoken, clock=SteppingClock()) as stage:
        stage.relay.holds.set_rules(CALLS)
        stage.upstream.script = [answer(200, reply, SSE if stream else JSON)]
        asked = asks(spoken, stream=stream)
        async with asking(stage, asked) as (client,):
            hold = await held(stage)
            (section,) = hold.draft.sections
            assert (hold.phase, json.loads(section.text)) == ("tool_calls", {"city": "Rome"})
            assert stage.kinds() == ["received", "attempt", "held"]
            assert stage.raw_reply() == reply
            assert stage.bodies()[hold.draft.sha256] == hold.draft.data
            let_go(stage, hold)
        assert client.result().body == reply
        assert stage.kinds() == ["received", "attempt", "held", "released", "finished"]
        last = stage.facts()[-1]
        assert isinstance(last, ExchangeFinished)
        assert (last.tools, last.sha256) == (("weather",), digest(reply))


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("provider", ["openai-chat", "anthropic"])
@pytest.mark.parametrize("spoken", DIALECTS)
async def test_changed_arguments_are_what_the_client_gets(
    tmp_path: Path, spoken: str, provider: str, stream: bool
) -> None:
    async with open_stage(tmp_path, provider, clock=SteppingClock()) as stage:
        stage.relay.holds.set_rules(CALLS)
        stage.upstream.script = [
            answer(200, b"".join(streamed(provider)), SSE) if stream else answer(200, whole(provider), JSON)
        ]
        async with asking(stage, asks(spoken, stream=stream)) as (client,):
            hold = await held(stage)
            stage.relay.holds.edit("x_1", SetText(section=hold.draft.sections[0].id, text='{"city":"Bern"}'))
            assert isinstance(stage.facts()[-1], Edited)
            let_go(stage, hold)
        got = client.result()
        assert b"Bern" in got.body
        assert b"Rome" not in got.body
        assert b"look." in got.body
        assert stage.kinds()[-5:] == ["held", "edited", "released", "answered", "finished"]
        answered = stage.facts()[-2]
        assert isinstance(answered, Answered)
        told = json.loads(stage.bodies()[answered.sha256])
        assert json.loads(told["parts"][-1]["arguments"]) == {"city": "Bern"}


@pytest.mark.parametrize("stream", [False, True])
async def test_a_reply_whose_calls_are_all_deleted_simply_stops(tmp_path: Path, stream: bool) -> None:
    async with open_stage(tmp_path, "anthropic", clock=SteppingClock()) as stage:
        stage.relay.holds.set_rules(CALLS)
        reply = b"".join(streamed("anthropic")) if stream else whole("anthropic")
        stage.upstream.script = [answer(200, reply, SSE if stream else JSON)]
        async with asking(stage, asks("anthropic", stream=stream)) as (client,):
            hold = await held(stage)
            let_go(stage, stage.relay.holds.edit("x_1", Delete(section=hold.draft.sections[0].id)))
        got = client.result()
        assert b"tool_use" not in got.body
        assert b"end_turn" in got.body
        last = stage.facts()[-1]
        assert isinstance(last, ExchangeFinished)
        assert (last.finish, last.tools) == ("stop", ())


async def test_calls_may_be_dropped_by_a_person_and_by_a_rule_and_answered_by_hand(tmp_path: Path) -> None:
    async with open_stage(tmp_path) as stage:
        holds = stage.relay.holds
        holds.set_rules(CALLS)
        stage.upstream.script = [answer(200, whole("openai-chat"), JSON)]
        async with asking(stage, asks("openai-chat"), asks("openai-chat")) as (first, second):
            holds.drop("x_1", "too dangerous")
            holds.answer("x_2", said_by("I may not."))
        assert is_error_of("openai-chat", first.result().status, first.result().body)
        assert b"the tool calls of this reply were dropped in Sightline: too dangerous" in first.result().body
        assert stage.kinds("x_1") == ["received", "attempt", "held", "dropped"]
        assert second.result().json()["choices"][0]["message"]["content"] == "I may not."
        assert stage.kinds("x_2") == ["received", "attempt", "held", "answered", "finished"]
        assert stage.raw_reply("x_2") == whole("openai-chat")
        holds.set_rules([{"filter": "tool:weather", "phase": "tool_calls", "action": "drop"}])
        dropped = await stage.ask(asks("openai-chat"))
        assert dropped.status == 400
        assert b"the tool calls of this reply were dropped in Sightline: a rule drops it" in dropped.body
        assert stage.kinds("x_3") == ["received", "attempt", "dropped"]
        holds.set_rules([{"filter": "tool:other", "phase": "tool_calls"}])
        assert (await stage.ask(asks("openai-chat"))).body == whole("openai-chat")
        assert stage.kinds("x_4") == ["received", "attempt", "finished"]


@pytest.mark.parametrize("stream", [False, True])
async def test_a_reply_without_calls_is_not_held_and_an_error_neither(tmp_path: Path, stream: bool) -> None:
    frames = streamed("openai-chat", SAYS)
    async with open_stage(tmp_path, clock=SteppingClock()) as stage:
        stage.relay.holds.set_rules(CALLS)
        ok = answer(200, b"".join(frames), SSE) if stream else answer(200, whole("openai-chat", SAYS), JSON)
        stage.upstream.script = [ok, says({"error": {"message": "no"}}, 401), answer(200, b"<html>", JSON)]
        got = await stage.ask(asks("openai-chat", stream=stream))
        assert got.body == (b"".join(frames) if stream else whole("openai-chat", SAYS))
        assert (await stage.ask(asks("openai-chat", stream=stream))).status == 401
        page = await stage.ask(asks("openai-chat", stream=stream))
        assert (page.status, page.body) == (200, b"<html>") or (stream and page.status == 502)
        assert [stage.kinds(f"x_{n}")[-1] for n in (1, 2, 3)] == ["finished", "failed", "failed"]
        assert not stage.relay._active


async def test_a_coded_reply_is_read_and_passes_as_it_came(tmp_path: Path) -> None:
    packed = coded(streamed("openai-chat"))
    async with open_stage(tmp_path, clock=SteppingClock()) as stage:
        stage.relay.holds.set_rules(CALLS)
        stage.upstream.script = [answer(200, packed, CODED)]
        asked = asks("openai-chat", stream=True, headers=(("Accept-Encoding", "gzip"),))
        async with asking(stage, asked) as (client,):
            let_go(stage, await held(stage))
        assert (client.result().body, client.result().header("content-encoding")) == (packed, "gzip")


async def test_a_client_may_leave_while_its_reply_comes_or_is_held(tmp_path: Path) -> None:
    async with open_stage(tmp_path, clock=SteppingClock()) as stage:
        stage.relay.holds.set_rules(CALLS)
        frames, gate = streamed("openai-chat"), asyncio.Event()
        begun = pieces(head(200, SSE), chunk(frames[0]), gate.set, asyncio.Event())
        stage.upstream.script = [begun, answer(200, whole("openai-chat"), JSON)]
        for number, stream in ((1, True), (2, False)):
            client = asyncio.get_running_loop().create_task(stage.ask(asks("openai-chat", stream=stream)))
            await (promptly(gate.wait()) if number == 1 else held(stage))
            client.cancel()
            with pytest.raises(asyncio.CancelledError):
                await client
            assert stage.kinds(f"x_{number}")[-1] == "cancelled"
        assert not stage.relay._active


async def test_the_servers_end_cancels_held_calls_and_breaks_off_replies_that_come(tmp_path: Path) -> None:
    async with open_stage(tmp_path, clock=SteppingClock()) as stage:
        stage.relay.holds.set_rules(CALLS)
        begun = pieces(head(200, SSE), chunk(streamed("openai-chat")[0]), asyncio.Event())
        stage.upstream.script = [answer(200, whole("openai-chat"), JSON), begun]
        async with asking(stage, asks("openai-chat")) as (first,), asyncio.TaskGroup() as group:
            second = group.create_task(stage.ask(asks("openai-chat", stream=True)))
            await promptly(stage.upstream.arrived(2))
            await promptly(stage.relay.close(0))
        assert [first.result().status, second.result().status] == [503, 503]
        assert [stage.kinds(f"x_{n}")[-1] for n in (1, 2)] == ["cancelled", "cancelled"]


async def test_a_reply_that_breaks_off_is_passed_as_far_as_it_came(tmp_path: Path) -> None:
    frames = streamed("openai-chat")
    async with open_stage(tmp_path, clock=SteppingClock()) as stage:
        stage.relay.holds.set_rules(CALLS)
        stage.upstream.script = [pieces(head(200, SSE), *map(chunk, frames[:3]), LAST)]
        got = await stage.ask(asks("openai-chat", stream=True))
        assert got.body.startswith(b"".join(frames[:3]))
        assert b'"error"' in got.body
        assert stage.kinds() == ["received", "attempt", "failed"]


async def test_a_coded_reply_that_breaks_off_is_an_error(tmp_path: Path) -> None:
    packed = coded(streamed("openai-chat"))
    async with open_stage(tmp_path, clock=SteppingClock()) as stage:
        stage.relay.holds.set_rules(CALLS)
        stage.upstream.script = [pieces(head(200, CODED), chunk(packed[:40]), then="eof")]
        asked = asks("openai-chat", stream=True, headers=(("Accept-Encoding", "gzip"),))
        assert (await stage.ask(asked)).status >= 500
        assert stage.kinds()[-1] == "failed"
