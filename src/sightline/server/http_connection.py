"""HTTP/1.1 of the server: the connection of one client, and each request on it with its response.

llhttp parses, strictly; what it tolerates and we do not is refused here. The requests of a connection are answered one
after another by one task, which ends with the connection: what works for a client that has gone is cancelled.
"""

import asyncio
import logging
import re
import socket
import struct
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from functools import lru_cache
from http import HTTPStatus
from typing import Final, cast

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser, parse_url

from sightline.errors import Fault
from sightline.gateway.paths import caller_of, parse_path
from sightline.gateway.refusal import foreign_target, head_too_large, not_http, refusal_response
from sightline.web.asgi import (
    AsgiScope,
    ClientWriter,
    Headers,
    Receive,
    RequestEvent,
    ResponseChunk,
    ResponseStart,
    WebResponse,
    header,
)

Application = Callable[[AsgiScope, Receive, ClientWriter], Awaitable[None]]

MOST_HEAD_BYTES: Final = 64 * 1024
_MOST_BODY_WAITING: Final = 64 * 1024
"""Bytes of a body that wait for the application; the client is not read meanwhile."""

_LINE_END: Final = 4
"""The colon, the space and the line break around a header."""

_LOG = logging.getLogger("sightline.server")
_WITHOUT_BODY: Final = frozenset({204, 304})
_STATUS_LINES: Final = {each.value: f"HTTP/1.1 {each.value} {each.phrase}\r\n".encode() for each in HTTPStatus}
_CONTROLS: Final = bytes(({*range(32), 127}) - set(b"\t\r\n"))
_OFFER = re.compile(rb"\r\nupgrade:[ \t]*h2c[ \t]*(?=\r\n|\Z)", re.IGNORECASE)


