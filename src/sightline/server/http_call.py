"""One request of a client and its response over HTTP/1.1."""

import asyncio
import logging
import socket
import struct
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Final

from sightline.server.heads import join_head, join_lines, lines_of
from sightline.web.asgi import (
    AsgiScope,
    ClientWriter,
    Headers,
    Pausable,
    Receive,
    RequestEvent,
    ResponseChunk,
    ResponseStart,
    UpgradeReceiver,
    WebResponse,
    header,
)

if TYPE_CHECKING:
    from sightline.server.http_connection import ClientConnection

Application = Callable[[AsgiScope, Receive, ClientWriter], Awaitable[None]]

_MOST_BODY_WAITING: Final = 64 * 1024
"""The most bytes of a body that wait for the application; the client is not read meanwhile."""

_LOG = logging.getLogger("sightline.server")
_WITHOUT_BODY: Final = frozenset({204, 304})
FAILED: Final = WebResponse(500, b"Internal Server Error", [(b"content-type", b"text/plain; charset=utf-8")])


class HttpCall:
    """One request and its response. `receive` is ASGI's, and the call itself is ASGI's `send`."""

    has_body = False
    """Whether the whole request has arrived."""
    has_begun = False
    """Whether the head of the response was made."""
    is_answered = False
    _waiting = 0
    _continue_sent = False
    """Whether a client that waits for permission to send its body has received it."""
    _head = b""
    """The head of the response until it is written with the first part of the body: each write is a packet."""
    _is_chunked = False
    _ends_by_closing = False
    _left = 0
    """Bytes of a body of known length that are still to be sent."""

    def __init__(
        self,
        connection: "ClientConnection",
        scope: AsgiScope,
        *,
        keeps_alive: bool,
        is_http_1_0: bool,
        body: bytes | None = None,
        app: Application | None = None,
    ) -> None:
        """If `body` is given, the request is complete. `app` answers it in place of the server's application."""
        self.scope = scope
        self._app = app
        self.keeps_alive = keeps_alive
        self.trailers: Headers = []
        """The trailers of the request, with lowercase names. Only raw requests use them."""
        self._connection = connection
        self._is_http_1_0 = is_http_1_0
        self._pieces: list[bytes] = []
        if body is not None:
            self._pieces.append(body)
            self.has_body = True
        self._without_body = scope["method"] == "HEAD"

    # --- the request ---

    def add_body(self, data: bytes) -> None:
        if self.is_answered:
            return  # the application did not need it
        self._pieces.append(data)
        self._waiting += len(data)
        if self._waiting > _MOST_BODY_WAITING and not self.has_body:
            self._connection.pause_reading()

    async def receive(self) -> RequestEvent:
        connection = self._connection
        if not self._pieces and not self.has_body and not self._continue_sent:
            self._continue_sent = True
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

    def take_body(self) -> bytes | None:
        pieces = self._pieces
        if not self.has_body or self.is_answered or self._continue_sent:
            return None
        self._continue_sent = True
        self._waiting = 0
        self._pieces = []
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    # --- the response ---

    async def __call__(self, message: ResponseStart | ResponseChunk, /) -> None:
        if self._connection.is_writing_paused:
            await self._connection.until_writable()
        if message["type"] == "http.response.start":
            self.write_head(message["status"], message["headers"])
            if self._is_chunked or self._ends_by_closing:  # the first part of the body may arrive later
                asyncio.get_running_loop().call_soon(self._write_kept_head)
        else:
            self.write_body(message["body"], is_last=not message["more_body"], trailers=message.get("trailers") or ())

    @property
    def is_paused(self) -> bool:
        return self._connection.is_writing_paused

    def respond(self, status: int, headers: Headers, body: bytes, /) -> None:
        lines, length, closes = lines_of(headers)
        is_usual = length == len(body) and self.keeps_alive and not (closes or self._connection.is_closing_soon)
        if not is_usual or self._without_body or status in _WITHOUT_BODY:
            self.write_head(status, headers)
            self.write_body(body, is_last=True)
            return
        self._connection.transport.write(join_head(status, lines) + body)
        self.has_begun = self.is_answered = True

    def write(self, data: bytes, /) -> None:
        if self._is_chunked and data and not self._head:
            self._connection.transport.write(b"%x\r\n%b\r\n" % (len(data), data))
        else:
            self.write_body(data, is_last=False)

    def chunk_writer(self) -> tuple[Callable[[bytes], None], Pausable] | None:
        """The transport itself, if the body is sent in chunks; None otherwise."""
        if self._head or not self._is_chunked:
            return None
        return self._connection.transport.write, self._connection

    async def until_writable(self) -> None:
        await self._connection.until_writable()

    def upgrade(self, headers: Headers, receiver: UpgradeReceiver, /) -> asyncio.Transport:
        """Answer with 101: the rest of the connection belongs to another protocol."""
        assert self._connection.upgrade is not None, "no other protocol was asked for"
        self.has_begun = True
        return self._connection.upgrade.accept(headers, receiver)

    def write_head(self, status: int, headers: Headers) -> None:
        """Make the head, which is written with the first part of the body."""
        lines, length, closes = lines_of(headers)
        if status in _WITHOUT_BODY:
            self._without_body = True
        if closes or self._connection.is_closing_soon:
            self.keeps_alive = False
        if length is not None:
            self._left = length
        elif not self._without_body:
            if self._is_http_1_0:
                # HTTP/1.0 has no chunks: the end of the connection is the end of the body.
                self._ends_by_closing, self.keeps_alive = True, False
                self._reset_on_close(is_reset=True)
            else:
                self._is_chunked = True
                lines.append(b"transfer-encoding: chunked")
        if not self.keeps_alive:
            lines.append(b"connection: close")
        self._head = join_head(status, lines)
        self.has_begun = True

    def _write_kept_head(self) -> None:
        head, self._head = self._head, b""
        if head and not self._connection.transport.is_closing():
            self._connection.transport.write(head)

    def _reset_on_close(self, *, is_reset: bool) -> None:
        """Set whether closing the connection resets it. An interrupted body whose end is the close must not look
        complete, and a reset is the only way in which HTTP/1.0 can show that."""
        raw = self._connection.transport.get_extra_info("socket")
        if raw is not None:
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", int(is_reset), 0))

    def write_interim(self, status: int, headers: Headers, /) -> None:
        """Write a 1xx response before the response itself. HTTP/1.0 has none."""
        if not self._is_http_1_0 and not self.has_begun:
            self._connection.transport.write(join_head(status, lines_of(headers)[0]))

    def write_body(self, body: bytes, *, is_last: bool, trailers: Sequence[tuple[bytes, bytes]] = ()) -> None:
        """Write a part of the body and, after the last part of a chunked body, its trailers."""
        pieces = [self._head]
        if self._is_chunked:
            if body:
                pieces += b"%x\r\n" % len(body), body, b"\r\n"
            if is_last:
                pieces += b"0\r\n", join_lines([b"%b: %b" % each for each in trailers]) if trailers else b"\r\n"
        elif self._ends_by_closing:
            pieces.append(body)
        else:
            if self._without_body:  # its length, if it has one, is that of a body which is not sent
                self._left, body = 0, b""
            self._left -= len(body)
            if self._left < 0 or (is_last and self._left):
                raise RuntimeError("a response has another length than its header says")
            pieces.append(body)
        self._head = b""
        if data := b"".join(pieces):
            self._connection.transport.write(data)
        if is_last and self._ends_by_closing:
            self._reset_on_close(is_reset=False)
        if is_last:
            self.is_answered = True
            if not self.keeps_alive:
                self._connection.transport.close()

    async def run(self, app: Application) -> None:
        """Run the application. Even if it fails, the client gets a complete response, or sees that it is incomplete."""
        try:
            await (self._app or app)(self.scope, self.receive, self)
        except Exception:  # noqa: BLE001 - the client gets an error in place of a response
            _LOG.exception("a request failed")
        if not self.has_begun:
            # Either the application failed, or it did not answer, for example because the body never arrived.
            self.keeps_alive = False
            await FAILED.to(self)
        elif not self.is_answered:
            self._write_kept_head()
            self._connection.transport.close()  # without an end, it does not look complete
