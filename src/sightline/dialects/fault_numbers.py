"""What an error states in tokens: the limit, what was asked for, and by how much that is too much.

Providers put the figures into sentences, each into its own; a few put them into fields. Nothing is guessed: a figure
that is not stated is None, except the excess, which follows from the other two.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from sightline.errors import UNSTATED, Numbers
from sightline.model.json import Json

_SCALES: Mapping[str, int] = {"k": 1_000, "m": 1_000_000}
_FIGURE = r"~?(?P<{}>\d{{1,3}}(?:,\d{{3}})+|\d{{1,12}}(?:\.\d{{1,3}})?)\s?(?P<{}_scale>[km](?![a-z]))?"


def _compile_sentence(text: str) -> re.Pattern[str]:
    """A sentence with `<name>` where a figure stands."""
    figured = re.sub(r"<(\w+)>", lambda name: _FIGURE.format(name[1], name[1]), text)
    return re.compile(figured, re.IGNORECASE | re.DOTALL | re.ASCII)


_SENTENCES: Final = tuple(
    _compile_sentence(text)
    for text in (
        # The prompt and the reply apart, neither of which is the sum
        r"exceed context limit: <a> \+ <b> > <limit>",
        r"is too large: <b>.{0,40}maximum context length is <limit> tokens and your request has <a> input",
        r"must be <= ?<limit>\. given: <a> `?inputs`? tokens and <b>",
        r"passed <a> input tokens and requested <b> output tokens.{0,60}context length is (?:only )?<limit>",
        r"context length is <limit> tokens\W.{0,20}requested <b> output tokens and your prompt contains "
        r"(?:at least )?<a> input",
        # The limit before what was asked for
        r"maximum (?:context|prompt|model) length (?:is|of) <limit>(?: tokens)?.{0,40}?"
        r"(?:requested(?: about)?|resulted in|(?:has|contains)) <requested>",
        r"limit of <limit> tokens.{0,20}resulted in <requested>",
        r"\blimit:? <limit>, (?:used:? [\d,.]+, )?requested:? <requested>",
        r"token limit:? <limit> \(requested:? <requested>",
        r"less than <limit> tokens\. given:? <requested>",
        # What was asked for before the limit
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
        # One of them alone
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
)

_FIELDS: Final = (("n_ctx", "n_prompt_tokens"),)
"""The limit and what was asked for, where a body has fields for them."""


def numbers_of(message: str, details: Json = None) -> Numbers:
    """What the words and the error object state."""
    if isinstance(details, dict):
        for limit, requested in _FIELDS:
            stated = Numbers(limit=_whole(details.get(limit)), requested=_whole(details.get(requested)))
            if stated != UNSTATED:
                return _with_excess(stated)
    for sentence in _SENTENCES:
        if match := sentence.search(message):
            return _with_excess(_read(match))
    return UNSTATED


def _read(match: re.Match[str]) -> Numbers:
    figures = {name: _figure(match, name) for name in match.groupdict() if not name.endswith("_scale")}
    if "a" in figures:
        return Numbers(limit=figures["limit"], requested=figures["a"] + figures["b"])
    return Numbers(
        limit=figures.get("limit"),
        requested=figures.get("requested"),
        excess=figures.get("excess"),
    )


def _figure(match: re.Match[str], name: str) -> int:
    scale = _SCALES[match[f"{name}_scale"].lower()] if match[f"{name}_scale"] else 1
    return round(float(match[name].replace(",", "")) * scale)


def _whole(value: Json) -> int | None:
    return value if type(value) is int and value >= 0 else None


def _with_excess(stated: Numbers) -> Numbers:
    if stated.limit is None or stated.requested is None or stated.requested <= stated.limit:
        return stated
    return replace(stated, excess=stated.requested - stated.limit)
