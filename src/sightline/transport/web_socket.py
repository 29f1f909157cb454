"""WebSocket: the messages of one connection, on either side of it, and connecting to a provider's socket.

`websockets` reads and writes the frames; the connection is one of ours, so that proxies, certificates and timeouts are
the same as for every other request. Messages are compressed if the client wants that (RFC 7692), each separately: a
context that outlives its message would cost up to 300 KB for each direction of each socket.
"""

import asyncio
import logging
from typing import Final, Protocol, cast

from websockets.client import ClientProtocol
from websockets.exceptions import InvalidHeader, NegotiationError
from websockets.extensions import Extension
from websockets.extensions.permessage_deflate import ClientPerMessageDeflateFactory, ServerPerMessageDeflateFactory
from websockets.frames import CloseCode, Frame, Opcode
from websockets.headers import build_extension, parse_extension
from websockets.http11 import Response
from websockets.protocol import OPEN, SEND_EOF
from websockets.protocol import Protocol as FrameProtocol
from websockets.typing import Subprotocol
from websockets.uri import WebSocketURI

from sightline.transport.http import faults
from sightline.transport.http.client import ForeignConnection, HttpClient
from sightline.transport.http.connection import abort
from sightline.transport.http.dialling import connecting_to
from sightline.transport.http.framing import request_head
from sightline.transport.http.target import target
from sightline.wire.call import HttpRequest

LONGEST_MESSAGE: Final = 64 << 20
"""The maximum size of a message in bytes, unless the settings say otherwise."""

_CLOSE_SECONDS: Final = 5.0
"""Seconds for the other side to answer a close, and to end the connection."""

_LONGEST_REASON: Final = 123
_UNSENDABLE: Final = frozenset({1005, 1006, 1015})
"""Codes that mean the absence of a close frame, and must not be in one."""

FRAMES_LOG: Final = logging.getLogger("sightline.websocket")
FRAMES_LOG.setLevel(logging.WARNING)  # `websockets` reports each end of a connection


_WINDOW_BITS: Final = 12
_DEFLATE_SETTINGS: Final = {"memLevel": 5}
"""With a window of 4 KB: events are short, and the memory for each of them is small."""
_ACCEPTED: Final = ServerPerMessageDeflateFactory(
    server_no_context_takeover=True,
    client_no_context_takeover=True,
    server_max_window_bits=_WINDOW_BITS,
    client_max_window_bits=_WINDOW_BITS,
    compress_settings=_DEFLATE_SETTINGS,
)
_OFFERED: Final = ClientPerMessageDeflateFactory(
    server_no_context_takeover=True,
    client_no_context_takeover=True,
    client_max_window_bits=_WINDOW_BITS,
    compress_settings=_DEFLATE_SETTINGS,
)


def accept_compression(offers: str) -> tuple[str, Extension] | None:
    """The answer to a client's offers in Sec-WebSocket-Extensions, and the extension that compresses accordingly; None
    if it offers nothing that is supported here."""
    try:
        listed = parse_extension(offers) if offers else []
    except InvalidHeader:
        return None
    for name, params in listed:
        try:
            if name == _ACCEPTED.name:
                agreed, extension = _ACCEPTED.process_request_params(params, [])
                return build_extension([(name, agreed)]), extension
        except NegotiationError:
            continue  # it may offer the same in other ways
    return None


class SocketUser(Protocol):
    """Receives the events of a socket."""

    def on_message(self, data: bytes, *, is_text: bool) -> None:
        """A complete message has arrived."""

    def on_close(self, code: int, reason: str) -> None:
        """The other side closed the socket, disappeared (1006), or violated the protocol; called once. Nothing
        follows."""


