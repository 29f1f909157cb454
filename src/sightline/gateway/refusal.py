"""Errors that the gateway itself returns, in the caller's own dialect."""

import math
from collections.abc import Sequence

from sightline.dialects.registry import dialect
from sightline.errors import Code, Fault
from sightline.web.asgi import WebResponse
from sightline.wire.jsontext import encode


def refusal_response(spoken: str, fault: Fault, *, headers: Sequence[tuple[bytes, bytes]] = ()) -> WebResponse:
    """The fault as an error of this dialect. The hint is part of its message, because clients show nothing else."""
    with_hint = Fault(
        fault.code,
        f"{fault.message}. {fault.hint}" if fault.hint else fault.message,
        status=fault.status,
        retry_after=fault.retry_after,
        details=fault.details,
    )
    status, body = dialect(spoken).write_error(with_hint)
    response_headers = [(b"content-type", b"application/json"), *headers]
    if fault.retry_after is not None:
        response_headers.append((b"retry-after", str(math.ceil(fault.retry_after)).encode()))
    return WebResponse(status, encode(body), response_headers)


def no_such_path(method: str, path: str) -> Fault:
    return Fault(
        Code.USAGE,
        f"there is no {method} {path} here",
        hint="Known are /v1/chat/completions, /v1/responses, /v1/messages, /v1beta/models/MODEL:generateContent and "
        "/v1/models.",
        status=404,
    )


def wrong_method(spoken: str, method: str, allowed: str) -> WebResponse:
    """The response to a known path with another method."""
    fault = Fault(Code.USAGE, f"{method} is not how this is asked for", hint=f"Use {allowed}.", status=405)
    return refusal_response(spoken, fault, headers=[(b"allow", allowed.encode())])


def not_http() -> Fault:
    return Fault(Code.INVALID_REQUEST, "this is not HTTP/1.1", hint="Send it again.", status=400)


def head_too_large() -> Fault:
    """The fault of a head that is longer than any request needs."""
    hint = "Send shorter headers."
    return Fault(Code.REQUEST_TOO_LARGE, "the head of the request is larger than 64 KiB", hint=hint, status=431)


def foreign_target() -> Fault:
    """The fault of a request that uses this server as a proxy."""
    hint = "Set its address as the client's base URL, not as its proxy."
    return Fault(Code.PERMISSION, "this server is not a forward proxy", hint=hint, status=403)