class HttpCall:
    """One request and its response. `receive` is ASGI's, and the call itself is ASGI's `send`."""

    __slots__ = (
        "_connection",
        "_ends_by_closing",
        "_head",
        "_is_chunked",
        "_is_http_1_0",
        "_left",
        "_pieces",
        "_waiting",
        "_was_asked_for",
        "_without_body",
        "has_begun",
        "has_body",
        "is_answered",
        "keeps_alive",
        "scope",
        "trailers",
    )

    def __init__(
        self,
        connection: "ClientConnection",
        scope: AsgiScope,
        *,
        keeps_alive: bool,
        is_http_1_0: bool,
    ) -> None:
        self.scope = scope
        self.keeps_alive = keeps_alive
        self.has_body = False
        """Whether the whole request is here."""
        self.has_begun = False
        """Whether the head of the response was made."""
        self.is_answered = False
        self.trailers: Headers = []
        """What followed the body of the request, in lower case. Only what is passed on as it came has a use for it."""
        self._connection = connection
        self._is_http_1_0 = is_http_1_0
        self._pieces: list[bytes] = []
        self._waiting = 0
        self._was_asked_for = False
        """Whether a client that waits for leave to send its body has got it."""
        self._head = b""
        """The head of a response of known length, until it is written with the body: each write is a packet."""
        self._is_chunked = False
        self._ends_by_closing = False
        self._without_body = scope["method"] == "HEAD"
        self._left = 0
        """Bytes of a body of known length that are still to come."""

    # --- the request ---

    def add_body(self, data: bytes) -> None:
        """A piece of the body has arrived."""
        if self.is_answered:
            return  # the application did without it
        self._pieces.append(data)
        self._waiting += len(data)
        if self._waiting > _MOST_BODY_WAITING:
            self._connection.pause_reading()

    async def receive(self) -> RequestEvent:
        """What has arrived of the body since the last time."""
        connection = self._connection
        if not self._pieces and not self.has_body and not self._was_asked_for:
            self._was_asked_for = True
            if header(self.scope["headers"], b"expect").lower() == "100-continue":
                connection.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        while not self._pieces and not self.has_body and not self.is_answered:
            connection.resume_reading()
            await connection.next_change()
        if self.is_answered:
            return {"type": "http.disconnect"}
        body = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        self._pieces.clear()
        self._waiting = 0
        event: RequestEvent = {"type": "http.request", "body": body, "more_body": not self.has_body}
        if self.trailers and self.has_body:
            event["trailers"] = self.trailers
        return event

    # --- the response ---

    async def __call__(self, message: ResponseStart | ResponseChunk, /) -> None:
        """Write the next piece of the response, once the client takes it."""
        if self._connection.is_writing_paused:
            await self._connection.until_writable()
        if message["type"] == "http.response.start":
            self.write_head(message["status"], message["headers"])
        else:
            self.write_body(message["body"], is_last=not message["more_body"], trailers=message.get("trailers") or ())

    @property
    def is_paused(self) -> bool:
        """Whether the client takes no more for now."""
        return self._connection.is_writing_paused

    def respond(self, status: int, headers: Headers, body: bytes, /) -> None:
        """Write a whole response."""
        self.write_head(status, headers)
        self.write_body(body, is_last=True)

    def write(self, data: bytes, /) -> None:
        """Write a chunk of the body, whether or not the client takes it yet."""
        self.write_body(data, is_last=False)

    async def until_writable(self) -> None:
        """Wait until the client takes more."""
        await self._connection.until_writable()

    def write_head(self, status: int, headers: Headers) -> None:
        """Write the head at once, or with the body if its length is known."""
        lines = [_STATUS_LINES.get(status) or b"HTTP/1.1 %d \r\n" % status]
        has_length = False
        self._without_body = self._without_body or status in _WITHOUT_BODY
        if self._connection.is_closing_soon:
            self.keeps_alive = False
        for name, value in headers:
            name = name.lower()
            if name == b"content-length":
                self._left, has_length = int(value), True
            elif name == b"connection" and b"close" in value.lower():
                self.keeps_alive = False
                continue
            lines.append(b"%b: %b\r\n" % (name, value))
        if not has_length and not self._without_body:
            if self._is_http_1_0:
                # HTTP/1.0 has no chunks: the end of the connection is the end of the body.
                self._ends_by_closing, self.keeps_alive = True, False
                self._reset_on_close(is_reset=True)
            else:
                self._is_chunked = True
                lines.append(b"transfer-encoding: chunked\r\n")
        if not self.keeps_alive:
            lines.append(b"connection: close\r\n")
        head = _checked(lines)
        self.has_begun = True
        if self._is_chunked or self._ends_by_closing:
            self._connection.transport.write(head + b"\r\n")
        else:
            self._head = head + b"\r\n"

    def _reset_on_close(self, *, is_reset: bool) -> None:
        """Whether closing the connection resets it. A body that the close ends must not look whole when it broke off,
        and a reset is the only way in which HTTP/1.0 can say so."""
        raw = self._connection.transport.get_extra_info("socket")
        if raw is not None:
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", int(is_reset), 0))

    def write_interim(self, status: int, headers: Headers, /) -> None:
        """Write a response of 1xx, which comes before the response itself. HTTP/1.0 has none."""
        if not self._is_http_1_0 and not self.has_begun:
            lines = [_STATUS_LINES.get(status) or b"HTTP/1.1 %d \r\n" % status]
            lines += [b"%b: %b\r\n" % (name.lower(), value) for name, value in headers]
            self._connection.transport.write(_checked(lines) + b"\r\n")

    def write_body(self, body: bytes, *, is_last: bool, trailers: Sequence[tuple[bytes, bytes]] = ()) -> None:
        """Write a piece of the body, and behind the last one of a chunked body its trailers."""
        write = self._connection.transport.write
        if self._is_chunked:
            chunk = b"%x\r\n%b\r\n" % (len(body), body) if body else b""
            if is_last:
                chunk += b"0\r\n%b\r\n" % _checked([b"%b: %b\r\n" % each for each in trailers])
            if chunk:
                write(chunk)
        elif self._ends_by_closing:
            if body:
                write(body)
            if is_last:
                self._reset_on_close(is_reset=False)
        else:
            if self._without_body:  # its length, if it has one, is that of a body which is not sent
                self._left, body = 0, b""
            self._left -= len(body)
            if self._left < 0 or (is_last and self._left):
                raise RuntimeError("a response has another length than its head says")
            head, self._head = self._head, b""
            write(head + body)
        if is_last:
            self.is_answered = True
            if not self.keeps_alive:
                self._connection.transport.close()

    async def run(self, app: Application) -> None:
        """Have it answered. Whatever the application does, the client gets a whole response or sees that it is none."""
        try:
            await app(self.scope, self.receive, self)
        except Exception:  # noqa: BLE001 - whatever a request does, its connection is served on
            _LOG.exception("a request failed")
        if not self.has_begun:
            # Either the failure of before, or the request was left without an answer, as one whose body never came.
            failed = WebResponse(500, b"Internal Server Error", [(b"content-type", b"text/plain; charset=utf-8")])
            self.keeps_alive = False
            await failed.to(self)
        elif not self.is_answered:
            self._connection.transport.close()  # without an end it does not look whole


