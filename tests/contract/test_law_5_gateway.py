"""Law 5 through the relay, for every pair of dialects: whatever the provider does, the client sees a legal failure."""

import asyncio
import gzip
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from sightline.errors import Code, Fault
from sightline.exchange.interception.core.reply_writing import failure_frame
from sightline.model.exchange import ExchangeFailed, ExchangeFinished
from sightline.model.fold import fold
from sightline.model.reply import Reply
from tests.contract.test_law_4_stream_is_whole import read_stream
from tests.relay_stage import DIALECTS, Got, Stage, asks, is_error_of, open_stage, taken
from tests.reply_samples import streamed, whole
from tests.upstream import Play, answer, chunk, cut, head, pieces, says, stall, streams

SSE = [("Content-Type", "text/event-stream")]
JSON = [("Content-Type", "application/json")]
HTML = b"<html><title>502 Bad Gateway</title><body>nginx</body></html>"
ERRORS = {
    "openai-chat": re.compile(rb'data: \{"error":\{"message":.*"type":.*"code":'),
    "openai-responses": re.compile(rb"event: (?:response\.failed|error)\n"),
    "anthropic": re.compile(rb'event: error\ndata: \{"type":"error"'),
    "gemini": re.compile(rb'data: \{"error":\{"code":\d+,"message":.*"status":'),
}
pair = pytest.mark.parametrize(("client", "provider"), [(a, b) for a in DIALECTS for b in DIALECTS])


def saw_a_failure(client: str, got: Got, *statuses: int) -> None:
    """A status with the dialect's error body, or a stream that says in its own words that it failed."""
    if got.status >= 400:
        assert is_error_of(client, got.status, got.body)
        assert got.status in (statuses or (502,))
        return
    assert ERRORS[client].search(got.body), got.body
    reply = fold(read_stream(client, [got.body]))
    assert reply.fault is not None
    assert reply.choice.finish == "error"


def failure(stage: Stage, exchange: str = "x_1") -> ExchangeFailed:
    last = stage.facts(exchange)[-1]
    assert isinstance(last, ExchangeFailed), last
    return last


@pair
async def test_a_stream_that_is_cut_at_any_frame(tmp_path: Path, client: str, provider: str) -> None:
    frames = streamed(provider)
    async with open_stage(tmp_path, provider) as stage:
        stage.upstream.script = [
            cut(head(200, SSE), *map(chunk, frames[:index]), how="eof") for index in range(len(frames))
        ]
        for index in range(len(frames)):
            got = await stage.ask(asks(client, stream=True))
            last = stage.facts(got.exchange)[-1]
            if isinstance(last, ExchangeFinished):  # the legal end had come before the connection went
                assert fold(read_stream(client, [got.body])).fault is None
                assert fold(read_stream(provider, [b"".join(frames[:index])])).fault is None
            else:
                saw_a_failure(client, got)
                assert failure(stage, got.exchange).code == Code.NETWORK
                if client == provider:
                    assert got.body.startswith(b"".join(frames[:index]))
        assert len(stage.upstream.seen) == len(frames), "nothing is sent again once an answer has begun"


@pair
async def test_a_stream_that_ends_in_order_at_any_frame_before_its_end(
    tmp_path: Path, client: str, provider: str
) -> None:
    frames = streamed(provider)
    async with open_stage(tmp_path, provider) as stage:
        stage.upstream.script = [streams(*frames[:index]) for index in range(len(frames))]
        for index in range(len(frames)):
            got = await stage.ask(asks(client, stream=True))
            source = fold(read_stream(provider, [b"".join(frames[:index])]))
            if source.fault is None:
                assert isinstance(stage.facts(got.exchange)[-1], ExchangeFinished)
                continue
            assert failure(stage, got.exchange).code == Code.UPSTREAM_PROTOCOL
            saw_a_failure(client, got)


@pytest.mark.parametrize("spoken", DIALECTS)
async def test_a_stream_that_is_reset(tmp_path: Path, spoken: str) -> None:
    frames = streamed(spoken)
    async with open_stage(tmp_path, spoken) as stage:
        was_read = asyncio.Event()
        stage.upstream.script = [cut(head(200, SSE), chunk(frames[0]), was_read)]
        relayed = await stage.relay.start(asks(spoken, stream=True))
        got = Got(relayed.exchange, relayed.status, relayed.headers)
        async with relayed:
            async for piece in relayed:
                got.pieces.append(piece)
                was_read.set()
        assert got.pieces[0] == frames[0]
        saw_a_failure(spoken, got)
        assert failure(stage).code == Code.NETWORK


