"""Reads and writes token counts. The API counts cache reads and writes beside `input_tokens`; we include them."""

from sightline.dialects.fields import compact, object_at, objects_in, opt_int, opt_object, rest
from sightline.model.json import Json, JsonObject
from sightline.model.reply import Usage, unusual

_COUNTS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
# Writing a token to the cache for an hour costs twice an input token, for five minutes 1.25 times; a cost that ignores
# the difference is wrong (ccusage#1349, litellm#11364).
_MINUTES, _HOUR = "ephemeral_5m_input_tokens", "ephemeral_1h_input_tokens"
_KNOWN = frozenset({*_COUNTS, "output_tokens", "output_tokens_details"})
_OWN = frozenset({"cache_creation", "iterations", "server_tool_use", "service_tier", "inference_geo", "speed"})
"""Counts and marks that only this API has, so that their names show where they come from."""


class Counter:
    """Adds up the `usage` objects of one reply: one in a body, several with running totals in a stream."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._compacted: dict[str, int] = {}

    def read(self, usage: JsonObject, at: str) -> Usage:
        """The totals so far, with the details of this object."""
        for name in (*_COUNTS, "output_tokens"):
            count = opt_int(usage, name, at)
            if count is not None:
                self._counts[name] = count
        details = opt_object(usage, "output_tokens_details", at) or {}
        thinking = opt_int(details, "thinking_tokens", f"{at}/output_tokens_details")
        if thinking is not None:
            self._counts["thinking_tokens"] = thinking
        finer = rest(details, frozenset({"thinking_tokens"}))
        self._read_writes(usage.get("cache_creation"))
        counts = self._counts
        if usage.get("iterations") is not None:
            self._compacted = _count_compactions(usage["iterations"])
        if self._compacted:
            counts = counts | {name: counts.get(name, 0) + count for name, count in self._compacted.items()}
        return Usage(
            input_tokens=sum(counts.get(name, 0) for name in _COUNTS) if "input_tokens" in counts else None,
            output_tokens=counts.get("output_tokens"),
            cached_tokens=counts.get("cache_read_input_tokens"),
            cache_write_tokens=counts.get("cache_creation_input_tokens"),
            reasoning_tokens=counts.get("thinking_tokens"),
            cache_write_1h_tokens=counts.get(_HOUR),
            at=at,
            extras=compact(rest(usage, _KNOWN) | ({"output_tokens_details": finer} if finer else {})),
            server_tools=_count_tools(usage.get("server_tool_use")),
            tier=unusual(usage.get("speed")) or unusual(usage.get("service_tier")),
            region=unusual(usage.get("inference_geo")),
        )

    def _read_writes(self, written: Json) -> None:
        """Read what was written to the cache, by how long it is kept. Some compatible servers report only this."""
        if not isinstance(written, dict):
            return
        counts = {name: count for name in (_MINUTES, _HOUR) if type(count := written.get(name)) is int and count >= 0}
        if _HOUR in counts:
            self._counts[_HOUR] = counts[_HOUR]
        if counts:
            self._counts.setdefault("cache_creation_input_tokens", sum(counts.values()))


def _count_compactions(iterations: Json) -> dict[str, int]:
    """What the provider read and wrote to summarise a conversation that had become too long. It is charged like the
    rest, but the counts around it leave it out ("Compaction", platform.claude.com, 2026-11; pydantic-ai#5065)."""
    counts: dict[str, int] = {}
    for _, each in objects_in(iterations):
        if each.get("type") == "compaction":
            hour = object_at(each, "cache_creation").get(_HOUR)
            for name, count in ((_HOUR, hour), *((name, each.get(name)) for name in (*_COUNTS, "output_tokens"))):
                if type(count) is int and count > 0:
                    counts[name] = counts.get(name, 0) + count
    return counts


def _count_tools(calls: Json) -> dict[str, int]:
    """The calls of the provider's own tools: `web_search_requests` counts calls of `web_search`."""
    if not isinstance(calls, dict):
        return {}
    return {name.removesuffix("_requests"): count for name, count in calls.items() if type(count) is int and count > 0}


def write_usage(usage: Usage | None, estimate: int) -> JsonObject:
    """The usage object; the API always has both numbers. `estimate` is used if the input was not counted."""
    usage = usage or Usage()
    compacted = _count_compactions(usage.extras.get("iterations"))  # counted apart
    cached, written = usage.cached_tokens, usage.cache_write_tokens
    details: JsonObject | None = None
    if usage.reasoning_tokens is not None:
        details = {"thinking_tokens": usage.reasoning_tokens}
    whole = estimate if usage.input_tokens is None else usage.input_tokens
    counts: JsonObject = {
        "input_tokens": max(whole - (cached or 0) - (written or 0), 0),
        "cache_creation_input_tokens": written,
        "cache_read_input_tokens": cached,
        "output_tokens": usage.output_tokens or 0,
        "output_tokens_details": details,
    }
    for name, count in compacted.items():
        if isinstance(known := counts.get(name), int):
            counts[name] = max(0, known - count)
    return compact(counts) | {key: value for key, value in usage.extras.items() if key in _OWN}
