"""HTTP/2 of the server, spoken to by the h2 library as a client, over a real socket."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from time import process_time
from typing import Any

import pytest
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    Event,
    InformationalResponseReceived,
    PingAckReceived,
    ResponseReceived,
    StreamEnded,
    StreamReset,
)
from h2.settings import SettingCodes
from hyperframe.frame import ContinuationFrame, GoAwayFrame, HeadersFrame, PingFrame

from sightline.server.http2_connection import MOST_IDLE_FRAMES, MOST_RESETS, MOST_STREAMS, Http2Connection
from sightline.server.http_connection import Application
from sightline.web.asgi import AsgiScope, ClientWriter, Receive, WebResponse, response_body, response_start

HEAD = [(":method", "POST"), (":path", "/v1/x?a=1"), (":scheme", "https"), (":authority", "api.example")]
LARGE = bytes(range(256)) * 4096


class Talk:
    """A client's side. `events` are all that came so far."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.h2 = H2Connection(
            H2Configuration(client_side=True, header_encoding="utf-8", validate_outbound_headers=False)
        )
        self.events: list[Event] = []
        self._reader, self._writer = reader, writer
        self.h2.initiate_connection()

    async def flush(self) -> None:
        self._writer.write(self.h2.data_to_send())
        await self._writer.drain()

    async def write(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def ask(self, *, body: bytes | None = None, ends: bool = True, headers: Any = ()) -> int:
        """A new stream with this request."""
        stream = self.h2.get_next_available_stream_id()
        self.h2.send_headers(stream, [*HEAD, *headers], end_stream=body is None and ends)
        if body is not None:
            self.h2.send_data(stream, body, end_stream=ends)
        await self.flush()
        return stream

    async def hear(self, until: Callable[[Event], bool], *, takes: bool = True) -> Event | None:
        """The first event that is awaited; None if the server hangs up before. With `takes`, what came is taken."""
        while True:
            for event in self.events:
                if until(event):
                    return event
            try:
                data = await self._reader.read(65_536)
            except ConnectionError:
                return None
            if not data:
                return None
            for event in self.h2.receive_data(data):
                self.events.append(event)
                if isinstance(event, DataReceived) and takes:
                    self.h2.acknowledge_received_data(event.flow_controlled_length or 0, event.stream_id or 0)
            await self.flush()

    async def answer(self, stream: int) -> tuple[int, bytes]:
        """Status and body of a stream, once it has ended."""
        ended = await self.hear(lambda event: isinstance(event, StreamEnded) and event.stream_id == stream)
        assert ended is not None
        return self.status(stream), self.body(stream)

    def status(self, stream: int) -> int:
        found = (each for each in self.events if isinstance(each, ResponseReceived) and each.stream_id == stream)
        return int(dict(next(found).headers or [])[":status"])  # type: ignore[call-overload]

    def body(self, stream: int) -> bytes:
        came = (each for each in self.events if isinstance(each, DataReceived) and each.stream_id == stream)
        return b"".join(each.data or b"" for each in came)


class Server:
    """`connections` are open; `asked` are the scopes so far. `came` is set by the first request, `left` by the first
    that is cancelled."""

    def __init__(self, app: Application) -> None:
        self._app = app
        self.connections: set[Http2Connection] = set()
        self.asked: list[AsgiScope] = []
        self.came, self.left = asyncio.Event(), asyncio.Event()

    async def __call__(self, scope: AsgiScope, receive: Receive, send: ClientWriter) -> None:
        self.asked.append(scope)
        self.came.set()
        try:
            await self._app(scope, receive, send)
        except asyncio.CancelledError:
            self.left.set()
            raise


@asynccontextmanager
async def talking(app: Application) -> AsyncIterator[tuple[Talk, Server]]:
    serving = Server(app)
    loop = asyncio.get_running_loop()
    listening = await loop.create_server(lambda: Http2Connection(serving, serving.connections), "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*listening.sockets[0].getsockname())
    try:
        async with asyncio.timeout(60):
            yield Talk(reader, writer), serving
    finally:
        writer.transport.abort()
        for each in list(serving.connections):
            each.transport.abort()
        listening.close()
        await asyncio.sleep(0)


async def read_all(receive: Receive) -> bytes:
    body = b""
    while True:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body"):
            return body


async def echo(scope: AsgiScope, receive: Receive, send: ClientWriter) -> None:
    await WebResponse(200, await read_all(receive), [(b"X-Upper", b" v "), (b"connection", b"close")]).to(send)


async def wait(_scope: AsgiScope, _receive: Receive, _send: ClientWriter) -> None:
    await asyncio.Event().wait()


# --- requests and responses -------------------------------------------------------------------------


async def test_a_stream_is_a_request_and_its_response() -> None:
    async with talking(echo) as (client, server):
        stream = await client.ask(body=b"words", headers=[("x-mine", "1")])
        assert await client.answer(stream) == (200, b"words")
        scope = server.asked[0]
        assert (scope["method"], scope["raw_path"], scope["query_string"]) == ("POST", b"/v1/x", b"a=1")
        assert scope["headers"] == [(b"host", b"api.example"), (b"x-mine", b"1")]
        (told,) = (event for event in client.events if isinstance(event, ResponseReceived))
        assert told.headers == [(":status", "200"), ("x-upper", "v"), ("content-length", "5")]


async def test_streams_are_served_side_by_side() -> None:
    gates = {b"/v1/x": asyncio.Event()}

    async def app(scope: AsgiScope, receive: Receive, send: ClientWriter) -> None:
        if (await read_all(receive)) == b"slow":
            await gates[scope["raw_path"]].wait()
        send.respond(200, [], b"done")

    async with talking(app) as (client, _):
        slow = await client.ask(body=b"slow")
        assert await client.answer(await client.ask(body=b"quick")) == (200, b"done")
        gates[b"/v1/x"].set()
        assert await client.answer(slow) == (200, b"done")


async def test_bodies_larger_than_all_windows_pass_whole() -> None:
    async with talking(echo) as (client, _):
        stream = await client.ask(ends=False)
        left = LARGE * 2
        while left:
            room = min(client.h2.local_flow_control_window(stream), client.h2.max_outbound_frame_size, len(left))
            if room:
                client.h2.send_data(stream, left[:room], end_stream=room == len(left))
                left = left[room:]
                await client.flush()
            else:
                seen = len(client.events)
                await client.hear(lambda _event, seen=seen: len(client.events) > seen)  # type: ignore[misc]
        assert await client.answer(stream) == (200, LARGE * 2)


async def test_a_large_response_takes_time_in_proportion_to_its_size() -> None:
    large = bytes(32 << 20)

    async def app(_scope: AsgiScope, _receive: Receive, send: ClientWriter) -> None:
        send.respond(200, [], large)

    async with talking(app) as (client, _):
        client.h2.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: 2 * len(large)})
        client.h2.increment_flow_control_window(2 * len(large))
        await client.flush()
        before = process_time()
        assert await client.answer(await client.ask()) == (200, large)
        assert process_time() - before < 1  # 0.2 seconds, and 1.6 if each frame copies what comes after it


