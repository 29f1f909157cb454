"""HTTP/1.1 of the server: everything that reaches into uvicorn's private parts is in this file.

Written for uvicorn 0.54, `uvicorn.protocols.http.httptools_impl`. Why it is done:

- `ResponseCycle`: uvicorn writes head and body of a short response in two packets, and cannot end a body of unknown
  length for an HTTP/1.0 client. It has no hook for another cycle: the class is named inside `on_headers_complete`.
- `ServerConnection`: uvicorn limits neither the size of a head nor the form of its target, takes trailers for headers,
  and does not cancel the work for a client that has disconnected. To cancel it here costs a request nothing; a task
  that watches the connection would cost a task for each request.
"""

import asyncio
import re
import socket
import struct
from typing import Final

from httptools import HttpParserError
from uvicorn.protocols.http.httptools_impl import (
    HEADER_RE,
    HEADER_VALUE_RE,
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)

from sightline.errors import Code, Fault
from sightline.gateway.paths import caller_of, parse_path
from sightline.gateway.refusal import refusal_response
from sightline.web.asgi import RUNNING, Headers, ResponseChunk, ResponseStart

_WITHOUT_BODY: Final = frozenset({204, 304})


class ResponseCycle(RequestResponseCycle):
    """A request and its response. Each write is a packet and wakes the client, so a head and a body of known length are
    written together; the head of any other response is written at once."""

    _head = b""
    """The head, until it is written with the body."""
    _ends_by_closing = False

    async def send(self, message: ResponseStart | ResponseChunk) -> None:  # type: ignore[override]
        """Write the next piece of the response."""
        if self.flow.write_paused and not self.disconnected:
            await self.flow.drain()
        if self.disconnected:
            return
        if message["type"] == "http.response.start":
            self._write_head(message["status"], message["headers"])
        else:
            self._write_body(message["body"], is_last=not message["more_body"])

    def _write_head(self, status: int, headers: Headers) -> None:
        lines = [STATUS_LINE.get(status) or b"HTTP/1.1 %d \r\n" % status]
        for name, value in headers:
            name = name.lower()
            if HEADER_RE.search(name) or HEADER_VALUE_RE.search(value):
                raise RuntimeError("a header cannot be sent")
            if name == b"content-length":
                self.expected_content_length, self.chunked_encoding = int(value), False
            elif name == b"connection" and b"close" in value.lower():
                self.keep_alive = False
                continue
            lines += (name, b": ", value, b"\r\n")
        has_body = self.scope["method"] != "HEAD" and status not in _WITHOUT_BODY
        if self.chunked_encoding is None and has_body and self.scope.get("http_version") == "1.0":
            # HTTP/1.0 has no chunks: the end of the connection is the end of the body.
            self.chunked_encoding, self._ends_by_closing, self.keep_alive = False, True, False
            self._reset_on_close(is_reset=True)
        if not self.keep_alive:
            lines.append(b"connection: close\r\n")
        if self.chunked_encoding is None:
            self.chunked_encoding = has_body
            if self.chunked_encoding:
                lines.append(b"transfer-encoding: chunked\r\n")
        lines.append(b"\r\n")
        self.response_started = True
        self.waiting_for_100_continue = False
        head = b"".join(lines)
        if self.chunked_encoding or self._ends_by_closing:
            self.transport.write(head)
        else:
            self._head = head

    def _reset_on_close(self, *, is_reset: bool) -> None:
        """Whether closing the connection resets it. A body that the close ends must not look whole when it broke off,
        and a reset is the only way in which HTTP/1.0 can say so."""
        raw = self.transport.get_extra_info("socket")
        if raw is not None:
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", int(is_reset), 0))

    def _write_body(self, body: bytes, *, is_last: bool) -> None:
        if self.chunked_encoding:
            chunk = b"%x\r\n%b\r\n" % (len(body), body) if body else b""
            if chunk or is_last:
                self.transport.write(chunk + b"0\r\n\r\n" if is_last else chunk)
        elif self._ends_by_closing:
            if body:
                self.transport.write(body)
            if is_last:
                self._reset_on_close(is_reset=False)
        else:
            head, self._head = self._head, b""
            if self.scope["method"] == "HEAD":
                self.expected_content_length, body = 0, b""
            self.expected_content_length -= len(body)
            if self.expected_content_length < 0 or (is_last and self.expected_content_length):
                raise RuntimeError("a response has another length than its head says")
            self.transport.write(head + body)
        if is_last:
            self.response_complete = True
            self.message_event.set()
            if not self.keep_alive:
                self.transport.close()
            self.on_response()


