"""Responses as frames of a client's socket: the events of a stream, and errors, which have no status there."""

import msgspec

from sightline.errors import Fault
from sightline.exchange import client_response
from sightline.exchange.client_response import ClientResponse
from sightline.exchange.socket_link import TERMINAL, read_kind
from sightline.gateway.refusal import refusal_response
from sightline.gateway.web_socket import ClientSocket
from sightline.model.json import JsonObject
from sightline.wire.jsontext import encode
from sightline.wire.sse import SseDecoder


class FrameWriter:
    """Takes the body of a response, which is server-sent events, and sends each event as a frame. The event that ends
    the response waits for `finish`, because by then all of it is on record."""

    def __init__(self, client: ClientSocket, lane: str, texts: dict[bytes, bytes] | None) -> None:
        self._client = client
        self._texts = texts
        # The provider's own frames name their lane already.
        self._suffix = b',"stream_id":%b}' % encode(lane) if lane and texts is None else b""
        self._decoder: SseDecoder | None = None
        self._held: list[bytes] = []
        self.first = b""
        self.last = b""
        """The event that ends the response, once it has come."""

    @property
    def is_paused(self) -> bool:
        """Whether the client takes no more for now."""
        return self._client.is_paused

    async def until_writable(self) -> None:
        """Wait until the client takes more."""
        await self._client.until_writable()

    def write(self, data: bytes, /) -> None:
        """Send the events that these bytes complete."""
        # Nearly always they are one event that came as one frame.
        if self._decoder is None and data.startswith(b"data: ") and data.find(b"\n") == len(data) - 2:
            self._give(data[6:-2])
            return
        if self._decoder is None:
            self._decoder = SseDecoder()
        for frame in self._decoder.feed(data):
            self._give(frame.data)

    def _give(self, data: bytes) -> None:
        if not data or data == b"[DONE]":
            return
        self.first = self.first or data
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
        """Send what is left."""
        if self._decoder is not None:
            for frame in self._decoder.close():
                self._give(frame.data)
        for data in self._held:
            self._client.send(data)
        self._held.clear()

    # The head of a response has no place in a socket.

    async def __call__(self, message: object, /) -> None:
        """Nothing."""

    def respond(self, status: int, headers: client_response.Headers, body: bytes, /) -> None:
        """Nothing."""


def fault_frame(spoken: str, fault: Fault, lane: str) -> bytes:
    """A fault as an event."""
    refused = refusal_response(spoken, fault)
    error = msgspec.json.decode(refused.body, type=dict[str, msgspec.Raw])["error"]
    return msgspec.json.encode(_in_lane({"type": "error", "status": refused.status, "error": error}, lane))


def _in_lane(frame: dict[str, object], lane: str) -> dict[str, object]:
    return {**frame, "stream_id": lane} if lane else frame


def error_frame(response: ClientResponse, body: bytes, lane: str) -> bytes:
    """An error response as the event that a socket has for it."""
    try:
        error: object = msgspec.json.decode(body, type=dict[str, msgspec.Raw])["error"]
    except (msgspec.DecodeError, KeyError):
        text = body.decode("utf-8", "replace")[:2000]
        error = {"type": "server_error", "code": None, "message": text or f"status {response.status}"}
    frame: dict[str, object] = {"type": "error", "status": response.status, "error": error}
    if retry := client_response.header(tuple(response.headers), b"retry-after"):
        frame["headers"] = {"retry-after": retry}
    return msgspec.json.encode(_in_lane(frame, lane))


def cancel_frame(lane: str) -> bytes:
    response: JsonObject = {"status": "cancelled", "incomplete_details": {"reason": "cancelled"}}
    return msgspec.json.encode(_in_lane({"type": "response.incomplete", "response": response}, lane))


def steering_refused(data: bytes) -> bytes:
    steer = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
    error = {
        "type": "invalid_request_error",
        "code": "steering_not_supported",
        "message": "the provider of this response is asked over HTTP, where a response cannot be steered",
    }
    given = {name: steer[name] for name in ("input", "previous_response_id") if name in steer}
    return msgspec.json.encode({"type": "response.steer.failed", "sequence_number": 0, "error": error, "steer": given})