async def test_a_client_that_waits_for_leave_to_send_gets_it() -> None:
    async with talking(echo) as (client, _):
        stream = await client.ask(ends=False, headers=[("expect", "100-continue")])
        assert await client.hear(lambda event: isinstance(event, InformationalResponseReceived))
        client.h2.send_data(stream, b"words", end_stream=True)
        await client.flush()
        assert await client.answer(stream) == (200, b"words")


async def test_a_head_request_has_no_body() -> None:
    async with talking(echo) as (client, _):
        client.h2.send_headers(1, [(":method", "HEAD"), *HEAD[1:]], end_stream=True)
        await client.flush()
        assert await client.answer(1) == (200, b"")


@pytest.mark.parametrize("begins", [False, True])
async def test_an_application_that_fails_leaves_no_response_that_looks_whole(begins: bool) -> None:
    async def app(_scope: AsgiScope, _receive: Receive, send: ClientWriter) -> None:
        if begins:
            await send(response_start(200, []))
            send.write(b"half")
        raise ValueError("wrong")

    async with talking(app) as (client, _):
        stream = await client.ask()
        if begins:
            reset = await client.hear(lambda event: isinstance(event, StreamReset))
            assert reset.error_code == ErrorCodes.INTERNAL_ERROR
        else:
            assert (await client.answer(stream))[0] == 500
        assert client.events  # the connection is served on
        await client.ask()


async def test_a_response_before_the_end_of_its_request_stops_the_client() -> None:
    async def app(_scope: AsgiScope, _receive: Receive, send: ClientWriter) -> None:
        send.respond(413, [], b"too much")

    async with talking(app) as (client, _):
        stream = await client.ask(body=b"x", ends=False)
        assert await client.answer(stream) == (413, b"too much")
        reset = await client.hear(lambda event: isinstance(event, StreamReset))
        assert reset.error_code == ErrorCodes.NO_ERROR


