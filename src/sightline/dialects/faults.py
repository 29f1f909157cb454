"""Provider errors told apart: what a provider said becomes a `Fault`, and a fault gets the status that a client sees.

A rate limit is not an overflow. Only a request that is itself too large, for the window or for the rate, can be helped
by making it smaller; everything else must leave a person's history alone. The classifier is `fault_words`, the figures
are read by `fault_numbers`, the wait by `fault_waits`.
"""

import re
from collections.abc import Mapping
from typing import Final

from sightline.dialects.fault_codes import NOT_FOUND, code_of, is_page
from sightline.dialects.fault_numbers import numbers_of
from sightline.dialects.fault_retry import wait_of
from sightline.errors import UNSTATED, Code, Fault
from sightline.model.json import Json

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
    Code.CONFIG: 400,
    Code.LOCAL_UNAVAILABLE: 503,
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
    Code.UPSTREAM_PROTOCOL: "The answer is not one of this API; check base_url and dialect, and look at what came.",
    Code.TIMEOUT_IDLE: "The provider stopped answering; send it again or raise the idle timeout.",
    Code.NETWORK: "Check the network, the proxy and the provider's base_url.",
    Code.CANCELLED: "Send the request again if it is still wanted.",
    Code.TRANSLATION_LOSS: "Change the input, choose another target, or do without strict.",
    Code.USAGE: "See the command's --help.",
    Code.CONFIG: "Correct sightline.toml at the named place; `sightline config check` shows all that is wrong with it.",
    Code.LOCAL_UNAVAILABLE: "Run `sightline doctor`, or use a provider that you have a key for.",
}
"""What a person can do about a fault of this code."""

_WRONG_ADDRESS: Final = "There is nothing at this address; check the provider's base_url, its path and its version."
_WEB_PAGE: Final = "This is a web page and not the API's answer; check base_url, and what stands between you and it."
_COUNTED: Final = frozenset({Code.CONTEXT_OVERFLOW, Code.REQUEST_TOO_LARGE_FOR_RATE, Code.RATE_LIMITED, Code.QUOTA})
"""The codes whose figures are the tokens of a whole request; elsewhere a figure may be bytes, or one option's value."""

_TITLE = re.compile(r"<title[^>]*>\s*(.{1,300}?)\s*</title>", re.IGNORECASE | re.DOTALL)
_READ: Final = 20_000
"""So much of an error's text is looked at; what a provider has to say stands at its beginning."""


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
    said = message[:_READ]
    numbers = numbers_of(said, details)
    code = code_of(status, said, told, numbers)
    if status < 400 and NOT_FOUND & set(told):
        status = 404  # said in an error that came without a status of its own
    return Fault(
        code,
        _readable_message(message) or f"the provider answered with status {status} and no message",
        hint=_hint(code, status, said),
        status=status,
        retry_after=wait_of(said, headers or {}, details),
        details=details,
        numbers=numbers if code in _COUNTED else UNSTATED,
    )


def status_of(fault: Fault) -> int:
    """The status that a client gets: the provider's own where it told one, else the code's."""
    if fault.code is Code.CONTEXT_OVERFLOW:
        return STATUS[fault.code]
    if fault.status is not None and fault.status >= 400:
        return fault.status
    return STATUS[fault.code]


def _readable_message(message: str) -> str:
    """The provider's words, of a web page its title."""
    title = _TITLE.search(message, 0, _READ) if is_page(message) else None
    return message if title is None else f"{' '.join(title[1].split())} (a web page)"


def _hint(code: Code, status: int, message: str) -> str:
    if is_page(message) and code in (Code.INVALID_REQUEST, Code.PERMISSION):
        return _WEB_PAGE
    if status in (404, 405) and code is Code.INVALID_REQUEST:
        return _WRONG_ADDRESS
    return HINTS[code]
