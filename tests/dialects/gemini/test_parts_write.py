import pytest

from sightline.dialects.gemini.parts_write import arguments_object, call_part, media_part
from sightline.model.parts import Audio, Document, FileId, Image, Inline, Link, PlainText, ToolCall
from sightline.model.report import Addition, Report


def lost(report):
    return [(loss.pointer, loss.what, loss.severity) for loss in report.losses]


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
    assert media_part(Image(Inline("image/png", "AA")), "", report) == {
        "inlineData": {"mimeType": "image/png", "data": "AA"}
    }
    assert media_part(Image(Inline("", "AA")), "", report) == {"inlineData": {"data": "AA"}}
    assert media_part(Document(PlainText("hällo")), "", report) == {
        "inlineData": {"mimeType": "text/plain", "data": "aMOkbGxv"}
    }
    assert media_part(Audio(Link("https://x/a", "audio/wav")), "", report) == {
        "fileData": {"fileUri": "https://x/a", "mimeType": "audio/wav"}
    }
    assert (report.losses, report.additions) == ((), ())


def test_the_type_of_a_link_is_guessed_by_its_end():
    report = Report()
    assert media_part(Image(Link("https://x/a.JPG?size=1#f")), "/contents/0/parts/1", report) == {
        "fileData": {"fileUri": "https://x/a.JPG?size=1#f", "mimeType": "image/jpeg"}
    }
    assert report.additions == (
        Addition(
            "/contents/0/parts/1/fileData/mimeType", "image/jpeg", "gemini wants the media type of a link", "option"
        ),
    )
    assert media_part(Image(Link("https://x/a")), "", report) == {"fileData": {"fileUri": "https://x/a"}}


def test_bytes_that_another_provider_has_are_lost():
    report = Report()
    assert media_part(Image(FileId("file-1"), at="/i"), "", report) is None
    assert media_part(Audio(None, id="a1", at="/a"), "", report) is None
    assert lost(report) == [
        ("/i", "uploaded bytes", "content"),
        ("/a", "id of spoken sound", "identity"),
        ("/a", "uploaded bytes", "content"),
    ]


def test_what_media_say_about_themselves_is_lost():
    report = Report()
    media_part(Image(Link("u", "image/png"), detail="high", at="/i"), "", report)
    media_part(Document(Link("u", "x"), title="T", context="C", cite=True, at="/d"), "", report)
    media_part(Audio(Link("u", "x"), transcript="words", at="/a"), "", report)
    assert lost(report) == [
        ("/i", "detail", "option"),
        ("/d", "title", "identity"),
        ("/d", "context", "content"),
        ("/d", "citations", "option"),
        ("/a", "transcript", "content"),
    ]


def test_the_words_of_sound_that_is_elsewhere_are_carried():
    report = Report()
    assert media_part(Audio(transcript="words", at="/a"), "", report) == {"text": "words"}
    assert lost(report) == [("/a", "spoken sound", "content")]
