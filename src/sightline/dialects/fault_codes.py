"""Error codes: the status and the hint of each, and one classifier for all providers, which derives a `Code` from an
error's status, the provider's own words for it and its message.

The status is trusted first, because a message may repeat what a user wrote: no message turns a 401, a 402, a 429 or a
5xx into an overflow. Next come the provider's own type and code. The message decides if those two leave the code open,
mostly for status 400. URLs are ignored, since a link to a billing page says nothing about a bill.
"""

import re
from collections.abc import Mapping
from typing import Final

from sightline.errors import Code, Fault, Numbers

_FACTS: Mapping[Code, tuple[int, str]] = {
    Code.INVALID_REQUEST: (400, "Change the request as the message says; sending it again unchanged cannot help."),
    Code.AUTH: (401, "Check the API key and that it belongs to this provider."),
    Code.PERMISSION: (403, "The key is valid but may not do this; check its project, region and model access."),
    Code.MODEL_UNKNOWN: (404, "Check the model's name and that the key may use it."),
    Code.CONTEXT_OVERFLOW: (400, "Remove messages or parts until the prompt and the reply fit the model's window."),
    Code.REQUEST_TOO_LARGE: (413, "The body is larger than the provider takes; remove or shrink attachments."),
    Code.REQUEST_TOO_LARGE_FOR_RATE: (
        429,
        "This request alone exceeds the tokens per minute; shrink it or raise the limit.",
    ),
    Code.RATE_LIMITED: (429, "Wait and send it again; the history is not the cause."),
    Code.QUOTA: (429, "The account has no quota left; check plan and billing. Waiting does not help."),
    Code.CAP_REACHED: (400, "A cap of this gateway is reached; have it raised, or wait until its window ends."),
    Code.CONTENT_FILTERED: (400, "The provider's filter refused it; change the flagged content."),
    Code.OVERLOADED: (503, "The provider is overloaded; send it again later."),
    Code.UPSTREAM_ERROR: (502, "The provider failed; send it again."),
    Code.UPSTREAM_PROTOCOL: (
        502,
        "The answer is not one of this API; check base_url and dialect, and look at what came.",
    ),
    Code.TIMEOUT_IDLE: (504, "The provider stopped answering; send it again or raise the idle timeout."),
    Code.NETWORK: (502, "Check the network, the proxy and the provider's base_url."),
    Code.CANCELLED: (499, "Send the request again if it is still wanted."),
    Code.TRANSLATION_LOSS: (400, "Change the input, choose another target, or do without strict."),
    Code.USAGE: (400, "See the command's --help."),
    Code.CONFIG: (
        400,
        "Correct sightline.toml at the named place; `sightline config check` shows all that is wrong with it.",
    ),
    Code.LOCAL_UNAVAILABLE: (503, "Run `sightline doctor`, or use a provider that you have a key for."),
}
STATUS: Mapping[Code, int] = {code: status for code, (status, _) in _FACTS.items()}
"""The HTTP status of a fault that has no status of its own."""

HINTS: Mapping[Code, str] = {code: hint for code, (_, hint) in _FACTS.items()}
"""What a user can do about a fault with this code."""


def status_of(fault: Fault) -> int:
    """The status that a client gets: the provider's if it gave one, otherwise the code's."""
    if fault.code is not Code.CONTEXT_OVERFLOW and fault.status is not None and fault.status >= 400:
        return fault.status
    return STATUS[fault.code]


def _any_phrase(*phrases: str) -> re.Pattern[str]:
    return re.compile("|".join(phrases), re.IGNORECASE | re.DOTALL)


_LINK = re.compile(r"https?://\S+", re.IGNORECASE)
_PAGE = re.compile(r"\s*<(?:!doctype|html|head|body|\?xml)", re.IGNORECASE)

