"""Reads and writes the fields around a candidate's content: its finish, token counts, token probabilities and
citations.

In citations Google counts the bytes of a candidate's whole text; we count the characters of one part.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

from sightline.dialects.fields import (
    any_number,
    as_object,
    compact,
    opt_int,
    opt_list,
    opt_str,
    rest,
    str_of,
    whole_number,
    word_of,
    wrong,
)
from sightline.dialects.gemini.field_names import both, either, spelling_of
from sightline.errors import Code, Fault
from sightline.model.json import Json, JsonObject
from sightline.model.parts import Citation
from sightline.model.reply import Choice, Finish, TokenLogprob, Usage, unusual
from sightline.model.report import Report
from sightline.wire.pointer import join

Texts = Sequence[tuple[int, str]]
"""The text parts of a candidate in order: the number of each, and its text."""

_GROUNDING = both("uri", "title", "startIndex", "endIndex")


def read_citation(value: Json, at: str, texts: Texts) -> tuple[int | None, Citation]:
    """The text part that a citation belongs to, None if there is no text, and the citation."""
    wire = as_object(value, at)
    start = opt_int(wire, spelling_of(wire, "startIndex"), at)
    end = opt_int(wire, spelling_of(wire, "endIndex"), at)
    if start is None and end is not None:
        start = 0  # zeros are not sent
    part, first, text = _part_at_byte(start or 0, texts)
    citation = Citation(
        url=opt_str(wire, "uri", at) or "",
        title=opt_str(wire, "title", at) or "",
        start=None if start is None else _characters(text, start - first),
        end=None if end is None else _characters(text, end - first),
        value=wire,
        at=at,
        extras=rest(wire, _GROUNDING),
    )
    return part, citation


def place_of(start: int, end: int | None, texts: Texts) -> tuple[int, int, int | None, str]:
    """The text part that contains these bytes of an answer, their place in it in characters, and the text there."""
    number, first, text = _part_at_byte(start, texts)
    assert number is not None  # there are texts
    here, there = _characters(text, start - first), None if end is None else _characters(text, end - first)
    return number, here, there, text[here:there]


def write_citations(citations: Sequence[tuple[int, Citation]], texts: Texts, report: Report) -> list[Json]:
    """The citations of a candidate; each is given with the number of its part."""
    firsts: dict[int, tuple[int, str]] = {}
    size = 0
    for number, text in texts:
        firsts[number] = (size, text)
        size += len(_bytes(text))
    out: list[Json] = []
    for number, citation in citations:
        first, text = firsts.get(number, (0, ""))
        if citation.cited_text:
            report.lose(citation.at, "cited text", "gemini names the place of a citation only", "content")
        if not citation.url:
            report.lose(citation.at, "what is cited", "gemini cites addresses", "content")
            if not citation.title:
                continue
        wire: JsonObject = {}
        if citation.start is not None:
            wire["startIndex"] = first + len(_bytes(text[: citation.start]))
        if citation.end is not None:
            wire["endIndex"] = first + len(_bytes(text[: citation.end]))
        if citation.url:
            wire["uri"] = citation.url
        if citation.title:
            wire["title"] = citation.title
        out.append(wire)
    return out


def _part_at_byte(start: int, texts: Texts) -> tuple[int | None, int, str]:
    """The part that contains a byte, its own first byte, and its text; the last part if the byte is after all parts."""
    owner: tuple[int | None, int, str] = (None, 0, "")
    size = 0
    for number, text in texts:
        if owner[0] is not None and start < size:
            break
        owner = (number, size, text)
        size += len(_bytes(text))
    return owner


def _characters(text: str, count: int) -> int:
    return len(_bytes(text)[: max(count, 0)].decode("utf-8", "ignore"))


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "replace")


_SOURCES = ("web", "retrievedContext", "maps")
_SOURCE = frozenset({"uri", "title"})
_SUPPORT = both("segment", "groundingChunkIndices")
_SEGMENT = both("startIndex", "endIndex", "partIndex") | {"text"}

Found = tuple[list[tuple[int, Citation]], list[tuple[str, Json]]]
"""The citations, each with the number of its text part, and the fields that they do not cover, each with its place."""


def read_grounding(metadata: JsonObject, at: str, texts: Texts) -> Found:
    """Read a candidate's `groundingMetadata`."""
    chunks_key, supports_key = spelling_of(metadata, "groundingChunks"), spelling_of(metadata, "groundingSupports")
    chunks, supports = metadata.get(chunks_key), metadata.get(supports_key)
    if not texts or not isinstance(chunks, list) or not isinstance(supports, (list, type(None))):
        return [], [(join(at, key), value) for key, value in metadata.items()]
    left = [(join(at, key), value) for key, value in metadata.items() if key not in (chunks_key, supports_key)]
    sources = [_Source(chunk, f"{at}/{chunks_key}/{index}", at) for index, chunk in enumerate(chunks)]
    found: list[tuple[int, Citation]] = []
    for index, support in enumerate(supports or []):
        cited, rest_of_it = _citations_of_support(support, f"{at}/{supports_key}/{index}", sources, texts)
        found += cited
        left += rest_of_it
    for source in sources:
        if not source.url:
            left.append((source.at, source.value))
            continue
        left += source.extra_fields()
        if not source.is_cited:  # it was found, but no text is attributed to it
            found.append((texts[-1][0], source.citation(None, None)))
    return found, left


