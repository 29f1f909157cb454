import pytest

from sightline.dialects.anthropic.sources import foreign_source, own_source, read_source
from sightline.errors import Fault
from sightline.model.parts import Document, FileId, Image, Inline, Link, PlainText
from sightline.model.report import Report

SOURCES = [
    ({"type": "base64", "media_type": "image/png", "data": "AAAA"}, Inline("image/png", "AAAA")),
    ({"type": "url", "url": "https://example.com/a"}, Link("https://example.com/a")),
    ({"type": "file", "file_id": "file_1"}, FileId("file_1")),
    ({"type": "text", "media_type": "text/plain", "data": "words"}, PlainText("words")),
]


@pytest.mark.parametrize(("wire", "source"), SOURCES)
def test_every_kind_of_source_is_read_and_written(wire, source):
    assert read_source(wire, "/source") == (source, {})
    assert own_source(source) == wire


def test_unknown_members_are_kept():
    assert read_source({"type": "url", "url": "u", "fresh": 1}, "")[1] == {"fresh": 1}


def test_an_unknown_kind_is_left_to_the_caller():
    assert read_source({"type": "hologram"}, "") == (None, {})


def test_a_source_without_its_data_names_the_place():
    with pytest.raises(Fault) as caught:
        read_source({"type": "base64", "media_type": "image/png"}, "/x/source")
    assert caught.value.pointer == "/x/source/data"


@pytest.mark.parametrize(
    ("part", "written"),
    [
        (Image(Inline("image/png", "AAAA")), {"type": "base64", "media_type": "image/png", "data": "AAAA"}),
        (Image(Link("https://e.com/a.png")), {"type": "url", "url": "https://e.com/a.png"}),
        (Document(Link("http://e.com/a.pdf")), {"type": "url", "url": "http://e.com/a.pdf"}),
        (
            Document(Inline("application/pdf", "JVBE")),
            {"type": "base64", "media_type": "application/pdf", "data": "JVBE"},
        ),
        (
            Document(Inline("application/pdf;name=a.pdf", "JVBE")),
            {"type": "base64", "media_type": "application/pdf", "data": "JVBE"},
        ),
        (Document(PlainText("a")), {"type": "text", "media_type": "text/plain", "data": "a"}),
        (Document(Inline("text/plain", "YSxi")), {"type": "text", "media_type": "text/plain", "data": "a,b"}),
    ],
)
def test_what_another_dialect_holds_is_sent_where_the_api_can_take_it(part, written):
    report = Report()
    assert foreign_source(part, report) == written
    assert not report.losses


@pytest.mark.parametrize(
    "part",
    [
        Image(FileId("file-openai"), at="/p"),
        Document(FileId("file-openai"), at="/p"),
        Image(Link("gs://bucket/a.png"), at="/p"),
        Image(PlainText("no picture"), at="/p"),
        Image(Inline("", "AAAA"), at="/p"),
        Image(Inline("image/bmp", "AAAA"), at="/p"),
        Document(Inline("", "AAAA"), at="/p"),
        Document(Inline("application/zip", "AAAA"), at="/p"),
        Document(Inline("text/plain", "not base64!"), at="/p"),
        Document(Inline("text/plain", "/w=="), at="/p"),
    ],
)
def test_what_the_api_cannot_take_is_a_loss_of_content(part):
    report = Report()
    assert foreign_source(part, report) is None
    assert [(loss.pointer, loss.severity) for loss in report.losses] == [("/p", "content")]


@pytest.mark.parametrize(
    "part",
    [
        Image(Link("https://e.com/a.png", "image/png"), at="/p"),
        Document(PlainText("a", "text/markdown"), at="/p"),
        Document(Inline("text/csv", "YSxi"), at="/p"),
        Image(Inline("image/jpg", "AAAA"), at="/p"),
        Image(Inline("image/PNG;x=1", "AAAA"), at="/p"),
    ],
)
def test_a_media_type_that_cannot_be_said_is_told(part):
    report = Report()
    assert foreign_source(part, report) is not None
    assert [(loss.pointer, loss.severity) for loss in report.losses] == [("/p", "identity")]