_OVERFLOW = _any_phrase(
    r"context[ _-]?(?:length|window|size|limit)",
    r"maximum (?:context|prompt)\b",
    r"context too long",
    r"\b(?:prompt|input)(?: \([^)]{0,40}\))? (?:is |was )?too long\b",
    r"too many (?:input |prompt )?tokens",
    r"(?:input|prompt) token count .{0,80}(?:exceeds|only supports)",
    r"range of input length should be",
    r"input tokens? exceed",
    r"exceed\w* (?:the |your |model |max(?:imum)? |available ){1,3}(?:number of tokens|token limit|context)",
    r"reduce (?:the length of )?(?:the|your|either) (?:messages|prompt|input|one)\b",
    r"length of prompt_tokens",
    r"must have less than \d+ tokens",
    r"\btokens \+ `?max_new_tokens",
)
_REQUEST_TOO_LARGE = _any_phrase(r"request too large")
_OVERSIZED = _any_phrase(r"request too large", r"too large for\b")
"""Phrases about size that do not state its unit."""

_OPTION = _any_phrase(
    r"(?:unknown|unrecogni[sz]ed|unsupported|unexpected) (?:request )?(?:parameter|field|name|option|argument|keyword)",
    r"extra inputs are not permitted",
    r"\bmax_(?:completion_|output_|new_)?tokens\b.{0,12} too large for\b",
)
"""An option was refused, whatever its name or value looks like."""

_BYTES = _any_phrase(r"\bbytes\b", r"\d ?[kmg]i?b\b", r"\bpixels?\b", r"\bimages?\b", r"\bfiles?\b", r"\bdocuments?\b")
_BODY = _any_phrase(
    r"request (?:entity|payload|body)(?: size)? .{0,40}(?:too large|exceed)",
    r"request entity too large",
    r"payload (?:size exceeds|too large)",
    r"maximum (?:request |body |request body |payload )size",
)
_PER_TIME = _any_phrase(r"tokens? per (?:min|day)", r"\b(?:tpm|itpm|otpm|tpd)\b")
_QUOTA = _any_phrase(
    r"exceeded your \w* ?quota",
    r"insufficient[ _](?:quota|balance|credits?|funds)",
    r"credit balance",
    r"\bbilling (?:hard )?limit",
    r"\bbilling details",
    r"plans? (?:&|and) billing",
    r"\bout of (?:credits|funds)",
    r"(?:requires|purchase|add) more credits",
    r"more credits\b",
    r"\bspending limit",
    r"reached your (?:\w+ ){0,3}usage limit",
    r"key limit exceeded",
)
_FILTERED = _any_phrase(
    r"content[ _]filter",
    r"content management policy",
    r"content[ _]policy",
    r"content exists risk",
    r"\bsafety (?:system|filter|settings)",
    r"\bflagged (?:as|for|by)\b",
    r"\bmoderation\b",
    r"\busage polic(?:y|ies)",
    r"blocked by (?:\w+ ){0,4}(?:filter|safety|content|policy|policies|guardrails?|moderation)",
    r"prohibited[ _]content",
)
_KEY = _any_phrase(
    r"(?:incorrect|invalid|missing|expired|wrong|no) (?:x-)?api[ -]?key",
    r"api[ -]?key (?:is )?(?:not (?:valid|found)|invalid|expired|missing|required)",
    r"authentication fail",
    r"\bunauthori[sz]ed\b",
)
_REGION = _any_phrase(
    r"location is not supported",
    r"country, region, or territory not supported",
    r"not available in your (?:country|region)",
)
_NO_MODEL = _any_phrase(
    r"\bmodels?\b.{0,120}?(?:does not exist|not exist|not found|decommissioned|no longer (?:supported|available))",
    r"\binvalid model\b",
    r"not a valid model",
    r"no endpoints found for",
)
_MODEL = _any_phrase(r"\bmodels?\b", r"\bdeployment\b", r"no endpoints found for")
_ADDRESS = _any_phrase(
    r"invalid url", r"page not found", r"no route", r"cannot (?:post|get)\b", r"unknown (?:request )?url"
)
_BUSY = _any_phrase(
    r"\boverloaded\b",
    r"\b(?:at|over|out of) capacity",
    r"capacity exceeded",
    r"high demand",
    r"\btoo busy\b",
    r"server (?:is )?busy",
    r"pending requests",
    r"loading model",
    r"\bslots? (?:is )?unavailable",
    r"no (?:free |available )?slots?\b",
)
_RATE = _any_phrase(r"\brate[ _-]limit", r"too many requests")

