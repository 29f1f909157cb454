"""Token counts of Chat Completions, which cover the whole prompt and the whole output."""

from functools import cache

import msgspec

from sightline.dialects.fields import as_object, compact, opt_int, opt_object, rest
from sightline.model.json import Json, JsonObject
from sightline.model.reply import Usage, unusual
from sightline.model.report import Report

_PROMPT, _COMPLETION = "prompt_tokens_details", "completion_tokens_details"
_CACHED = frozenset({"cached_tokens"})


@cache
def _fields_of(asked: str, written: str) -> tuple[frozenset[str], tuple[tuple[str, tuple[str, ...]], ...]]:
    """The known fields of a `usage` object, and the modelled fields of its details."""
    details = (
        (f"{asked}_details", ("cached_tokens", "cache_write_tokens")),
        (f"{written}_details", ("reasoning_tokens",)),
    )
    return frozenset({asked, written, "total_tokens", *(key for key, _ in details)}), details


def read_counts(holder: JsonObject, at: str, asked: str, written: str) -> Usage:
    """The counts of a `usage` object of either OpenAI API; they name the two main counts differently."""
    known, details = _fields_of(asked, written)
    counts = {"input_tokens": opt_int(holder, asked, at), "output_tokens": opt_int(holder, written, at)}
    extras = rest(holder, known)
    for key, names in details:
        inner = opt_object(holder, key, at)
        if not inner:
            continue
        counts |= {name: opt_int(inner, name, f"{at}/{key}") for name in names}
        if inner.get("audio_tokens"):
            counts[f"audio_{'input' if key.startswith(asked) else 'output'}_tokens"] = opt_int(
                inner, "audio_tokens", f"{at}/{key}"
            )
        finer: JsonObject = {
            name: count for name, count in inner.items() if name not in names and count not in (None, 0)
        }
        if finer:
            extras = {**extras, key: finer}
    return msgspec.structs.replace(Usage(at=at, extras=extras, cost=_read_cost(holder)), **counts)


def _read_cost(holder: JsonObject) -> float | None:
    """What a router reports as its charge, in dollars. With the user's own key the router charges a fee and the vendor
    charges the rest, which is listed too (OpenRouter, "Usage Accounting")."""
    cost, details = holder.get("cost"), holder.get("cost_details")
    if isinstance(cost, bool) or not isinstance(cost, int | float):
        return None
    vendor = details.get("upstream_inference_cost") if holder.get("is_byok") and isinstance(details, dict) else None
    return float(cost) + (float(vendor) if isinstance(vendor, int | float) else 0.0)


def with_tier(usage: Usage, holder: JsonObject) -> Usage:
    """The usage with the service tier that the object around it reports."""
    tier = unusual(holder.get("service_tier"))
    return msgspec.structs.replace(usage, tier=tier) if tier else usage


def read_usage(value: Json, at: str) -> Usage:
    """The counts of a `usage` object."""
    holder = as_object(value, at)
    usage = read_counts(holder, at, "prompt_tokens", "completion_tokens")
    if usage.cached_tokens is None and "cached_tokens" in usage.extras:
        # Moonshot has it beside the other counts, and not among the details of the prompt.
        cached = opt_int(holder, "cached_tokens", at)
        usage = msgspec.structs.replace(usage, cached_tokens=cached, extras=rest(usage.extras, _CACHED))
    asked, written, thought = usage.input_tokens or 0, usage.output_tokens or 0, usage.reasoning_tokens or 0
    total = opt_int(holder, "total_tokens", at)
    if total is None or total == asked + written:
        return usage
    if thought and total == asked + written + thought:  # some servers count the reasoning separately from the output
        return msgspec.structs.replace(usage, output_tokens=written + thought)
    return msgspec.structs.replace(usage, extras={**usage.extras, "total_tokens": total})


def write_usage(usage: Usage, report: Report) -> JsonObject:
    """The counts as a `usage` object. Both main counts are required, so an unknown one is written as 0 and reported."""
    for key, count in (("prompt_tokens", usage.input_tokens), ("completion_tokens", usage.output_tokens)):
        if count is None:
            report.add(f"/usage/{key}", key, "usage has both counts and only one is known", "identity")
    prompt, completion = usage.input_tokens or 0, usage.output_tokens or 0
    document: JsonObject = {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
    }
    asked = {
        "cached_tokens": usage.cached_tokens,
        "cache_write_tokens": usage.cache_write_tokens,
        "audio_tokens": usage.audio_input_tokens,
    }
    written = {"reasoning_tokens": usage.reasoning_tokens, "audio_tokens": usage.audio_output_tokens}
    for key, details in ((_PROMPT, asked), (_COMPLETION, written)):
        known = compact(dict(details))
        if known:
            document[key] = known
    return document
