"""Citations in both directions. Google counts bytes of a candidate's whole text; we count characters of one part."""

from collections.abc import Sequence

from sightline.dialects.fields import as_object, opt_int, opt_str, rest
from sightline.dialects.gemini.field_names import both, spelling_of
from sightline.model.json import Json, JsonObject
from sightline.model.parts import Citation
from sightline.model.report import Report

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
