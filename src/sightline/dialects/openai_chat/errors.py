"""Errors in the shape that both of OpenAI's APIs share: `{"error": {"message", "type", "param", "code"}}`."""

import re
from collections.abc import Mapping

from sightline.dialects.faults import provider_fault, status_of
from sightline.errors import Code, Fault
from sightline.model.json import Json, JsonObject

_WORDS: Mapping[Code, tuple[str, str | None]] = {
    Code.INVALID_REQUEST: ("invalid_request_error", None),
    Code.AUTH: ("authentication_error", "invalid_api_key"),
    Code.PERMISSION: ("permission_error", "insufficient_permissions"),
    Code.MODEL_UNKNOWN: ("invalid_request_error", "model_not_found"),
    Code.CONTEXT_OVERFLOW: ("invalid_request_error", "context_length_exceeded"),
    Code.REQUEST_TOO_LARGE: ("invalid_request_error", "request_too_large"),
    Code.REQUEST_TOO_LARGE_FOR_RATE: ("tokens", "rate_limit_exceeded"),
    Code.RATE_LIMITED: ("rate_limit_error", "rate_limit_exceeded"),
    Code.QUOTA: ("insufficient_quota", "insufficient_quota"),
    Code.CONTENT_FILTERED: ("invalid_request_error", "content_filter"),
    Code.OVERLOADED: ("server_error", "server_is_overloaded"),
    Code.TRANSLATION_LOSS: ("invalid_request_error", "translation_loss"),
    Code.USAGE: ("invalid_request_error", "usage"),
}
"""The dialect's type and code for each of ours; what is not here is a server error under our own code."""

_NUMBER = re.compile(r"[1-5][0-9]{2}")


def read_error(status: int, body: Json, headers: Mapping[str, str]) -> Fault:
    """The fault that an error body tells; a body of another shape still gives one, with what it says."""
    error = body.get("error") if isinstance(body, dict) else None
    told = error if isinstance(error, dict) else body
    if not isinstance(told, dict):
        return provider_fault(status, told if isinstance(told, str) else "", details=body, headers=headers)
    words = (error, told.get("message"), told.get("detail"))
    code = told.get("code")
    number = int(code) if isinstance(code, str) and _NUMBER.fullmatch(code) else code
    if status < 400 and type(number) is int and 400 <= number < 600:  # some tell it there once a stream has begun
        status = number
    return provider_fault(
        status,
        next((word for word in words if isinstance(word, str)), ""),
        words=(code, told.get("type")),
        details=told,
        headers=headers,
    )


def is_bare_error(body: JsonObject) -> bool:
    """Whether a body is itself what others put under `error`: a message stands where an answer would be."""
    return not body.get("choices") and (body.get("object") == "error" or isinstance(body.get("message"), str))


def finish_fault(word: str, error: Json) -> Fault:
    """The fault of an answer whose finish word says that it failed; `error` is what the choice says about it."""
    if isinstance(error, dict):
        return read_error(0, {"error": error}, {})
    return provider_fault(0, f"the provider ended the reply with {word!r}", words=("server_error",))


def write_error(fault: Fault) -> tuple[int, JsonObject]:
    """The status and body of a fault."""
    return status_of(fault), {"error": error_object(fault)}


def error_object(fault: Fault) -> JsonObject:
    """The object that says what went wrong, in a body or in a stream."""
    kind, code = _WORDS.get(fault.code, ("server_error", fault.code.value))
    param = fault.details.get("param") if isinstance(fault.details, dict) else None
    return {"message": fault.message, "type": kind, "param": param if isinstance(param, str) else None, "code": code}
