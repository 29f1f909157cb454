import pytest

from sightline.dialects.gemini.parts import arguments_object, call_part, media_part
from sightline.model.parts import Audio, Document, FileId, Image, Inline, Link, PlainText, ToolCall
from sightline.model.report import Addition, Report


def lost(report):
    return [(loss.pointer, loss.what, loss.severity) for loss in report.losses]


def media(part, place, report, *, same=False):
    return media_part(part, place, report, same=same)


def test_a_call_has_an_id_where_there_is_one():
    report = Report()
    assert call_part(ToolCall("1", "f", '{"a": 1}', namespace="ns"), report) == {
        "functionCall": {"id": "1", "name": "ns__f", "args": {"a": 1}}
    }
    assert call_part(ToolCall("", "f", ""), report) == {"functionCall": {"name": "f", "args": {}}}
    assert lost(report) == []
    call_part(ToolCall("", "f", "{}", item="fc_1", at="/c"), report)
    assert lost(report) == [("/c", "id of the output item", "identity")]


@pytest.mark.parametrize("text", ["[1]", "not json", '"word"'])
def test_arguments_that_are_no_object_go_whole_under_one_name(text):
    report = Report()
    assert arguments_object(ToolCall("1", "f", text, at="/c"), report) == {"input": text}
    assert lost(report) == [("/c", "form of the arguments", "content")]


def test_a_custom_call_has_its_text_as_the_one_argument():
    report = Report()
    assert arguments_object(ToolCall("1", "f", "free text", kind="custom"), report) == {"input": "free text"}
    assert lost(report) == []


def test_sources():
    report = Report()
    assert media(Image(Inline("image/png", "AA")), "", report) == {
        "inlineData": {"mimeType": "image/png", "data": "AA"}
    }
    assert media(Document(PlainText("hällo")), "", report) == {
        "inlineData": {"mimeType": "text/plain", "data": "aMOkbGxv"}
    }
    assert media(Audio(Link("https://x/a", "audio/wav")), "", report) == {
        "fileData": {"fileUri": "https://x/a", "mimeType": "audio/wav"}
    }
    assert (report.losses, report.additions) == ((), ())


def test_the_type_of_a_link_is_guessed_by_its_end():
    report = Report()
    assert media(Image(Link("https://x/a.JPG?size=1#f")), "/contents/0/parts/1", report) == {
        "fileData": {"fileUri": "https://x/a.JPG?size=1#f", "mimeType": "image/jpeg"}
    }
    assert report.additions == (
        Addition(
            "/contents/0/parts/1/fileData/mimeType", "image/jpeg", "gemini wants the media type of a link", "option"
        ),
    )
    assert media(Image(Link("https://x/a")), "", report) == {"fileData": {"fileUri": "https://x/a"}}


def test_bytes_that_another_provider_has_are_lost():
    report = Report()
    assert media(Image(FileId("file-1"), at="/i"), "", report) is None
    assert media(Audio(None, id="a1", at="/a"), "", report) is None
    assert lost(report) == [
        ("/i", "uploaded bytes", "content"),
        ("/a", "id of spoken sound", "identity"),
        ("/a", "uploaded bytes", "content"),
    ]


def test_what_media_say_about_themselves_is_lost():
    report = Report()
    media(Image(Link("https://u", "image/png"), detail="high", at="/i"), "", report)
    media(Image(Link("https://u", "image/png"), detail="auto", at="/j"), "", report)
    media(Document(Link("https://u", "x"), title="T", context="C", cite=True, at="/d"), "", report)
    media(Audio(Link("https://u", "x"), transcript="words", at="/a"), "", report)
    assert lost(report) == [
        ("/i", "detail", "option"),
        ("/j", "detail", "identity"),
        ("/d", "title", "identity"),
        ("/d", "context", "content"),
        ("/d", "citations", "option"),
        ("/a", "transcript", "content"),
    ]


def test_the_words_of_sound_that_is_elsewhere_are_carried():
    report = Report()
    assert media(Audio(transcript="words", at="/a"), "", report) == {"text": "words"}
    assert lost(report) == [("/a", "spoken sound", "content")]


@pytest.mark.parametrize(
    "part",
    [
        Image(Link("file:///x.png"), at="/p"),
        Document(Link("ftp://x/y.pdf", "application/pdf"), at="/p"),
        Image(Inline("", "AA"), at="/p"),
        Audio(Inline("audio", "AA"), at="/p"),
        Document(Inline("application/octet-stream", "AA"), at="/p"),
    ],
)
def test_what_the_api_cannot_get_or_read_is_lost(part):
    report = Report()
    assert media(part, "", report) is None
    assert [(loss.pointer, loss.severity) for loss in report.losses] == [("/p", "content")]


def test_sound_of_an_unknown_kind_is_told_in_words():
    report = Report()
    assert media(Audio(Inline("", "AA"), transcript="words", at="/a"), "", report) == {"text": "words"}
    assert lost(report) == [("/a", "spoken sound", "content")]


@pytest.mark.parametrize(
    ("source", "wire"),
    [
        (Inline("", "AA"), {"inlineData": {"data": "AA"}}),
        (Link("https://x/a.png"), {"fileData": {"fileUri": "https://x/a.png"}}),
        (Link("files/abc", "image/png"), {"fileData": {"fileUri": "files/abc", "mimeType": "image/png"}}),
    ],
)
def test_own_media_stay_as_they_stood(source, wire):
    report = Report()
    assert media(Document(source), "", report, same=True) == wire
    assert (report.losses, report.additions) == ((), ())
