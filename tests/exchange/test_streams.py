import asyncio
import gc
import gzip
import json
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sightline.catalog.provider import Route
from sightline.errors import Code, Fault
from sightline.exchange import stream_pump as passing
from sightline.exchange import stream_taps
from sightline.exchange.reply_reader import BodyDecoder, ReplyReader, unreadable
from sightline.model.exchange import ExchangeFinished
from sightline.model.fold import fold
from sightline.store.entries import raw_reply
from sightline.transport.http.connection import HttpConnection
from tests.contract.test_law_4_stream_is_whole import read_stream
from tests.holding import promptly
from tests.relay_stage import Stage, asks, open_stage
from tests.reply_samples import streamed, whole
from tests.upstream import LAST, chunk, cut, head, pieces, stall, streams

SSE = [("Content-Type", "text/event-stream")]


async def test_an_answer_is_cut_between_two_reads_as_well(tmp_path: Path) -> None:
    async with open_stage(tmp_path) as stage:
        stage.upstream.script = [stall(head(200, SSE), chunk(streamed("openai-chat")[0]))]
        pieces = []
        async with await stage.relay.start(asks("openai-chat", stream=True)) as relayed:
            async for piece in relayed:
                pieces.append(piece)
                if len(pieces) == 1:
                    (exchange,) = stage.relay._active
                    exchange.abort(Fault(Code.OVERLOADED, "that is enough"))
        assert b"that is enough" in pieces[-1]
        assert stage.kinds()[-1] == "failed"
        assert asyncio.current_task() is not None


async def test_a_client_that_leaves_while_a_broken_stream_is_closed_leaves_nothing_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closing = asyncio.Event()

    async def stay_open(_connection: HttpConnection) -> None:
        closing.set()
        await asyncio.Event().wait()

    async with open_stage(tmp_path) as stage:
        stage.upstream.script = [cut(head(200, SSE), chunk(streamed("openai-chat")[0]), how="eof")]
        with monkeypatch.context() as patched:
            patched.setattr(HttpConnection, "wait_until_closed", stay_open)
            client = asyncio.create_task(stage.ask(asks("openai-chat", stream=True)))
            await promptly(closing.wait())
            client.cancel()
            await asyncio.wait({client})
        assert stage.kinds()[-1] == "failed"
        assert not stage.relay._active


class Client:
    """A client of chunks. The provider waits for the next event of `gates` before it sends the next chunk."""

    is_paused = is_writing_paused = False

    def __init__(self, gates: list[asyncio.Event]) -> None:
        self.got: list[bytes] = []
        self.framed: list[bytes] = []
        self._gates = gates

    def write(self, data: bytes, /) -> None:
        self._take(data)

    def chunk_writer(self) -> "tuple[Callable[[bytes], None], Client]":
        def write(framed: bytes) -> None:
            size, _, rest = framed.partition(b"\r\n")
            assert len(rest) == int(size, 16) + 2
            self.framed.append(framed)
            self._take(rest[:-2])

        return write, self

    def _take(self, data: bytes) -> None:
        self.got.append(data)
        if self._gates:
            self._gates.pop(0).set()

    async def until_writable(self) -> None:
        """It always is."""


async def stream_to_client(stage: Stage, frames: list[bytes], *end: bytes) -> Client:
    """What a client gets of these frames, each read by itself; without an `end` the connection breaks off."""
    gates = [asyncio.Event() for _ in frames]
    parts = [part for frame, gate in zip(frames, gates, strict=True) for part in (chunk(frame), gate)]
    stage.upstream.script = [pieces(head(200, SSE), *parts, *end) if end else cut(head(200, SSE), *parts, how="eof")]
    client = Client(list(gates))
    async with await stage.relay.start(asks("openai-chat", stream=True)) as relayed:
        await relayed.body.write_to(client)
    return client


WITHOUT_KEYS = {"routes": (Route(provider="open"),), "environment": {}}