@pair
@pytest.mark.parametrize("begun", [False, True])
async def test_a_stream_that_stalls(tmp_path: Path, client: str, provider: str, begun: bool) -> None:
    frames = streamed(provider)
    async with open_stage(tmp_path, provider, stream_idle_timeout_ms=30) as stage:
        stage.upstream.script = [stall(head(200, SSE), *(chunk(frame) for frame in frames[: 4 * begun]))]
        got = await stage.ask(asks(client, stream=True))
        saw_a_failure(client, got, 504)
        assert failure(stage).code == Code.TIMEOUT_IDLE
        await stage.upstream.gone()


@pair
async def test_a_malformed_frame(tmp_path: Path, client: str, provider: str) -> None:
    frames = streamed(provider)
    spoilt = [*frames[:2], b"data: {broken\n\n", *frames[2:]]
    async with open_stage(tmp_path, provider) as stage:
        stage.upstream.script = [streams(*spoilt)]
        got = await stage.ask(asks(client, stream=True))
        if client != provider:
            saw_a_failure(client, got)
            assert failure(stage).code == Code.UPSTREAM_PROTOCOL
            return
        last = stage.facts()[-1]
        assert got.body == b"".join(spoilt)
        assert isinstance(last, ExchangeFinished)
        assert "cannot be read" in last.warning


NO_REPLIES: dict[str, Callable[[], Play]] = {
    "html": lambda: answer(200, HTML, [("Content-Type", "text/html")]),
    "empty": lambda: answer(200, b"", JSON),
    "blank": lambda: answer(200, b" \n", JSON),
    "no content": lambda: answer(204, b"", framing="length"),
    "empty stream": lambda: streams(),
    "empty stream of a known length": lambda: answer(200, b"", SSE),
    "comments": lambda: streams(b": hello\n\n", b": still here\r\n\r\n"),
    "white space": lambda: streams(b"\n\n", b"  \n"),
    "pings": lambda: streams(b'event: ping\ndata: {"type": "ping"}\n\n'),
    "a bare end": lambda: streams(b": hello\n\ndata: [DO", b"NE]\n\n"),
    "a bare end without a line end": lambda: streams(b"data: [DONE]"),
    "a page as a stream": lambda: answer(200, HTML, SSE),
    "coded and empty": lambda: answer(200, gzip.compress(b""), [*JSON, ("Content-Encoding", "gzip")]),
    "a coded and empty stream": lambda: answer(200, gzip.compress(b": hi\n\n"), [*SSE, ("Content-Encoding", "gzip")]),
    "other JSON": lambda: answer(200, b'{"ok": true}', JSON),
    "not JSON": lambda: answer(200, b'{"ok": tru', JSON),
}


AS_THEY_CAME = ("html", "other JSON", "not JSON")
"""Bodies that pass to a client of the same dialect who wants no stream, and that no client takes for a reply."""


@pair
@pytest.mark.parametrize("stream", [False, True])
async def test_an_answer_that_is_no_reply(tmp_path: Path, client: str, provider: str, stream: bool) -> None:
    async with open_stage(tmp_path, provider) as stage:
        for what, play in NO_REPLIES.items():
            stage.upstream.script = [play()]
            got = await stage.ask(asks(client, stream=stream))
            assert failure(stage, got.exchange).code == Code.UPSTREAM_PROTOCOL, what
            is_passed = client == provider and not stream and what in AS_THEY_CAME
            if is_passed:  # as it came: it is nothing that a client of this dialect takes for a reply
                assert got.status == 200, what
                assert fold(read_stream(client, [got.body])).fault is not None, what
            else:
                saw_a_failure(client, got)


@pair
async def test_a_whole_reply_that_is_cut(tmp_path: Path, client: str, provider: str) -> None:
    body = whole(provider)
    async with open_stage(tmp_path, provider) as stage:
        stage.upstream.script = [cut(head(200, JSON, framing=str(len(body))), body[:-5], how="eof")]
        got = await stage.ask(asks(client))
        assert got.status == 502
        assert is_error_of(client, got.status, got.body)
        assert (failure(stage).code, failure(stage).status) == (Code.NETWORK, 502)


@pair
async def test_a_whole_reply_that_stalls(tmp_path: Path, client: str, provider: str) -> None:
    async with open_stage(tmp_path, provider, stream_idle_timeout_ms=30) as stage:
        stage.upstream.script = [stall(head(200, JSON), chunk(whole(provider)[:-5]))]
        got = await stage.ask(asks(client))
        assert got.status == 504
        assert is_error_of(client, got.status, got.body)
        assert failure(stage).code == Code.TIMEOUT_IDLE


