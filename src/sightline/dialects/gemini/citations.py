"""Citations in both directions. Google counts bytes of a candidate's whole text; we count characters of one part."""

from collections.abc import Iterator, Sequence

from sightline.dialects.fields import as_object, opt_int, opt_str, rest, whole_number
from sightline.dialects.gemini.field_names import both, either, spelling_of
from sightline.model.json import Json, JsonObject
from sightline.model.parts import Citation
from sightline.model.report import Report
from sightline.wire.pointer import join

Texts = Sequence[tuple[int, str]]
"""The text parts of a candidate in order: the number of each, and its text."""

_KNOWN = both("uri", "title", "startIndex", "endIndex")


def read_citation(value: Json, at: str, texts: Texts) -> tuple[int | None, Citation]:
    """The text part that a citation belongs to, None if there is no text, and the citation."""
    wire = as_object(value, at)
    start = opt_int(wire, spelling_of(wire, "startIndex"), at)
    end = opt_int(wire, spelling_of(wire, "endIndex"), at)
    if start is None and end is not None:
        start = 0  # a number that is zero is not sent
    part, first, text = _owner(start or 0, texts)
    citation = Citation(
        url=opt_str(wire, "uri", at) or "",
        title=opt_str(wire, "title", at) or "",
        start=None if start is None else _characters(text, start - first),
        end=None if end is None else _characters(text, end - first),
        value=wire,
        at=at,
        extras=rest(wire, _KNOWN),
    )
    return part, citation


def place_of(start: int, end: int | None, texts: Texts) -> tuple[int, int, int | None, str]:
    """The text part that these bytes of an answer lie in, their place in it in characters, and the words there."""
    number, first, text = _owner(start, texts)
    assert number is not None  # there are texts
    here, there = _characters(text, start - first), None if end is None else _characters(text, end - first)
    return number, here, there, text[here:there]


def write_citations(citations: Sequence[tuple[int, Citation]], texts: Texts, report: Report) -> list[Json]:
    """The citations of a candidate; each comes with the number of the part that it belongs to."""
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


def _owner(start: int, texts: Texts) -> tuple[int | None, int, str]:
    """The part in which a byte lies, its own first byte, and its text; the last part if it lies behind all."""
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
"""The citations, each with the number of its text part, and the fields that they do not say, each with its place."""


def read_grounding(metadata: JsonObject, at: str, texts: Texts) -> Found:
    """What a candidate's `groundingMetadata` says."""
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
        if not source.is_cited:  # it was found, and no words are said to rest on it
            found.append((texts[-1][0], source.citation(None, None)))
    return found, left


class _Source:
    """One chunk, and whether a support has named it."""

    def __init__(self, value: Json, at: str, metadata: str) -> None:
        self.value, self.at, self.is_cited = value, at, False
        self._metadata = metadata
        self._key, self._holder = _inner(value)
        self.url, self._title, self._words = (_word(self._holder, key) for key in ("uri", "title", "text"))

    def citation(self, start: int | None, end: int | None) -> Citation:
        """The citation of this source by the words at this place."""
        return Citation(self.url, self._title, self._words, start, end, value=self.value, at=self._metadata)

    def extra_fields(self) -> Iterator[tuple[str, Json]]:
        """What a citation does not say of the source."""
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


def _word(holder: JsonObject, key: str) -> str:
    value = holder.get(key)
    return value if isinstance(value, str) else ""


def _citations_of_support(support: Json, at: str, sources: list[_Source], texts: Texts) -> Found:
    """The citations of one piece of the answer."""
    holder = support if isinstance(support, dict) else {}
    segment, numbers = holder.get("segment"), either(holder, "groundingChunkIndices")
    if not isinstance(segment, dict) or not isinstance(numbers, list):
        return [], [(at, support)]
    named = [whole_number(number) for number in numbers]
    cited = [sources[number] for number in named if number is not None and 0 <= number < len(sources)]
    cited = [source for source in cited if source.url]
    if not cited:
        return [], [(at, support)]
    first = whole_number(either(segment, "startIndex")) or 0  # a number that is zero is not sent
    part, start, end, words = place_of(first, whole_number(either(segment, "endIndex")), texts)
    for source in cited:
        source.is_cited = True
    left = [(join(at, key), value) for key, value in rest(holder, _SUPPORT).items()]
    known = _SEGMENT if segment.get("text") == words else _SEGMENT - {"text"}
    left += [(join(at, "segment", key), value) for key, value in rest(segment, known).items()]
    return [(part, source.citation(start, end)) for source in cited], left
