"""Raw paths: requests in no known dialect are passed to their provider unchanged, and the responses back, in pieces."""

import logging
import re
from typing import Final
from urllib.parse import unquote

from msgspec.structs import replace

from sightline.dialects.endpoint import dialect_by_api
from sightline.errors import Code, Fault
from sightline.exchange.client_request import ClientRequest
from sightline.exchange.client_response import ClientResponse
from sightline.exchange.raw_exchange import RawClient, RawReply, StoredBody
from sightline.exchange.relay import Relay
from sightline.exchange.reply_reader import is_coded
from sightline.gateway.paths import GatewayPath, begin_request, caller_of
from sightline.gateway.refusal import no_such_path, refusal_response
from sightline.model.exchange import RAW_HTTP
from sightline.web.asgi import (
    AsgiScope,
    ClientWriter,
    Headers,
    Receive,
    RequestEvent,
    header,
    response_body,
    response_start,
)
from sightline.wire.coding import decode_body
from sightline.wire.jsontext import decode

_LOG = logging.getLogger("sightline.gateway")
_DOUBLED_VERSION: Final = re.compile(r"/+(v\d+[a-z0-9]*)(?:/+\1)+(?=/)")
_CONTINUE: Final = 100
_MOST_BYTES: Final = 64 * 1024 * 1024
_FOR_MODELS: Final = re.compile(
    r"/(?:v\d+[a-z0-9]*/+)*"
    r"(?:embeddings|(?P<compact>responses/compact)|models/(?P<model>.+?):(?:e|batchE)mbedContents?)/*"
)
"""Paths whose request names a model, so that it is routed like a request in a known dialect."""


class IncomingBody:
    """The body of a client's request, read as it arrives. `first` is the part that was read already."""

    def __init__(self, receive: Receive, send: ClientWriter, headers: Headers, first: RequestEvent | None) -> None:
        self.trailers: Headers = []
        self.length = _length(headers)
        if first is not None and not header(headers, b"content-length"):
            self.length = None if first.get("more_body", False) else len(first.get("body", b""))
        self.takes_trailers = "trailers" in header(headers, b"te").lower()
        self._receive = receive
        self._send = send
        self._first = first
        self._is_over = False

    def on_interim(self, status: int, headers: Headers) -> None:
        """Pass a 1xx response on, except 100: permission to send a body is given by whoever reads the body."""
        if status != _CONTINUE:
            self._send.write_interim(status, headers)

    async def read(self) -> bytes:
        """The next bytes; empty at the end. If the client disconnects, the task that serves it is cancelled."""
        while not self._is_over:
            event, self._first = self._first or await self._receive(), None
            self._is_over = event["type"] == "http.disconnect" or not event.get("more_body", False)
            self.trailers = event.get("trailers", [])
            if data := event.get("body", b""):
                return data
        return b""


async def pass_raw(
    relay: Relay, scope: AsgiScope, receive: Receive, send: ClientWriter, place: GatewayPath, received: float
) -> None:
    """Answer one request to a path that belongs to no dialect."""
    headers, method, query = scope["headers"], scope["method"], scope["query_string"].decode("latin-1")
    names = {name.decode("latin-1") for name, _ in headers}
    caller = dialect_by_api(place.path, names, query)
    spoken = caller or caller_of(place, headers, query)
    if not caller and not place.provider:
        await refusal_response(spoken, no_such_path(method, place.path)).to(send)
        return
    request = replace(begin_request(scope, place), dialect=RAW_HTTP, received=received, method=method, caller=spoken)
    if not request.upstream:
        request = replace(request, path=_DOUBLED_VERSION.sub(r"/\1", place.path, count=1))
    asked = None if request.upstream or method != "POST" else _FOR_MODELS.fullmatch(place.path)
    if asked is not None:
        request = replace(request, caller=place.dialect or caller, embeds=asked["compact"] is None)
        body = IncomingBody(receive, send, headers, None)
        await _pass_for_model(relay, request, unquote(asked["model"] or ""), body, send)
        return
    # A body of known length that arrived with its head, as short ones do, is recorded from the beginning. Without a
    # length, HTTP/1.1 has no body, and HTTP/2 one of any length: what arrives first shows which it is.
    is_expected = header(headers, b"content-length") and header(headers, b"expect")
    first = None if _length(headers) is None or is_expected else await receive()
    body = IncomingBody(receive, send, headers, first)
    if first is None or first.get("more_body", False) or is_coded(header(headers, b"content-encoding")):
        request = replace(request, is_open=True)
    else:
        request = replace(request, body=first.get("body", b""))
    await _start(relay, request, body, send)


