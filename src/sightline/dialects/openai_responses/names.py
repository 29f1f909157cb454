"""Words of the Responses API that more than one module here needs, and the failures inside a reply or a stream."""

from collections.abc import Mapping

from sightline.dialects.faults import provider_fault
from sightline.dialects.fields import word_of
from sightline.errors import Code, Fault
from sightline.model.json import Json, JsonObject

NAME = "openai-responses"

LOGPROBS = "message.output_text.logprobs"
"""The word of `include` that asks for logprobs."""

CALLS = {"function_call": ("function", "arguments"), "custom_tool_call": ("custom", "input")}
"""The items that are calls for the client: the kind of tool, and the field that holds what the model wrote."""

OUTPUTS = {"function_call_output": "function", "custom_tool_call_output": "custom"}
"""The items that answer these calls."""

_CONTENT = frozenset({"refusal", "text", "reasoning_text", "summary_text", "computer_screenshot", "encrypted_content"})
_CONTENT_HEADS = ("input_", "output_")


def is_item_type(kind: Json) -> bool:
    """Whether values of this type are items of their own, as is everything that is not part of a message's content."""
    return isinstance(kind, str) and kind not in _CONTENT and not kind.startswith(_CONTENT_HEADS)


STRIDE = 1000
"""A part of an answer is numbered `output_index * STRIDE + content_index`, so that numbers follow the output's
order."""

REDACTED = "redacted"
"""Used instead of an id in a wrapped signature: the block that it replaces has no readable text."""

UNSIGNED = ""
"""Used instead of the maker in a wrapped signature: reasoning that is not signed, and that no provider can look up."""

BOOKKEEPING = frozenset(
    {
        # identity and state of items and replies
        *("id", "object", "type", "role", "status", "phase", "created_at", "completed_at", "sequence_number"),
        *("obfuscation",),
        *("client_metadata", "internal_chat_message_metadata_passthrough", "stream_options", "include_obfuscation"),
        *("billing", "tool_usage", "end_turn", "caller", "created_by", "execution", "logprobs", "generate"),
        *("max_output_length",),  # of a shell, repeated beside its output
        # the cache, which changes what an answer costs and not what it contains
        *("prompt_cache_breakpoint", "prompt_cache_options", "prompt_cache_diagnostics", "prompt_cache_key"),
        *("prompt_cache_retention",),
    }
)
"""Fields of this API whose loss changes nothing that a reader sees."""

ECHOES = frozenset(
    {
        *("instructions", "metadata", "tools", "tool_choice", "parallel_tool_calls", "temperature", "top_p", "user"),
        *("max_output_tokens", "top_logprobs", "reasoning", "store", "include", "truncation", "background"),
        *("previous_response_id", "service_tier", "safety_identifier", "presence_penalty", "frequency_penalty"),
        *("max_tool_calls", "prompt", "conversation"),
        *("format", "verbosity"),  # the members of `text`
    }
)
"""Fields in which a reply repeats its request."""

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
"""The code in a failed reply for each of our codes; the rest are a `server_error`, after which clients retry."""

_ALIASES: Mapping[str, str] = {
    "bio_policy": "invalid_prompt",
    "data_residency_mismatch": "invalid_prompt",
    "misalignment_policy_violation": "content_policy_violation",
    "image_content_policy_violation": "content_policy_violation",
    "vector_store_timeout": "timeout_error",
}
"""Codes of this API, translated to the words that the classifier for all providers knows."""


def read_failure(error: Json) -> Fault:
    """The fault of an `error` object in a reply, or of an `error` frame."""
    holder = error if isinstance(error, dict) else {}
    text, code = word_of(holder, "message"), holder.get("code")
    if code == "cancelled":
        return cancellation_fault(text)
    word = None
    if isinstance(code, str):  # every other code about an image means that the request's image is unusable
        word = _ALIASES.get(code, "invalid_prompt" if "image" in code.split("_") else code)
    return provider_fault(
        0, text or "the provider failed and did not say why", words=(word, holder.get("type")), details=error
    )


def cancellation_fault(message: str = "") -> Fault:
    """The fault of a reply that was cancelled at the provider."""
    return Fault(Code.CANCELLED, message or "the reply was cancelled at the provider", hint="Send the request again.")


def write_failure(fault: Fault) -> JsonObject:
    """The `error` object of a failed reply."""
    return {"code": _CODES.get(fault.code, "server_error"), "message": fault.message}
