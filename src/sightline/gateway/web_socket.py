"""The WebSocket of a client: its handshake, its messages in order, back-pressure, and responses as its frames, in which
errors have no status. Also the sockets that are passed through: Realtime, Gemini Live, and any other below a provider's
address.
"""

import asyncio
import base64
import binascii
import logging
import socket
from collections import deque
from typing import Final, cast

from msgspec.structs import replace
from websockets.protocol import SERVER
from websockets.protocol import Protocol as FrameProtocol
from websockets.utils import accept_key

from sightline.dialects.endpoint import dialect_of_model_paths
from sightline.errors import Code, Fault
from sightline.exchange import client_response
from sightline.exchange.client_request import text_headers
from sightline.exchange.client_response import ClientResponse, headers_for_client, without
from sightline.exchange.raw_recorder import SocketRecord, protocols_for, socket_cut
from sightline.exchange.relay import Relay
from sightline.exchange.socket_link import TERMINAL, read_kind
from sightline.gateway.paths import GatewayPath, begin_request, caller_of
from sightline.gateway.refusal import refusal_response
from sightline.model.json import Json, JsonObject
from sightline.transport.web_socket import FRAMES_LOG, DialledSocket, MessageSocket, RefusedSocket, accept_compression
from sightline.web.asgi import AsgiScope, ClientWriter, Headers, Upgradable, WebResponse, header
from sightline.wire.jsontext import decode, encode
from sightline.wire.sse import SseDecoder

_LOG = logging.getLogger("sightline.gateway")
_MOST_WAITING: Final = 1 << 20
"""The most bytes of messages that wait to be processed; the client is not read meanwhile."""

_OF_SOCKET: Final = frozenset(
    {b"sec-websocket-key", b"sec-websocket-version", b"sec-websocket-extensions", b"sec-websocket-protocol"}
)
GOING_AWAY: Final = 1001


def refuse_handshake(scope: AsgiScope, spoken: str) -> WebResponse | None:
    """The response to an invalid handshake; None if it is valid."""
    headers = scope["headers"]
    if header(headers, b"sec-websocket-version").strip() != "13":
        fault = Fault(Code.USAGE, "the WebSocket has an unknown version", hint="Use version 13.", status=426)
        return refusal_response(spoken, fault, headers=[(b"sec-websocket-version", b"13")])
    try:
        key = base64.b64decode(header(headers, b"sec-websocket-key").strip(), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) != 16:
        hint = "Send a Sec-WebSocket-Key of 16 random bytes in Base64."
        fault = Fault(Code.INVALID_REQUEST, "the WebSocket handshake has no valid key", hint=hint, status=400)
        return refusal_response(spoken, fault)
    return None


def refuse_socket(refused: RefusedSocket, secrets: tuple[str, ...]) -> ClientResponse:
    """The provider's response to the handshake, for the client, without configured keys."""
    _LOG.info("the provider refused a WebSocket with status %d", refused.status)
    passed, body = headers_for_client(refused.headers, secrets), without(refused.body, secrets)
    return client_response.whole("", refused.status, passed, body, [(b"connection", b"close")])


def headers_for_provider(headers: Headers) -> Headers:
    """The headers of a handshake that are not about this socket."""
    return [each for each in headers if each[0] not in _OF_SOCKET]


def subprotocols(headers: Headers) -> tuple[str, ...]:
    """The subprotocols that the client offers, in its order."""
    listed = [value.decode("latin-1") for name, value in headers if name == b"sec-websocket-protocol"]
    return tuple(word for word in (each.strip() for line in listed for each in line.split(",")) if word)


class SocketEvents:
    """Events of a client's socket to which its owner can react."""

    def server_ends(self) -> None:
        """The server shuts down."""

    def client_writable(self) -> None:
        """The client, which was slow, accepts more data."""


