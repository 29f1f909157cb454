"""Answers to a client that are made here or handed on whole: their head, their words, and the headers of our own."""

from collections.abc import Iterable
from math import ceil

from sightline.dialects.registry import dialect
from sightline.errors import Fault
from sightline.exchange.client_request import ClientRequest
from sightline.exchange.client_response import ClientResponse, Headers, WholeBody
from sightline.exchange.outbound import HOP_BY_HOP
from sightline.transport.sender import RawHeaders
from sightline.wire.jsontext import encode
from sightline.wire.secrets import Masking

_FRAMING = frozenset(name.encode() for name in HOP_BY_HOP) | {b"content-length", b"proxy-connection"}
_JSON = (b"content-type", b"application/json")
EVENT_STREAM: Headers = [(b"content-type", b"text/event-stream; charset=utf-8"), (b"cache-control", b"no-cache")]
_ARRAY: Headers = [(b"content-type", b"application/json; charset=utf-8"), (b"cache-control", b"no-cache")]


def stream_headers(asked: ClientRequest) -> Headers:
    """The headers of a stream that is written here, in the form that its client reads."""
    return _ARRAY if asked.wants_array else EVENT_STREAM


def refusal(spoken: str, fault: Fault, own: Headers, exchange: str = "") -> ClientResponse:
    """A fault as the client's dialect says it."""
    status, body = dialect(spoken).write_error(fault)
    error = body.get("error")
    if isinstance(fault.details, dict) and isinstance(error, dict) and fault.details.get("code") == RESEND:
        error["code"] = RESEND
    headers: Headers = [_JSON]
    if fault.retry_after is not None:
        headers.append((b"retry-after", str(ceil(fault.retry_after)).encode()))
    return whole(exchange, status, headers, encode(body), own, fault=fault)


RESEND = "previous_response_not_found"
"""The code upon which a client of the Responses API sends its whole history again."""


def whole(
    exchange: str, status: int, headers: Headers, body: bytes, own: Headers, *, fault: Fault | None = None
) -> ClientResponse:
    """An answer that is here already; `fault` is what it says, where it is no answer."""
    size = (b"content-length", str(len(body)).encode())
    return ClientResponse(exchange, status, [*headers, size, *own], WholeBody(body), fault=fault)


def headers_for_client(headers: RawHeaders, secrets: tuple[str, ...] = ()) -> Headers:
    """The provider's headers that are for the client; how the body is framed is said anew."""
    named = {
        word.strip().lower() for name, value in headers if name.lower() == b"connection" for word in value.split(b",")
    }
    passed = [
        (name, value)
        for name, value in headers
        if (low := name.lower()) not in _FRAMING and low not in named and not low.startswith(b"x-sightline-")
    ]
    return [(name, without(value, secrets)) for name, value in passed] if secrets else passed


def without(data: bytes, secrets: tuple[str, ...]) -> bytes:
    """Bytes that are all here, without these secrets."""
    masking = Masking(secrets)
    return masking.feed(data) + masking.close()


def header(headers: RawHeaders, wanted: bytes) -> str:
    """The first value of a header, nothing where it is absent."""
    return next((value.decode("latin-1") for name, value in headers if name.lower() == wanted), "")


def without_coding(headers: Iterable[tuple[bytes, bytes]]) -> Headers:
    """The headers of a body whose coding was undone."""
    return [(name, value) for name, value in headers if name.lower() != b"content-encoding"]
