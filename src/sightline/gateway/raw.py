"""Raw paths: what no dialect understands is passed to its provider as it is, and its answer back, piece by piece."""

import logging
import re
from typing import Final, NamedTuple, Protocol
from urllib.parse import unquote

from sightline.dialects.endpoint import dialect_by_api
from sightline.errors import Code, Fault
from sightline.exchange.client_request import ClientRequest, TextHeaders
from sightline.exchange.client_response import ClientResponse
from sightline.exchange.raw_exchange import RawClient, RawReply, StoredBody
from sightline.gateway.paths import GatewayPath, caller_of
from sightline.gateway.refusal import no_such_path, refusal_response
from sightline.model.exchange import RAW_HTTP
from sightline.transport.http.framing import OnInterim
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
_DOUBLED: Final = re.compile(r"/+(v\d+[a-z0-9]*)(?:/+\1)+(?=/)")
_CONTINUE: Final = 100
_MOST_BYTES: Final = 64 * 1024 * 1024
_FOR_MODELS: Final = re.compile(
    r"/(?:v\d+[a-z0-9]*/+)*"
    r"(?:embeddings|(?P<compact>responses/compact)|models/(?P<model>.+?):(?:e|batchE)mbedContents?)/*"
)
"""Paths whose request names a model, so that it is routed like one that a dialect understands."""


class RawRelay(Protocol):
    """What passes raw requests on."""

    async def start_raw(self, request: ClientRequest, client: RawClient) -> ClientResponse:
        """The answer; its head is complete when this returns. Raises a fault for a request that is no provider's."""
        ...


class IncomingBody:
    """The body of a client's request, taken as it comes. `first` is what was taken of it already."""

    def __init__(self, receive: Receive, send: ClientWriter, headers: Headers, first: RequestEvent | None) -> None:
        self.trailers: Headers = []
        self.length = _length(headers)
        self.takes_trailers = "trailers" in header(headers, b"te").lower()
        self._receive = receive
        self._send = send
        self._first = first
        self._is_over = False

    @property
    def on_interim(self) -> OnInterim:
        """Passes an answer of 1xx on. The leave to send a body is given by who asks for the body."""
        return lambda status, headers: None if status == _CONTINUE else self._send.write_interim(status, headers)

    async def read(self) -> bytes:
        """The next bytes; none at the end. If the client leaves, the task that serves it is cancelled."""
        while not self._is_over:
            event, self._first = self._first or await self._receive(), None
            self._is_over = event["type"] == "http.disconnect" or not event.get("more_body", False)
            self.trailers = event.get("trailers", [])
            if data := event.get("body", b""):
                return data
        return b""


async def pass_raw(
    relay: RawRelay, scope: AsgiScope, receive: Receive, send: ClientWriter, place: GatewayPath, received: float
) -> None:
    """Answer one request to a path that no dialect serves."""
    headers, query = scope["headers"], scope["query_string"].decode("latin-1")
    names = {name.decode("latin-1") for name, _ in headers}
    caller = dialect_by_api(place.path, names, query)
    spoken = caller or caller_of(place, headers, query)
    if not caller and not place.provider:
        await refusal_response(spoken, no_such_path(scope["method"], place.path)).to(send)
        return
    upstream = scope["upstream"].origin if "upstream" in scope else ""
    asked = None if upstream else _model_path(scope["method"], place.path)
    if asked is not None:
        await _pass_for_model(relay, scope, receive, send, place, received, asked)
        return
    # A body of known length that came with its head, as short ones do, is on record from the beginning.
    first = None if _length(headers) is None or header(headers, b"expect") else await receive()
    body = IncomingBody(receive, send, headers, first)
    is_here = first is not None and not first.get("more_body", False)
    is_coded = header(headers, b"content-encoding").strip().lower() not in ("", "identity")
    request = ClientRequest(
        RAW_HTTP,
        first.get("body", b"") if first is not None and is_here and not is_coded else b"",
        _text_headers(headers),
        place.path if upstream else _DOUBLED.sub(r"/\1", place.path, count=1),
        query,
        provider=place.provider,
        session=place.session,
        received=received,
        method=scope["method"],
        caller=spoken,
        is_open=not is_here or is_coded,
        upstream=upstream,
        transport="tls" if upstream else "http",
    )
    await _start(relay, request, body, send)


