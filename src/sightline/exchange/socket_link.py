"""A provider's WebSocket as the exchanges of one client use it: a request is a frame, and its response the events that
follow.

An event belongs to the lane that its `stream_id` names, and there to the first request whose response has not ended:
the provider answers the requests of a lane in order. Events that belong to no request go straight to the client.

To the rest of an exchange, a response looks like a stream of server-sent events, one for each frame, so that parsing,
recording, masking and holding work as they do over HTTP.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final

import msgspec

from sightline.errors import Fault
from sightline.exchange.client_response import header
from sightline.transport.http import faults
from sightline.transport.http.straight_way import StraightWay
from sightline.transport.http.target import Timeouts, target
from sightline.transport.web_socket import DialledSocket, RefusedSocket
from sightline.wire.call import HttpRequest
from sightline.wire.jsontext import MISFIT, decode

_MOST_BUFFERED: Final = 256 * 1024
"""The most bytes of responses that wait for a slow reader; the provider is not read meanwhile."""

_MOST_KNOWN: Final = 256
TERMINAL: Final = frozenset({"response.completed", "response.failed", "response.incomplete", "error"})
"""The events that end a response."""

_NO_TIMEOUTS: Final = Timeouts(0, 0, 0)
_EVENT_STREAM: Final = (b"content-type", b"text/event-stream")


class _NamedResponse(msgspec.Struct, gc=False):
    id: str = ""


class EventKind(msgspec.Struct, gc=False):
    """The fields that are read of each event."""

    type: str = ""
    stream_id: str | None = None
    response: _NamedResponse | None = None


READ_KIND: Final = msgspec.json.Decoder(EventKind)


def read_kind(data: bytes) -> EventKind:
    """The kind of an event; empty if the text is not an event."""
    try:
        return READ_KIND.decode(data)
    except (msgspec.DecodeError, RecursionError):
        pass
    try:  # a text with half a surrogate pair is legal JSON, which the decoder refuses
        return msgspec.convert(decode(data), EventKind)
    except (Fault, *MISFIT):
        return EventKind()


class SocketResponse:
    """The response to one frame, with the interface of `transport.http.client.Response`: iterate over it once, or
    `pass_to`."""

    def __init__(self, link: "SocketLink", lane: str, timeouts: Timeouts) -> None:
        self.status = 200
        # The headers that framed the handshake's response say nothing about these events.
        self.headers: tuple[tuple[bytes, bytes], ...] = (_EVENT_STREAM, *link.headers)
        self.lane = lane
        self._link = link
        self._pieces: list[bytes] = []
        self._buffered = 0
        self._fault: Fault | None = None
        self._has_ended = False
        self._has_begun = False
        self._is_closed = False
        self._waiter: asyncio.Future[None] | None = None
        self._listener: Callable[[], None] | None = None
        self._timeouts = timeouts
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._schedule_check()

    def header(self, name: str) -> str:
        return header(self.headers, name.encode("latin-1"))

    # --- called by the link ---

    def feed(self, data: bytes, *, is_last: bool) -> None:
        if self._is_closed:
            return
        if not self._has_begun:
            self._has_begun = True
            self._stop_timer()
            self._schedule_check()
        self._pieces.append(b"data: %b\n\n" % data)
        self._buffered += len(data)
        self._has_ended = self._has_ended or is_last
        if is_last:
            self._stop_timer()
        if self._buffered > _MOST_BUFFERED:
            self._link.pause(self)
        self._wake()

    def fail(self, fault: Fault) -> None:
        """No more events will arrive."""
        if not self._has_ended and self._fault is None:
            self._fault = fault
            self._stop_timer()
            self._wake()

    @property
    def is_over(self) -> bool:
        return self._has_ended or self._fault is not None

    # --- called by the exchange ---

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        while not self._pieces:
            if self._fault is not None:
                raise self._fault
            if self._has_ended:
                raise StopAsyncIteration
            self._waiter = self._loop.create_future()
            await self._waiter
        return self._take()

    async def pass_to(self, take: Callable[[bytes], bool], way: StraightWay | None = None) -> None:
        """Give each event to `take` in the callback that reads it from the socket, until `take` returns False or the
        response ends. Raises what `take` raises."""
        done: asyncio.Future[None] = self._loop.create_future()

        def on_change() -> None:
            goes_on = True
            try:
                while goes_on and self._pieces:
                    goes_on = take(self._take_one())
            except Exception as error:  # noqa: BLE001 - it is raised in the awaiting coroutine
                self._listener = None
                if not done.done():
                    done.set_exception(error)
                return
            if not goes_on or self.is_over:
                self._listener = None
                if not done.done():
                    done.set_result(None)

        self._listener = on_change
        try:
            on_change()
            await done
        finally:
            self._listener = None

    def take_whole(self) -> bytes | None:
        return None

    def abort(self, fault: Fault) -> None:
        self._pieces.clear()
        self._has_ended = False
        self.fail(fault)

    async def close(self) -> None:
        """Discard the rest of the response. The socket stays open, and later events are dropped."""
        self._is_closed = True
        self._stop_timer()
        self._pieces.clear()
        self._buffered = 0
        self._link.resume(self)
        if self._link.is_for_one:
            self._link.socket.close()

    # --- internals ---

    def _take(self) -> bytes:
        data = b"".join(self._pieces)
        self._pieces.clear()
        self._buffered = 0
        self._link.resume(self)
        return data

    def _take_one(self) -> bytes:
        """Take one event at a time, so that a slow client stops after the next."""
        if len(self._pieces) == 1:
            return self._take()
        data = self._pieces.pop(0)
        self._buffered -= len(data)
        return data

    def _wake(self) -> None:
        if self._listener is not None:
            self._listener()
            return
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    def _schedule_check(self) -> None:
        if limit := self._timeouts.idle if self._has_begun else self._timeouts.first_byte:
            due = max(self._link.heard, self._link.asked) + limit
            self._timer = self._loop.call_at(due, self._check_timeout, limit)

    def _check_timeout(self, limit: float) -> None:
        if self._link.is_paused:
            self._link.heard = self._loop.time()  # it is the reader that is slow
        elif max(self._link.heard, self._link.asked) + limit <= self._loop.time():
            self._timer = None
            self._link.give_up(faults.silent(self._link.place, limit, begun=self._has_begun))
            return
        self._schedule_check()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class SocketLink:
    """One socket to a provider. `on_stray` gets messages that belong to no request; `on_close` is called once at its
    end, after the active responses have received their fault. With `is_for_one`, the socket is closed after its first
    response."""

    def __init__(
        self,
        dialled: DialledSocket,
        url: str,
        on_stray: Callable[["SocketLink", bytes, str, bool], None] = lambda *_: None,
        on_close: Callable[["SocketLink", int, str], None] = lambda *_: None,
        *,
        is_for_one: bool = False,
    ) -> None:
        self.is_for_one = is_for_one
        self.headers = tuple(each for each in dialled.headers if each[0].lower() not in _OF_HANDSHAKE)
        self.place = target(url).origin.place
        self.heard = self.asked = asyncio.get_running_loop().time()
        self.on_stray = on_stray
        self._on_close = on_close
        self.socket = dialled.socket
        self.until_writable = dialled.until_writable
        self._lanes: dict[str, deque[SocketResponse]] = {}
        self._slow: set[SocketResponse] = set()
        self._is_held_back = False
        self._fault: Fault | None = None
        self.texts: dict[bytes, bytes] = {}
        """Frames with line breaks, by their form without. A server-sent event ends at a line break, and the client gets
        every frame as it arrived."""
        self.lanes_by_response: dict[str, str] = {}
        """The lanes of the latest responses, by their ids."""
        dialled.begin(self)

    @property
    def is_paused(self) -> bool:
        """Whether the provider is currently not read."""
        return bool(self._slow) or self._is_held_back

    def request(self, data: bytes, lane: str, timeouts: Timeouts) -> SocketResponse:
        """Send a frame that is a request; its response arrives in this lane. Raises a fault if the socket is closed."""
        self.asked = asyncio.get_running_loop().time()
        if not self.socket.send(data):
            raise self._fault or faults.no_answer(self.place, clean=True)
        return self.adopt(lane, timeouts)

    def adopt(self, lane: str, timeouts: Timeouts = _NO_TIMEOUTS) -> SocketResponse:
        """The next response in this lane, without a request."""
        response = SocketResponse(self, lane, timeouts)
        self._lanes.setdefault(lane, deque()).append(response)
        return response

    def give_up(self, fault: Fault) -> None:
        self._fault = fault
        self._fail_all(fault)
        self.socket.close(1001, "")
        self._on_close(self, 1011, fault.message)

    # --- back-pressure ---

    def pause(self, response: SocketResponse) -> None:
        """Stop reading until this response has been taken."""
        self._slow.add(response)
        self.socket.pause_reading()

    def resume(self, response: SocketResponse) -> None:
        if self._slow:
            self._slow.discard(response)
            self._read_on()

    def hold_back(self, *, is_held: bool) -> None:
        """Stop reading while the client accepts no more data."""
        self._is_held_back = is_held
        if is_held:
            self.socket.pause_reading()
        else:
            self._read_on()

    def _read_on(self) -> None:
        if not self.is_paused:
            self.socket.resume_reading()

    # --- called by the socket ---

    def on_message(self, data: bytes, *, is_text: bool) -> None:
        self.heard = asyncio.get_running_loop().time()
        kind = read_kind(data) if is_text else EventKind()
        lane = kind.stream_id or ""
        waiting = self._lanes.get(lane)
        if not waiting or not kind.type:
            self.on_stray(self, data, lane, is_text)
            return
        if kind.type == "response.created" and kind.response is not None:
            self.lanes_by_response[kind.response.id] = lane
            if len(self.lanes_by_response) > _MOST_KNOWN:
                del self.lanes_by_response[next(iter(self.lanes_by_response))]
        is_last = kind.type in TERMINAL
        response = waiting[0]
        if is_last:
            waiting.popleft()
            if not waiting:
                del self._lanes[lane]
        if data.find(b"\n") >= 0 or data.find(b"\r") >= 0:
            one_line = data.replace(b"\r", b" ").replace(b"\n", b" ")
            if len(self.texts) >= _MOST_KNOWN:
                self.texts.clear()  # these belong to responses that never reached the client
            self.texts[one_line] = data
            data = one_line
        response.feed(data, is_last=is_last)

    def on_close(self, code: int, reason: str) -> None:
        if self._fault is None:
            self._fault = faults.truncation(self.place)
            self._fail_all(self._fault)
            self._on_close(self, code, reason)

    def _fail_all(self, fault: Fault) -> None:
        lanes, self._lanes = self._lanes, {}
        for waiting in lanes.values():
            for response in waiting:
                response.fail(fault)


_OF_HANDSHAKE: Final = frozenset(
    {
        b"upgrade", b"connection", b"content-type", b"content-length", b"content-encoding", b"transfer-encoding",
        b"sec-websocket-accept", b"sec-websocket-protocol", b"sec-websocket-extensions",
    }
)  # fmt: skip


class RefusalBody:
    """A provider's HTTP response to a handshake that it refused, as the response to a request."""

    def __init__(self, refused: RefusedSocket) -> None:
        self.status = refused.status
        self.headers = refused.headers
        self._body = refused.body

    def header(self, name: str) -> str:
        return header(self.headers, name.encode("latin-1"))

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        if body := self.take_whole():
            return body
        raise StopAsyncIteration

    async def pass_to(self, take: Callable[[bytes], bool], way: StraightWay | None = None) -> None:
        """Does nothing: the iteration yields the body."""

    def take_whole(self) -> bytes:
        body, self._body = self._body, b""
        return body

    def abort(self, fault: Fault) -> None:
        """Does nothing: the body is complete."""

    async def close(self) -> None:
        """Does nothing: there is no connection."""


