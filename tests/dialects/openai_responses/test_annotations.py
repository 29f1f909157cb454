import pytest

from sightline.dialects.openai_responses.content import read_annotation, write_annotation
from sightline.errors import Fault
from sightline.model.parts import Citation
from sightline.model.report import Report
from tests.dialects.openai_responses.cases import losses

URL = {"type": "url_citation", "url": "https://e.org", "title": "E", "start_index": 1, "end_index": 4}


def test_a_url_is_read_with_its_place_and_kept_whole():
    citation = read_annotation(URL, "/a")
    assert (citation.url, citation.title, citation.start, citation.end) == ("https://e.org", "E", 1, 4)
    assert citation.value == URL
    assert write_annotation(citation, Report()) is URL


def test_a_file_is_known_by_its_name():
    assert (
        read_annotation({"type": "file_citation", "filename": "a.md", "file_id": "f", "index": 3}, "/a").title == "a.md"
    )


def test_a_place_that_is_no_number_is_refused():
    with pytest.raises(Fault) as caught:
        read_annotation({**URL, "start_index": "one"}, "/a")
    assert caught.value.pointer == "/a/start_index"


def test_a_foreign_citation_with_url_and_place_is_written():
    report = Report()
    chat = {"type": "url_citation", "url_citation": {"url": "u"}}
    citation = Citation(url="u", title="", cited_text="said", start=0, end=2, value=chat, at="/x")
    assert write_annotation(citation, report) == {**URL, "url": "u", "title": "", "start_index": 0, "end_index": 2}
    assert losses(report) == [("/x", "the quotation of a citation", "option")]


@pytest.mark.parametrize("citation", [Citation(url="u", at="/x"), Citation(start=0, end=1, at="/x"), Citation(at="/x")])
def test_without_url_or_place_it_is_a_loss(citation):
    report = Report()
    assert write_annotation(citation, report) is None
    assert losses(report) == [("/x", "a citation", "option")]