NOT_FOUND: Final = frozenset({"not_found_error", "NOT_FOUND", "NotFoundError", "not_found"})
"""The words by which APIs report that something is missing, whether a model or the URL."""

_WORDS: Mapping[Code, tuple[str, ...]] = {
    Code.CONTEXT_OVERFLOW: ("context_length_exceeded", "model_context_window_exceeded", "exceed_context_size_error"),
    Code.QUOTA: (
        *("insufficient_quota", "billing_error", "billing_hard_limit_reached", "credit_limit", "usage_limit_reached"),
        "usage_not_included",
    ),
    Code.RATE_LIMITED: ("rate_limit_exceeded", "rate_limit_error", "too_many_requests", "throttling_error"),
    Code.AUTH: ("authentication_error", "invalid_api_key", "UNAUTHENTICATED", "Unauthorized"),
    Code.PERMISSION: (
        *("permission_error", "PERMISSION_DENIED", "insufficient_permissions", "request_forbidden"),
        "unsupported_country_region_territory",
    ),
    Code.MODEL_UNKNOWN: ("model_not_found", "model_decommissioned", "invalid_model", "DeploymentNotFound"),
    Code.OVERLOADED: (
        *("overloaded_error", "server_is_overloaded", "slow_down", "capacity_exceeded", "unavailable_error"),
        *("service_unavailable", "service_unavailable_error", "UNAVAILABLE"),
    ),
    Code.TIMEOUT_IDLE: ("timeout_error", "DEADLINE_EXCEEDED"),
    Code.CONTENT_FILTERED: (
        *("content_filter", "content_policy_violation", "cyber_policy", "data_inspection_failed"),
        "ResponsibleAIPolicyViolation",
    ),
    Code.INVALID_REQUEST: (
        *("invalid_request_error", "invalid_prompt", "not_supported_error", "BadRequestError", "INVALID_ARGUMENT"),
        "FAILED_PRECONDITION",
    ),
    Code.UPSTREAM_ERROR: (
        *("api_error", "server_error", "internal_error", "internal_server_error", "InternalServerError", "INTERNAL"),
    ),
    Code.CANCELLED: ("CANCELLED",),
}
"""The names that APIs give an error in its type, its code or its status, besides our own codes."""
_BY_WORD: Mapping[str, Code] = {
    **{code.value: code for code in Code},
    **{word: code for code, words in _WORDS.items() for word in words},
}
_VAGUE: Final = frozenset({Code.INVALID_REQUEST, Code.UPSTREAM_ERROR})
"""The codes of the general words that APIs use if they have none for the case."""

_BY_STATUS: Mapping[int, Code] = {
    401: Code.AUTH,
    402: Code.QUOTA,
    408: Code.TIMEOUT_IDLE,
    498: Code.OVERLOADED,
    499: Code.CANCELLED,
    501: Code.INVALID_REQUEST,
    503: Code.OVERLOADED,
    504: Code.TIMEOUT_IDLE,
    529: Code.OVERLOADED,
}
_IMPLIED: Mapping[Code, int] = {
    Code.AUTH: 401,
    Code.PERMISSION: 403,
    Code.RATE_LIMITED: 429,
    Code.OVERLOADED: 503,
    Code.TIMEOUT_IDLE: 504,
}
"""The status that a word implies if an error has none, as in a stream."""


def is_page(message: str) -> bool:
    """Whether this is a web page, and so was not written by the API but by something in front of it."""
    return _PAGE.match(message) is not None


