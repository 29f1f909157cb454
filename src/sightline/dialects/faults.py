"""Provider errors told apart: one classifier from status, type, code and words to a `Code`, and the way back.

A rate limit is not an overflow. Only a request that is itself too large, for the window or for the rate, can be helped
by making it smaller; everything else must leave a person's history alone.
"""

import re
from collections.abc import Mapping

from sightline.errors import Code, Fault
from sightline.model.json import Json

_OVERFLOW = re.compile(
    r"context[ _-]?(?:length|window)|maximum context|prompt is too long|input is too long|too many (?:input )?tokens"
    r"|input token count .{0,80}exceeds|exceeds? the (?:maximum )?(?:number of tokens|token limit|context)"
    r"|reduce the length of the (?:messages|prompt|input)",
    re.IGNORECASE | re.DOTALL,
)
_TOO_LARGE_FOR_RATE = re.compile(
    r"request too large|requested \d+.{0,40}(?:tpm|tokens per min)", re.IGNORECASE | re.DOTALL
)
_QUOTA = re.compile(r"insufficient_quota|credit balance|billing|usage_limit_reached|usage_not_included", re.IGNORECASE)
_FILTERED = re.compile(
    r"content_filter|content management policy|content_policy|safety system|blocked by", re.IGNORECASE
)
_NOT_FOUND = frozenset({"not_found_error", "NOT_FOUND"})
_MODEL = re.compile(r"\bmodels?\b|deployment", re.IGNORECASE)
_TRY_AGAIN = re.compile(
    r"(?:try again|retry) (?:in|after)\s*(\d+(?:\.\d+)?)\s*(ms|milliseconds?|s|seconds?|m|minutes?)\b", re.IGNORECASE
)

_BY_WORD: Mapping[str, Code] = {
    **{code.value: code for code in Code},
    "context_length_exceeded": Code.CONTEXT_OVERFLOW,
    "model_context_window_exceeded": Code.CONTEXT_OVERFLOW,
    "insufficient_quota": Code.QUOTA,
    "billing_error": Code.QUOTA,
    "rate_limit_exceeded": Code.RATE_LIMITED,
    "rate_limit_error": Code.RATE_LIMITED,
    "RESOURCE_EXHAUSTED": Code.RATE_LIMITED,
    "authentication_error": Code.AUTH,
    "invalid_api_key": Code.AUTH,
    "UNAUTHENTICATED": Code.AUTH,
    "permission_error": Code.PERMISSION,
    "PERMISSION_DENIED": Code.PERMISSION,
    "model_not_found": Code.MODEL_UNKNOWN,
    "request_too_large": Code.REQUEST_TOO_LARGE,
    "overloaded_error": Code.OVERLOADED,
    "server_is_overloaded": Code.OVERLOADED,
    "slow_down": Code.OVERLOADED,
    "UNAVAILABLE": Code.OVERLOADED,
    "timeout_error": Code.TIMEOUT_IDLE,
    "DEADLINE_EXCEEDED": Code.TIMEOUT_IDLE,
    "content_filter": Code.CONTENT_FILTERED,
    "content_policy_violation": Code.CONTENT_FILTERED,
    "cyber_policy": Code.CONTENT_FILTERED,
    "invalid_request_error": Code.INVALID_REQUEST,
    "invalid_prompt": Code.INVALID_REQUEST,
    "INVALID_ARGUMENT": Code.INVALID_REQUEST,
    "FAILED_PRECONDITION": Code.INVALID_REQUEST,
    "api_error": Code.UPSTREAM_ERROR,
    "server_error": Code.UPSTREAM_ERROR,
    "INTERNAL": Code.UPSTREAM_ERROR,
}

_BY_STATUS: Mapping[int, Code] = {
    401: Code.AUTH,
    402: Code.QUOTA,
    403: Code.PERMISSION,
    408: Code.TIMEOUT_IDLE,
    413: Code.REQUEST_TOO_LARGE,
    429: Code.RATE_LIMITED,
    503: Code.OVERLOADED,
    504: Code.TIMEOUT_IDLE,
    529: Code.OVERLOADED,
}