class _Source:
    """One chunk, and whether a support has named it."""

    def __init__(self, value: Json, at: str, metadata: str) -> None:
        self.value, self.at, self.is_cited = value, at, False
        self._metadata = metadata
        self._key, self._holder = _inner(value)
        self.url, self._title, self._words = (word_of(self._holder, key) for key in ("uri", "title", "text"))

    def citation(self, start: int | None, end: int | None) -> Citation:
        """The citation of this source by the text at this place."""
        return Citation(self.url, self._title, self._words, start, end, value=self.value, at=self._metadata)

    def extra_fields(self) -> Iterator[tuple[str, Json]]:
        """The fields of the source that a citation does not cover."""
        known = _SOURCE | {"text"} if self._words else _SOURCE
        yield from ((join(self.at, self._key, key), value) for key, value in rest(self._holder, known).items())
        chunk = self.value if isinstance(self.value, dict) else {}
        yield from ((join(self.at, key), value) for key, value in chunk.items() if key != self._key)


def _inner(value: Json) -> tuple[str, JsonObject]:
    if isinstance(value, dict):
        for name in _SOURCES:
            key = spelling_of(value, name) if name == "retrievedContext" else name
            if isinstance(inner := value.get(key), dict):
                return key, inner
    return "", {}


def _citations_of_support(support: Json, at: str, sources: list[_Source], texts: Texts) -> Found:
    """The citations of one segment of the answer."""
    holder = support if isinstance(support, dict) else {}
    segment, numbers = holder.get("segment"), either(holder, "groundingChunkIndices")
    if not isinstance(segment, dict) or not isinstance(numbers, list):
        return [], [(at, support)]
    named = [whole_number(number) for number in numbers]
    cited = [sources[number] for number in named if number is not None and 0 <= number < len(sources)]
    cited = [source for source in cited if source.url]
    if not cited:
        return [], [(at, support)]
    first = whole_number(either(segment, "startIndex")) or 0  # zeros are not sent
    part, start, end, words = place_of(first, whole_number(either(segment, "endIndex")), texts)
    for source in cited:
        source.is_cited = True
    left = [(join(at, key), value) for key, value in rest(holder, _SUPPORT).items()]
    known = _SEGMENT if segment.get("text") == words else _SEGMENT - {"text"}
    left += [(join(at, "segment", key), value) for key, value in rest(segment, known).items()]
    return [(part, source.citation(start, end)) for source in cited], left