class ClientSocket:
    """The socket of one client. `next_message` returns its messages in order."""

    socket: MessageSocket

    def __init__(self, scope: AsgiScope, send: ClientWriter, longest: int) -> None:
        self.events = SocketEvents()
        self.close_code: int | None = None
        self.close_reason = ""
        self._scope = scope
        self._send = cast(Upgradable, send)
        self._longest = longest
        self._waiting: deque[tuple[bytes, bool]] = deque()
        self._size = 0
        self._change = asyncio.Event()
        self._is_lost = False
        offers = (value for name, value in scope["headers"] if name == b"sec-websocket-extensions")
        self._compression = accept_compression(", ".join(value.decode("latin-1") for value in offers))
        self.wants_compression = self._compression is not None
        """Whether the client compresses its messages, so that the provider may, too."""

    def accept(self, passed: Headers, subprotocol: str = "") -> None:
        """Accept the handshake; `passed` are headers of the provider's response."""
        key = header(self._scope["headers"], b"sec-websocket-key").strip()
        headers: Headers = [
            (b"upgrade", b"websocket"),
            (b"connection", b"Upgrade"),
            (b"sec-websocket-accept", accept_key(key).encode()),
        ]
        agreed = self._compression
        if agreed is not None:
            headers.append((b"sec-websocket-extensions", agreed[0].encode()))
        if subprotocol:
            headers.append((b"sec-websocket-protocol", subprotocol.encode()))
        transport = self._send.upgrade([*headers, *passed], self)
        _enable_keepalive(transport)
        protocol = FrameProtocol(SERVER, max_size=self._longest, logger=FRAMES_LOG)
        protocol.extensions = [] if agreed is None else [agreed[1]]
        self.socket = MessageSocket(protocol, transport, self)

    async def next_message(self) -> tuple[bytes, bool] | None:
        """The next message, and whether it is text; None if the client has closed the socket."""
        while not self._waiting:
            if self.close_code is not None:
                return None
            self._change.clear()
            await self._change.wait()
        data, is_text = self._waiting.popleft()
        if self._size > _MOST_WAITING >= self._size - len(data):
            self.socket.resume_reading()
        self._size -= len(data)
        return data, is_text

    def send(self, data: bytes, *, is_text: bool = True) -> None:
        """Send a message, even if the client is slow to accept it. If the client has gone, the message is dropped."""
        self.socket.send(data, is_text=is_text)

    @property
    def is_paused(self) -> bool:
        return self._send.is_paused

    async def until_writable(self) -> None:
        await self._send.until_writable()

    async def until_lost(self) -> None:
        """Wait until the connection has ended, which takes no more than a few seconds once the socket is closed."""
        while not self._is_lost:
            self._change.clear()
            await self._change.wait()

    # --- called by the connection ---

    def feed(self, data: bytes, /) -> None:
        self.socket.feed(data)

    def shut_down(self) -> None:
        self.events.server_ends()

    def client_gone(self) -> None:
        self._is_lost = True
        self.socket.lose()
        self._change.set()

    def writable_again(self) -> None:
        self.events.client_writable()

    # --- called by the socket ---

    def on_message(self, data: bytes, *, is_text: bool) -> None:
        self._waiting.append((data, is_text))
        self._size += len(data)
        if self._size > _MOST_WAITING:
            self.socket.pause_reading()
        self._change.set()

    def on_close(self, code: int, reason: str) -> None:
        self.close_code, self.close_reason = code, reason
        self._change.set()


def _enable_keepalive(transport: asyncio.Transport) -> None:
    """Enable TCP keep-alive: a socket may be silent for an hour, and the system should detect whether its client is
    gone."""
    raw = transport.get_extra_info("socket")
    if raw is not None:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)