# --- slow and gone clients --------------------------------------------------------------------------


async def test_a_slow_reader_makes_the_application_wait() -> None:
    written = 0

    async def app(_scope: AsgiScope, _receive: Receive, send: ClientWriter) -> None:
        nonlocal written
        await send(response_start(200, []))
        for _ in range(64):
            await send(response_body(LARGE[:65_536], more=True))
            written += 1
        await send(response_body(b"", more=False))

    async with talking(app) as (client, _):
        stream = await client.ask()
        await client.hear(lambda _event: len(client.body(stream)) >= 65_535, takes=False)
        for _ in range(20):
            await asyncio.sleep(0)
        assert written <= 4  # the window, and as much as may wait
        client.h2.acknowledge_received_data(len(client.body(stream)), stream)
        await client.flush()
        assert len((await client.answer(stream))[1]) == 64 * 65_536


async def test_a_request_that_is_taken_back_is_cancelled() -> None:
    async with talking(wait) as (client, server):
        stream = await client.ask(body=b"x" * 1000)
        await server.came.wait()
        client.h2.reset_stream(stream, ErrorCodes.CANCEL)
        await client.flush()
        await server.left.wait()


async def test_a_request_that_is_taken_back_right_after_more_room_leaves_the_others_alone() -> None:
    async def app(_scope: AsgiScope, _receive: Receive, send: ClientWriter) -> None:
        send.respond(200, [], LARGE)

    async with talking(app) as (client, server):
        first, second = await client.ask(), await client.ask()
        await client.hear(lambda _event: len(client.body(first)) + len(client.body(second)) >= 65_535, takes=False)
        client.h2.increment_flow_control_window(100_000)
        client.h2.increment_flow_control_window(100_000, first)
        client.h2.reset_stream(first, ErrorCodes.CANCEL)
        client.h2.increment_flow_control_window(2 * len(LARGE))
        client.h2.increment_flow_control_window(2 * len(LARGE), second)
        await client.flush()
        assert await client.answer(second) == (200, LARGE)
        assert len(server.connections) == 1


async def test_a_client_that_leaves_ends_what_works_for_it() -> None:
    async with talking(wait) as (client, server):
        await client.ask()
        await server.came.wait()
        client._writer.transport.abort()
        await server.left.wait()
        assert server.connections == set()


async def test_a_shutdown_lets_streams_finish_and_refuses_new_ones() -> None:
    gate = asyncio.Event()

    async def app(_scope: AsgiScope, _receive: Receive, send: ClientWriter) -> None:
        await gate.wait()
        send.respond(200, [], b"done")

    async with talking(app) as (client, server):
        first = await client.ask()
        await server.came.wait()
        (connection,) = server.connections
        assert not connection.is_idle
        connection.shut_down()
        late = await client.ask()
        reset = await client.hear(lambda event: isinstance(event, StreamReset) and event.stream_id == late)
        assert reset.error_code == ErrorCodes.REFUSED_STREAM
        gate.set()
        assert await client.answer(first) == (200, b"done")
        assert await client.hear(lambda event: isinstance(event, ConnectionTerminated))
        assert await client.hear(lambda _event: False) is None


async def test_a_shutdown_does_not_wait_for_a_request_that_is_taken_back() -> None:
    async with talking(wait) as (client, server):
        stream = await client.ask()
        await server.came.wait()
        (connection,) = server.connections
        connection.shut_down()
        client.h2.reset_stream(stream, ErrorCodes.CANCEL)
        await client.flush()
        assert await client.hear(lambda _event: False) is None


async def test_a_client_that_opens_no_more_streams_gets_the_responses_to_those_it_has() -> None:
    gate = asyncio.Event()

    async def app(_scope: AsgiScope, _receive: Receive, send: ClientWriter) -> None:
        await gate.wait()
        send.respond(200, [], LARGE)

    async with talking(app) as (client, server):
        stream = await client.ask()
        await server.came.wait()
        client.h2.ping(b"together")
        await client.write(GoAwayFrame(0).serialize() + client.h2.data_to_send())
        assert await client.hear(lambda event: isinstance(event, PingAckReceived))
        late = await client.ask()
        reset = await client.hear(lambda event: isinstance(event, StreamReset) and event.stream_id == late)
        assert reset.error_code == ErrorCodes.REFUSED_STREAM
        gate.set()
        assert await client.answer(stream) == (200, LARGE)
        assert await client.hear(lambda _event: False) is None


