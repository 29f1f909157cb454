"""The gateway: reads a client's request, hands it to the relay, and writes the response as it arrives."""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, NamedTuple

import msgspec
from msgspec.structs import replace

from sightline.catalog.catalog import Catalog
from sightline.catalog.provider import Provider
from sightline.dialects.endpoint import dialect_of_model_paths
from sightline.dialects.fault_codes import status_of
from sightline.dialects.registry import dialect
from sightline.errors import Code, Fault
from sightline.exchange.client_request import ClientRequest
from sightline.exchange.client_response import ClientResponse, RequestHandler
from sightline.exchange.direct import DirectLane
from sightline.exchange.relay import Relay
from sightline.exchange.reply_reader import is_coded
from sightline.gateway.models import find_model, for_codex, list_models
from sightline.gateway.paths import GatewayPath, begin_request, caller_of, parse_path, parse_upstream_path
from sightline.gateway.raw import pass_raw
from sightline.gateway.refusal import no_such_path, refusal_response, wrong_method
from sightline.model.json import JsonObject
from sightline.web.asgi import (
    AsgiScope,
    ClientWriter,
    DirectClient,
    DirectRequest,
    Headers,
    Receive,
    WebResponse,
    header,
    response_body,
    response_start,
)
from sightline.wire.call import can_stray
from sightline.wire.coding import decode_body
from sightline.wire.jsontext import MOST_LEVELS, decode, encode, may_be_deep

_SAME = bytes.maketrans(b"{}", b"[]")
_WORDS = bytes(sorted(set(range(256)) - set(b'[]{}"')))
_STRING = re.compile(rb'"[^"]*+(?:"|\Z)')
_PASSES = 24
"""A few levels more than the deepest requests of real clients have."""


def is_too_deep(text: bytes) -> bool:
    """Whether lists and objects are nested deeper than any API allows."""
    if not may_be_deep(text):
        return False  # nearly always: there are too few brackets to nest this deep
    # Without escapes and words, a string is a pair of quotes around the brackets in it. A list looks like an object.
    marks = text.replace(b"\\\\", b"").replace(b'\\"', b"").translate(_SAME, _WORDS)
    left = _STRING.sub(b"", marks.replace(b'""', b""))
    for _ in range(_PASSES):
        if not left:
            return False
        left = left.replace(b"[]", b"")  # removes the innermost level everywhere
    depth = _PASSES
    for mark in left:
        depth += 1 if mark == ord("[") else -1
        if depth > MOST_LEVELS:
            return True
    return False


MOST_BYTES: Final = 64 * 1024 * 1024
_MOST_UNREAD: Final = 16 * MOST_BYTES
"""How much of a refused body is still read: most clients read the response only after they have sent everything."""

_LARGE_BODY: Final = 256 * 1024
"""Compressed bodies of this size and more are decompressed in a thread, so that the loop can serve others."""


class ClientGoneError(Exception):
    """The client disconnected before it had sent the whole request."""


class _BodyFields(msgspec.Struct):
    """The fields of a body that the gateway reads. Everything else is only checked to be JSON."""

    model: str = ""
    stream: bool | None = None


_BODY_FIELDS = msgspec.json.Decoder(_BodyFields)


async def read_request(
    scope: AsgiScope, receive: Receive, place: GatewayPath, received: float, body: bytes | None = None
) -> ClientRequest:
    """Read a request for the relay. `body` is its body if all of it has arrived.

    Raises a fault for a request that is invalid in every dialect, and `ClientGoneError`.
    """
    known = scope.get("head")
    head = _HEADS.get(known)
    if head is None:
        head = _read_head(place, scope)
        if known is not None:
            if len(_HEADS) >= _MOST_HEADS:
                _HEADS.clear()
            _HEADS[known] = head
    if head.can_stray:
        hint = "Send the path without dot segments, backslashes and control characters."
        raise _invalid_request("the path leads out of the provider's API", hint)
    came = body if body is not None else await _body(receive, scope["headers"], is_waiting=head.is_waiting)
    if len(came) > MOST_BYTES:
        raise _body_too_large()
    coding = head.request.coding
    body = await _decompress(came, coding) if coding else came
    if is_too_deep(body):
        raise _invalid_request(
            "the body is nested more than 1,000 levels deep", "Flatten it, or send the inner part as text."
        )
    model, is_stream = _read_model(place, body) or _decode_model(place, body)
    coded = came if coding else None
    return replace(head.request, body=body, model=model, is_stream=is_stream, coded=coded, received=received)


