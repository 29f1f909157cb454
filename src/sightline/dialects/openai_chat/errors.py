"""Errors in the form that both OpenAI APIs share: `{"error": {"message", "type", "param", "code"}}`.

Many providers speak this API, and their errors vary: a bare string, the object without `error` around it, a list of
what is wrong with each field, or another provider's error wrapped in their own.
"""

import re
from collections.abc import Mapping

from sightline.dialects.fault_codes import status_of
from sightline.dialects.faults import provider_fault
from sightline.errors import Code, Fault
from sightline.model.json import Json, JsonObject
from sightline.wire.jsontext import decode, encode

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
    Code.CAP_REACHED: ("invalid_request_error", "cap_reached"),
    Code.CONTENT_FILTERED: ("invalid_request_error", "content_filter"),
    Code.OVERLOADED: ("server_error", "server_is_overloaded"),
    Code.TRANSLATION_LOSS: ("invalid_request_error", "translation_loss"),
    Code.USAGE: ("invalid_request_error", "usage"),
    Code.CONFIG: ("invalid_request_error", "config"),
}
"""The dialect's type and code for each of our codes; any other is a server error under our own code."""

_NUMBER = re.compile(r"[45][0-9]{2}")
_STATUSES = ("code", "status_code", "status", "raw_status_code")
"""Fields in which some providers report the status once a stream has begun."""


def read_error(status: int, body: Json, headers: Mapping[str, str]) -> Fault:
    """The fault of an error body; a body of another shape gives a fault too, with the text that it contains."""
    error = body.get("error") if isinstance(body, dict) else None
    holder = error if isinstance(error, dict) else body
    if not isinstance(holder, dict):
        return provider_fault(status, holder if isinstance(holder, str) else "", details=body, headers=headers)
    candidates = (None if holder is error else error, holder.get("message"), holder.get("detail"))
    message = next((text for text in map(_text, candidates) if text), "")
    words: list[Json] = [holder.get("code"), holder.get("type")]
    if inner := _router_error(holder.get("metadata")):
        message = ": ".join(filter(None, (message, inner[0])))
        words += inner[1]
    if status < 400:
        status = next((number for name in _STATUSES if (number := _status(holder.get(name)))), status)
    return provider_fault(status, message, words=tuple(words), details=holder, headers=headers)


def _text(value: Json) -> str:
    """A message, or the messages of a list of what is wrong with each field."""
    if isinstance(value, dict):
        value = value.get("detail")
    if isinstance(value, str):
        return value
    return "; ".join(filter(None, map(_problem, value))) if isinstance(value, list) else ""


def _problem(problem: Json) -> str:
    if not isinstance(problem, dict) or not isinstance(message := problem.get("msg"), str):
        return encode(problem).decode()
    place = problem.get("loc")
    return f"{'.'.join(str(step) for step in place)}: {message}" if isinstance(place, list) else message


def _router_error(metadata: Json) -> tuple[str, list[Json]] | None:
    """The message and the words of another provider's error that a router forwards; None if there is none."""
    if not isinstance(metadata, dict):
        return None
    words: list[Json] = [metadata.get("error_type")]
    raw = metadata.get("raw")
    if isinstance(raw, str) and raw.lstrip().startswith("{"):
        try:
            raw = decode(raw)
        except Fault:  # truncated by the router: then it is used as text
            return str(raw), words
    if not isinstance(raw, dict):
        return raw if isinstance(raw, str) else "", words
    error = raw.get("error")
    inner = error if isinstance(error, dict) else raw
    message = _text(error) or _text(inner.get("message")) or encode(raw).decode()
    return message, [*words, inner.get("code"), inner.get("type"), inner.get("status")]


def _status(value: Json) -> int | None:
    if isinstance(value, str):
        return int(value) if _NUMBER.fullmatch(value) else None
    return value if type(value) is int and 400 <= value < 600 else None


def is_bare_error(body: JsonObject) -> bool:
    """Whether a body is itself what other servers put under `error`: it has a message and no answer."""
    return not body.get("choices") and (body.get("object") == "error" or isinstance(body.get("message"), str))


def finish_fault(word: str, error: Json) -> Fault:
    """The fault of an answer whose finish word reports a failure; `error` is what the choice reports about it."""
    if isinstance(error, dict):
        return read_error(0, {"error": error}, {})
    return provider_fault(0, f"the provider ended the reply with {word!r}", words=("server_error",))


def write_error(fault: Fault) -> tuple[int, JsonObject]:
    """The status and body of a fault."""
    return status_of(fault), {"error": error_object(fault)}


def error_object(fault: Fault) -> JsonObject:
    """The object that describes the error, in a body or in a stream."""
    kind, code = _WORDS.get(fault.code, ("server_error", fault.code.value))
    param = fault.details.get("param") if isinstance(fault.details, dict) else None
    return {"message": fault.message, "type": kind, "param": param if isinstance(param, str) else None, "code": code}
