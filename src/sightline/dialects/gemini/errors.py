"""Reads and writes Google's error bodies, `{"error": {"code", "message", "status", "details"}}`."""

import re
from collections.abc import Iterator, Mapping

from sightline.dialects.fault_codes import status_of
from sightline.dialects.faults import provider_fault, reclassify
from sightline.dialects.fields import word_of
from sightline.errors import Code, Fault
from sightline.model.json import Json, JsonObject

_RETRY_INFO = "type.googleapis.com/google.rpc.RetryInfo"
_OVERFLOW = "The input token count exceeds the maximum number of tokens allowed"
_DELAY = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)s")
_NOT_FOUND = "NOT_FOUND"
_STATUS: Mapping[Code, str] = {
    Code.AUTH: "UNAUTHENTICATED",
    Code.PERMISSION: "PERMISSION_DENIED",
    Code.MODEL_UNKNOWN: _NOT_FOUND,
    Code.REQUEST_TOO_LARGE_FOR_RATE: "RESOURCE_EXHAUSTED",
    Code.RATE_LIMITED: "RESOURCE_EXHAUSTED",
    Code.QUOTA: "RESOURCE_EXHAUSTED",
    Code.CAP_REACHED: "FAILED_PRECONDITION",
    Code.OVERLOADED: "UNAVAILABLE",
    Code.UPSTREAM_ERROR: "INTERNAL",
    Code.UPSTREAM_PROTOCOL: "INTERNAL",
    Code.TIMEOUT_IDLE: "DEADLINE_EXCEEDED",
    Code.NETWORK: "UNAVAILABLE",
    Code.CANCELLED: "CANCELLED",
    Code.CONFIG: "FAILED_PRECONDITION",
    Code.LOCAL_UNAVAILABLE: "UNAVAILABLE",
}
"""The status of an error with each of our codes; any other is an `INVALID_ARGUMENT`."""

_PER_DAY = re.compile(r"per_?day", re.IGNORECASE)
_QUOTA_PER_DAY = re.compile(r"\bquota\b.{0,200}\bper day\b", re.IGNORECASE | re.DOTALL)
_NO_ALLOWANCE = re.compile(r"\blimit: 0\b")


def read_error(status: int, body: Json, headers: Mapping[str, str]) -> Fault:
    """The fault of an error body; the body may be wrapped in a list, or not be a JSON object at all."""
    if isinstance(body, list) and body:
        body = body[0]
    error = body.get("error", body) if isinstance(body, dict) else body
    if not isinstance(error, dict):
        return provider_fault(status, error if isinstance(error, str) else "", details=error, headers=headers)
    word, code = error.get("status"), error.get("code")
    details = list(_details(error))
    known_status = status or (code if type(code) is int else 0)
    fault = provider_fault(known_status, word_of(error, "message"), words=(word,), details=error, headers=headers)
    delay = next((seconds for detail in details if (seconds := _delay(detail)) is not None), None)
    if delay is not None and fault.retry_after is None:
        fault.retry_after = delay
    if any(detail.get("reason") == "API_KEY_INVALID" for detail in details):
        reclassify(fault, Code.AUTH)
    elif known_status == 429 and fault.code in (Code.QUOTA, Code.RATE_LIMITED):
        reclassify(fault, _code_of_429(fault, details))
    return fault


def _code_of_429(fault: Fault, details: list[JsonObject]) -> Code:
    """The code of a 429. Google mentions quota and billing in every 429; the limit tells whether waiting helps."""
    limits = " ".join(_limits(details))
    if _PER_DAY.search(limits) or _QUOTA_PER_DAY.search(fault.message) or _NO_ALLOWANCE.search(fault.message):
        return Code.QUOTA
    return Code.RATE_LIMITED if limits or fault.retry_after is not None else fault.code


def _limits(details: list[JsonObject]) -> Iterator[str]:
    """The names of the limits that were hit."""
    for detail in details:
        violations, metadata = detail.get("violations"), detail.get("metadata")
        for holder in (*(violations if isinstance(violations, list) else ()), metadata):
            if isinstance(holder, dict):
                yield from (name for key in ("quotaId", "quota_limit") if isinstance(name := holder.get(key), str))


def write_error(fault: Fault) -> tuple[int, JsonObject]:
    """The status and body of a fault; Google's own details are kept, and a waiting time has Google's format."""
    status = status_of(fault)
    message = fault.message
    if fault.code is Code.CONTEXT_OVERFLOW and provider_fault(status, message).code is not Code.CONTEXT_OVERFLOW:
        message = f"{_OVERFLOW}: {message}"
    word = _NOT_FOUND if status == 404 else _STATUS.get(fault.code, "INVALID_ARGUMENT")
    error: JsonObject = {"code": status, "message": message, "status": word}
    details: list[Json] = []
    if isinstance(fault.details, dict):
        details.extend(_details(fault.details))
    if fault.retry_after is not None and not any(
        isinstance(detail, dict) and _delay(detail) is not None for detail in details
    ):
        details.append({"@type": _RETRY_INFO, "retryDelay": f"{fault.retry_after:.9f}".rstrip("0").rstrip(".") + "s"})
    if details:
        error["details"] = details
    return status, {"error": error}


def _details(error: JsonObject) -> Iterator[JsonObject]:
    details = error.get("details")
    if isinstance(details, list):
        for detail in details:
            if isinstance(detail, dict) and "@type" in detail:
                yield detail


def _delay(detail: JsonObject) -> float | None:
    delay = detail.get("retryDelay")
    match = _DELAY.fullmatch(delay) if isinstance(delay, str) else None
    return None if match is None else float(match[1])