class ClientConnection(asyncio.Protocol):
    """The connection of one client. It is in the server's set of connections while it is open.

    `idle_since` is the loop's time at which the last response was complete.
    """

    transport: asyncio.Transport

    def __init__(self, app: Application, connections: set["ClientConnection"]) -> None:
        self._app = app
        self._connections = connections
        self._loop = asyncio.get_running_loop()
        self._parser = HttpRequestParser(self)
        # What follows a request with `Connection: close` is not looked at, and is no error.
        self._parser.set_dangerous_leniencies(lenient_data_after_close=True)
        self._calls: deque[HttpCall] = deque()
        """Requests without a complete response, the current one first."""
        self._waiter: asyncio.Future[None] | None = None
        self._writable: asyncio.Future[None] | None = None
        self._refusal: bytes | None = None
        """What ends the connection, because no more requests can be read from it."""
        self._is_reading_paused = False
        self.is_writing_paused = False
        self.is_closing_soon = False
        self.idle_since = self._loop.time()
        self._reads_head = True
        self._head_bytes = self._latest = self._first_piece = 0
        self._url = b""
        self._headers: Headers = []

    # --- what asyncio calls ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The client has connected."""
        self.transport = cast(asyncio.Transport, transport)  # uvloop's are none by their class
        self._connections.add(self)
        self.task = self._loop.create_task(self._serve())

    def connection_lost(self, exc: Exception | None) -> None:
        """The client has disconnected: what works for it is cancelled."""
        self._connections.discard(self)
        self.task.cancel()

    def data_received(self, data: bytes) -> None:
        """Bytes have arrived."""
        if self._refusal is not None:
            return
        self._latest = len(data)
        self._head_bytes += self._latest
        if self._reads_head and data.find(b"h2c", 0, MOST_HEAD_BYTES) >= 0:
            data = _without_offer(data)
        try:
            self._parser.feed_data(data)
        except HttpParserUpgrade:
            # The application answers it. What follows would be of the other protocol, which is not spoken here.
            self._refusal = b""
            if self._calls:
                self._calls[-1].keeps_alive = False
        except HttpParserError as error:
            # A fault of ours that was raised in a callback is the context of llhttp's error.
            context = error.__context__
            self._refuse(context if isinstance(context, Fault) else not_http())
        else:
            if self._reads_head and self._head_bytes > MOST_HEAD_BYTES:
                self._refuse(head_too_large())
        self._wake()

    def pause_writing(self) -> None:
        """The client takes no more for now."""
        self.is_writing_paused = True

    def resume_writing(self) -> None:
        """The client takes more."""
        self.is_writing_paused = False
        waiter, self._writable = self._writable, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    # --- what llhttp calls ---

    def on_message_begin(self) -> None:
        self._reads_head = True
        # The chunk in which the head begins may contain the end of another request, so it is counted apart.
        self._head_bytes = 0
        self._first_piece = self._latest
        self._url = b""
        self._headers = []

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._reads_head:
            self._headers.append((name.lower(), value))
        elif self._calls:
            # A trailer is kept apart: a header that follows the body could change who is asking, or for what, after
            # that was decided.
            trailers = self._calls[-1].trailers
            trailers.append((name.lower(), value))
            if sum(len(key) + len(each) + _LINE_END for key, each in trailers) > MOST_HEAD_BYTES:
                raise head_too_large()

    def on_headers_complete(self) -> None:
        self._reads_head = False
        if self._first_piece + self._head_bytes > MOST_HEAD_BYTES and self._head_size() > MOST_HEAD_BYTES:
            raise head_too_large()
        if not self._url.startswith(b"/"):
            raise foreign_target()
        (path, query), parser = _split_url(self._url), self._parser
        scope: AsgiScope = {
            "type": "http",
            "method": parser.get_method().decode("ascii"),
            "raw_path": path,
            "query_string": query,
            "headers": self._headers,
        }
        is_http_1_0 = parser.get_http_version() == "1.0"
        call = HttpCall(
            self,
            scope,
            keeps_alive=not is_http_1_0 and parser.should_keep_alive(),
            is_http_1_0=is_http_1_0,
        )
        if self._calls:
            self.pause_reading()  # it waits for its turn
        self._calls.append(call)

    def _head_size(self) -> int:
        """The size of the head alone; what came with it may be the body."""
        return len(self._url) + sum(len(name) + len(value) + _LINE_END for name, value in self._headers)

    def on_body(self, body: bytes) -> None:
        if self._calls:  # else its response is complete already
            self._calls[-1].add_body(body)

    def on_message_complete(self) -> None:
        if self._calls:
            self._calls[-1].has_body = True
        self._reads_head = True
        self._head_bytes = 0

    # --- reading and writing ---

    def pause_reading(self) -> None:
        """Read nothing more until what is here has been taken."""
        if not self._is_reading_paused:
            self._is_reading_paused = True
            self.transport.pause_reading()

    def resume_reading(self) -> None:
        """Read on."""
        if self._is_reading_paused and not self.transport.is_closing():
            self._is_reading_paused = False
            self.transport.resume_reading()

    def next_change(self) -> "asyncio.Future[None]":
        """Done when something has arrived."""
        self._waiter = self._loop.create_future()
        return self._waiter

    def _wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    async def until_writable(self) -> None:
        """Wait until the client takes more."""
        while self.is_writing_paused:
            self._writable = self._loop.create_future()
            await self._writable

    # --- serving ---

    async def _serve(self) -> None:
        """Answer one request after another, until the connection ends."""
        calls = self._calls
        try:
            while True:
                while not calls:
                    if self._refusal is not None:
                        self.transport.write(self._refusal)
                        return
                    await self.next_change()
                call = calls[0]
                await call.run(self._app)
                calls.popleft()
                if not call.keeps_alive or self.is_closing_soon:
                    return
                if not calls:
                    self.idle_since = self._loop.time()
                if self.is_writing_paused:  # a client that only asks and never reads is not asked for more
                    await self.until_writable()
                self.resume_reading()
        except asyncio.CancelledError:
            # The client has gone, or the server ends: both are ways for a request to end, and no failure of it.
            return
        finally:
            self.transport.close()

    @property
    def is_idle(self) -> bool:
        """Whether no request is under way."""
        return not self._calls

    def shut_down(self) -> None:
        """Close it as soon as the requests that are here have been answered."""
        self.is_closing_soon = True
        if not self._calls:
            self.transport.close()

    def _refuse(self, fault: Fault) -> None:
        """Refuse what is no request, behind the responses to those before it, and read nothing more."""
        place = parse_path(self._url.decode("latin-1").partition("?")[0])
        response = refusal_response(caller_of(place, self._headers, ""), fault)
        lines = [b"connection: close", b"content-length: %d" % len(response.body)]
        lines += [b"%b: %b" % each for each in response.headers]
        self._refusal = b"".join(
            (_STATUS_LINES[response.status], *(b"%b\r\n" % line for line in lines), b"\r\n", response.body)
        )
        self.pause_reading()
        if self._calls and not self._calls[-1].has_body:
            # The body of this one is broken. Its work is cancelled when the connection ends.
            broken = self._calls.pop()
            if not self._calls:
                self.transport.write(b"" if broken.has_begun else self._refusal)
                self.transport.close()
                self.task.cancel()


@lru_cache(maxsize=256)
def _split_url(url: bytes) -> tuple[bytes, bytes]:
    """The path and the query of a request's target, as they were written."""
    parsed = parse_url(url)
    return parsed.path, parsed.query or b""


def _checked(lines: list[bytes]) -> bytes:
    """These lines of a head as one; a RuntimeError where one of them would end early, or cannot be sent."""
    head = b"".join(lines)
    if head.count(b"\n") != len(lines) or head.count(b"\r") != len(lines) or head != head.translate(None, _CONTROLS):
        raise RuntimeError("a header cannot be sent")
    return head


def _without_offer(data: bytes) -> bytes:
    """The request without the offer of HTTP/2 that Java's own client makes. httptools takes a request with any upgrade
    for one without a body."""
    head, end, rest = data.partition(b"\r\n\r\n")
    return _OFFER.sub(b"", head) + end + rest