STATUS: Mapping[Code, int] = {
    Code.INVALID_REQUEST: 400,
    Code.AUTH: 401,
    Code.PERMISSION: 403,
    Code.MODEL_UNKNOWN: 404,
    Code.CONTEXT_OVERFLOW: 400,
    Code.REQUEST_TOO_LARGE: 413,
    Code.REQUEST_TOO_LARGE_FOR_RATE: 429,
    Code.RATE_LIMITED: 429,
    Code.QUOTA: 429,
    Code.CONTENT_FILTERED: 400,
    Code.OVERLOADED: 503,
    Code.UPSTREAM_ERROR: 502,
    Code.UPSTREAM_PROTOCOL: 502,
    Code.TIMEOUT_IDLE: 504,
    Code.NETWORK: 502,
    Code.CANCELLED: 499,
    Code.TRANSLATION_LOSS: 400,
    Code.USAGE: 400,
}
"""The HTTP status of a fault that has none of its own."""

HINTS: Mapping[Code, str] = {
    Code.INVALID_REQUEST: "Change the request as the message says; sending it again unchanged cannot help.",
    Code.AUTH: "Check the API key and that it belongs to this provider.",
    Code.PERMISSION: "The key is valid but may not do this; check its project, region and model access.",
    Code.MODEL_UNKNOWN: "Check the model's name and that the key may use it.",
    Code.CONTEXT_OVERFLOW: "Remove messages or parts until the prompt and the reply fit the model's window.",
    Code.REQUEST_TOO_LARGE: "The body is larger than the provider takes; remove or shrink attachments.",
    Code.REQUEST_TOO_LARGE_FOR_RATE: "This request alone exceeds the tokens per minute; shrink it or raise the limit.",
    Code.RATE_LIMITED: "Wait and send it again; the history is not the cause.",
    Code.QUOTA: "The account has no quota left; check plan and billing. Waiting does not help.",
    Code.CONTENT_FILTERED: "The provider's filter refused it; change the flagged content.",
    Code.OVERLOADED: "The provider is overloaded; send it again later.",
    Code.UPSTREAM_ERROR: "The provider failed; send it again.",
    Code.TIMEOUT_IDLE: "The provider stopped answering; send it again or raise the idle timeout.",
}


def provider_fault(
    status: int,
    message: str,
    *,
    words: tuple[Json, ...] = (),
    details: Json = None,
    headers: Mapping[str, str] | None = None,
) -> Fault:
    """The fault that a provider's error amounts to. `words` are its own type and code, the most telling first."""
    told = tuple(word for word in words if isinstance(word, str))
    code = _classified(status, message, told)
    if status < 400 and _NOT_FOUND & set(told):
        status = 404  # said in an error that came without a status of its own
    return Fault(
        code,
        message or f"the provider answered with status {status} and no message",
        hint=HINTS.get(code, ""),
        status=status,
        retry_after=_retry_after(message, headers or {}),
        details=details,
    )


def status_of(fault: Fault) -> int:
    """The status that a client gets: the provider's own where it told one, else the code's."""
    if fault.code is Code.CONTEXT_OVERFLOW:
        return STATUS[fault.code]
    if fault.status is not None and fault.status >= 400:
        return fault.status
    return STATUS[fault.code]


def _classified(status: int, message: str, words: tuple[str, ...]) -> Code:
    told = " ".join((*words, message))
    if _QUOTA.search(told):
        return Code.QUOTA
    if _TOO_LARGE_FOR_RATE.search(message) and status in (0, 200, 413, 429):
        return Code.REQUEST_TOO_LARGE_FOR_RATE
    if status != 429 and (status < 500 or status == 0) and _OVERFLOW.search(told):
        return Code.CONTEXT_OVERFLOW
    if status in (0, 200, 400, 403) and _FILTERED.search(told):
        return Code.CONTENT_FILTERED
    for word in words:
        if word in _BY_WORD and (_BY_WORD[word] is not Code.INVALID_REQUEST or status in (0, 200, 400, 422)):
            return _BY_WORD[word]
    if status == 404 or _NOT_FOUND & set(words):
        return Code.MODEL_UNKNOWN if _MODEL.search(message) else Code.INVALID_REQUEST
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    return Code.INVALID_REQUEST if 400 <= status < 500 else Code.UPSTREAM_ERROR


def _retry_after(message: str, headers: Mapping[str, str]) -> float | None:
    lowered = {name.lower(): value for name, value in headers.items()}
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        value = lowered.get(name, "")
        if value.replace(".", "", 1).isdigit():
            return float(value) / unit
    match = _TRY_AGAIN.search(message)
    if match is None:
        return None
    unit_word = match[2].lower()
    scale = 0.001 if unit_word.startswith(("ms", "milli")) else 60.0 if unit_word.startswith("m") else 1.0
    return float(match[1]) * scale
