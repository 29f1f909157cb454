"""How a connection is heard: heads within a limit, targets that mean this server, and the end of whoever has gone.

It stands between uvicorn and the sockets. Whoever works for a client that hangs up is cancelled at once, which costs a
request nothing where a task that watches would cost it a task.
"""

import asyncio
import re
from typing import Final

from httptools import HttpParserError
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from sightline.errors import Code, Fault
from sightline.gateway.paths import caller_of, parse_path
from sightline.gateway.refusal import refusal_response
from sightline.server.response_cycle import ResponseCycle
from sightline.web.asgi import RUNNING

MOST_HEAD_BYTES: Final = 64 * 1024
_LINE_END: Final = 4
"""The colon, the space and the line break around a header."""

_OFFER = re.compile(rb"\r\nupgrade:[ \t]*h2c[ \t]*(?=\r\n|\Z)", re.IGNORECASE)


class ServerConnection(HttpToolsProtocol):
    """One client."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """It has come."""
        self._running: set[asyncio.Task[object]] = set()
        self._hears_head = True
        self._head_bytes = self._latest = self._first_piece = 0
        self._fault: Fault | None = None
        super().connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """It has gone."""
        super().connection_lost(exc)
        for task in self._running:
            task.cancel()

    def data_received(self, data: bytes) -> None:
        """It says something."""
        self._latest = len(data)
        self._head_bytes += self._latest
        if self._hears_head and data.find(b"h2c", 0, MOST_HEAD_BYTES) >= 0:
            data = _without_offer(data)
        super().data_received(data)
        if self._hears_head and self._head_bytes > MOST_HEAD_BYTES and not self.transport.is_closing():
            self._fault = _head_too_large()
            self.send_400_response("")

    def on_message_begin(self) -> None:
        """A request begins."""
        super().on_message_begin()
        self._hears_head = True
        # The piece in which the head begins may hold the end of another request, so it is counted apart.
        self._head_bytes = 0
        self._first_piece = self._latest
        self.scope["extensions"] = {RUNNING: self._running}  # type: ignore[dict-item]

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header, or a trailer behind a chunked body. Trailers come this way too and are left out: a header that
        follows the body could change who is asking, or for what, after that was decided."""
        if self._hears_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Its head is whole."""
        self._hears_head = False
        if self._first_piece + self._head_bytes > MOST_HEAD_BYTES and self._head_size() > MOST_HEAD_BYTES:
            self._fault = _head_too_large()
            raise HttpParserError
        if not self.url.startswith(b"/"):
            self._fault = _foreign_target()
            raise HttpParserError
        super().on_headers_complete()
        # Nothing of it has run yet, and this is the only way in which uvicorn lets go of its own.
        self.cycle.__class__ = ResponseCycle

    def _head_size(self) -> int:
        """The size of the head alone; what came with it may be the body."""
        return len(self.url) + sum(len(name) + len(value) + _LINE_END for name, value in self.headers)

    def on_message_complete(self) -> None:
        """The request is whole; what comes next is another head."""
        super().on_message_complete()
        self._hears_head = True
        self._head_bytes = 0

    def send_400_response(self, msg: str) -> None:
        """Refuse what cannot be given to the application."""
        fault = self._fault or Fault(Code.INVALID_REQUEST, "this is not HTTP/1.1", hint="Send it again.", status=400)
        place = parse_path(getattr(self, "url", b"").decode("latin-1").partition("?")[0])
        answer = refusal_response(caller_of(place, self.headers or [], ""), fault)
        head = [STATUS_LINE[answer.status], b"connection: close\r\n", b"content-length: %d\r\n" % len(answer.body)]
        head += [b"%s: %s\r\n" % each for each in answer.headers]
        self.transport.write(b"".join([*head, b"\r\n", answer.body]))
        self.transport.close()

    def _unsupported_upgrade_warning(self) -> None:
        """The application answers; there is nothing to warn of."""


def _without_offer(data: bytes) -> bytes:
    """The request without its offer of HTTP/2, as Java's own client makes it: we need not take it, but the parser below
    takes a request with any offer for one without a body."""
    head, end, rest = data.partition(b"\r\n\r\n")
    return _OFFER.sub(b"", head) + end + rest


def _head_too_large() -> Fault:
    hint = "Send shorter headers."
    return Fault(Code.REQUEST_TOO_LARGE, "the head of the request is larger than 64 KiB", hint=hint, status=431)


def _foreign_target() -> Fault:
    hint = "Set its address as the client's base URL, not as its proxy."
    return Fault(Code.PERMISSION, "this server is no forward proxy", hint=hint, status=403)