class FrameWriter:
    """Takes the body of a response, which is server-sent events, and sends each event as a frame. The event that ends
    the response waits for `finish`, because by then all of it is recorded."""

    def __init__(self, client: ClientSocket, lane: str, texts: dict[bytes, bytes] | None) -> None:
        self._client = client
        self._texts = texts
        # The provider's own frames already contain their lane.
        self._suffix = b',"stream_id":%b}' % encode(lane) if lane and texts is None else b""
        self._decoder: SseDecoder | None = None
        self._held: list[bytes] = []
        self.last = b""
        """The event that ends the response, once it has arrived."""

    @property
    def is_paused(self) -> bool:
        return self._client.is_paused

    async def until_writable(self) -> None:
        await self._client.until_writable()

    def chunk_writer(self) -> None:
        """None: a socket sends messages, not chunks."""

    def write(self, data: bytes, /) -> None:
        """Send the events that these bytes complete."""
        # Nearly always they are one event that arrived as one frame.
        if self._decoder is None and data.startswith(b"data: ") and data.find(b"\n") == len(data) - 2:
            self._send_event(data[6:-2])
            return
        if self._decoder is None:
            self._decoder = SseDecoder()
        for frame in self._decoder.feed(data):
            self._send_event(frame.data)

    def _send_event(self, data: bytes) -> None:
        if not data or data == b"[DONE]":
            return
        if read_kind(data).type in TERMINAL:
            self.last = data
        if self._texts:
            data = self._texts.pop(data, data)
        if self._suffix and data.endswith(b"}"):
            data = data[:-1] + self._suffix
        if self.last:
            self._held.append(data)
        else:
            self._client.send(data)

    def finish(self) -> None:
        if self._decoder is not None:
            for frame in self._decoder.close():
                self._send_event(frame.data)
        for data in self._held:
            self._client.send(data)
        self._held.clear()


def fault_frame(spoken: str, fault: Fault, lane: str) -> bytes:
    refused = refusal_response(spoken, fault)
    return encode(_in_lane({"type": "error", "status": refused.status, "error": _error_in(refused.body)}, lane))


def _in_lane(frame: JsonObject, lane: str) -> JsonObject:
    return {**frame, "stream_id": lane} if lane else frame


def _error_in(body: bytes) -> Json:
    """The error in the body of a response; None if it has none."""
    try:
        found = decode(body)
    except Fault:
        return None
    return found.get("error") if isinstance(found, dict) else None


def error_frame(response: ClientResponse, body: bytes, lane: str) -> bytes:
    """An error response as the event that represents it on a socket."""
    error = _error_in(body)
    if error is None:
        text = body.decode("utf-8", "replace")[:2000]
        error = {"type": "server_error", "code": None, "message": text or f"status {response.status}"}
    frame: JsonObject = {"type": "error", "status": response.status, "error": error}
    if retry := client_response.header(tuple(response.headers), b"retry-after"):
        frame["headers"] = {"retry-after": retry}
    return encode(_in_lane(frame, lane))


def cancel_frame(lane: str) -> bytes:
    response: JsonObject = {"status": "cancelled", "incomplete_details": {"reason": "cancelled"}}
    return encode(_in_lane({"type": "response.incomplete", "response": response}, lane))


def steering_refused(data: bytes) -> bytes:
    steer = decode(data)
    assert isinstance(steer, dict)
    error: JsonObject = {
        "type": "invalid_request_error",
        "code": "steering_not_supported",
        "message": "the provider of this response is asked over HTTP, where a response cannot be steered",
    }
    given: JsonObject = {name: steer[name] for name in ("input", "previous_response_id") if name in steer}
    return encode({"type": "response.steer.failed", "sequence_number": 0, "error": error, "steer": given})


# --- sockets that are passed through ---


_OF_CONNECTION: Final = (b"sec-websocket-", b"upgrade", b"connection")
_GOOGLE: Final = "/ws/google"
_ABNORMAL: Final = 1006
_INTERNAL_ERROR: Final = 1011


