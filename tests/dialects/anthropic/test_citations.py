from typing import Any

import pytest

from sightline.dialects.anthropic.blocks_read import read_citation, write_citation
from sightline.errors import Fault
from sightline.model.parts import Citation
from sightline.model.report import Report

FOUND: dict[str, Any] = {
    "type": "web_search_result_location",
    "url": "https://example.com",
    "title": "News",
    "cited_text": "It is so.",
    "encrypted_index": "Eo8B",
}
PAGE: dict[str, Any] = {"type": "page_location", "cited_text": "Blue.", "document_index": 0, "document_title": "Report"}


def test_a_citation_is_kept_whole_with_what_others_understand_of_it():
    citation = read_citation(FOUND, "/c")
    assert (citation.url, citation.title, citation.cited_text) == ("https://example.com", "News", "It is so.")
    assert (citation.value, citation.at) == (FOUND, "/c")


def test_a_document_gives_the_title_of_its_citation():
    assert read_citation(PAGE, "").title == "Report"


def test_a_citation_is_an_object():
    with pytest.raises(Fault):
        read_citation("no", "/c")


@pytest.mark.parametrize("value", [FOUND, PAGE, {"type": "some_new_location"}])
def test_an_own_citation_is_written_as_it_was(value):
    report = Report()
    assert write_citation(read_citation(value, ""), report) == value
    assert not report.losses


@pytest.mark.parametrize("value", [None, {"type": "url_citation", "url": "https://e.com"}, {"type": 1}])
def test_a_foreign_citation_cannot_be_said(value):
    report = Report()
    assert write_citation(Citation(url="https://e.com", value=value, at="/c"), report) is None
    assert [(loss.pointer, loss.severity) for loss in report.losses] == [("/c", "option")]
