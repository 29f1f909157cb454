"""Reads and writes error bodies: `{"type": "error", "error": {"type", "message"}}`."""

from collections.abc import Mapping

from sightline.dialects.fault_codes import status_of
from sightline.dialects.faults import provider_fault
from sightline.dialects.fields import compact
from sightline.dialects.streaming import fields_of
from sightline.errors import Code, Fault
from sightline.model.events import StreamEvent
from sightline.model.json import Json, JsonObject
from sightline.wire.jsontext import encode

_NOT_FOUND = "not_found_error"
_TYPES: Mapping[Code, str] = {
    Code.INVALID_REQUEST: "invalid_request_error",
    Code.AUTH: "authentication_error",
    Code.PERMISSION: "permission_error",
    Code.MODEL_UNKNOWN: _NOT_FOUND,
    Code.CONTEXT_OVERFLOW: "invalid_request_error",
    Code.REQUEST_TOO_LARGE: "request_too_large",
    Code.REQUEST_TOO_LARGE_FOR_RATE: "rate_limit_error",
    Code.RATE_LIMITED: "rate_limit_error",
    Code.QUOTA: "billing_error",
    Code.CAP_REACHED: "billing_error",
    Code.CONTENT_FILTERED: "invalid_request_error",
    Code.OVERLOADED: "overloaded_error",
    Code.TIMEOUT_IDLE: "timeout_error",
    Code.TRANSLATION_LOSS: "invalid_request_error",
    Code.USAGE: "invalid_request_error",
    Code.CONFIG: "invalid_request_error",
}
"""The API's type for each of our codes; any other is an `api_error`."""

OVERLOADED = 529
"""The status for an overloaded provider that gave none."""

_OVERFLOW = "prompt is too long"
"""The words by which clients of this API recognise that they must shorten the conversation."""


def read_error(status: int, body: Json, headers: Mapping[str, str]) -> Fault:
    """The fault of an error response of the API, whatever its body is."""
    error = body.get("error") if isinstance(body, dict) else None
    if not isinstance(error, dict):
        words = body if isinstance(body, str) else "" if body is None else encode(body).decode()
        return provider_fault(status, words, details=body, headers=headers)
    message, details = error.get("message"), error.get("details")
    code = details.get("error_code") if isinstance(details, dict) else None
    return provider_fault(
        status,
        message if isinstance(message, str) else encode(error).decode(),
        words=(code, error.get("type")),
        details=error,
        headers=headers,
    )


def error_fields(body: JsonObject, at: str) -> list[StreamEvent]:
    """The fields of an error besides its type and its message."""
    error = body.get("error")
    fields = extra_fields(body, at, frozenset({"type", "error"}))
    if isinstance(error, dict) and isinstance(error.get("message"), str):
        fields += extra_fields(error, f"{at}/error", frozenset({"type", "message"}))
    return fields


def extra_fields(holder: JsonObject, at: str, known: frozenset[str]) -> list[StreamEvent]:
    """The unmodelled fields that are not null."""
    return fields_of(compact(holder), known, at)


def is_error(body: JsonObject) -> bool:
    """Whether this is an error and not a reply."""
    return body.get("type") == "error" or (body.get("type") is None and isinstance(body.get("error"), dict))


def write_error(fault: Fault) -> tuple[int, JsonObject]:
    """The status and the body for a client of this API."""
    status = OVERLOADED if fault.code is Code.OVERLOADED and (fault.status or 0) < 400 else status_of(fault)
    return status, error_body(fault)


def error_body(fault: Fault) -> JsonObject:
    """The error object, as a body or as a frame of a stream."""
    message = fault.message
    if fault.code is Code.CONTEXT_OVERFLOW and _OVERFLOW not in message.lower():
        message = f"{_OVERFLOW}: {message}"
    kind = _NOT_FOUND if status_of(fault) == 404 else _TYPES.get(fault.code, "api_error")
    error: JsonObject = {"type": kind, "message": message}
    own = fault.details
    if isinstance(own, dict) and isinstance(finer := own.get("details"), dict) and "error_code" in finer:
        error["details"] = finer
    return {"type": "error", "error": error}