async def _start(relay: Relay, request: ClientRequest, body: RawClient, send: ClientWriter) -> None:
    try:
        relayed = await relay.start_raw(request, body)
    except Fault as fault:  # it belongs to no provider; any later failure is a response
        await _refuse(request, fault, send)
        return
    if relayed.whole_body is not None:
        send.respond(relayed.status, relayed.headers, relayed.whole_body)
        return
    async with relayed:
        await _stream_response(relayed, send)


async def _refuse(request: ClientRequest, fault: Fault, send: ClientWriter) -> None:
    _LOG.warning("refused %s %s: %s: %s", request.method, request.path, fault.code, fault.message)
    await refusal_response(request.caller, fault).to(send)


async def _pass_for_model(
    relay: Relay, request: ClientRequest, model: str, body: IncomingBody, send: ClientWriter
) -> None:
    """Answer a request whose model decides where it goes, so that its body is read first. `model` is the model in the
    path, empty if there is none."""
    named = request.headers_by_name()
    try:
        came = await _read_all(body)
        coding = named.get("content-encoding", "").strip().lower()
        plain = decode_body(came, coding, _MOST_BYTES) if is_coded(coding) else came
        document = decode(plain)
        written = document.get("model") if isinstance(document, dict) else None
        model = model or (written if isinstance(written, str) else "")
        if not model:
            hint = 'Say which model is meant: {"model": "…"}.'
            raise Fault(Code.INVALID_REQUEST, "the body names no model", hint=hint, status=400)
    except Fault as fault:
        await _refuse(request, fault, send)
        return
    is_strict = named.get("x-sightline-strict", "").strip().lower() in ("1", "true")
    request = replace(request, body=plain, model=model.removeprefix("models/"), strict=is_strict)
    await _start(relay, request, StoredBody(came, body), send)


async def _read_all(body: IncomingBody) -> bytes:
    pieces: list[bytes] = []
    size = 0
    while data := await body.read():
        size += len(data)
        if size <= _MOST_BYTES:
            pieces.append(data)
    if size > _MOST_BYTES:
        hint = "Send fewer texts at a time."
        raise Fault(Code.REQUEST_TOO_LARGE, "the body is larger than 64 MiB", hint=hint, status=413)
    return b"".join(pieces)


async def _stream_response(relayed: ClientResponse, send: ClientWriter) -> None:
    """Send the response as it arrives. Its last byte is sent after the end of the iteration, because only then
    everything is recorded."""
    await send(response_start(relayed.status, relayed.headers))
    left = next((int(value) for name, value in relayed.headers if name.lower() == b"content-length"), None)
    last = b""
    try:
        async for piece in relayed:
            left = None if left is None else left - len(piece)
            if left == 0:
                last = piece
            else:
                await send(response_body(piece, more=True))
    except Fault as fault:
        # The fault is recorded. An interrupted body must not look complete: without an end, the server closes the
        # connection.
        _LOG.info("%s broke off: %s", relayed.exchange, fault.message)
        return
    end = response_body(last, more=False)
    if isinstance(relayed.body, RawReply) and (trailers := relayed.body.trailers):
        end["trailers"] = trailers
    await send(end)


def _length(headers: Headers) -> int | None:
    """The length of the body by its head; None if only its end determines it, and 0 if the head says nothing."""
    if header(headers, b"transfer-encoding"):
        return None
    length = header(headers, b"content-length").strip()
    return int(length) if length.isdigit() else 0