async def pass_socket(
    relay: Relay, scope: AsgiScope, send: ClientWriter, place: GatewayPath, received: float, longest: int
) -> None:
    """Serve one socket to its end that is passed through: every message is passed on unchanged and in order, and is
    recorded up to the limit; so are close codes and reasons. While one side is slow, the other is not read."""
    headers, query = scope["headers"], scope["query_string"].decode("latin-1")
    spoken = dialect_of_model_paths() if place.path.startswith(_GOOGLE) else caller_of(place, headers, query)
    refused = refuse_handshake(scope, spoken)
    if refused is not None:
        await refused.to(send)
        return
    request = replace(
        begin_request(scope, place),
        dialect=spoken,
        headers=text_headers(headers_for_provider(headers)),
        is_stream=True,
        received=received,
        transport="websocket",
        method="GET",
    )
    try:
        choice, handshake, record = await relay.raw_socket(request)
    except Fault as fault:
        await refusal_response(spoken, fault).to(send)
        return
    record.begin(handshake.url)
    offered = protocols_for(choice, subprotocols(headers))
    client = ClientSocket(scope, send, longest)
    seconds = choice.provider.connect_timeout_ms / 1000
    try:
        dialled = await relay.dial_socket(
            handshake, seconds, protocols=offered, longest=longest, compresses=client.wants_compression
        )
    except RefusedSocket as error:
        record.refuse(error)
        refusal = refuse_socket(error, relay.secrets)
        assert refusal.whole_body is not None
        send.respond(refusal.status, refusal.headers, refusal.whole_body)
        return
    except Fault as fault:
        record.fail(fault)
        await refusal_response(spoken, fault).to(send)
        return
    except asyncio.CancelledError:
        record.cancel("client_gone")
        raise
    record.open(dialled.headers)
    passed = [
        each
        for each in headers_for_client(dialled.headers, relay.secrets)
        if not each[0].lower().startswith(_OF_CONNECTION)
    ]
    client.accept(passed, dialled.subprotocol)
    await RawSocket(client, dialled, record).run()


class RawSocket(SocketEvents):
    """The two sides of one socket."""

    def __init__(self, client: ClientSocket, dialled: DialledSocket, record: SocketRecord) -> None:
        self._client = client
        self._dialled = dialled
        self._record = record
        client.events = self

    async def run(self) -> None:
        """Pass messages on until one side has closed."""
        self._dialled.begin(self)
        try:
            while (message := await self._client.next_message()) is not None:
                data, is_text = message
                self._record.add("client", data, is_text=is_text)
                self._dialled.socket.send(data, is_text=is_text)
                await self._dialled.until_writable()
        finally:
            # After the client's last messages, which may have arrived together with its close.
            code, reason = self._client.close_code or _ABNORMAL, self._client.close_reason
            if code == _ABNORMAL:
                self._record.cancel("client_gone")
            else:
                self._record.finish(code, reason)
            self._dialled.socket.close(code, reason)
        await self._client.until_lost()

    # --- the client ---

    def server_ends(self) -> None:
        self._record.cancel("shutdown")
        self._client.socket.close(GOING_AWAY, "Sightline is shutting down")
        self._dialled.socket.close(GOING_AWAY)

    def client_writable(self) -> None:
        self._dialled.socket.resume_reading()

    # --- the provider ---

    def on_message(self, data: bytes, *, is_text: bool) -> None:
        self._record.add("server", data, is_text=is_text)
        self._client.send(data, is_text=is_text)
        if self._client.is_paused:
            self._dialled.socket.pause_reading()

    def on_close(self, code: int, reason: str) -> None:
        """Close the client's socket with the same code; 1006 cannot be sent and becomes an internal error."""
        if code == _ABNORMAL:
            self._record.fail(socket_cut())
            self._client.socket.close(_INTERNAL_ERROR, "the connection to the provider was lost")
        else:
            self._record.finish(code, reason)
            self._client.socket.close(code, reason)