@pytest.mark.parametrize("settings", [{}, WITHOUT_KEYS], ids=["keys are looked for", "there are no keys"])
async def test_chunks_that_come_whole_leave_with_the_size_that_they_came_with(
    tmp_path: Path, settings: dict[str, Any]
) -> None:
    async with open_stage(tmp_path, **settings) as stage:
        frames = streamed("openai-chat")
        client = await stream_to_client(stage, frames, LAST)
        assert b"".join(client.got) == b"".join(frames)
        later = [chunk(frame) for frame in frames[2:]]  # the first was waited for, the next told where chunks end
        assert client.framed == later
        assert raw_reply(stage.entries) == b"".join(frames)
        assert stage.kinds()[-1] == "finished"


async def test_an_error_is_set_apart_from_the_frame_that_broke_off_before_it(tmp_path: Path) -> None:
    async with open_stage(tmp_path, **WITHOUT_KEYS) as stage:
        frames = [*streamed("openai-chat")[:4], b"data: half a fra"]
        client = await stream_to_client(stage, frames)
        assert client.framed
        assert b"".join(client.got).startswith(b"".join(frames) + b"\n\ndata: {")
        assert b'"error"' in client.got[-1]
        assert stage.kinds()[-1] == "failed"


async def test_a_long_stream_is_read_while_it_comes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_stage(tmp_path, **WITHOUT_KEYS) as stage:
        monkeypatch.setattr(stream_taps, "_MOST_UNREAD", 500)
        said = streamed("openai-chat")
        frames = [said[0], *[said[1]] * 200, *said[2:]]
        read: list[int] = []
        feed = ReplyReader.feed
        monkeypatch.setattr(ReplyReader, "feed", lambda self, data: (read.append(len(data)), feed(self, data))[1])
        client = await stream_to_client(stage, frames, LAST)
        assert b"".join(client.got) == b"".join(frames)
        assert len(read) > 1
        assert sum(read) == len(b"".join(frames))
        assert stage.kinds()[-1] == "finished"


async def test_a_stream_that_came_at_once_is_one_commit_before_any_of_it_leaves(tmp_path: Path) -> None:
    async with open_stage(tmp_path) as stage:
        frames = streamed("openai-chat")
        stage.upstream.script = [pieces(head(200, SSE) + b"".join(map(chunk, frames)) + LAST)]
        relayed = await stage.relay.start(asks("openai-chat", stream=True))
        assert stage.kinds() == ["received", "attempt", "finished"]
        assert len(stage.commits) == 1
        assert (b"x-sightline-exchange", b"x_1") in relayed.headers
        assert relayed.whole_body == b"".join(frames)


async def test_leaving_twice_is_leaving_once(tmp_path: Path) -> None:
    async with open_stage(tmp_path) as stage:
        stage.upstream.script = [stall(head(200, SSE))]
        relayed = await stage.relay.start(asks("openai-chat", stream=True))
        async with relayed:
            pass
        async with relayed:
            pass
        assert stage.kinds().count("cancelled") == 1


def kept_open(spoken: str, *, usage_late: bool) -> list[bytes]:
    """The frames of a stream without those that say its end."""
    frames = streamed(spoken)
    if not usage_late:
        return frames
    last = json.loads(frames[-1].removeprefix(b"data: "))
    usage = {"usageMetadata": last.pop("usageMetadata")}
    return [*frames[:-1], *(b"data: " + json.dumps(each).encode() + b"\r\n\r\n" for each in (last, usage))]


