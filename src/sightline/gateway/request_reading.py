"""A client's request taken in: its whole body, within limits, and the little of it that passing it on needs."""

import asyncio
from functools import lru_cache
from typing import Final

import msgspec

from sightline.errors import Code, Fault
from sightline.exchange.client_request import ClientRequest, TextHeaders
from sightline.gateway.json_depth import is_too_deep
from sightline.gateway.paths import GatewayPath
from sightline.web.asgi import AsgiScope, Headers, Receive, header
from sightline.wire.coding import decode_body
from sightline.wire.jsontext import decode
from sightline.wire.url_path import can_stray

MOST_BYTES: Final = 64 * 1024 * 1024
_MOST_UNREAD: Final = 16 * MOST_BYTES
"""So much of a body that is refused is still heard, because most clients look for an answer only after their last
byte."""

_LONG: Final = 256 * 1024
"""Coded bodies from this length on are decoded beside the loop, which serves others meanwhile."""


class ClientGoneError(Exception):
    """The client left before it had said everything."""


class _Typed(msgspec.Struct):
    """What is looked at in a body. Everything else is only checked to be JSON."""

    model: str = ""
    stream: bool | None = None


_READER = msgspec.json.Decoder(_Typed)


async def read_request(scope: AsgiScope, receive: Receive, place: GatewayPath, received: float) -> ClientRequest:
    """The request as the relay takes it; a fault for what no dialect can mean."""
    if can_stray(place.path):
        hint = "Send the path without dot segments, backslashes and control characters."
        raise _bad("the path leads out of the provider's API", hint)
    headers = scope["headers"]
    coding, strict, told = _read_headers(tuple([each for each in headers if each[0] != b"content-length"]))
    came = await _body(receive, headers)
    is_coded = coding not in ("", "identity")
    body = await _plain(came, coding) if is_coded else came
    if is_too_deep(body):
        raise _bad("the body is nested more than 1,000 levels deep", "Flatten it, or send the inner part as text.")
    model, is_stream = _model_and_stream(body, place)
    return ClientRequest(
        dialect=place.dialect,
        body=body,
        headers=told,
        path=place.path,
        query=scope["query_string"].decode("latin-1"),
        model=model,
        is_stream=is_stream,
        coded=came if is_coded else None,
        coding=coding if is_coded else "",
        provider=place.provider,
        session=place.session,
        strict=strict,
        counts=place.counts,
        received=received,
    )


@lru_cache(maxsize=512)
def _read_headers(headers: tuple[tuple[bytes, bytes], ...]) -> tuple[str, bool, TextHeaders]:
    """The content coding, whether losses are refused, and all headers as text. A client sends the same ones with all of
    its requests, but for the length of the body, which the body tells."""
    listed = list(headers)
    coding = header(listed, b"content-encoding").strip().lower()
    strict = header(listed, b"x-sightline-strict").strip().lower() in ("1", "true")
    return coding, strict, tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in headers)


async def _body(receive: Receive, headers: Headers) -> bytes:
    length = header(headers, b"content-length")
    if length.isdigit() and int(length) > MOST_BYTES:
        if not header(headers, b"expect"):  # who waits for leave to send hears the refusal instead
            await _unread(receive)
        raise _too_large()
    pieces: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGoneError
        if piece := message.get("body", b""):
            pieces.append(piece)
            size += len(piece)
        if size > MOST_BYTES:
            pieces.clear()
            if message.get("more_body", False):
                await _unread(receive)
            raise _too_large()
        if not message.get("more_body", False):
            return pieces[0] if len(pieces) == 1 else b"".join(pieces)


async def _unread(receive: Receive) -> None:
    """Hear the rest, and keep none of it."""
    size = 0
    while size < _MOST_UNREAD:
        message = await receive()
        size += len(message.get("body", b""))
        if message["type"] == "http.disconnect" or not message.get("more_body", False):
            return


async def _plain(came: bytes, coding: str) -> bytes:
    if len(came) < _LONG:
        return decode_body(came, coding, MOST_BYTES)
    return await asyncio.to_thread(decode_body, came, coding, MOST_BYTES)


def _model_and_stream(body: bytes, place: GatewayPath) -> tuple[str, bool]:
    """The model and whether a stream is wanted, as body and path tell them."""
    try:
        told = _READER.decode(body)
        model, stream = told.model, told.stream is True
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        model, stream = _patiently_named(body)
    if place.model:
        return place.model, place.is_stream
    if not model:
        raise _bad("the body names no model", 'Say which model is to answer: {"model": "…"}.')
    return model, stream


def _patiently_named(body: bytes) -> tuple[str, bool]:
    """The same where the quick reader gave up: for a fault that says where, or for what it is too strict about."""
    document = decode(body)
    if not isinstance(document, dict):
        raise _bad("the body is no JSON object", "Send the request as one JSON object.")
    model, stream = document.get("model", ""), document.get("stream")
    if not isinstance(model, str):
        raise _bad("the model's name is no text", 'Say which model is to answer: {"model": "…"}.')
    return model, stream is True


def _bad(message: str, hint: str) -> Fault:
    return Fault(Code.INVALID_REQUEST, message, hint=hint, status=400)


def _too_large() -> Fault:
    hint = "Remove or shrink attachments."
    return Fault(Code.REQUEST_TOO_LARGE, "the body is larger than 64 MiB", hint=hint, status=413)