def place_of(scope: AsgiScope) -> GatewayPath:
    """What the path of a request addresses."""
    head = _HEADS.get(scope.get("head"))
    if head is not None:
        return head.place
    path = scope["raw_path"].decode("latin-1")
    return parse_upstream_path(path, scope["upstream"]) if "upstream" in scope else parse_path(path)


class _Head(NamedTuple):
    """What follows from a request's path and headers. `request` has no body yet. With `is_waiting`, the client expects
    `100 Continue` before it sends the body."""

    place: GatewayPath
    request: ClientRequest
    is_waiting: bool
    can_stray: bool


_MOST_HEADS: Final = 512
_HEADS: dict[object, _Head] = {}
"""By the server's object for the head: a client sends the same head with all of its requests."""


def _read_head(place: GatewayPath, scope: AsgiScope) -> _Head:
    headers = scope["headers"]
    coding = header(headers, b"content-encoding").strip().lower()
    request = replace(
        begin_request(scope, place),
        coding=coding if is_coded(coding) else "",
        strict=header(headers, b"x-sightline-strict").strip().lower() in ("1", "true"),
        counts=place.counts,
        head=scope.get("head"),
    )
    return _Head(place, request, bool(header(headers, b"expect")), can_stray(place.path))


async def _body(receive: Receive, headers: Headers, *, is_waiting: bool) -> bytes:
    message = None if is_waiting else await receive()
    if message is None or message.get("more_body", False):  # otherwise all of it has arrived, as is usual
        length = header(headers, b"content-length")
        if length.isdigit() and int(length) > MOST_BYTES:
            if message is not None:  # a client that waits for `100 Continue` gets the refusal instead
                await _discard_body(receive, len(message.get("body", b"")))
            raise _body_too_large()
    pieces: list[bytes] = []
    size = 0
    while True:
        message = message or await receive()
        if message["type"] == "http.disconnect":
            raise ClientGoneError
        if piece := message.get("body", b""):
            pieces.append(piece)
            size += len(piece)
        if size > MOST_BYTES:
            pieces.clear()
            if message.get("more_body", False):
                await _discard_body(receive)
            raise _body_too_large()
        if not message.get("more_body", False):
            return pieces[0] if len(pieces) == 1 else b"".join(pieces)
        message = None


async def _discard_body(receive: Receive, size: int = 0) -> None:
    """Read the rest of a body and discard it. `size` is how much of it has arrived."""
    while size < _MOST_UNREAD:
        message = await receive()
        size += len(message.get("body", b""))
        if message["type"] == "http.disconnect" or not message.get("more_body", False):
            return


async def _decompress(came: bytes, coding: str) -> bytes:
    if len(came) < _LARGE_BODY:
        return decode_body(came, coding, MOST_BYTES)
    return await asyncio.to_thread(decode_body, came, coding, MOST_BYTES)


def _read_valid_model(place: GatewayPath, body: bytes) -> tuple[str, bool] | None:
    """The model, and whether a stream is requested; None if the body may be invalid, so that `read_request` has to look
    at it."""
    return None if len(body) > MOST_BYTES or is_too_deep(body) else _read_model(place, body)


def _read_model(place: GatewayPath, body: bytes) -> tuple[str, bool] | None:
    """The model, and whether a stream is requested, by the path and the body; None for a body that may be invalid, or
    names no model."""
    try:
        read = _BODY_FIELDS.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if place.model:
        return place.model, place.is_stream
    return (read.model, read.stream is True) if read.model else None