FILTERS = frozenset(
    {
        *("SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY"),
        *("IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION"),
    }
)
FAILURES = frozenset(
    {
        *("IMAGE_OTHER", "MALFORMED_FUNCTION_CALL", "MALFORMED_RESPONSE", "MISSING_THOUGHT_SIGNATURE", "NO_IMAGE"),
        *("OTHER", "TOO_MANY_TOOL_CALLS", "UNEXPECTED_TOOL_CALL"),
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
    """The finish of an answer that did not fail, and the provider's own word if ours is coarser."""
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


def write_finish(choice: Choice, finish: Finish, report: Report) -> str:
    """The word for a choice's finish; what it cannot express is reported."""
    at, detail, word = choice.finish_at, choice.detail, _WORDS[finish]
    if (finish == "content_filter" and detail in FILTERS) or (finish == "pause" and detail == _CONTINUATION):
        return str(detail)
    if finish in ("refusal", "pause"):
        report.lose(at, f"finish {finish!r}", f"gemini says {word}", "option")
    if detail is not None:
        report.lose(at, f"the provider's own word {detail!r}", f"gemini says {word}", "identity")
    if choice.stop_sequence is not None:
        report.lose(choice.stop_at or at, "stop sequence", "gemini does not say which one stopped it", "identity")
    return word


Unknown = list[tuple[str, Json]]
"""Fields that are not modelled, each with its place."""

_RESULT = both("chosenCandidates", "topCandidates")
_TOKEN = both("token", "logProbability")


def read_logprobs(result: JsonObject, at: str) -> tuple[tuple[TokenLogprob, ...], Unknown]:
    """The chosen tokens, each with its alternatives, and the fields that are not modelled."""
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
    """The counts in our terms. The total is derived; the share of tool use is included in the prompt and kept."""
    thoughts = _count(counts, "thoughtsTokenCount", at)
    return Usage(
        input_tokens=add_counts(_count(counts, "promptTokenCount", at), _count(counts, _TOOL_USE, at)),
        output_tokens=add_counts(_count(counts, "candidatesTokenCount", at), thoughts),
        cached_tokens=_count(counts, "cachedContentTokenCount", at),
        reasoning_tokens=thoughts,
        at=at,
        extras=rest(counts, _KNOWN),
        audio_input_tokens=_modality(counts, "promptTokensDetails", "AUDIO"),
        audio_output_tokens=_modality(counts, "candidatesTokensDetails", "AUDIO"),
        image_output_tokens=_modality(counts, "candidatesTokensDetails", "IMAGE"),
        tier=unusual(either(counts, "serviceTier")),
    )


def _modality(counts: JsonObject, name: str, modality: str) -> int | None:
    """The tokens of a modality that has a price of its own; None if there are none."""
    details = either(counts, name)
    for each in details if isinstance(details, list) else ():
        if isinstance(each, dict) and each.get("modality") == modality:
            count = either(each, "tokenCount")
            return count if type(count) is int and count > 0 else None
    return None


def write_usage(usage: Usage, report: Report) -> JsonObject:
    """The counts in the API's terms."""
    asked, written, thoughts = usage.input_tokens, usage.output_tokens, usage.reasoning_tokens
    shares = either(usage.extras, _TOOL_USE)
    tool_use = shares if type(shares) is int else 0
    if usage.cache_write_tokens:
        report.lose(usage.at, "tokens written to the cache", "gemini does not count them", "identity")
    return compact(
        {
            "promptTokenCount": None if asked is None else asked - tool_use,
            "cachedContentTokenCount": usage.cached_tokens,
            "candidatesTokenCount": None if written is None else written - (thoughts or 0),
            _TOOL_USE: tool_use or None,
            "thoughtsTokenCount": thoughts,
            "totalTokenCount": add_counts(asked, written),
        }
    )


def _count(counts: JsonObject, name: str, at: str) -> int | None:
    value = counts.get(name)
    return value if type(value) is int else opt_int(counts, spelling_of(counts, name), at)


def add_counts(first: int | None, second: int | None) -> int | None:
    """The sum of what is known of two counts."""
    if first is None:
        return second
    return first if second is None else first + second


def read_time(time: str) -> int | None:
    """The seconds of a time in Google's form; None if it is no time."""
    try:
        moment = datetime.fromisoformat(time)
        return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())
    except (ValueError, OverflowError):
        return None