async def _start(relay: RawRelay, request: ClientRequest, body: RawClient, send: ClientWriter) -> None:
    try:
        relayed = await relay.start_raw(request, body)
    except Fault as fault:  # it is no provider's; whatever happens later is an answer
        await _refuse(request.caller, request.method, request.path, fault, send)
        return
    if relayed.whole_body is not None:
        send.respond(relayed.status, relayed.headers, relayed.whole_body)
        return
    async with relayed:
        await _hand_over(relayed, send)


async def _refuse(spoken: str, method: str, path: str, fault: Fault, send: ClientWriter) -> None:
    _LOG.warning("refused %s %s: %s: %s", method, path, fault.code, fault.message)
    await refusal_response(spoken, fault).to(send)


class _ModelPath(NamedTuple):
    """A path whose request is for a model: the model that it names, if it does, and whether it asks for embeddings."""

    model: str
    embeds: bool


def _model_path(method: str, path: str) -> _ModelPath | None:
    """What a path asks of a model, if that is understood though no dialect serves it."""
    found = _FOR_MODELS.fullmatch(path) if method == "POST" else None
    return None if found is None else _ModelPath(unquote(found["model"] or ""), found["compact"] is None)


async def _pass_for_model(
    relay: RawRelay,
    scope: AsgiScope,
    receive: Receive,
    send: ClientWriter,
    place: GatewayPath,
    received: float,
    asked: _ModelPath,
) -> None:
    """Answer a request whose model says where it goes, so that its body is read first."""
    headers = scope["headers"]
    body = IncomingBody(receive, send, headers, None)
    names = {name.decode("latin-1") for name, _ in headers}
    query = scope["query_string"].decode("latin-1")
    spoken = place.dialect or dialect_by_api(place.path, names, query)
    try:
        came = await _read_all(body)
        coding = header(headers, b"content-encoding").strip().lower()
        plain = decode_body(came, coding, _MOST_BYTES) if coding not in ("", "identity") else came
        document = decode(plain)
        named = document.get("model") if isinstance(document, dict) else None
        model = asked.model or (named if isinstance(named, str) else "")
        if not model:
            hint = 'Say which model is meant: {"model": "…"}.'
            raise Fault(Code.INVALID_REQUEST, "the body names no model", hint=hint, status=400)
    except Fault as fault:
        await _refuse(spoken, scope["method"], place.path, fault, send)
        return
    request = ClientRequest(
        RAW_HTTP,
        plain,
        _text_headers(headers),
        _DOUBLED.sub(r"/\1", place.path, count=1),
        query,
        model.removeprefix("models/"),
        provider=place.provider,
        session=place.session,
        strict=header(headers, b"x-sightline-strict").strip().lower() in ("1", "true"),
        received=received,
        method=scope["method"],
        caller=spoken,
        embeds=asked.embeds,
    )
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


async def _hand_over(relayed: ClientResponse, send: ClientWriter) -> None:
    """The answer as it comes. Its last byte leaves after the iteration's end, because only then all is recorded."""
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
        # It is recorded. What broke off must not look whole: without an end, the server hangs up.
        _LOG.info("%s broke off: %s", relayed.exchange, fault.message)
        return
    end = response_body(last, more=False)
    if isinstance(relayed.body, RawReply) and (trailers := relayed.body.trailers):
        end["trailers"] = trailers
    await send(end)


def _text_headers(headers: Headers) -> TextHeaders:
    """The headers as text; the body tells its length."""
    return tuple(
        (name.decode("latin-1"), value.decode("latin-1")) for name, value in headers if name != b"content-length"
    )


def _length(headers: Headers) -> int | None:
    """How long the body is, None where only its end tells."""
    if header(headers, b"transfer-encoding"):
        return None
    length = header(headers, b"content-length").strip()
    return int(length) if length.isdigit() else 0