def code_of(status: int, message: str, words: tuple[str, ...], numbers: Numbers) -> Code:
    """The code of an error. `words` are the provider's own type and code, `numbers` the figures in its message."""
    text = "" if is_page(message) else _LINK.sub("", message)
    own = tuple(_BY_WORD[word] for word in words if word in _BY_WORD)
    if status < 400:
        status = next((_IMPLIED[code] for code in own if code in _IMPLIED), 404 if NOT_FOUND & set(words) else 0)
    decisive = next((code for code in own if code not in _VAGUE), None)
    if status in (401, 402):
        return _BY_STATUS[status]
    if status == 403:
        return _code_of_403(text, decisive)
    if status == 404:
        return decisive or _code_of_404(text)
    if status == 413:
        if decisive is Code.CONTEXT_OVERFLOW:
            return decisive
        if _PER_TIME.search(text):
            return Code.REQUEST_TOO_LARGE_FOR_RATE
        is_counted = _OVERSIZED.search(text) and re.search(r"\btokens?\b", text, re.IGNORECASE)
        return Code.CONTEXT_OVERFLOW if is_counted or _OVERFLOW.search(text) else Code.REQUEST_TOO_LARGE
    if status == 429:
        # A 429 is a rate limit unless it is about money, or states that this one request is larger than the rate.
        is_larger = numbers.excess is not None or _OVERSIZED.search(text)
        if _REQUEST_TOO_LARGE.search(text) or (is_larger and _PER_TIME.search(text)):
            return Code.REQUEST_TOO_LARGE_FOR_RATE
        if decisive is None and _QUOTA.search(text):
            return Code.QUOTA
        return decisive or Code.RATE_LIMITED
    if status in _BY_STATUS or status >= 500:
        return _server_error_code(status, text, decisive)
    return decisive or _bad_request_code(text) or _code_of_unclear(status, text, words)


def _code_of_403(message: str, decisive: Code | None) -> Code:
    if decisive is None or decisive is Code.PERMISSION:
        if _FILTERED.search(message):
            return Code.CONTENT_FILTERED
        if _QUOTA.search(message):
            return Code.QUOTA
    return decisive or Code.PERMISSION


def _code_of_404(message: str) -> Code:
    return Code.MODEL_UNKNOWN if _MODEL.search(message) and not _ADDRESS.search(message) else Code.INVALID_REQUEST


def _server_error_code(status: int, message: str, decisive: Code | None) -> Code:
    busy = Code.OVERLOADED if _BUSY.search(message) else Code.UPSTREAM_ERROR
    return decisive or _BY_STATUS.get(status, busy)


def _bad_request_code(message: str) -> Code | None:
    """The code that the message of a 400 suggests, the most specific phrases first; None if it suggests none."""
    if _OVERSIZED.search(message) and _PER_TIME.search(message):
        return Code.REQUEST_TOO_LARGE_FOR_RATE
    for phrases, code in (
        (_QUOTA, Code.QUOTA),
        (_KEY, Code.AUTH),
        (_REGION, Code.PERMISSION),
        (_OPTION, Code.INVALID_REQUEST),
        (_BODY, Code.REQUEST_TOO_LARGE),
        (_OVERFLOW, Code.CONTEXT_OVERFLOW),
        (_FILTERED, Code.CONTENT_FILTERED),
        (_NO_MODEL, Code.MODEL_UNKNOWN),
    ):
        if phrases.search(message):
            return code
    return Code.CONTEXT_OVERFLOW if _OVERSIZED.search(message) and not _BYTES.search(message) else None


def _code_of_unclear(status: int, message: str, words: tuple[str, ...]) -> Code:
    """The code for an error that neither its status nor specific words decide. Phrases about load are believed only if
    the provider gave no word of its own: it would have one for that."""
    if status >= 400:
        return Code.INVALID_REQUEST
    if words:
        return next((_BY_WORD[word] for word in words if word in _BY_WORD), Code.UPSTREAM_ERROR)
    if _RATE.search(message):
        return Code.RATE_LIMITED
    return Code.OVERLOADED if _BUSY.search(message) else Code.UPSTREAM_ERROR
