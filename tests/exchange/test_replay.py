import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from sightline.dialects.registry import dialect
from sightline.dialects.reply_decoder import ReplyDecoder
from sightline.exchange.client_request import ClientRequest
from sightline.exchange.recording.library import Library
from sightline.exchange.replay_handler import ReplayHandler
from sightline.filters.expression import EVERYTHING
from sightline.model.fold import fold
from sightline.store.entries import Entry
from tests.fake_clock import FakeClock
from tests.recordings import exchange, failed, store_with
from tests.relay_stage import DIALECTS, Got, asks, is_error_of, taken
from tests.store.traffic import NOON, chat_stream

CHAT = asks("openai-chat").body
FRAMES = chat_stream("Hel", "lo")
WHOLE = {
    "id": "r",
    "object": "chat.completion",
    "model": "m",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11},
}

Ask = Callable[[ClientRequest], Awaitable[Got]]


@asynccontextmanager
async def open_replay(
    folder: Path, recordings: list[list[Entry]], *, fast: bool = False
) -> AsyncIterator[tuple[Ask, FakeClock]]:
    """A relay that has these recordings."""
    async with store_with(folder, *recordings) as store:
        library, clock = Library(store), FakeClock()
        await library.fill(EVERYTHING, now=NOON)
        replaying = ReplayHandler(library, clock, fast=fast)

        async def ask(asked: ClientRequest) -> Got:
            return await taken(await replaying.start(asked))

        yield ask, clock


def said(spoken: str, got: Got) -> str:
    hearing = ReplyDecoder(dialect(spoken))
    reply = fold([*hearing.feed(got.body), *hearing.close()])
    assert reply.fault is None
    return "".join(part.text for part in reply.choice.parts)  # type: ignore[union-attr]


async def test_a_stream_comes_frame_for_frame_with_the_original_timing(tmp_path: Path) -> None:
    async with open_replay(tmp_path, [exchange("x_1", CHAT, FRAMES)]) as (ask, clock):
        got = await ask(asks("openai-chat", stream=True))
        assert got.pieces == FRAMES
        assert clock.waits == pytest.approx([0.5, 0.5, 0.5, 0.5])
        assert got.header("content-type") == "text/event-stream"
        assert got.header("x-request-id") == "r1"
        assert got.header("x-sightline-exchange") == "x_1"
        assert got.header("x-sightline-replayed") == "1"


async def test_at_full_speed_nothing_is_waited_for(tmp_path: Path) -> None:
    async with open_replay(tmp_path, [exchange("x_1", CHAT, FRAMES)], fast=True) as (ask, clock):
        assert (await ask(asks("openai-chat", stream=True))).pieces == FRAMES
        assert (await ask(asks("openai-chat"))).json()["choices"][0]["message"]["content"] == "Hello"
        assert clock.waits == []


async def test_an_ending_server_waits_no_longer(tmp_path: Path) -> None:
    async with store_with(tmp_path, exchange("x_1", CHAT, FRAMES)) as store:
        library, clock = Library(store), FakeClock()
        await library.fill(EVERYTHING, now=NOON)
        replaying = ReplayHandler(library, clock)
        relayed = await replaying.start(asks("openai-chat", stream=True))
        await replaying.close(5)
        assert (await taken(relayed)).pieces == FRAMES
        assert clock.waits == []


@pytest.mark.parametrize("spoken", DIALECTS)
@pytest.mark.parametrize("wants", ["stream", "whole"])
@pytest.mark.parametrize("recorded", ["stream", "whole"])
async def test_a_recording_answers_clients_of_any_dialect_whole_and_streamed(
    spoken: str, wants: str, recorded: str, tmp_path: Path
) -> None:
    body = json.dumps({**json.loads(CHAT), "max_tokens": 100}).encode()
    frames = FRAMES if recorded == "stream" else [json.dumps(WHOLE).encode()]
    async with open_replay(tmp_path, [exchange("x_1", body, frames, stream=recorded == "stream")]) as (ask, clock):
        limited: dict[str, dict[str, Any]] = {
            "gemini": {"generationConfig": {"maxOutputTokens": 100}},
            "openai-responses": {"max_output_tokens": 100},
        }
        more: dict[str, Any] = limited.get(spoken, {"max_tokens": 100})
        asked = asks(spoken, stream=wants == "stream")
        body = json.dumps({**json.loads(asked.body), **more}).encode()
        got = await ask(asks(spoken, stream=wants == "stream", body=body))
        assert got.status == 200, got.body
        assert said(spoken, got) == "Hello"
        is_stream = got.header("content-type").startswith("text/event-stream")
        assert is_stream == (wants == "stream")
        assert sum(clock.waits) == pytest.approx(2.0 if recorded == "stream" else 0.5)


async def test_a_whole_answer_comes_as_it_came_without_the_coding_that_it_had(tmp_path: Path) -> None:
    data = json.dumps(WHOLE).encode()

    async with open_replay(tmp_path, [exchange("x_1", CHAT, [data], stream=False)]) as (ask, _):
        got = await ask(asks("openai-chat"))
        assert got.body == data
        assert got.header("content-encoding") == ""
        assert got.header("content-length") == str(len(data))


