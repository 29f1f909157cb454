"""A provider's error as a `Fault`: its code by `fault_codes`, and the figures and the waiting time in its text.

A rate limit is not an overflow. Shrinking helps only a request that is itself too large, for the window or for the
rate; every other error must leave the user's history alone.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Final

from sightline.dialects.fault_codes import HINTS, NOT_FOUND, code_of, is_page
from sightline.errors import UNSTATED, Code, Fault, Numbers
from sightline.model.json import Json
from sightline.wire.retry_after import retry_after

_SCALES: Mapping[str, int] = {"k": 1_000, "m": 1_000_000}
_FIGURE = r"~?(?P<{}>\d{{1,3}}(?:,\d{{3}})+|\d{{1,12}}(?:\.\d{{1,3}})?)\s?(?P<{}_scale>[km](?![a-z]))?"

_SENTENCES: Final = (
    # Prompt and reply separately; neither is the sum
    r"exceed context limit: <a> \+ <b> > <limit>",
    r"is too large: <b>.{0,40}maximum context length is <limit> tokens and your request has <a> input",
    r"must be <= ?<limit>\. given: <a> `?inputs`? tokens and <b>",
    r"passed <a> input tokens and requested <b> output tokens.{0,60}context length is (?:only )?<limit>",
    r"context length is <limit> tokens\W.{0,20}requested <b> output tokens and your prompt contains "
    r"(?:at least )?<a> input",
    # The limit before the requested figure
    r"maximum (?:context|prompt|model) length (?:is|of) <limit>(?: tokens)?.{0,40}?"
    r"(?:requested(?: about)?|resulted in|(?:has|contains)) <requested>",
    r"limit of <limit> tokens.{0,20}resulted in <requested>",
    r"\blimit:? <limit>, (?:used:? [\d,.]+, )?requested:? <requested>",
    r"token limit:? <limit> \(requested:? <requested>",
    r"less than <limit> tokens\. given:? <requested>",
    # The requested figure before the limit
    r"too long: <requested> tokens > <limit> maximum",
    r"too long: <requested> tokens exceeds max context window of <limit>",
    r"too long: <requested>, model maximum context length: <limit>",
    r"limit exceeded: <requested> > <limit>",
    r"token count \(<requested>\) exceeds .{0,60}\(<limit>\)",
    r"token count of <requested> exceeds the limit of <limit>",
    r"token count is <requested> but .{0,40}supports up to <limit>",
    r"contains <requested> tokens.{0,60}too large for model with <limit>",
    r"\(<requested> tokens\) exceeds the available context size \(<limit>",
    r"\(<requested> tokens\) is too long and exceeds limit of <limit>",
    r"prompt_tokens \(<requested>\) must be less than max_seq_len \(<limit>",
    r"requested tokens \(<requested>\) exceed context window of <limit>",
    r"length is <requested> while limit is <limit>",
    r"input length <requested> exceeds context length <limit>",
    r"first <requested> tokens when .{0,80}context length of only <limit>",
    r"has <requested> tokens, but the configured context size is <limit>",
    # Only one of the two
    r"requested up to <requested> tokens, but can only afford <limit>",
    r"exceeded (?:max )?context length by <excess> tokens",
    r"rate limit .{0,60}\bof <limit> (?:input |output )?tokens per min",
    r"tokens per minute \(actual/limit\): [\d,]+/<limit>",
    r"token_count, limit: <limit>",
    r"on tokens per min\w*(?: \(tpm\))?[.:] limit:? <limit>",
    r"maximum (?:context|prompt|model) length (?:is|of) <limit>",
    r"context window of <limit>",
    r"range of input length should be \[\d, <limit>\]",
)
"""How providers state what was requested and what is allowed, with `<name>` in place of each figure."""


@cache
def _patterns() -> tuple[re.Pattern[str], ...]:
    """The sentences, compiled at the first error: that takes 20 milliseconds, and most commands see no error."""
    figured = (re.sub(r"<(\w+)>", lambda name: _FIGURE.format(name[1], name[1]), text) for text in _SENTENCES)
    return tuple(re.compile(text, re.IGNORECASE | re.DOTALL | re.ASCII) for text in figured)


def numbers_of(message: str, details: Json = None) -> Numbers:
    """The figures that the message or the error object states."""
    if isinstance(details, dict):
        # The names that llama.cpp has for them.
        stated = Numbers(limit=_whole(details.get("n_ctx")), requested=_whole(details.get("n_prompt_tokens")))
        if stated != UNSTATED:
            return _with_excess(stated)
    for sentence in _patterns():
        if match := sentence.search(message):
            return _with_excess(_read(match))
    return UNSTATED


def _read(match: re.Match[str]) -> Numbers:
    figures = {name: _figure(match, name) for name in match.groupdict() if not name.endswith("_scale")}
    if "a" in figures:
        return Numbers(limit=figures["limit"], requested=figures["a"] + figures["b"])
    return Numbers(limit=figures.get("limit"), requested=figures.get("requested"), excess=figures.get("excess"))


def _figure(match: re.Match[str], name: str) -> int:
    scale = _SCALES[match[f"{name}_scale"].lower()] if match[f"{name}_scale"] else 1
    return round(float(match[name].replace(",", "")) * scale)


def _whole(value: Json) -> int | None:
    return value if type(value) is int and value >= 0 else None


def _with_excess(stated: Numbers) -> Numbers:
    if stated.limit is None or stated.requested is None or stated.requested <= stated.limit:
        return stated
    return replace(stated, excess=stated.requested - stated.limit)


_PIECE = r"\d{1,9}(?:\.\d{1,12})?\s?(?:ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?)"
_AGAIN = re.compile(
    rf"(?:try again|retry|wait)\s+(?:(?:in|after|for|at least)\s+)?({_PIECE}(?:(?:\s|,|and)*{_PIECE}){{0,3}})(?![a-z])",
    re.IGNORECASE | re.ASCII,
)
_EACH = re.compile(r"(\d+(?:\.\d+)?)\s?([a-z]+)", re.IGNORECASE | re.ASCII)
_UNITS: Final = (("ms", 0.001), ("mil", 0.001), ("s", 1.0), ("m", 60.0), ("h", 3600.0), ("d", 86400.0))
_FIELDS: Final = ("retry_after", "resets_in_seconds")


def wait_of(message: str, headers: Mapping[str, str], details: Json = None) -> float | None:
    """The seconds to wait, or None if the error states no time.

    A header that names a time of day is compared with the response's own `date`; without that header it is ignored,
    because the provider's clock is not ours.
    """
    seconds = retry_after({name.lower(): value for name, value in headers.items()})
    if seconds is not None:
        return seconds
    if match := _AGAIN.search(message):
        # `7m12s`, `11.054s`, `28ms`, `1 hour and 5 minutes`: the sum of the pieces.
        total = 0.0
        for piece in _EACH.finditer(match[1]):
            unit = piece[2].lower()
            total += float(piece[1]) * next(scale for start, scale in _UNITS if unit.startswith(start))
        return round(total, 9)
    if isinstance(details, dict):
        for name in _FIELDS:
            value = details.get(name)
            if type(value) in (int, float) and isinstance(value, int | float) and 0 <= value < 1e9:
                return float(value)
    return None


_WRONG_ADDRESS: Final = "There is nothing at this address; check the provider's base_url, its path and its version."
_WEB_PAGE: Final = "This is a web page and not the API's answer; check base_url, and what stands between you and it."
_COUNTED: Final = frozenset({Code.CONTEXT_OVERFLOW, Code.REQUEST_TOO_LARGE_FOR_RATE, Code.RATE_LIMITED, Code.QUOTA})
"""The codes whose figures are the tokens of a whole request; for others a figure may be bytes or one option's value."""

