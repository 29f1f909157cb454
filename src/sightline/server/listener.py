"""Where and for how long Sightline listens: the socket, the server on it, and an end that lets streams finish."""

import asyncio
import contextlib
import errno
import gc
import logging
import re
import signal
import socket
import struct
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Final

import uvicorn
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
from sightline.server.app import App
from sightline.web.asgi import RUNNING, Headers, ResponseChunk, ResponseStart
from sightline.web.guard import LOOPBACK, host_name

_WITHOUT_BODY: Final = frozenset({204, 304})


class ResponseCycle(RequestResponseCycle):
    """A request and its answer. Each write is a packet and wakes the client, so a short answer is written once; an
    answer whose length is not known begins to leave with its head."""

    _head = b""
    """What is not written yet."""
    _ends_by_closing = False

    async def send(self, message: ResponseStart | ResponseChunk) -> None:  # type: ignore[override]
        """Take the next piece of the answer."""
        if self.flow.write_paused and not self.disconnected:
            await self.flow.drain()
        if self.disconnected:
            return
        if message["type"] == "http.response.start":
            self._begin(message["status"], message["headers"])
        else:
            self._go_on(message["body"], is_last=not message["more_body"])

    def _begin(self, status: int, headers: Headers) -> None:
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

    def _go_on(self, body: bytes, *, is_last: bool) -> None:
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
                raise RuntimeError("an answer has another length than it said")
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


GRACE: Final = 5
"""Seconds in which streams may finish once the end is asked for."""

BACKLOG: Final = 4096
_FILES: Final = 65_536
_KEEP_ALIVE: Final = 75
"""Seconds for which an idle connection is kept; clients that reuse theirs must not find it closed between two turns."""


def bind_sockets(host: str, port: int) -> list[socket.socket]:
    """Sockets at this address; who calls before the server runs waits. The usual address is taken in both versions of
    the protocol, because some clients look for `localhost` in one and some in the other."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        raise Fault(
            Code.CONFIG, f"the host {host!r} is not known: {error.strerror}", hint="Give an address of this machine."
        ) from None
    family, _, _, _, address = min(found, key=lambda each: each[0] != socket.AF_INET)
    try:
        first = _bind(family, address)
    except OSError as error:
        raise _not_bound(host, port, error) from None
    if first.family != socket.AF_INET or host_name(host) not in LOOPBACK:
        return [first]
    with contextlib.suppress(OSError):
        return [first, _bind(socket.AF_INET6, ("::1", first.getsockname()[1]))]
    return [first]


def _bind(family: int, address: tuple[object, ...]) -> socket.socket:
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
        made.setblocking(False)
        made.listen(BACKLOG)  # two may be bound to one address, but only one can listen there
    except OSError:
        made.close()
        raise
    return made


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach it."""
    return host_name(host) in LOOPBACK or host.startswith("127.")


def allow_many_files() -> None:
    """Every client is a file, and so is its provider's connection; systems begin with far fewer than they allow."""
    with contextlib.suppress(ImportError):  # systems without this limit have no module for it
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = _FILES if hard == resource.RLIM_INFINITY else min(_FILES, hard)
        if soft != resource.RLIM_INFINITY and soft < wanted:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


class ListeningServer(uvicorn.Server):
    """The server on a socket. `ending` runs while the end is waited for, to hasten it; `asked_by` is the signal that
    asked for it."""

    def __init__(self, app: App, *, ending: Callable[[], Awaitable[None]], grace: int = GRACE) -> None:
        _quiet()
        super().__init__(
            uvicorn.Config(
                app,
                http=ServerConnection,
                ws="none",
                lifespan="off",
                interface="asgi3",
                access_log=False,
                log_config=None,
                server_header=False,
                date_header=False,
                proxy_headers=False,
                backlog=BACKLOG,
                timeout_keep_alive=_KEEP_ALIVE,
                timeout_graceful_shutdown=grace,
            )
        )
        self._app = app
        self._ending = ending
        self.asked_by: signal.Signals | None = None

    async def run_on(self, listening: list[socket.socket]) -> None:
        """Serve until a signal, or `end`, asks for the end."""
        await self.serve(listening)
        await self._app.wait_for_aborted()

    def end(self, asked_by: signal.Signals | None = None) -> None:
        """Begin the end; whoever asks again does not want to wait."""
        self.force_exit = self.should_exit
        self.should_exit = True
        self.asked_by = self.asked_by or asked_by

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """No more clients; those that are here may finish."""
        hastening = asyncio.ensure_future(self._ending())
        await super().shutdown(sockets)
        for task in (hastening, *self.server_state.tasks):
            task.cancel()
        await asyncio.gather(hastening, return_exceptions=True)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """End in order on SIGTERM and Ctrl-C."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        loop = asyncio.get_running_loop()
        asked = (signal.SIGINT, signal.SIGTERM)
        for each in asked:
            loop.add_signal_handler(each, self.end, each)
        try:
            yield
        finally:
            for each in asked:
                loop.remove_signal_handler(each)


def settle_down() -> None:
    """Leave alone what is here to stay, and look for circular garbage less often: an exchange leaves nearly none, and
    each look costs all of them time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


def new_loop() -> asyncio.AbstractEventLoop:
    """The fast event loop where it can be had."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


class _Bugs(logging.Filter):
    """Of what the server says only failures of ours are news; clients that leave and streams that are cut are not."""

    def filter(self, record: logging.LogRecord) -> bool:
        return record.exc_info is not None


def _quiet() -> None:
    logger = logging.getLogger("uvicorn.error")
    logger.setLevel(logging.ERROR)
    if not any(isinstance(each, _Bugs) for each in logger.filters):
        logger.addFilter(_Bugs())


def _not_bound(host: str, port: int, error: OSError) -> Fault:
    match error.errno:
        case errno.EADDRINUSE:
            hint = f"Sightline may be running there already; else choose another port: --port {port + 1}."
            return Fault(Code.CONFIG, f"the port {port} of {host} is in use", hint=hint)
        case errno.EACCES:
            return Fault(Code.CONFIG, f"the port {port} may not be used", hint="Choose one above 1023 with --port.")
        case _:
            hint = "Give an address of this machine with --host."
            return Fault(Code.CONFIG, f"{host}:{port} cannot be listened at: {error.strerror}", hint=hint)
