"""The server's side of HTTP/1.1: the connection of one client.

llhttp parses in its strict mode; what it still tolerates and we do not is refused here. One task answers the requests
of a connection in order. It ends with the connection, so that work for a client that has disconnected is cancelled.

A request to upgrade to HTTP/2 is answered as if it did not offer that; all other upgrades reach the application.
"""

import asyncio
import re
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final, cast

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser

from sightline.errors import Fault
from sightline.gateway.paths import caller_of, parse_path
from sightline.gateway.refusal import foreign_target, head_too_large, not_http, refusal_response
from sightline.server.direct_queue import DirectQueue
from sightline.server.hand_over import HandOver
from sightline.server.heads import MOST_HEAD_BYTES, KnownHead, find_head, join_head, remember_head, split_url
from sightline.server.http_call import Application, HttpCall
from sightline.web.asgi import AsgiScope, ClientWriter, DirectRequest, Headers, Receive, UpgradeReceiver

_MOST_EARLY: Final = 64 * 1024
_OFFER = re.compile(rb"\r\nupgrade:[ \t]*h2c[ \t]*(?=\r\n|\Z)", re.IGNORECASE)


def without_offer(data: bytes) -> bytes:
    """Remove the offer to upgrade to HTTP/2, which the JDK's client makes. httptools reads no body of a request with an
    `Upgrade` header."""
    head, end, rest = data.partition(b"\r\n\r\n")
    return _OFFER.sub(b"", head) + end + rest


class Upgrade:
    """The rest of a connection after an upgrade request. Early bytes are buffered, up to a limit, until the upgrade is
    accepted; if it is refused, the connection ends."""

    __slots__ = ("_early", "_is_ending", "_receiver", "_transport")

    def __init__(self, transport: asyncio.Transport, early: bytes) -> None:
        self._transport = transport
        self._early = bytearray(early)
        self._receiver: UpgradeReceiver | None = None
        self._is_ending = False

    def feed(self, data: bytes) -> None:
        if self._receiver is not None:
            self._receiver.feed(data)
            return
        self._early += data
        if len(self._early) > _MOST_EARLY:
            self._transport.pause_reading()

    def accept(self, headers: Headers, receiver: UpgradeReceiver) -> asyncio.Transport:
        """Answer with 101. The receiver gets the buffered bytes and then all others, but none before this returns."""
        lines = (b"%b: %b\r\n" % each for each in headers)
        self._transport.write(b"".join((b"HTTP/1.1 101 Switching Protocols\r\n", *lines, b"\r\n")))
        asyncio.get_running_loop().call_soon(self._begin, receiver)
        return self._transport

    def _begin(self, receiver: UpgradeReceiver) -> None:
        self._receiver = receiver
        early, self._early = bytes(self._early), bytearray()
        if not self._transport.is_closing():
            self._transport.resume_reading()
        receiver.feed(early)
        if self._is_ending:
            receiver.shut_down()

    def resume_writing(self) -> None:
        if self._receiver is not None:
            self._receiver.writable_again()

    def shut_down(self) -> None:
        self._is_ending = True
        if self._receiver is not None:
            self._receiver.shut_down()

    def client_gone(self) -> None:
        if self._receiver is not None:
            self._receiver.client_gone()


_LINE_END: Final = 4
"""Bytes of a header line besides the name and the value: colon, space and line break."""