class LaneClient:
    """Sends one request as a frame over a link, in place of the HTTP client. `refused` is what the provider responded
    in place of a link; `on_sent` is called when the frame has been written. `open_link` returns the open link, or
    another if that has ended meanwhile."""

    def __init__(
        self,
        lane: str,
        on_sent: Callable[[], None],
        refused: RefusedSocket | Fault | None,
        open_link: Callable[[], Awaitable[SocketLink]],
    ) -> None:
        self._lane = lane
        self._on_sent = on_sent
        self._refused = refused
        self._open_link = open_link

    async def send(
        self, request: HttpRequest, timeouts: Timeouts, *, past_proxy: bool = False
    ) -> SocketResponse | RefusalBody:
        """Send the body of the request; its address and headers were sent with the handshake."""
        del past_proxy
        if isinstance(self._refused, Fault):
            raise self._refused
        if self._refused is not None:
            return RefusalBody(self._refused)
        try:
            link = await self._open_link()
        except RefusedSocket as refused:
            return RefusalBody(refused)
        response = link.request(request.body, self._lane, timeouts)
        self._on_sent()
        return response


class AdoptedResponse:
    """The client of a request that the provider already has: it returns this response."""

    def __init__(self, response: SocketResponse) -> None:
        self._response = response

    async def send(self, request: HttpRequest, timeouts: Timeouts, *, past_proxy: bool = False) -> SocketResponse:
        """Return the response; nothing is sent."""
        del request, timeouts, past_proxy
        return self._response


class OneTurnClient:
    """Sends one request over its own socket, as needed to send a recorded frame again. `dial` opens the socket."""

    def __init__(self, dial: Callable[[HttpRequest, float], Awaitable[DialledSocket]]) -> None:
        self._dial = dial

    async def send(
        self, request: HttpRequest, timeouts: Timeouts, *, past_proxy: bool = False
    ) -> SocketResponse | RefusalBody:
        """Connect, send, and return the response, whose end closes the socket."""
        del past_proxy
        try:
            dialled = await self._dial(request, timeouts.connect)
        except RefusedSocket as refused:
            return RefusalBody(refused)
        link = SocketLink(dialled, request.url, is_for_one=True)
        return link.request(request.body, read_kind(request.body).stream_id or "", timeouts)
