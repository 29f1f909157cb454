from typing import Any

from sightline.dialects.gemini.citations import read_citation, write_citations
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