@pytest.mark.parametrize("spoken", DIALECTS)
async def test_a_recorded_error_is_an_error_and_the_retry_gets_what_came_then(spoken: str, tmp_path: Path) -> None:
    busy = b'{"error":{"message":"busy","type":"server_error"}}'

    limit = {"max_tokens": 100} if spoken == "anthropic" else {}
    body = json.dumps({**json.loads(CHAT), **limit}).encode()
    refused = exchange("x_1", body, [busy], stream=False, end=failed(503))
    async with open_replay(tmp_path, [refused, exchange("x_2", body, FRAMES)]) as (ask, _):
        more: dict[str, Any] = {} if spoken != "anthropic" else {"max_tokens": 100}
        body = json.dumps({**json.loads(asks(spoken).body), **more}).encode()
        first, second = await ask(asks(spoken, body=body)), await ask(asks(spoken, body=body))
        assert first.status == 503
        assert is_error_of(spoken, first.status, first.body)
        assert (first.body == busy) == (spoken == "openai-chat")
        assert said(spoken, second) == "Hello"


@pytest.mark.parametrize("spoken", ["openai-chat", "openai-responses"])
@pytest.mark.parametrize("stream", [True, False])
async def test_a_stream_that_broke_off_breaks_off_again_and_never_looks_whole(
    spoken: str, stream: bool, tmp_path: Path
) -> None:
    async with open_replay(tmp_path, [exchange("x_1", CHAT, [FRAMES[0], FRAMES[1][:-2]], end=failed(200))]) as (ask, _):
        got = await ask(asks(spoken, stream=stream))
        hearing = ReplyDecoder(dialect(spoken))
        if stream:
            reply = fold([*hearing.feed(got.body), *hearing.close()])
            assert "busy" in reply.fault.message
            assert got.body.count(b"busy") >= 1
        else:
            assert is_error_of(spoken, got.status, got.body)


async def test_unreadable_frame_fails_translation_but_is_passed_through_as_is(tmp_path: Path) -> None:
    frames = [FRAMES[0], b"data: {nonsense\n\n", *FRAMES[1:]]

    async with open_replay(tmp_path, [exchange("x_1", CHAT, frames)]) as (ask, _):
        assert (await ask(asks("openai-chat", stream=True))).pieces == frames
        got = await ask(asks("openai-responses", stream=True))
        assert b"response.failed" in got.body
        assert b"response.completed" not in got.body


@pytest.mark.parametrize("spoken", DIALECTS)
async def test_a_miss_fails_loudly_in_the_clients_dialect_with_the_nearest_recording(
    spoken: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_replay(tmp_path, [exchange("x_1", CHAT, FRAMES)]) as (ask, _):
        got = await ask(asks(spoken, stream=True, model="n", body=asks(spoken).body.replace(b"hi", b"ho")))
        assert got.status == 404
        assert is_error_of(spoken, got.status, got.body)
        assert b"x_1" in got.body
        assert b"-user: hi" in got.body
        assert b"+user: ho" in got.body
        assert got.header("x-sightline-exchange") == ""
        assert "no recording of this request" in caplog.text


async def test_without_recordings_and_for_what_is_no_request_there_is_a_refusal_too(tmp_path: Path) -> None:
    async with open_replay(tmp_path, []) as (ask, _):
        assert b"nor any other" in (await ask(asks("openai-chat"))).body
        assert (await ask(asks("openai-chat", body=b'{"messages":7}'))).status == 400


async def test_a_count_is_answered_by_a_count_and_by_nothing_else(tmp_path: Path) -> None:
    body = asks("anthropic").body
    count = exchange(
        "x_1", body, [b'{"input_tokens":12}'], spoken="anthropic", stream=False, path="/v1/messages/count_tokens"
    )

    async with open_replay(tmp_path, [count]) as (ask, _):
        got = await ask(asks("anthropic", counts=True))
        assert got.json() == {"input_tokens": 12}
        assert (await ask(asks("anthropic"))).status == 404


async def test_tools_get_the_names_back_under_which_the_client_knows_them(tmp_path: Path) -> None:
    call = {"index": 0, "id": "c1", "type": "function", "function": {"name": "ls", "arguments": '{"input":"-l"}'}}
    chunks: list[dict[str, Any]] = [
        {"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": None},
        {"index": 0, "delta": {}, "finish_reason": "tool_calls"},
    ]
    frames = [b"data: " + json.dumps({"id": "r", "choices": [chunk]}).encode() + b"\n\n" for chunk in chunks]
    tools = [{"type": "custom", "name": "ls"}]
    body = json.dumps({"model": "m", "input": "hi", "tools": tools, "stream": True}).encode()

    sent = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    recorded = exchange(
        "x_1", body, [*frames, b"data: [DONE]\n\n"], asked="openai-responses", sent=json.dumps(sent).encode()
    )
    async with open_replay(tmp_path, [recorded]) as (ask, _):
        got = await ask(asks("openai-responses", stream=True, body=body))
        assert b'"type":"custom_tool_call"' in got.body
        assert b'"input":"-l"' in got.body