def _decode_model(place: GatewayPath, body: bytes) -> tuple[str, bool]:
    """The same with the full decoder, for bodies that the typed one rejects: it is more tolerant, and its faults name
    the place. Raises a fault if there is no model."""
    document = decode(body)
    if not isinstance(document, dict):
        raise _invalid_request("the body is not a JSON object", "Send the request as one JSON object.")
    model, stream = document.get("model", ""), document.get("stream")
    if not isinstance(model, str):
        raise _invalid_request("the model's name is not a text", 'Say which model is to answer: {"model": "…"}.')
    if place.model:
        return place.model, place.is_stream
    if not model:
        raise _invalid_request("the body names no model", 'Say which model is to answer: {"model": "…"}.')
    return model, stream is True


def _invalid_request(message: str, hint: str) -> Fault:
    return Fault(Code.INVALID_REQUEST, message, hint=hint, status=400)


def _body_too_large() -> Fault:
    hint = "Remove or shrink attachments."
    return Fault(Code.REQUEST_TOO_LARGE, "the body is larger than 64 MiB", hint=hint, status=413)


_LOG = logging.getLogger("sightline.gateway")
_READING = ("GET", "HEAD")


class Gateway:
    """Serves every path that is not the workbench's.

    `elapsed` is the clock of the relay. `raw` forwards requests that belong to no dialect; without it they are 404.
    `longest_message` limits the bytes of a WebSocket message.
    """

    def __init__(
        self,
        relay: RequestHandler,
        catalog: Catalog,
        has_key: Callable[[Provider], bool],
        elapsed: Callable[[], float],
        raw: Relay | None = None,
        longest_message: int = MOST_BYTES,
    ) -> None:
        self._relay = relay
        self._raw = raw
        self._catalog = catalog
        self._has_key = has_key
        self._elapsed = elapsed
        self._longest = longest_message
        self._direct: dict[object, DirectLane | None] = {}
        """By the server's object for the head. Contains only heads that passed the access checks."""

    def serve(self, scope: AsgiScope, receive: Receive, send: ClientWriter) -> Awaitable[None]:
        received = self._elapsed()
        place = place_of(scope)
        if place.kind == "ask" and scope["method"] == "POST":
            return self._ask(scope, receive, send, place, received)
        if wants_socket(scope) and place.kind == "ask" and dialect(place.dialect).clients.tries_websocket:
            return self._serve_socket(scope, send, place)
        if wants_socket(scope) and place.kind == "unknown" and isinstance(self._relay, Relay):
            from sightline.gateway.web_socket import pass_socket  # with the first socket: it takes 40 ms

            return pass_socket(self._relay, scope, send, place, received, self._longest)
        if self._raw is not None and _is_raw(scope, place):
            return pass_raw(self._raw, scope, receive, send, place, received)
        return self._respond_without_model(scope, place).to(send)

    def begin(self, head: object, body: bytes, client: DirectClient) -> DirectRequest | None:
        """Begin a direct exchange for a request with a known head; None if `serve` has to handle the request."""
        lane = self._direct.get(head)
        return None if lane is None else lane.begin(body, self._elapsed(), client)

    def refusal(self, scope: AsgiScope, fault: Fault) -> WebResponse:
        """The response to a request that is refused unread, in the dialect of its path."""
        return refusal_response(_caller(scope, place_of(scope)), fault)

    async def _ask(
        self, scope: AsgiScope, receive: Receive, send: ClientWriter, place: GatewayPath, received: float
    ) -> None:
        try:
            request = await read_request(scope, receive, place, received, send.take_body())
        except ClientGoneError:
            return
        except Fault as fault:
            _LOG.warning("refused %s %s: %s: %s", scope["method"], place.path, fault.code, fault.message)
            closing = [(b"connection", b"close")] if status_of(fault) == 413 else []  # part of the body is unread
            await refusal_response(place.dialect, fault, headers=closing).to(send)
            return
        if request.head is not None and request.head not in self._direct and isinstance(self._relay, Relay):
            if len(self._direct) >= _MOST_HEADS:
                self._direct.clear()
            read_model = partial(_read_valid_model, place)
            self._direct[request.head] = self._relay.direct_lane(request, read_model, _respond)
        await _respond(await self._relay.start(request), send)

    async def _serve_socket(self, scope: AsgiScope, send: ClientWriter, place: GatewayPath) -> None:
        """Serve the Responses API over the client's WebSocket."""
        # Loaded with the first socket: `websockets` takes 40 ms.
        from sightline.gateway.responses_socket import ResponsesSocket
        from sightline.gateway.web_socket import ClientSocket, headers_for_provider, refuse_handshake

        refused = refuse_handshake(scope, place.dialect)
        if refused is not None:
            await refused.to(send)
            return
        headers = list(headers_for_provider(scope["headers"]))
        head = _read_head(place, {**scope, "headers": headers})
        template = replace(head.request, is_stream=True, coding="", counts=False, transport="websocket", head=None)
        client = ClientSocket(scope, send, self._longest)
        response = await ResponsesSocket(self._relay, client, template, self._elapsed, self._longest).run()
        if response is not None:
            await _respond(response, send)

    def _respond_without_model(self, scope: AsgiScope, place: GatewayPath) -> WebResponse:
        """Respond to a request that does not address a model: model lists, wrong methods, unknown paths."""
        method = scope["method"]
        if place.kind == "unknown":
            return refusal_response(_caller(scope, place), no_such_path(method, place.path))
        if place.kind == "ask":
            return wrong_method(place.dialect, method, "POST")
        if method == "POST" and ":" in place.model:  # as in Gemini's `models/M:generateContent`
            return refusal_response(place.dialect or dialect_of_model_paths(), no_such_path(method, place.path))
        if method not in _READING:
            return wrong_method(_caller(scope, place), method, "GET")
        return self._models(scope, place)

    def _models(self, scope: AsgiScope, place: GatewayPath) -> WebResponse:
        spoken = _caller(scope, place)
        try:
            models = list_models(self._catalog, self._has_key, place.provider)
            if place.kind == "model":
                return _json(dialect(spoken).clients.show_model(find_model(models, place.model)))
        except Fault as fault:
            return refusal_response(spoken, fault)
        is_codex = b"client_version=" in scope["query_string"]
        return _json(for_codex() if is_codex else dialect(spoken).clients.list_models(models))