# --- hostile clients --------------------------------------------------------------------------------


async def expect_closed(client: Talk, code: ErrorCodes | None = None) -> None:
    """The server says why, if it can, and hangs up."""
    ended = await client.hear(lambda event: isinstance(event, ConnectionTerminated))
    if code is not None:
        assert isinstance(ended, ConnectionTerminated)
        assert ended.error_code == code
    assert await client.hear(lambda _event: False) is None


async def test_requests_that_are_taken_back_again_and_again_end_the_connection() -> None:
    async with talking(wait) as (client, server):
        for _ in range(MOST_RESETS + 1):
            stream = client.h2.get_next_available_stream_id()
            client.h2.send_headers(stream, HEAD, end_stream=True)
            client.h2.reset_stream(stream)
        await client.flush()
        await expect_closed(client, ErrorCodes.ENHANCE_YOUR_CALM)
        assert server.connections == set()


async def test_frames_that_ask_for_nothing_end_the_connection() -> None:
    async with talking(wait) as (client, _):
        await client.flush()
        for _ in range(MOST_IDLE_FRAMES // 1000 + 1):
            await client.write(PingFrame(0, b"12345678").serialize() * 1000)
        await expect_closed(client)


async def test_headers_without_an_end_are_refused() -> None:
    async with talking(wait) as (client, server):
        block = client.h2.encoder.encode(HEAD)
        frames = [HeadersFrame(1, block), *(ContinuationFrame(1, b"") for _ in range(1000))]
        await client.write(client.h2.data_to_send() + b"".join(frame.serialize() for frame in frames))
        assert await client.hear(lambda _event: False) is None
        assert server.asked == []


async def test_a_list_of_headers_that_is_too_long_is_refused() -> None:
    async with talking(wait) as (client, server):
        await client.flush()
        await client.hear(lambda _event: SettingCodes.MAX_HEADER_LIST_SIZE in client.h2.remote_settings)
        # Each is one byte on the wire, and 4 KiB when it is read.
        block = client.h2.encoder.encode([*HEAD, *(("x-large", "y" * 4000) for _ in range(40))])
        frame = HeadersFrame(1, block[:16_000], flags=["END_HEADERS"] if len(block) <= 16_000 else [])
        rest = ContinuationFrame(1, block[16_000:], flags=["END_HEADERS"])
        await client.write(frame.serialize() + (rest.serialize() if len(block) > 16_000 else b""))
        assert await client.hear(lambda _event: False) is None
        assert server.asked == []


PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


@pytest.mark.parametrize("garbage", [b"GET / HTTP/1.1\r\n\r\n", b"\0" * 64, PREFACE + b"\0\0\0\4\0\0\0\0\1"])
async def test_what_is_no_http_2_is_refused(garbage: bytes) -> None:
    async with talking(wait) as (client, server):
        await client.write(garbage)
        assert await client.hear(lambda _event: False) is None
        assert server.connections == set()


async def test_more_streams_than_allowed_are_refused() -> None:
    async with talking(wait) as (client, server):
        block = client.h2.encoder.encode(HEAD)
        await client.write(client.h2.data_to_send())
        streams = range(1, 2 * (MOST_STREAMS + 2), 2)
        frames = (HeadersFrame(each, block, flags=["END_HEADERS", "END_STREAM"]).serialize() for each in streams)
        await client.write(b"".join(frames))
        assert await client.hear(lambda _event: False) is None
        assert len(server.asked) <= MOST_STREAMS


async def test_a_body_that_nobody_reads_is_bounded_by_its_window() -> None:
    async with talking(wait) as (client, _):
        stream = await client.ask(ends=False)
        await client.hear(lambda _event: client.h2.remote_settings.initial_window_size > 65_535)
        sent = 0
        while room := min(client.h2.local_flow_control_window(stream), client.h2.max_outbound_frame_size):
            client.h2.send_data(stream, b"x" * room)
            sent += room
        await client.flush()
        assert sent == 256 * 1024


@pytest.mark.parametrize(
    "wrong", [[(":method", "GET"), (":path", "*"), (":scheme", "https"), (":authority", "a")], [*HEAD, ("te", "gzip")]]
)
async def test_a_request_that_cannot_be_meant_is_refused(wrong: list[tuple[str, str]]) -> None:
    async with talking(wait) as (client, server):
        client.h2.send_headers(1, wrong, end_stream=True)
        await client.flush()
        assert await client.hear(lambda event: isinstance(event, StreamReset | ConnectionTerminated))
        assert server.asked == []
