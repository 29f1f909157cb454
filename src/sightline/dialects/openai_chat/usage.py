"""Token counts of Chat Completions, which already count the whole prompt and the whole output."""

from sightline.dialects.fields import as_object, compact, opt_int, opt_object, rest
from sightline.model.json import Json, JsonObject
from sightline.model.report import Report
from sightline.model.usage import Usage

_USAGE = frozenset(
    {"prompt_tokens", "completion_tokens", "total_tokens", "prompt_tokens_details", "completion_tokens_details"}
)
_PROMPT, _COMPLETION = "prompt_tokens_details", "completion_tokens_details"


def read_usage(value: Json, at: str) -> Usage:
    """The counts of a `usage` object."""
    holder = as_object(value, at)
    prompt = opt_object(holder, _PROMPT, at) or {}
    completion = opt_object(holder, _COMPLETION, at) or {}
    extras = rest(holder, _USAGE)
    for key, inner, known in (
        (_PROMPT, prompt, frozenset({"cached_tokens", "cache_write_tokens"})),
        (_COMPLETION, completion, frozenset({"reasoning_tokens"})),
    ):
        finer: JsonObject = {name: count for name, count in rest(inner, known).items() if count not in (None, 0)}
        if finer:
            extras = {**extras, key: finer}
    prompt_tokens, written = opt_int(holder, "prompt_tokens", at), opt_int(holder, "completion_tokens", at)
    thought = opt_int(completion, "reasoning_tokens", f"{at}/{_COMPLETION}")
    total = opt_int(holder, "total_tokens", at)
    if total is not None and total != (prompt_tokens or 0) + (written or 0):
        if (
            thought and total == (prompt_tokens or 0) + (written or 0) + thought
        ):  # some count the reasoning beside the output
            written = (written or 0) + thought
        else:
            extras = {**extras, "total_tokens": total}
    return Usage(
        input_tokens=prompt_tokens,
        output_tokens=written,
        cached_tokens=opt_int(prompt, "cached_tokens", f"{at}/{_PROMPT}"),
        cache_write_tokens=opt_int(prompt, "cache_write_tokens", f"{at}/{_PROMPT}"),
        reasoning_tokens=thought,
        at=at,
        extras=extras,
    )


def write_usage(usage: Usage, report: Report) -> JsonObject:
    """The same as a `usage` object. Both counts are demanded, so an unknown one is 0 and listed."""
    for key, count in (("prompt_tokens", usage.input_tokens), ("completion_tokens", usage.output_tokens)):
        if count is None:
            report.add(f"/usage/{key}", key, "usage has both counts and only one is known", "identity")
    prompt, completion = usage.input_tokens or 0, usage.output_tokens or 0
    document: JsonObject = {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
    }
    for key, details in (
        (_PROMPT, {"cached_tokens": usage.cached_tokens, "cache_write_tokens": usage.cache_write_tokens}),
        (_COMPLETION, {"reasoning_tokens": usage.reasoning_tokens}),
    ):
        known = compact(dict(details))
        if known:
            document[key] = known
    return document