@pair
@pytest.mark.parametrize("stream", [False, True])
async def test_an_error_keeps_its_status_and_its_words(
    tmp_path: Path, client: str, provider: str, stream: bool
) -> None:
    async with open_stage(tmp_path, provider, request_max_retries=0, stream_max_retries=0) as stage:
        error = {"error": {"message": "the provider's own words", "type": "some_error"}}
        for status in (400, 401, 403, 404, 413, 422, 429, 500, 502, 503, 529):
            stage.upstream.script = [says(error, status, [("Retry-After", "33"), ("X-Request-Id", "r1")])]
            got = await stage.ask(asks(client, stream=stream))
            assert got.status == status or (got.status >= 500 and status >= 500)
            assert b"the provider's own words" in got.body
            assert got.header("retry-after") == "33"
            assert got.header("x-sightline-exchange") == got.exchange
            assert failure(stage, got.exchange).status == got.status
            if client == provider:
                assert got.json() == error
                assert got.header("x-request-id") == "r1"


@pair
async def test_a_connection_that_closes_without_an_answer(tmp_path: Path, client: str, provider: str) -> None:
    async with open_stage(tmp_path, provider, request_max_retries=0, stream_max_retries=0) as stage:
        stage.upstream.script = [cut(how="eof")]
        got = await stage.ask(asks(client, stream=True))
        assert got.status == 502
        assert is_error_of(client, got.status, got.body)
        assert failure(stage).code == Code.NETWORK


@pair
async def test_no_answer_in_time(tmp_path: Path, client: str, provider: str) -> None:
    async with open_stage(tmp_path, provider, first_byte_timeout_ms=30, request_max_retries=0) as stage:
        stage.upstream.script = [stall()]
        got = await stage.ask(asks(client))
        assert got.status == 504
        assert is_error_of(client, got.status, got.body)
        assert failure(stage).code == Code.TIMEOUT_IDLE


@pair
async def test_redirects_are_not_followed(tmp_path: Path, client: str, provider: str) -> None:
    async with open_stage(tmp_path, provider) as stage:
        stage.upstream.script = [answer(307, b"", [("Location", "https://elsewhere.example/?key=abcd")])]
        got = await stage.ask(asks(client))
        assert got.status == 502
        assert is_error_of(client, got.status, got.body)
        assert failure(stage).code == Code.UPSTREAM_PROTOCOL
        assert len(stage.upstream.seen) == 1


@pytest.mark.parametrize("spoken", DIALECTS)
async def test_the_provider_s_own_error_frame_passes_and_nothing_is_added(tmp_path: Path, spoken: str) -> None:
    error = failure_frame(spoken, Fault(Code.OVERLOADED, "too busy"), Reply(), b"")
    said = [*streamed(spoken)[:3], error]
    async with open_stage(tmp_path, spoken) as stage:
        stage.upstream.script = [streams(*said)]
        got = await stage.ask(asks(spoken, stream=True))
        assert got.body == b"".join(said)
        assert "too busy" in failure(stage).message


@pair
async def test_an_error_in_place_of_a_stream_s_first_words_has_a_status(
    tmp_path: Path, client: str, provider: str
) -> None:
    async with open_stage(tmp_path, provider) as stage:
        stage.upstream.script = [streams(failure_frame(provider, Fault(Code.OVERLOADED, "too busy"), Reply(), b""))]
        got = await stage.ask(asks(client, stream=True))
        assert b"too busy" in got.body
        assert (got.status == 200) == (client == provider)
        assert (got.status >= 500) == (client != provider)
        assert "too busy" in failure(stage).message


@pytest.mark.parametrize("spoken", DIALECTS)
async def test_error_after_a_partial_frame_starts_on_its_own_line(tmp_path: Path, spoken: str) -> None:
    frames = streamed(spoken)
    async with open_stage(tmp_path, spoken) as stage:
        stage.upstream.script = [pieces(head(200, SSE), chunk(frames[0] + frames[1][:9]), then="eof")]
        got = await taken(await stage.relay.start(asks(spoken, stream=True)))
        passed, _, added = got.body.partition(frames[0] + frames[1][:9])
        assert not passed
        assert added.startswith(b"\n\n")
        assert ERRORS[spoken].search(added)


@pytest.mark.parametrize("spoken", DIALECTS)
async def test_a_connection_that_goes_after_the_legal_end_harms_nothing(tmp_path: Path, spoken: str) -> None:
    frames = streamed(spoken)
    async with open_stage(tmp_path, spoken) as stage:
        stage.upstream.script = [cut(head(200, SSE), *map(chunk, frames), how="eof")]
        got = await stage.ask(asks(spoken, stream=True))
        if spoken != "gemini":  # which has no frame that says that nothing follows
            assert got.body == b"".join(frames)
            assert isinstance(stage.facts()[-1], ExchangeFinished)