@pytest.mark.parametrize("usage_late", [False, True])
@pytest.mark.parametrize("client", ["openai-chat", "openai-responses", "anthropic"])
async def test_a_finished_stream_that_is_kept_open_ends_soon_for_another_dialect(
    tmp_path: Path, client: str, usage_late: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(passing, "LATE_SECONDS", 0.05)
    async with open_stage(tmp_path, "gemini") as stage:
        frames = kept_open("gemini", usage_late=usage_late)
        stage.upstream.script = [stall(head(200, SSE), *(chunk(frame) for frame in frames))]
        got = await stage.ask(asks(client, stream=True))
        assert fold(read_stream(client, [got.body])).choice.finish == "tool_calls"
        last = stage.facts()[-1]
        assert isinstance(last, ExchangeFinished)
        assert last.usage.input_tokens == 11
        await stage.upstream.gone()


async def test_a_stream_of_the_same_dialect_passes_until_its_server_ends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(passing, "LATE_SECONDS", 0.0)
    async with open_stage(tmp_path, "gemini") as stage:
        frames, go_on = streamed("gemini"), asyncio.Event()
        more = b": and this\n\n"
        stage.upstream.script = [pieces(head(200, SSE), *map(chunk, frames), go_on, chunk(more), LAST)]
        got = []
        async with await stage.relay.start(asks("gemini", stream=True)) as relayed:
            async for piece in relayed:
                got.append(piece)
                if b"".join(got) == b"".join(frames):
                    go_on.set()
        assert b"".join(got) == b"".join(frames) + more
        assert stage.kinds()[-1] == "finished"


def test_what_cannot_be_read_is_the_provider_s_fault() -> None:
    assert unreadable("no JSON").code is Code.UPSTREAM_PROTOCOL


BROKEN = b"data: {\n\n"


def test_a_stream_and_a_whole_answer_are_read() -> None:
    for data in (b"".join(streamed("anthropic")), whole("anthropic")):
        reading = ReplyReader("anthropic")
        reading.feed(data)
        reading.close()
        assert reading.reply.choice.finish == "tool_calls"
        assert (reading.warning, reading.has_failed) == ("", False)


def test_frames_that_cannot_be_read_are_a_warning_of_bounded_length() -> None:
    reading = ReplyReader("openai-chat")
    reading.feed(BROKEN * 5 + b"".join(streamed("openai-chat")))
    assert reading.warning.count("cannot be read") == 3
    assert reading.warning.endswith("and 2 more")
    assert reading.decoder.has_ended


def test_a_mistake_of_ours_is_a_warning() -> None:
    for method in ("feed", "close"):
        reading = ReplyReader("openai-chat")

        def spoilt(*_: object) -> None:
            raise RuntimeError("a mistake")

        setattr(reading.decoder, method, spoilt)
        reading.feed(b"data: {}\n\n")
        reading.close()
        reading.fail(Fault(Code.NETWORK, "x"))
        assert reading.warning == "the reply could not be read: RuntimeError: a mistake"
        assert reading.reply.fault is None


def test_a_failure_is_read_once() -> None:
    reading = ReplyReader("openai-chat")
    reading.fail(Fault(Code.NETWORK, "gone"))
    assert reading.has_failed
    reading.give_up("no more")
    reading.give_up("no more")
    assert reading.warning == "no more"


def test_a_coding_is_undone_as_long_as_that_goes() -> None:
    undoing = BodyDecoder(" GZIP")
    data = gzip.compress(b"abc")
    assert undoing.feed(data[:5]) + undoing.feed(data[5:]) == b"abc"
    assert undoing.feed(b"rubbish") == b""
    assert "gzip" in undoing.trouble
    assert undoing.feed(b"more") == b"more"
    assert "compress" in BodyDecoder("compress").trouble


@pytest.mark.parametrize("spoken", ["openai-chat", "anthropic"], ids=["verbatim", "translated"])
async def test_nothing_of_a_stream_that_has_ended_stays_until_the_collector_runs(tmp_path: Path, spoken: str) -> None:
    async with open_stage(tmp_path, spoken) as stage:
        stage.upstream.script = [streams(*streamed(spoken))]
        gc.disable()
        try:
            relayed = await stage.relay.start(asks("openai-chat", stream=True))
            body = weakref.ref(relayed.body)
            async with relayed:
                assert b"".join([piece async for piece in relayed])
            del relayed
            assert body() is None
        finally:
            gc.enable()