class MessageSocket:
    """The messages of one connection. `user` can be set later, but before the next byte arrives."""

    __slots__ = ("_fragments", "_is_over", "_is_text", "_protocol", "_timer", "_transport", "user")

    def __init__(self, protocol: FrameProtocol, transport: asyncio.Transport, user: SocketUser | None = None) -> None:
        self.user = user
        self._protocol = protocol
        self._transport = transport
        self._fragments: list[bytes] = []
        self._is_text = True
        self._is_over = False
        self._timer: asyncio.TimerHandle | None = None

    @property
    def is_open(self) -> bool:
        return self._protocol.state is OPEN and not self._transport.is_closing()

    def feed(self, data: bytes) -> None:
        protocol = self._protocol
        if protocol.reader.eof:
            return
        protocol.receive_data(data)
        for event in protocol.events_received():
            if isinstance(event, Frame):
                self._take(event)
        self._flush()
        if protocol.parser_exc is not None:
            sent = protocol.close_sent
            self._end(sent.code if sent is not None else CloseCode.PROTOCOL_ERROR, sent.reason if sent else "")

    def lose(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        received = self._protocol.close_rcvd
        if received is None:
            self._end(CloseCode.ABNORMAL_CLOSURE, "")
        else:
            self._end(received.code, received.reason)

    def send(self, data: bytes, *, is_text: bool = True) -> bool:
        """Send a message; False if the socket is no longer open."""
        if not self.is_open:
            return False
        (self._protocol.send_text if is_text else self._protocol.send_binary)(data)
        self._flush()
        return True

    def ping(self) -> None:
        """Send a ping, to show that this side is alive."""
        if self.is_open:
            self._protocol.send_ping(b"")
            self._flush()

    def close(self, code: int = CloseCode.NORMAL_CLOSURE, reason: str = "") -> None:
        """Close the socket, if it is open. A code that cannot be in a frame ends the connection without one."""
        if not self.is_open:
            return
        if code == CloseCode.NO_STATUS_RCVD:
            self._protocol.send_close()
        elif code in _UNSENDABLE or not (1000 <= code <= 1014 or 3000 <= code < 5000):
            abort(self._transport)
            return
        else:
            self._protocol.send_close(code, _shorten(reason))
        self._flush()
        self._limit_closing()

    def pause_reading(self) -> None:
        if not self._transport.is_closing() and self._transport.is_reading():
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        if not self._transport.is_closing() and not self._transport.is_reading():
            self._transport.resume_reading()

    # --- internals ---

    def _take(self, frame: Frame) -> None:
        if frame.opcode is Opcode.CLOSE:
            received = self._protocol.close_rcvd
            assert received is not None
            self._limit_closing()
            self._end(received.code, received.reason)
            return
        if frame.opcode is Opcode.TEXT or frame.opcode is Opcode.BINARY:
            self._is_text = frame.opcode is Opcode.TEXT
        elif frame.opcode is not Opcode.CONT:
            return  # pings are answered already
        data = bytes(frame.data)
        if not frame.fin:
            self._fragments.append(data)
            return
        if self._fragments:
            data = b"".join((*self._fragments, data))
            self._fragments.clear()
        if self._is_text and not _is_utf8(data):
            self._protocol.fail(CloseCode.INVALID_DATA, "the text is not UTF-8")
            self._flush()
            self._limit_closing()
            self._end(CloseCode.INVALID_DATA, "the text is not UTF-8")
        elif not self._is_over and self.user is not None:
            self.user.on_message(data, is_text=self._is_text)

    def _flush(self) -> None:
        for data in self._protocol.data_to_send():
            if data is not SEND_EOF:
                self._transport.write(data)
            elif self._transport.can_write_eof():
                # What the other side still sends is read and dropped: closing before that would reset the connection,
                # and the close frame could be lost.
                self._transport.write_eof()
                self.resume_reading()
                self._limit_closing()
            else:
                self._transport.close()

    def _limit_closing(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_CLOSE_SECONDS, abort, self._transport)

    def _end(self, code: int, reason: str) -> None:
        if not self._is_over:
            self._is_over = True
            if self.user is not None:
                self.user.on_close(code, reason)


def _is_utf8(data: bytes) -> bool:
    if data.isascii():
        return True
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _shorten(reason: str) -> str:
    return reason.encode()[:_LONGEST_REASON].decode("utf-8", "ignore")


# --- connecting -------------------------------------------------------------------------------------


class RefusedSocket(Exception):
    """The provider answered the handshake with something other than a socket."""

    def __init__(self, status: int, headers: tuple[tuple[bytes, bytes], ...], body: bytes) -> None:
        super().__init__(f"the handshake was answered with status {status}")
        self.status = status
        self.headers = headers
        self.body = body


class DialledSocket(ForeignConnection):
    """A socket to a provider. `headers` are those of its response to the handshake."""

    socket: MessageSocket

    def __init__(self, place: str, protocols: tuple[str, ...], longest: int, *, compresses: bool = False) -> None:
        self.headers: tuple[tuple[bytes, bytes], ...] = ()
        self.subprotocol = ""
        self.is_writing_paused = False
        self._writable: asyncio.Future[None] | None = None
        self._place = place
        address = WebSocketURI(
            secure=False, host="localhost", port=80, path="/", query="", username=None, password=None
        )
        offered = [Subprotocol(each) for each in protocols] or None
        self._protocol = ClientProtocol(
            address,
            subprotocols=offered,
            extensions=[_OFFERED] if compresses else None,
            max_size=longest,
            logger=FRAMES_LOG,
        )
        self.lost = asyncio.get_running_loop().create_future()
        self._answered: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        # The connection may end before anything waits for the response.
        self._answered.add_done_callback(lambda done: done.cancelled() or done.exception())
        self._transport: asyncio.Transport | None = None
        self._early: list[Frame] = []
        self._has_begun = False

    @property
    def key(self) -> str:
        return self._protocol.key

    # --- called by asyncio ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self.socket = MessageSocket(self._protocol, self._transport)

    def data_received(self, data: bytes) -> None:
        if self._answered.done():
            self.socket.feed(data)
            return
        self._has_begun = True
        self._protocol.receive_data(data)
        self._on_handshake_data()

    def eof_received(self) -> None:
        if self._has_begun and not self._answered.done():
            self._protocol.receive_eof()
            self._on_handshake_data()

    def connection_lost(self, exc: Exception | None) -> None:
        self.eof_received()
        if not self._answered.done():
            self._answered.set_exception(faults.no_answer(self._place, clean=exc is None))
        self.socket.lose()
        self.resume_writing()
        self.lost.set_result(None)

    def abort(self) -> None:
        if self._transport is not None:
            abort(self._transport)

    def pause_writing(self) -> None:
        self.is_writing_paused = True

    def resume_writing(self) -> None:
        self.is_writing_paused = False
        waiter, self._writable = self._writable, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    async def until_writable(self) -> None:
        while self.is_writing_paused:
            self._writable = asyncio.get_running_loop().create_future()
            await self._writable

    # --- the handshake ---

    def _on_handshake_data(self) -> None:
        """Process the response to the handshake. Frames that arrived with it are kept until `begin` is called."""
        events = self._protocol.events_received()
        if events and isinstance(answer := events[0], Response):
            headers = tuple((_plain(name), _plain(value)) for name, value in answer.headers.raw_items())
            if self._protocol.handshake_exc is None:
                self.headers = headers
                self.subprotocol = self._protocol.subprotocol or ""
                self._early = [each for each in events[1:] if isinstance(each, Frame)]
                self.socket.pause_reading()
                self._answered.set_result(None)
            elif answer.status_code == 101:
                why = str(self._protocol.handshake_exc)
                self._answered.set_exception(faults.protocol_violation(self._place, why))
            else:
                refusal = RefusedSocket(answer.status_code, headers, bytes(answer.body or b""))
                self._answered.set_exception(refusal)
        elif self._protocol.handshake_exc is not None and not self._answered.done():
            self._answered.set_exception(faults.protocol_violation(self._place, str(self._protocol.handshake_exc)))

    async def shake_hands(self, head: bytes) -> None:
        """Send the handshake. Raises RefusedSocket, or a fault if there is no response."""
        assert self._transport is not None
        self._transport.write(head)
        try:
            await self._answered
        except BaseException:
            abort(self._transport)
            raise

    def begin(self, user: SocketUser) -> None:
        """Pass everything to `user` that arrives from now on, and that has arrived since the handshake."""
        self.socket.user = user
        early, self._early = self._early, []
        self._protocol.events.extend(early)
        self.socket.feed(b"")
        self.socket.resume_reading()


def _plain(text: str) -> bytes:
    return text.encode("ascii", "surrogateescape")


async def dial_socket(
    client: HttpClient,
    request: HttpRequest,
    *,
    seconds: float,
    protocols: tuple[str, ...] = (),
    longest: int = LONGEST_MESSAGE,
    compresses: bool = False,
    past_proxy: bool = False,
) -> DialledSocket:
    """Open a socket at the address of the request, with its headers, within this many seconds (0: no limit). With
    `compresses`, the provider is offered compression.

    Raises RefusedSocket with the provider's response if that is something else, and a fault if there is none.
    """
    aim = target(request.url)
    dialled = DialledSocket(aim.origin.place, protocols, longest, compresses=compresses)
    ours = [
        ("Upgrade", "websocket"),
        ("Connection", "Upgrade"),
        ("Sec-WebSocket-Key", dialled.key),
        ("Sec-WebSocket-Version", "13"),
    ]
    if protocols:
        ours.append(("Sec-WebSocket-Protocol", ", ".join(protocols)))
    if compresses:
        ours.append(("Sec-WebSocket-Extensions", build_extension([(_OFFERED.name, [*_OFFERED.get_request_params()])])))
    passed = HttpRequest("GET", request.url, request.headers, b"", is_passed_on=True)
    head = request_head(passed, aim, None)[:-2] + "".join(f"{name}: {value}\r\n" for name, value in ours).encode()
    if "accept-encoding" not in {name.lower() for name, _ in request.headers}:
        head = head.replace(b"Accept-Encoding: identity\r\n", b"", 1)  # a handshake has no body
    async with connecting_to(aim.origin.place, seconds):
        await client.connect(dialled, request.url, seconds, past_proxy=past_proxy)
        await dialled.shake_hands(head + b"\r\n")
    return dialled
