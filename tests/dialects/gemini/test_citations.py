"""Citations and grounding."""

from typing import Any

import pytest

from sightline.dialects.gemini.reply_fields import read_citation, read_grounding, write_citations
from sightline.model.json import JsonObject
from sightline.model.parts import Citation
from sightline.model.report import Report

TEXTS = [(0, "Süß! "), (2, "A sentence.")]


def test_bytes_of_the_candidate_become_characters_of_the_part():
    wire: Any = {"startIndex": 7, "endIndex": 10, "uri": "https://a", "title": "A", "license": "MIT"}
    assert read_citation(wire, "/c", TEXTS) == (
        2,
        Citation(url="https://a", title="A", start=0, end=3, value=wire, at="/c", extras={"license": "MIT"}),
    )
    wire = {"endIndex": 6, "uri": "https://a"}
    part, citation = read_citation(wire, "/c", TEXTS)
    assert (part, citation.start, citation.end) == (0, 0, 4)


def test_a_place_behind_all_texts_belongs_to_the_last():
    part, citation = read_citation({"startIndex": 99, "endIndex": 120}, "", TEXTS)
    assert (part, citation.start, citation.end) == (2, 11, 11)


def test_without_text_and_without_a_place():
    part, citation = read_citation({"uri": "u"}, "", [])
    assert part is None
    assert (citation.start, citation.end) == (None, None)


def test_characters_of_a_part_become_bytes_of_the_candidate():
    report = Report()
    citations = [
        (2, Citation(url="https://a", start=0, end=3)),
        (0, Citation(title="T", cited_text="words", at="/1")),
        (7, Citation(cited_text="words", at="/2")),
    ]
    assert write_citations(citations, TEXTS, report) == [
        {"startIndex": 7, "endIndex": 10, "uri": "https://a"},
        {"title": "T"},
    ]
    assert [(loss.pointer, loss.what) for loss in report.losses] == [
        ("/1", "cited text"),
        ("/1", "what is cited"),
        ("/2", "cited text"),
        ("/2", "what is cited"),
    ]


TEXTS_GROUNDING = [(0, "Süß ist es. "), (2, "Das Ende.")]
ROME: JsonObject = {"web": {"uri": "https://rome.example", "title": "Rome", "domain": "rome.example"}}
FILE: JsonObject = {"retrievedContext": {"uri": "gs://f", "title": "F", "text": "quoted"}, "new": 1}


def support(numbers: Any, **segment: Any) -> JsonObject:
    return {"segment": segment, "groundingChunkIndices": numbers}


def test_words_and_their_sources_are_citations() -> None:
    metadata: JsonObject = {
        "webSearchQueries": ["rome"],
        "groundingChunks": [ROME, FILE],
        "groundingSupports": [
            {**support([0, 1], endIndex=5, text="Süß"), "confidenceScores": [0.5]},
            support([1], startIndex=14, endIndex=17, text="other", new=2),
        ],
    }
    found, left = read_grounding(metadata, "/g", TEXTS_GROUNDING)
    assert found == [
        (0, Citation("https://rome.example", "Rome", "", 0, 3, value=ROME, at="/g")),
        (0, Citation("gs://f", "F", "quoted", 0, 3, value=FILE, at="/g")),
        (2, Citation("gs://f", "F", "quoted", 0, 3, value=FILE, at="/g")),
    ]
    assert left == [
        ("/g/webSearchQueries", ["rome"]),
        ("/g/groundingSupports/0/confidenceScores", [0.5]),
        ("/g/groundingSupports/1/segment/text", "other"),
        ("/g/groundingSupports/1/segment/new", 2),
        ("/g/groundingChunks/0/web/domain", "rome.example"),
        ("/g/groundingChunks/1/new", 1),
    ]


def test_a_source_that_no_words_rest_on_is_cited_by_the_answer() -> None:
    found, left = read_grounding({"grounding_chunks": [{"maps": {"uri": "u"}}]}, "/g", TEXTS_GROUNDING)
    assert found == [(2, Citation("u", value={"maps": {"uri": "u"}}, at="/g"))]
    assert left == []


@pytest.mark.parametrize(
    "odd", [7, support("0"), {"segment": 7}, support([9]), support([None]), support([1], endIndex=2)]
)
def test_a_support_that_names_no_source_is_left(odd: Any) -> None:
    chunks: list[Any] = [ROME, {"image": {}}]
    found, left = read_grounding({"groundingChunks": chunks, "groundingSupports": [odd]}, "/g", TEXTS_GROUNDING)
    assert [citation.start for _, citation in found] == [None]
    assert ("/g/groundingSupports/0", odd) in left
    assert ("/g/groundingChunks/1", {"image": {}}) in left


@pytest.mark.parametrize(
    ("metadata", "texts"),
    [
        ({"groundingChunks": [ROME]}, []),
        ({"groundingChunks": 7}, TEXTS_GROUNDING),
        ({"groundingChunks": [], "groundingSupports": 7}, TEXTS_GROUNDING),
        ({"searchEntryPoint": {}}, TEXTS_GROUNDING),
    ],
)
def test_without_words_or_sources_everything_is_left(metadata: JsonObject, texts: Any) -> None:
    found, left = read_grounding(metadata, "/g", texts)
    assert found == []
    assert left == [(f"/g/{key}", value) for key, value in metadata.items()]


def test_a_chunk_may_be_anything() -> None:
    assert read_grounding({"groundingChunks": [7]}, "/g", TEXTS_GROUNDING) == ([], [("/g/groundingChunks/0", 7)])
