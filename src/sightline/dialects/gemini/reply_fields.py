"""What a candidate says of itself, in both directions: why it ended, token counts and token probabilities."""

from collections.abc import Mapping

from sightline.dialects.fields import any_number, as_object, opt_int, opt_list, rest, str_of, wrong
from sightline.dialects.gemini.field_names import both, either, spelling_of
from sightline.errors import Code, Fault
from sightline.model.events import Finished
from sightline.model.json import Json, JsonObject
from sightline.model.reply import Choice, Finish, TokenLogprob
from sightline.model.report import Report
from sightline.model.usage import Usage
from sightline.wire.pointer import join

FILTERS = frozenset(
    {
        "SAFETY",
        "RECITATION",
        "LANGUAGE",
        "BLOCKLIST",
        "PROHIBITED_CONTENT",
        "SPII",
        "IMAGE_SAFETY",
        "IMAGE_PROHIBITED_CONTENT",
        "IMAGE_RECITATION",
    }
)
FAILURES = frozenset(
    {
        "IMAGE_OTHER",
        "MALFORMED_FUNCTION_CALL",
        "MALFORMED_RESPONSE",
        "MISSING_THOUGHT_SIGNATURE",
        "NO_IMAGE",
        "OTHER",
        "TOO_MANY_TOOL_CALLS",
        "UNEXPECTED_TOOL_CALL",
    }
)
_CONTINUATION = "CONTINUATION"
_WORDS: Mapping[Finish, str] = {
    "stop": "STOP",
    "tool_calls": "STOP",
    "length": "MAX_TOKENS",
    "content_filter": "SAFETY",
    "refusal": "SAFETY",
    "pause": "STOP",
    "error": "OTHER",
    "cancelled": "OTHER",
}


def read_finish(word: str) -> tuple[Finish, str | None]:
    """The finish of an answer that did not fail, and the provider's own word where ours is coarser."""
    if word == "STOP":
        return "stop", None
    if word == "MAX_TOKENS":
        return "length", None
    if word == _CONTINUATION:
        return "pause", word
    return "content_filter", word


def failure(word: str, message: str | None, at: str) -> Fault:
    """The fault of an answer that failed."""
    return Fault(
        Code.UPSTREAM_ERROR,
        f"{word}: {message}" if message else f"the model stopped with {word}",
        hint="The model's answer cannot be used; send the request again, or change the tools or the prompt.",
        pointer=at,
    )


def write_finish(ending: Finished | Choice, finish: Finish, report: Report) -> str:
    """The word for a finish; what it cannot say is reported."""
    at = ending.at if isinstance(ending, Finished) else ending.finish_at
    detail = ending.detail
    word = _WORDS[finish]
    if (finish == "content_filter" and detail in FILTERS) or (finish == "pause" and detail == _CONTINUATION):
        return str(detail)
    if finish in ("refusal", "pause"):
        report.lose(at, f"finish {finish!r}", f"gemini says {word}", "option")
    if detail is not None:
        report.lose(at, f"the provider's own word {detail!r}", f"gemini says {word}", "identity")
    if ending.stop_sequence is not None:
        report.lose(ending.stop_at or at, "stop sequence", "gemini does not say which one stopped it", "identity")
    return word


Unknown = list[tuple[str, Json]]
"""Fields that are not modelled, each with its place."""

_RESULT = both("chosenCandidates", "topCandidates")
_TOKEN = both("token", "logProbability")


def read_logprobs(result: JsonObject, at: str) -> tuple[tuple[TokenLogprob, ...], Unknown]:
    """The tokens that were chosen, each with what else could have stood there, and the fields that say more."""
    unknown: Unknown = [(join(at, key), value) for key, value in rest(result, _RESULT).items()]
    chosen_key, top_key = spelling_of(result, "chosenCandidates"), spelling_of(result, "topCandidates")
    tops = opt_list(result, top_key, at)
    tokens: list[TokenLogprob] = []
    for index, value in enumerate(opt_list(result, chosen_key, at)):
        top: list[TokenLogprob] = []
        if index < len(tops):
            place = f"{at}/{top_key}/{index}"
            others = opt_list(as_object(tops[index], place), "candidates", place)
            top = [_token(other, f"{place}/candidates/{rank}", (), unknown) for rank, other in enumerate(others)]
        tokens.append(_token(value, f"{at}/{chosen_key}/{index}", tuple(top), unknown))
    return tuple(tokens), unknown


def write_logprobs(tokens: tuple[TokenLogprob, ...]) -> JsonObject:
    """The `logprobsResult` of these tokens."""
    result: JsonObject = {"chosenCandidates": [_entry(token) for token in tokens]}
    if any(token.top for token in tokens):
        result["topCandidates"] = [{"candidates": [_entry(other) for other in token.top]} for token in tokens]
    return result


def _token(value: Json, at: str, top: tuple[TokenLogprob, ...], unknown: Unknown) -> TokenLogprob:
    entry = as_object(value, at)
    logprob = any_number(either(entry, "logProbability"))
    if logprob is None:
        raise wrong(either(entry, "logProbability"), f"{at}/{spelling_of(entry, 'logProbability')}", "a number")
    unknown.extend((join(at, key), field) for key, field in rest(entry, _TOKEN).items())
    return TokenLogprob(str_of(entry, "token", at), float(logprob), top=top)


def _entry(token: TokenLogprob) -> JsonObject:
    return {"token": token.token, "logProbability": token.logprob}


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
