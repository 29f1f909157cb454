"""A case made of any recorded request is one that the reader of suites takes, and says what the request said."""

import pytest

from sightline.dialects.registry import dialect
from sightline.evals.core.making.case import CaseExchange, MadeCase, make_case, turns_of
from sightline.evals.core.reading.files import SuiteReading
from sightline.evals.core.suite import CallSegment, Case, FileSegment, ImageSegment, TextSegment
from sightline.model.parts import Document, Image, Text, ToolCall
from sightline.model.request import Request
from sightline.wire.jsontext import decode
from tests.contract.cases import Case as WireCase
from tests.contract.cases import cases
from tests.evals.core.reading import stage

RECORDED = cases("request.json")


def request_of(case: WireCase) -> Request:
    return dialect(case.dialect).read_request(decode(case.file("request.json")))


def read(made: MadeCase) -> SuiteReading:
    """The case as it is read back, in surroundings that must not get into it."""
    return stage.read(made.text, {file.path: file.data for file in made.files}, "suite.yaml", {"HOME": "elsewhere"})


def case_of(made: MadeCase) -> Case:
    found = read(made)
    assert [each.message for each in found.problems if each.severity == "error"] == []
    return found.suite.cases[0]


@pytest.mark.parametrize("wire", RECORDED, ids=str)
def test_case_has_the_same_content_as_the_request(wire: WireCase) -> None:
    request = request_of(wire)
    made = make_case([CaseExchange(request)], "case", lambda text: text)
    segments = [segment for message in case_of(made).messages for segment in message.segments]
    parts = [part for message in request.messages for part in message.parts]
    said = [part.text for part in parts if isinstance(part, Text) and part.text.strip()]
    words = [segment.text for segment in segments if isinstance(segment, TextSegment)]
    assert [text for text in said if text not in words] == []
    calls = [part.name for part in parts if isinstance(part, ToolCall)]
    assert [segment.name for segment in segments if isinstance(segment, CallSegment)] == calls
    shown = [part for part in parts if isinstance(part, (Image, Document))]
    files = [segment for segment in segments if isinstance(segment, (ImageSegment, FileSegment))]
    told = [each for each in made.left if each.what.startswith(("the image", "the file", "a document", "an image"))]
    assert len(files) >= len(shown) or told


@pytest.mark.parametrize("wire", RECORDED, ids=str)
def test_from_any_turn_on_it_is_a_case_too(wire: WireCase) -> None:
    request = request_of(wire)
    for turn in range(1, len(turns_of(request.messages)[1]) + 1):
        assert case_of(make_case([CaseExchange(request)], "case", lambda text: text, from_turn=turn)).turns