def wants_socket(scope: AsgiScope) -> bool:
    return scope["method"] == "GET" and header(scope["headers"], b"upgrade").strip().lower() == "websocket"


def _is_raw(scope: AsgiScope, place: GatewayPath) -> bool:
    """Whether a request is forwarded as it is, because no dialect reads it. Upgrades to other protocols are not."""
    if header(scope["headers"], b"upgrade"):
        return False
    if "upstream" in scope:
        return True
    if place.kind in ("models", "model"):
        return scope["method"] not in _READING
    return True


async def _respond(relayed: ClientResponse, send: ClientWriter) -> None:
    """Write a response to its client. A stream ends only when all of it is recorded."""
    if relayed.whole_body is not None:
        send.respond(relayed.status, relayed.headers, relayed.whole_body)
        return
    async with relayed:
        await send(response_start(relayed.status, relayed.headers))
        try:
            await relayed.body.write_to(send)
            await send(response_body(b"", more=False))
        except Fault as fault:
            # The fault is recorded. A truncated response must not look complete, so the server closes the connection.
            _LOG.info("%s was interrupted: %s", relayed.exchange, fault.message)


def _caller(scope: AsgiScope, place: GatewayPath) -> str:
    return caller_of(place, scope["headers"], scope["query_string"].decode("latin-1"))


def _json(value: JsonObject) -> WebResponse:
    return WebResponse(200, encode(value), [(b"content-type", b"application/json")])
