"""Token counts of the Responses API, which already count the whole prompt and the whole output."""

from sightline.dialects.fields import as_object, opt_int, opt_object, rest
from sightline.model.json import Json, JsonObject
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


def write_usage(usage: Usage) -> JsonObject:
    """The same as a `usage` object, in which every count must stand."""
    prompt, output = usage.input_tokens or 0, usage.output_tokens or 0
    return {
        "input_tokens": prompt,
        _INPUT: {"cached_tokens": usage.cached_tokens or 0, "cache_write_tokens": usage.cache_write_tokens or 0},
        "output_tokens": output,
        _OUTPUT: {"reasoning_tokens": usage.reasoning_tokens or 0},
        "total_tokens": prompt + output,
    }
