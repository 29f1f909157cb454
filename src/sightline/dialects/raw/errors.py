"""Errors of the raw wire: `{"error": {"code", "message"}}` with our own codes as the words."""

from collections.abc import Mapping

from sightline.dialects.faults import HINTS, provider_fault, status_of
from sightline.errors import Code, Fault
from sightline.model.json import Json, JsonObject

_CODES: Mapping[str, Code] = {code.value: code for code in Code}


def read_error(status: int, body: Json, headers: Mapping[str, str]) -> Fault:
    """The fault that an error body tells; a body of another shape still gives one, with what it says."""
    error = body.get("error") if isinstance(body, dict) else body
    if not isinstance(error, dict):
        return provider_fault(status, error if isinstance(error, str) else "", details=body, headers=headers)
    message, word = error.get("message"), error.get("code")
    fault = provider_fault(
        status,
        message if isinstance(message, str) else "",
        words=(word, error.get("type")),
        details=error,
        headers=headers,
    )
    code = _CODES.get(word) if isinstance(word, str) else None
    if code is None:
        return fault
    return Fault(
        code,
        fault.message,
        hint=HINTS[code],
        status=status,
        retry_after=fault.retry_after,
        details=error,
        numbers=fault.numbers,
    )


def write_error(fault: Fault) -> tuple[int, JsonObject]:
    """The status and body of a fault."""
    return status_of(fault), {"error": error_object(fault)}


def error_object(fault: Fault) -> JsonObject:
    """The object that says what went wrong, in a body or in a stream."""
    return {"code": fault.code.value, "message": fault.message}