class ClientConnection(asyncio.Protocol):
    """The connection of one client. It is in the server's set of connections while it is open.

    `idle_since` is the loop's time at which the last response was complete. `other` is a process that may have to serve
    the next request.
    """

    transport: asyncio.Transport

    def __init__(
        self, app: Application, connections: set["ClientConnection"], queue: DirectQueue | None = None
    ) -> None:
        self.other: HandOver | None = None
        self._app = app
        self._queue = queue
        self._has_waited = False
        """Whether `_later` has waited for its turn in the queue."""
        self._direct: DirectRequest | None = None
        """A direct exchange: it is answered without the task, and no other request is read until it is."""
        self._direct_parts: tuple[KnownHead, bytes, bytes] | None = None
        """Its head, the digits of its content length, and its body."""
        self._starting: DirectRequest | None = None
        """One that has been handed to the task, which has not started on it."""
        self._later = b""
        """Bytes that arrived after it, which are read once it is answered, or bytes that wait in the queue."""
        self._connections = connections
        self._loop = asyncio.get_running_loop()
        self._parser = HttpRequestParser(self)
        # Bytes after a request with `Connection: close` are ignored; they are not an error.
        self._parser.set_dangerous_leniencies(lenient_data_after_close=True)
        self._calls: deque[HttpCall] = deque()
        """Requests without a complete response, the current one first."""
        self._waiter: asyncio.Future[None] | None = None
        self._writable: asyncio.Future[None] | None = None
        self._refusal: bytes | None = None
        """The last response of the connection, after which nothing more can be read from it."""
        self._latest_head: KnownHead | None = None
        self._missing = 0
        """Bytes of the body that have not arrived, for a request with a known head."""
        self.upgrade: Upgrade | None = None
        self._is_reading_paused = False
        self.is_writing_paused = False
        self.is_closing_soon = False
        self.idle_since = self._loop.time()
        self._is_within_request = False
        self._reads_head = True
        self._head_bytes = self._latest = self._first_piece = 0
        """The bytes of a head so far, without those of the read in which it began: those are in `_first_piece`. So 0
        does not mean that nothing of a head has arrived."""
        self._url = b""
        self._headers: Headers = []

    # --- what asyncio calls ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's transports do not inherit from asyncio.Transport
        self._connections.add(self)
        self.task = self._loop.create_task(self._serve())

    def connection_lost(self, exc: Exception | None) -> None:
        """The client has disconnected: cancel all work for it."""
        self._connections.discard(self)
        if self.upgrade is not None:
            self.upgrade.client_gone()
        direct, self._direct = self._direct, None
        if direct is not None:
            direct.client_gone()
        self.task.cancel()

    def data_received(self, data: bytes) -> None:
        if self._refusal is not None:
            if self.upgrade is not None:  # only after the last request
                self.upgrade.feed(data)
            return
        if self._direct is not None or self._later:
            self._keep_for_later(data)
            return
        if self.other is not None:
            is_between = not (self._calls or self._is_within_request or self._missing)
            if is_between and self.other.wants(data):
                self.other.take(self, data)
                return
        while data:  # a client may send many requests at once
            if self._missing:
                data = self._add_missing(data)
                continue
            rest = None if self._is_within_request or self._head_bytes else self._begin_known(data)
            if rest is None:
                self._parse_all(data)
                break
            data = rest
        if self._calls or self.is_idle:
            self._wake()

    def _parse_all(self, data: bytes) -> None:
        """Parse these bytes with llhttp, and remember the head if they are exactly one request."""
        is_first = not (self._is_within_request or self._head_bytes or self._calls)
        self._parse(data)
        if is_first and len(self._calls) == 1 and self._calls[0].has_body and self._calls[0].keeps_alive:
            remember_head(data, self._calls[0].scope)

    def _begin_known(self, data: bytes) -> bytes | None:
        """Begin a request whose head is known, and return the bytes after it; None if llhttp has to parse it."""
        head = self._latest_head
        length = b"" if head is None else head.length_in(data)
        if head is None or not length:
            head = find_head(data)
            length = b"" if head is None else head.length_in(data)
            if head is None or not length:
                return None
            self._latest_head = head
        if self.is_closing_soon:
            return None
        start, size = head.size + len(length), int(length)
        is_whole = len(data) == start + size  # nearly always
        body = data[start:] if is_whole else None
        if self._calls:
            self.pause_reading()  # it waits for its turn
        elif body is not None and self._queue is not None and not self.is_writing_paused:
            if not (self._has_waited or self._queue.has_place()):
                self._later = data
                self._queue.add(self)
                return b""
            self._direct = self._queue.begin(head, body, self)
            if self._direct is not None:
                self._direct_parts = head, length, body
                return b""
        call = HttpCall(self, head.scope(length), keeps_alive=True, is_http_1_0=False, body=body)
        self._calls.append(call)
        if is_whole:
            return b""
        self._missing = size
        return self._add_missing(data[start:])

    def _add_missing(self, data: bytes) -> bytes:
        """Add to the body of a request with a known head, and return the bytes after it."""
        body, rest = (data, b"") if len(data) <= self._missing else (data[: self._missing], data[self._missing :])
        self._missing -= len(body)
        if self._calls:  # else its response is complete already
            call = self._calls[-1]
            call.has_body = not self._missing
            if body:
                call.add_body(body)
        return rest

    def _parse(self, data: bytes) -> None:
        self._latest = len(data)
        self._head_bytes += self._latest
        if self._reads_head and data.find(b"h2c", 0, MOST_HEAD_BYTES) >= 0:
            data = without_offer(data)
        try:
            self._parser.feed_data(data)
        except HttpParserUpgrade as found:
            # The application answers it. The bytes after it belong to the other protocol, if that is accepted.
            self._refusal = b""
            self.upgrade = Upgrade(self.transport, data[found.args[0] :])
            if self._calls:
                self._calls[-1].keeps_alive = False
        except HttpParserError as error:
            # A Fault that one of our callbacks raised is the context of llhttp's error.
            context = error.__context__
            self._refuse(context if isinstance(context, Fault) else not_http())
        else:
            if self._reads_head and self._head_bytes > MOST_HEAD_BYTES:
                self._refuse(head_too_large())

    def pause_writing(self) -> None:
        self.is_writing_paused = True

    def resume_writing(self) -> None:
        self.is_writing_paused = False
        waiter, self._writable = self._writable, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)
        if self.upgrade is not None:
            self.upgrade.resume_writing()

    # --- what llhttp calls ---

    def on_message_begin(self) -> None:
        self._is_within_request = self._reads_head = True
        # The read in which the head begins may start with the end of another request, so it is counted separately.
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
            # Trailers are kept apart from headers: they arrive after access and routing were decided, and must not
            # change either.
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
        (path, query), parser = split_url(self._url), self._parser
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
        """The size of the head alone, without a body that came in the same read."""
        return len(self._url) + sum(len(name) + len(value) + _LINE_END for name, value in self._headers)

    def on_body(self, body: bytes) -> None:
        if self._calls:  # else its response is complete already
            self._calls[-1].add_body(body)

    def on_message_complete(self) -> None:
        if self._calls:
            self._calls[-1].has_body = True
        self._is_within_request = False
        self._reads_head = True
        self._head_bytes = 0

    # --- reading and writing ---

    def pause_reading(self) -> None:
        """Stop reading from the socket until `resume_reading`."""
        if not self._is_reading_paused:
            self._is_reading_paused = True
            self.transport.pause_reading()

    def resume_reading(self) -> None:
        if self._is_reading_paused and not self.transport.is_closing():
            self._is_reading_paused = False
            self.transport.resume_reading()

    def next_change(self) -> "asyncio.Future[None]":
        """A future that is done when something has arrived."""
        self._waiter = self._loop.create_future()
        return self._waiter

    def _wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    async def until_writable(self) -> None:
        while self.is_writing_paused:
            self._writable = self._loop.create_future()
            await self._writable

    # --- serving ---

    def respond_directly(self, data: bytes) -> None:
        """Write the response of a direct exchange."""
        self._direct = self._direct_parts = None
        if self.is_closing_soon:
            self.transport.write(data.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n", 1))
            self.transport.close()
            return
        self.transport.write(data)
        self.idle_since = self._loop.time()
        if self._later:
            self._loop.call_soon(self.read_later)

    def continue_in_task(self, serve: Callable[[ClientWriter], Awaitable[None]]) -> None:
        assert self._direct_parts is not None
        head, length, body = self._direct_parts
        self._starting, self._direct, self._direct_parts = self._direct, None, None

        def serve_directly(_scope: AsgiScope, _receive: Receive, writer: ClientWriter) -> Awaitable[None]:
            self._starting = None
            return serve(writer)

        call = HttpCall(self, head.scope(length), keeps_alive=True, is_http_1_0=False, body=body, app=serve_directly)
        self._calls.append(call)
        self._wake()
        if self._later:
            self._loop.call_soon(self.read_later)

    def _keep_for_later(self, data: bytes) -> None:
        self._later += data
        if len(self._later) > _MOST_EARLY:
            self.pause_reading()

    def read_later(self) -> None:
        """Read what waited for its turn, or for a direct exchange that is answered now or has been handed to the
        task."""
        if self._direct is None and not self.transport.is_closing():
            later, self._later, self._has_waited = self._later, b"", True
            self.resume_reading()
            self.data_received(later)
            self._has_waited = False

    async def _serve(self) -> None:
        """Answer one request after another until the connection ends."""
        calls = self._calls
        try:
            while True:
                while not calls:
                    if self._refusal is not None:
                        self.transport.write(self._refusal)
                        return
                    waiter = self._waiter = self._loop.create_future()
                    await waiter
                call = calls[0]
                await call.run(self._app)
                calls.popleft()
                if not call.keeps_alive or self.is_closing_soon:
                    return
                if calls and self.other is not None and self.other.wants_parsed(calls[0].scope):
                    return  # a parsed request cannot be handed over; a client that pipelines has to be ready to retry
                if not calls:
                    self.idle_since = self._loop.time()
                if self.is_writing_paused:  # read no more from a client that does not read its responses
                    await self.until_writable()
                if self._is_reading_paused:
                    self.resume_reading()
        except asyncio.CancelledError:
            # The client has disconnected, or the server is shutting down. Neither is a failure of the request.
            return
        finally:
            if self._starting is not None:  # cancelled before the task started on it
                self._starting.client_gone()
            self.transport.close()

    @property
    def is_idle(self) -> bool:
        return not (self._calls or self._direct or self._later)

    def shut_down(self) -> None:
        """Close the connection once the requests that have arrived are answered."""
        self.is_closing_soon = True
        if self.is_idle:
            self.transport.close()
        elif self.upgrade is not None:
            self.upgrade.shut_down()

    def _refuse(self, fault: Fault) -> None:
        """Refuse bytes that are not a request, after the responses to the requests before them, and stop reading."""
        place = parse_path(self._url.decode("latin-1").partition("?")[0])
        response = refusal_response(caller_of(place, self._headers, ""), fault)
        lines = [b"connection: close", b"content-length: %d" % len(response.body)]
        lines += [b"%b: %b" % each for each in response.headers]
        self._refusal = join_head(response.status, lines) + response.body
        self.pause_reading()
        if self._calls and not self._calls[-1].has_body:
            # The body of this request is malformed. Its work is cancelled when the connection ends.
            broken = self._calls.pop()
            if not self._calls:
                self.transport.write(b"" if broken.has_begun else self._refusal)
                self.transport.close()
                self.task.cancel()
