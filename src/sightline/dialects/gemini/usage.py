"""Token counts in both directions: thoughts are counted beside the candidates there, and within the output here."""

from sightline.dialects.fields import opt_int, rest
from sightline.dialects.gemini.field_names import both, either, spelling_of
from sightline.model.json import JsonObject
from sightline.model.report import Report
from sightline.model.usage import Usage

_TOOL_USE = "toolUsePromptTokenCount"
_KNOWN = both(
    "promptTokenCount", "candidatesTokenCount", "thoughtsTokenCount", "cachedContentTokenCount", "totalTokenCount"
)


def read_usage(counts: JsonObject, at: str) -> Usage:
    """The counts our way. The total is derived; the share of tool use stays beside the prompt that it is added to."""
    thoughts = _count(counts, "thoughtsTokenCount", at)
    return Usage(
        input_tokens=_sum(_count(counts, "promptTokenCount", at), _count(counts, _TOOL_USE, at)),
        output_tokens=_sum(_count(counts, "candidatesTokenCount", at), thoughts),
        cached_tokens=_count(counts, "cachedContentTokenCount", at),
        reasoning_tokens=thoughts,
        at=at,
        extras=rest(counts, _KNOWN),
    )


def write_usage(usage: Usage, report: Report) -> JsonObject:
    """The counts as the API gives them."""
    counts: JsonObject = {}
    shares = either(usage.extras, _TOOL_USE)
    tool_use = shares if type(shares) is int else 0
    thoughts = usage.reasoning_tokens
    if usage.input_tokens is not None:
        counts["promptTokenCount"] = usage.input_tokens - tool_use
    if usage.cached_tokens is not None:
        counts["cachedContentTokenCount"] = usage.cached_tokens
    if usage.output_tokens is not None:
        counts["candidatesTokenCount"] = usage.output_tokens - (thoughts or 0)
    if tool_use:
        counts[_TOOL_USE] = tool_use
    if thoughts is not None:
        counts["thoughtsTokenCount"] = thoughts
    if usage.cache_write_tokens:
        report.lose(usage.at, "tokens written to the cache", "gemini does not count them", "identity")
    if usage.input_tokens is not None or usage.output_tokens is not None:
        counts["totalTokenCount"] = (usage.input_tokens or 0) + (usage.output_tokens or 0)
    return counts


def _count(counts: JsonObject, name: str, at: str) -> int | None:
    value = counts.get(name)
    return value if type(value) is int else opt_int(counts, spelling_of(counts, name), at)


def _sum(first: int | None, second: int | None) -> int | None:
    if first is None:
        return second
    return first if second is None else first + second
