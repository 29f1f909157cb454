"""Errors of the Responses API: bodies as both of OpenAI's APIs have them, and failures inside a reply or a stream."""

from collections.abc import Mapping

from sightline.dialects.faults import provider_fault
from sightline.dialects.openai_chat.errors import read_error, write_error
from sightline.errors import Code, Fault
from sightline.model.json import Json, JsonObject

__all__ = ["read_error", "read_failure", "write_error", "write_failure"]

_CODES: Mapping[Code, str] = {
    Code.INVALID_REQUEST: "invalid_prompt",
    Code.AUTH: "invalid_api_key",
    Code.PERMISSION: "permission_error",
    Code.MODEL_UNKNOWN: "model_not_found",
    Code.CONTEXT_OVERFLOW: "context_length_exceeded",
    Code.REQUEST_TOO_LARGE: "request_too_large",
    Code.REQUEST_TOO_LARGE_FOR_RATE: "rate_limit_exceeded",
    Code.RATE_LIMITED: "rate_limit_exceeded",
    Code.QUOTA: "insufficient_quota",
    Code.CAP_REACHED: "insufficient_quota",
    Code.CONTENT_FILTERED: "content_filter",
    Code.OVERLOADED: "server_is_overloaded",
    Code.TIMEOUT_IDLE: "timeout_error",
    Code.CANCELLED: "cancelled",
    Code.TRANSLATION_LOSS: "invalid_prompt",
    Code.USAGE: "invalid_prompt",
    Code.CONFIG: "invalid_prompt",
}
"""The code in a failed reply for each of ours; everything else is a `server_error`, which clients send again."""

_ALIASES: Mapping[str, str] = {
    "bio_policy": "invalid_prompt",
    "data_residency_mismatch": "invalid_prompt",
    "misalignment_policy_violation": "content_policy_violation",
    "image_content_policy_violation": "content_policy_violation",
    "vector_store_timeout": "timeout_error",
}
"""Codes of this API in the words that the classifier of all providers knows."""


def read_failure(error: Json) -> Fault:
    """The fault of an `error` object in a reply, or of an `error` frame."""
    holder = error if isinstance(error, dict) else {}
    message, code = holder.get("message"), holder.get("code")
    text = message if isinstance(message, str) else ""
    if code == "cancelled":
        return cancellation_fault(text)
    word = _ALIASES.get(code, _image_word(code)) if isinstance(code, str) else None
    return provider_fault(
        0, text or "the provider failed and did not say why", words=(word, holder.get("type")), details=error
    )


def _image_word(code: str) -> str:
    """Every other code about a picture says that the request's picture is unusable."""
    return "invalid_prompt" if "image" in code.split("_") else code


def cancellation_fault(message: str = "") -> Fault:
    """The fault of a reply that was cancelled at the provider."""
    return Fault(Code.CANCELLED, message or "the reply was cancelled at the provider", hint="Send the request again.")


def write_failure(fault: Fault) -> JsonObject:
    """The `error` object of a failed reply."""
    return {"code": _CODES.get(fault.code, "server_error"), "message": fault.message}
