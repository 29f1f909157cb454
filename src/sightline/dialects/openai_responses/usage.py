"""Token counts of the Responses API, which already count the whole prompt and the whole output."""

from sightline.dialects.fields import as_object, opt_int, opt_object, rest
from sightline.dialects.openai_responses.names import NAME
from sightline.model.json import Json, JsonObject
from sightline.model.report import Report
from sightline.model.usage import Usage

_INPUT, _OUTPUT = "input_tokens_details", "output_tokens_details"
_USAGE = frozenset({"input_tokens", "output_tokens", "total_tokens", _INPUT, _OUTPUT})
_KNOWN = {_INPUT: frozenset({"cached_tokens", "cache_write_tokens"}), _OUTPUT: frozenset({"reasoning_tokens"})}


def read_usage(value: Json, at: str) -> Usage:
    """The counts of a `usage` object."""
    holder = as_object(value, at)
    details = {key: opt_object(holder, key, at) or {} for key in _KNOWN}
    extras = rest(holder, _USAGE)
    for key, known in _KNOWN.items():
        finer: JsonObject = {name: count for name, count in rest(details[key], known).items() if count not in (None, 0)}
        if finer:
            extras = {**extras, key: finer}
    return Usage(
        input_tokens=opt_int(holder, "input_tokens", at),
        output_tokens=opt_int(holder, "output_tokens", at),
        cached_tokens=opt_int(details[_INPUT], "cached_tokens", f"{at}/{_INPUT}"),
        cache_write_tokens=opt_int(details[_INPUT], "cache_write_tokens", f"{at}/{_INPUT}"),
        reasoning_tokens=opt_int(details[_OUTPUT], "reasoning_tokens", f"{at}/{_OUTPUT}"),
        at=at,
        extras=extras,
    )


def write_usage(usage: Usage, report: Report) -> JsonObject:
    """The same as a `usage` object, in which every count is required; those that are unknown are reported."""

    def count(name: str, path: str = "") -> int:
        value: int | None = getattr(usage, name)
        if value is None:
            report.add(f"/usage{path}/{name}", f"{name}: 0", f"{NAME} demands the count", "identity")
        return value or 0

    prompt, output = count("input_tokens"), count("output_tokens")
    return {
        "input_tokens": prompt,
        _INPUT: {name: count(name, f"/{_INPUT}") for name in ("cached_tokens", "cache_write_tokens")},
        "output_tokens": output,
        _OUTPUT: {"reasoning_tokens": count("reasoning_tokens", f"/{_OUTPUT}")},
        "total_tokens": prompt + output,
    }