MOST_HEAD_BYTES: Final = 64 * 1024
_LINE_END: Final = 4
"""The colon, the space and the line break around a header."""

_OFFER = re.compile(rb"\r\nupgrade:[ \t]*h2c[ \t]*(?=\r\n|\Z)", re.IGNORECASE)


class ServerConnection(HttpToolsProtocol):
    """The connection of one client."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """The client has connected."""
        self._running: set[asyncio.Task[object]] = set()
        self._reads_head = True
        self._head_bytes = self._latest = self._first_piece = 0
        self._fault: Fault | None = None
        super().connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """The client has disconnected: everything that works for it is cancelled."""
        super().connection_lost(exc)
        for task in self._running:
            task.cancel()

    def data_received(self, data: bytes) -> None:
        """Bytes have arrived."""
        self._latest = len(data)
        self._head_bytes += self._latest
        if self._reads_head and data.find(b"h2c", 0, MOST_HEAD_BYTES) >= 0:
            data = _without_offer(data)
        super().data_received(data)
        if self._reads_head and self._head_bytes > MOST_HEAD_BYTES and not self.transport.is_closing():
            self._fault = _head_too_large()
            self.send_400_response("")

    def on_message_begin(self) -> None:
        """A request begins."""
        super().on_message_begin()
        self._reads_head = True
        # The chunk in which the head begins may contain the end of another request, so it is counted apart.
        self._head_bytes = 0
        self._first_piece = self._latest
        self.scope["extensions"] = {RUNNING: self._running}  # type: ignore[dict-item]

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header, or a trailer behind a chunked body. Trailers come this way too and are left out: a header that
        follows the body could change who is asking, or for what, after that was decided."""
        if self._reads_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """The head is complete."""
        self._reads_head = False
        if self._first_piece + self._head_bytes > MOST_HEAD_BYTES and self._head_size() > MOST_HEAD_BYTES:
            self._fault = _head_too_large()
            raise HttpParserError
        if not self.url.startswith(b"/"):
            self._fault = _foreign_target()
            raise HttpParserError
        super().on_headers_complete()
        # The cycle was made just now and has not run. Its class is replaced because uvicorn offers no other way; a copy
        # of the 60 lines of `on_headers_complete` would break with every change of theirs.
        self.cycle.__class__ = ResponseCycle

    def _head_size(self) -> int:
        """The size of the head alone; what came with it may be the body."""
        return len(self.url) + sum(len(name) + len(value) + _LINE_END for name, value in self.headers)

    def on_message_complete(self) -> None:
        """The request is complete; another head follows."""
        super().on_message_complete()
        self._reads_head = True
        self._head_bytes = 0

    def send_400_response(self, msg: str) -> None:
        """Refuse a request that cannot be given to the application."""
        fault = self._fault or Fault(Code.INVALID_REQUEST, "this is not HTTP/1.1", hint="Send it again.", status=400)
        place = parse_path(getattr(self, "url", b"").decode("latin-1").partition("?")[0])
        answer = refusal_response(caller_of(place, self.headers or [], ""), fault)
        head = [STATUS_LINE[answer.status], b"connection: close\r\n", b"content-length: %d\r\n" % len(answer.body)]
        head += [b"%s: %s\r\n" % each for each in answer.headers]
        self.transport.write(b"".join([*head, b"\r\n", answer.body]))
        self.transport.close()

    def _unsupported_upgrade_warning(self) -> None:
        """The application answers upgrades itself."""


def _without_offer(data: bytes) -> bytes:
    """The request without the offer of HTTP/2 that Java's own client makes. httptools takes a request with any upgrade
    for one without a body."""
    head, end, rest = data.partition(b"\r\n\r\n")
    return _OFFER.sub(b"", head) + end + rest


def _head_too_large() -> Fault:
    hint = "Send shorter headers."
    return Fault(Code.REQUEST_TOO_LARGE, "the head of the request is larger than 64 KiB", hint=hint, status=431)


def _foreign_target() -> Fault:
    hint = "Set its address as the client's base URL, not as its proxy."
    return Fault(Code.PERMISSION, "this server is no forward proxy", hint=hint, status=403)