_TITLE = re.compile(r"<title[^>]*>\s*(.{1,300}?)\s*</title>", re.IGNORECASE | re.DOTALL)
_READ: Final = 20_000
"""How many characters of an error's text are examined; what a provider has to say is at the beginning."""


def provider_fault(
    status: int,
    message: str,
    *,
    words: tuple[Json, ...] = (),
    details: Json = None,
    headers: Mapping[str, str] | None = None,
) -> Fault:
    """The fault for a provider's error. `words` are its own type and code, the most specific first."""
    known_words = tuple(word for word in words if isinstance(word, str))
    start = message[:_READ]
    numbers = numbers_of(start, details)
    code = code_of(status, start, known_words, numbers)
    if status < 400 and NOT_FOUND & set(known_words):
        status = 404  # reported in an error that has no status of its own
    return Fault(
        code,
        _readable_message(message) or f"the provider answered with status {status} and no message",
        hint=_hint(code, status, start),
        status=status,
        retry_after=wait_of(start, headers or {}, details),
        details=details,
        numbers=numbers if code in _COUNTED else UNSTATED,
    )


def reclassify(fault: Fault, code: Code) -> None:
    """Give a fault another code, and the hint of that code."""
    fault.code = code
    fault.hint = HINTS[code]


def _readable_message(message: str) -> str:
    """The provider's message; for a web page, its title."""
    title = _TITLE.search(message, 0, _READ) if is_page(message) else None
    return message if title is None else f"{' '.join(title[1].split())} (a web page)"


def _hint(code: Code, status: int, message: str) -> str:
    if is_page(message) and code in (Code.INVALID_REQUEST, Code.PERMISSION):
        return _WEB_PAGE
    if status in (404, 405) and code is Code.INVALID_REQUEST:
        return _WRONG_ADDRESS
    return HINTS[code]
