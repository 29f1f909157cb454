"""Responses of the API: JSON that is not cached, errors in one shape, and content that a browser cannot run."""

import msgspec

from sightline.dialects.fault_codes import status_of
from sightline.errors import Code, Fault
from sightline.web.asgi import Headers, WebResponse
from sightline.wire.jsontext import encode

GUARDED: Headers = [
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
]
READING = ("GET", "HEAD")
"""The methods that change nothing."""

_ENCODER = msgspec.json.Encoder()
_SANDBOX_POLICY = (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'; sandbox")


class FaultShown(msgspec.Struct, frozen=True):
    """What happened, and what to do next."""

    code: str
    message: str
    hint: str


def data(body: bytes, media_type: bytes) -> WebResponse:
    """Foreign bytes, which a browser must not show as a page of ours."""
    return WebResponse(200, body, [(b"content-type", media_type), _SANDBOX_POLICY, *GUARDED])


def json(value: object, status: int = 200, headers: Headers | None = None) -> WebResponse:
    return WebResponse(status, _encode(value), [(b"content-type", b"application/json"), *GUARDED, *(headers or [])])


def _encode(value: object) -> bytes:
    try:
        return _ENCODER.encode(value)
    except UnicodeEncodeError:  # half a surrogate pair, which clients may send
        return encode(msgspec.to_builtins(value))


def failure(fault: Fault, headers: Headers | None = None) -> WebResponse:
    """An error: what happened, and what to do next."""
    return json({"error": FaultShown(fault.code.value, fault.message, fault.hint)}, status_of(fault), headers)


def no_token() -> WebResponse:
    hint = "Send `Authorization: Bearer …` with the token that was printed at the start, or open the printed link."
    fault = Fault(Code.AUTH, "the token is missing or wrong", hint=hint, status=401)
    return failure(fault, [(b"www-authenticate", b"Bearer")])


def not_found(what: str) -> Fault:
    """The Fault of something that does not exist."""
    hint = "docs/reference/http.md lists the calls; GET /api/exchanges lists the exchanges."
    return Fault(Code.USAGE, f"there is no {what}", hint=hint, status=404)


def wrong_method(method: str, *allowed: str) -> WebResponse:
    """The refusal of a method that this path does not have."""
    allowed = allowed or READING
    fault = Fault(Code.USAGE, f"{method} is not allowed here", hint=f"Use {' or '.join(allowed)}.", status=405)
    return failure(fault, [(b"allow", ", ".join(allowed).encode())])
