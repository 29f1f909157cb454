"""HTTP/2 of the server: the connection of one client, and each of its streams as a request with its response.

The `h2` library keeps the state of the protocol. The limits for hostile clients are here: how many streams and bytes
may wait, how many requests may be cancelled, and how many frames may arrive that request nothing.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Iterable
from typing import Final, cast

from h2.config import H2Configuration
from h2.connection import ConnectionState, H2Connection
from h2.errors import ErrorCodes
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    Event,
    RemoteSettingsChanged,
    RequestReceived,
    StreamEnded,
    StreamReset,
    WindowUpdated,
)
from h2.exceptions import ProtocolError
from h2.settings import SettingCodes, Settings
from hpack.hpack import Encoder, encode_integer
from hyperframe.frame import Frame, GoAwayFrame

from sightline.server.heads import CONTROLS, MOST_HEAD_BYTES
from sightline.server.http_call import FAILED, Application
from sightline.web.asgi import AsgiScope, Headers, RequestEvent, ResponseChunk, ResponseStart, header

MOST_STREAMS: Final = 128
_STREAM_WINDOW: Final = 256 * 1024
_CONNECTION_WINDOW: Final = 1024 * 1024
"""The most bytes of all bodies that wait for the application; the client sends no more meanwhile."""

_MOST_WAITING: Final = 64 * 1024
"""Bytes of a response that wait for the client, beyond which it counts as slow."""

MOST_RESETS: Final = 100
"""How many more requests a client may cancel than it lets finish: each has cost us an exchange."""

MOST_IDLE_FRAMES: Final = 10_000
"""The most frames without a request or data between two responses."""

_LOG = logging.getLogger("sightline.server")
_OF_ONE_CONNECTION: Final = frozenset(
    {b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade"}
)


class Http2Call:
    """One stream: a request and its response. `receive` is ASGI's, and the call itself is ASGI's `send`."""

    def __init__(self, connection: "Http2Connection", stream: int, scope: AsgiScope) -> None:
        self.scope = scope
        self.stream = stream
        self.has_body = False
        """Whether the whole request has arrived."""
        self.has_begun = False
        """Whether the head of the response was written."""
        self.is_answered = False
        """Whether the last byte of the response was passed to the connection."""
        self.waiting: deque[memoryview] = deque()
        """Data that the client does not accept yet. Views, because each frame takes a piece of what may be many
        megabytes."""
        self.size = 0
        """The number of bytes in `waiting`."""
        self.is_ending = False
        """Whether the response ends after the waiting data."""
        self.task: asyncio.Task[None] | None = None
        self._connection = connection
        self._pieces: list[bytes] = []
        self._unread = 0
        """Bytes of the body, with padding, that were not acknowledged, so that the client may not send as many
        others."""
        self._continue_sent = self._was_received = False
        self._change: asyncio.Future[None] | None = None
        self._writable: asyncio.Future[None] | None = None

    # --- the request ---

    def add_body(self, data: bytes, counted: int) -> None:
        """A piece of the body has arrived, which takes `counted` bytes of the window."""
        self._pieces.append(data)
        self._unread += counted
        self.wake()

    def end_body(self) -> None:
        self.has_body = True
        self.wake()

    async def receive(self) -> RequestEvent:
        connection = self._connection
        self._was_received = True
        if not self._pieces and not self.has_body and not self._continue_sent:
            self._continue_sent = True
            if header(self.scope["headers"], b"expect").lower() == "100-continue":
                connection.send_interim(self, 100, [])
        while not self._pieces and not self.has_body and not self.is_answered:
            self._change = asyncio.get_running_loop().create_future()
            await self._change
        if self.is_answered:
            return {"type": "http.disconnect"}
        body = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        connection.acknowledge(self, self.take_unread())
        return {"type": "http.request", "body": body, "more_body": not self.has_body}

    def wake(self) -> None:
        """Something has arrived, or nothing more will."""
        change, self._change = self._change, None
        if change is not None and not change.done():
            change.set_result(None)

    def take_unread(self) -> int:
        """Discard the unread rest of the body; returns how many bytes of the window that frees."""
        self._pieces.clear()
        unread, self._unread = self._unread, 0
        return unread

    # --- the response ---

    async def __call__(self, message: ResponseStart | ResponseChunk, /) -> None:
        if self.is_paused:
            await self.until_writable()
        if message["type"] == "http.response.start":
            self._connection.send_head(self, message["status"], message["headers"])
        else:
            self._add(message["body"], is_last=not message["more_body"])

    @property
    def is_paused(self) -> bool:
        return self.size > _MOST_WAITING or self._connection.is_writing_paused

    def take_body(self) -> bytes | None:
        if not self.has_body or self.is_answered or self._was_received:
            return None
        body = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        self._connection.acknowledge(self, self.take_unread())
        return body

    def respond(self, status: int, headers: Headers, body: bytes, /) -> None:
        self._connection.send_head(self, status, headers, is_followed=True)
        self._add(body, is_last=True)

    def write_interim(self, status: int, headers: Headers, /) -> None:
        self._connection.send_interim(self, status, headers)

    def write(self, data: bytes, /) -> None:
        self._add(data, is_last=False)

    def chunk_writer(self) -> None:
        """None: HTTP/2 has its own frames."""

    async def until_writable(self) -> None:
        while self.is_paused:
            self._writable = asyncio.get_running_loop().create_future()
            await self._writable

    def tell_writable(self) -> None:
        """Let the application continue if the client accepts more data."""
        if self._writable is not None and not self._writable.done() and not self.is_paused:
            self._writable.set_result(None)

    def _add(self, body: bytes, *, is_last: bool) -> None:
        if body and self.scope["method"] != "HEAD":
            self.waiting.append(memoryview(body))
            self.size += len(body)
        self.is_ending = is_last
        if is_last:
            self.is_answered = True
        self._connection.pump(self)

    async def run(self, app: Application) -> None:
        """Run the application. Even if it fails, the client gets a complete response, or sees that it is incomplete."""
        try:
            await app(self.scope, self.receive, self)
        except Exception:  # noqa: BLE001 - a failing request must not end its connection
            _LOG.exception("a request failed")
        if not self.has_begun:
            await FAILED.to(self)
        elif not self.is_answered:
            self._connection.reset(self)  # without an end, it does not look complete


class LiteralEncoder(Encoder):
    """Writes headers literally, without a table and without Huffman coding (RFC 7541, 6.2.2): the client is on this
    machine, and searching for earlier headers takes a tenth of the CPU time of a request."""

    def encode(self, headers: Iterable[tuple[bytes, bytes]], huffman: bool = False) -> bytes:  # type: ignore[override]  # noqa: FBT001, FBT002
        block = bytearray()
        for name, value in headers:
            block += b"\0"
            block += encode_integer(len(name), 7)
            block += name
            block += encode_integer(len(value), 7)
            block += value
        return bytes(block)


class _ServerState(H2Connection):
    """The protocol's state, in which a client that opens no more streams still gets the responses to those it has (RFC
    9113, 6.8). h2 itself takes the connection for closed, as of 4.4: hence the override of a private method."""

    def _receive_goaway_frame(self, frame: GoAwayFrame) -> tuple[list[Frame], list[Event]]:
        found = super()._receive_goaway_frame(frame)
        if frame.error_code == ErrorCodes.NO_ERROR:
            self.state_machine.state = ConnectionState.SERVER_OPEN
        return found


class Http2Connection(asyncio.Protocol):
    """The connection of one client. It is in the server's set of connections while it is open."""

    transport: asyncio.Transport

    def __init__(self, app: Application, connections: set["Http2Connection"]) -> None:
        self._app = app
        self._connections = connections
        self._loop = asyncio.get_running_loop()
        # What we send is checked here, so h2 need not check each header again.
        self._h2 = _ServerState(
            H2Configuration(client_side=False, validate_outbound_headers=False, normalize_outbound_headers=False)
        )
        self._h2.encoder = LiteralEncoder()
        self._calls: dict[int, Http2Call] = {}
        self._resets = self._idle_frames = 0
        self.is_writing_paused = False
        self.is_closing_soon = False
        self.idle_since = self._loop.time()

    # --- called by asyncio ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's transports do not inherit from it
        self._connections.add(self)
        self.task = self._loop.create_task(self._run_until_closed())
        self._h2.local_settings = Settings(
            client=False,
            initial_values={
                SettingCodes.MAX_CONCURRENT_STREAMS: MOST_STREAMS,
                SettingCodes.INITIAL_WINDOW_SIZE: _STREAM_WINDOW,
                SettingCodes.MAX_HEADER_LIST_SIZE: MOST_HEAD_BYTES,
            },
        )
        self._h2.initiate_connection()
        self._h2.increment_flow_control_window(_CONNECTION_WINDOW - 65_535)
        self._flush()

    def connection_lost(self, exc: Exception | None) -> None:
        """The client has disconnected: cancel everything that works for it."""
        self._connections.discard(self)
        self.task.cancel()

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        try:
            events = self._h2.receive_data(data)
            for event in events:
                self._take(event)
            # Only now: h2 sends nothing on a stream that the client cancels a few frames later.
            if any(isinstance(event, WindowUpdated | RemoteSettingsChanged) for event in events):
                self._pump_all()
        except ProtocolError as error:
            _LOG.info("a client's HTTP/2 connection is closed: %s", error)
            self._flush()  # it contains the frame that says why
            self._abandon()
            return
        self._flush()
        self._close_when_done()  # the client may have cancelled its last request

    def pause_writing(self) -> None:
        """The client accepts no more data for now. It is not read either, since what it sends may require h2 to
        reply."""
        self.is_writing_paused = True
        self.transport.pause_reading()

    def resume_writing(self) -> None:
        self.is_writing_paused = False
        if not self.transport.is_closing():
            self.transport.resume_reading()
        self._pump_all()

    async def _run_until_closed(self) -> None:
        """Wait until the connection or the server ends; then end everything that works for the client."""
        try:
            await self._loop.create_future()
        except asyncio.CancelledError:
            return
        finally:
            self._abandon()

    # --- events of the client ---

    def _take(self, event: Event) -> None:
        match event:
            case DataReceived():
                self._take_data(event)
            case RequestReceived():
                self._begin(event)
            case StreamEnded(stream_id=stream):
                if stream in self._calls:
                    self._calls[stream].end_body()
            case WindowUpdated():
                pass  # see `data_received`
            case StreamReset():
                self._count_idle()
                self._on_reset(event)
            case ConnectionTerminated(error_code=ErrorCodes.NO_ERROR) if self._calls:
                self.is_closing_soon = True
            case ConnectionTerminated():
                self._abandon()
            case _:
                self._count_idle()

    def _begin(self, event: RequestReceived) -> None:
        assert event.headers is not None
        assert event.stream_id is not None
        stream, named, headers = event.stream_id, dict[bytes, bytes](), Headers()
        for name, value in event.headers:
            if name.startswith(b":"):
                named[name] = value
            else:
                headers.append((name, value))
        path, _, query = named.get(b":path", b"").partition(b"?")
        if self.is_closing_soon or not path.startswith(b"/"):
            code = ErrorCodes.REFUSED_STREAM if self.is_closing_soon else ErrorCodes.PROTOCOL_ERROR
            self._h2.reset_stream(stream, code)
            return
        if b":authority" in named:
            headers = [(b"host", named[b":authority"]), *(each for each in headers if each[0] != b"host")]
        call = self._calls[stream] = Http2Call(
            self,
            stream,
            {
                "type": "http",
                "method": named[b":method"].decode("latin-1"),
                "raw_path": path,
                "query_string": query,
                "headers": headers,
            },
        )
        call.task = self._loop.create_task(call.run(self._app))

    def _take_data(self, event: DataReceived) -> None:
        assert event.stream_id is not None
        counted = event.flow_controlled_length or 0
        if not event.data:
            self._count_idle()
        call = self._calls.get(event.stream_id)
        if call is None or call.is_answered:
            # The application did not read it. Its bytes still count against all streams.
            self._h2.acknowledge_received_data(counted, event.stream_id)
            return
        call.add_body(event.data or b"", counted)

    def _on_reset(self, event: StreamReset) -> None:
        assert event.stream_id is not None
        call = self._calls.pop(event.stream_id, None)
        if call is None:
            return
        if call.task is not None:
            call.task.cancel()
        self._free(call)
        self._resets += 1
        if self._resets > MOST_RESETS:
            self._refuse("it takes its requests back")

    def _count_idle(self) -> None:
        self._idle_frames += 1
        if self._idle_frames > MOST_IDLE_FRAMES:
            self._refuse("it sends frames that ask for nothing")

    def _refuse(self, why: str) -> None:
        self._h2.close_connection(ErrorCodes.ENHANCE_YOUR_CALM)
        raise ProtocolError(why)

    # --- called by the application ---

    def send_interim(self, call: Http2Call, status: int, headers: Headers) -> None:
        """Write a 1xx response, such as the permission to send a body."""
        if call.stream in self._calls and not call.has_begun:
            self._h2.send_headers(call.stream, _fields(status, headers))
            self._flush()

    def acknowledge(self, call: Http2Call, counted: int) -> None:
        """Let the client send as many bytes again."""
        if counted and call.stream in self._calls:
            self._h2.acknowledge_received_data(counted, call.stream)
            self._flush()

    def send_head(self, call: Http2Call, status: int, headers: Headers, *, is_followed: bool = False) -> None:
        """Write the head of a response; with `is_followed`, its body follows at once, so that both are one packet."""
        fields = _fields(status, headers)
        call.has_begun = True
        if call.stream not in self._calls:
            return  # the client has cancelled its request
        self._h2.send_headers(call.stream, fields)
        if not is_followed:
            self._flush()

    def pump(self, call: Http2Call) -> None:
        """Send as much of the waiting data as the client's windows allow."""
        state, stream = self._h2, call.stream
        if stream not in self._calls:
            return
        waiting, has_ended = call.waiting, False
        while waiting:
            room = min(state.local_flow_control_window(stream), state.max_outbound_frame_size)
            if room <= 0:
                break
            data = waiting.popleft()
            if len(data) > room:
                waiting.appendleft(data[room:])
                data = data[:room]
            call.size -= len(data)
            has_ended = call.is_ending and not waiting
            state.send_data(stream, data, end_stream=has_ended)
        if call.is_ending and not waiting:
            if not has_ended:
                state.send_data(stream, b"", end_stream=True)
            self._finish(call)
        self._flush()
        call.tell_writable()
        self._close_when_done()

    def reset(self, call: Http2Call) -> None:
        """Abort a response, so that the client sees that it is incomplete."""
        if self._calls.pop(call.stream, None) is not None:
            self._h2.reset_stream(call.stream, ErrorCodes.INTERNAL_ERROR)
            self._free(call)
            self._flush()
            self._close_when_done()

    def _finish(self, call: Http2Call) -> None:
        """The last byte of a response was sent. A client that is still sending need not continue."""
        del self._calls[call.stream]
        if not call.has_body:
            self._h2.reset_stream(call.stream, ErrorCodes.NO_ERROR)
        self._free(call)
        call.wake()
        self._resets = max(0, self._resets - 1)
        self._idle_frames = 0
        self.idle_since = self._loop.time()

    def _free(self, call: Http2Call) -> None:
        """Return the window of an unread body to the other streams."""
        if unread := call.take_unread():
            self._h2.acknowledge_received_data(unread, call.stream)

    def _pump_all(self) -> None:
        for call in list(self._calls.values()):
            self.pump(call)

    def _flush(self) -> None:
        if data := self._h2.data_to_send():
            self.transport.write(data)

    # --- shutdown ---

    @property
    def is_idle(self) -> bool:
        return not self._calls

    def shut_down(self) -> None:
        """Close the connection as soon as its current requests have been answered."""
        self.is_closing_soon = True
        self._close_when_done()

    def _close_when_done(self) -> None:
        if self.is_closing_soon and not self._calls and not self.transport.is_closing():
            self._h2.close_connection()  # not earlier: after this, h2 allows nothing more to be sent on any stream
            self._flush()
            self.transport.close()

    def _abandon(self) -> None:
        """Nothing more can be sent: end everything that works for this client."""
        calls = list(self._calls.values())
        self._calls.clear()
        for call in calls:
            if call.task is not None:
                call.task.cancel()
        self.transport.close()


def _fields(status: int, headers: Headers) -> Headers:
    """The head of a response in the form of HTTP/2."""
    fields: Headers = [(b":status", b"%d" % status)]
    for name, value in headers:
        name = name.lower()
        if name in _OF_ONE_CONNECTION:
            continue
        if value != value.translate(None, CONTROLS) or name != name.translate(None, CONTROLS):
            raise RuntimeError("a header cannot be sent")
        fields.append((name, value.strip(b" \t")))
    return fields
