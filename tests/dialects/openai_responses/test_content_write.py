import pytest

from sightline.dialects.openai_responses.content import OUTPUT, ContentWriter
from sightline.dialects.openai_responses.names import NAME
from sightline.model.parts import (
    Audio,
    CacheBreakpoint,
    Citation,
    Document,
    FileId,
    Image,
    Inline,
    Link,
    Opaque,
    PlainText,
    Refusal,
    Text,
    Thinking,
)
from sightline.model.report import Report
from tests.dialects.openai_responses.cases import losses


def written(part, source="anthropic", text="input_text"):
    report = Report()
    parts = ContentWriter(report, source).parts((part,), text)
    return (parts[0] if parts else None), [(what, severity) for _, what, severity in losses(report)]


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        (Text("a"), {"type": "input_text", "text": "a"}),
        (Refusal("no"), {"type": "refusal", "refusal": "no"}),
        (Image(Link("u"), "high"), {"type": "input_image", "image_url": "u", "detail": "high"}),
        (Image(Inline("image/png", "AA")), {"type": "input_image", "image_url": "data:image/png;base64,AA"}),
        (Document(Link("u"), "t"), {"type": "input_file", "file_url": "u", "filename": "t"}),
        (
            Document(Inline("application/pdf", "AA")),
            {"type": "input_file", "file_data": "data:application/pdf;base64,AA"},
        ),
        (Document(Inline("", "AA")), {"type": "input_file", "file_data": "AA"}),
        (Document(PlainText("hi")), {"type": "input_file", "file_data": "data:text/plain;base64,aGk="}),
        (Opaque(NAME, {"type": "x"}), {"type": "x"}),
    ],
)
def test_what_can_be_said_is_said_without_loss(part, expected):
    assert written(part) == (expected, [])


@pytest.mark.parametrize(
    ("part", "what", "severity"),
    [
        (CacheBreakpoint(), "cache mark", "option"),
        (Image(FileId("f")), "image", "content"),
        (Image(PlainText("x")), "image", "content"),
        (Document(FileId("f")), "document", "content"),
        (Audio(Inline("audio/mpeg", "AA")), "audio", "content"),
        (Audio(id="audio_1"), "audio", "content"),
        (Opaque("gemini", {}), "opaque part of gemini", "content"),
        (Thinking("x"), "part", "content"),
    ],
)
def test_what_cannot_be_said_is_a_loss(part, what, severity):
    assert written(part) == (None, [(what, severity)])


def test_what_stands_elsewhere_too_is_no_loss():
    assert written(Opaque("gemini", {}, mirrored=True)) == (None, [])


def test_files_are_shared_between_the_apis_of_one_vendor():
    assert written(Image(FileId("f")), "openai-chat") == ({"type": "input_image", "file_id": "f"}, [])
    assert written(Document(FileId("f")), "openai-chat") == ({"type": "input_file", "file_id": "f"}, [])


def test_an_assistant_speaks_output_text_and_shows_no_pictures():
    expected = {"type": "output_text", "text": "a", "annotations": []}
    assert written(Text("a"), text=OUTPUT) == (expected, [])
    assert written(Image(Link("u")), text=OUTPUT) == (None, [("image of the assistant", "content")])
    assert written(Image(Link("u")), NAME, OUTPUT) == ({"type": "input_image", "image_url": "u"}, [])


def test_citations_stand_in_output_only():
    cited = Text("a", (Citation(url="u", start=0, end=1), Citation(title="no place")))
    document, lost = written(cited, text=OUTPUT)
    assert [note["url"] for note in document["annotations"]] == ["u"]
    assert lost == [("a citation", "option")]
    assert written(cited) == ({"type": "input_text", "text": "a"}, [("citations", "option")])


@pytest.mark.parametrize(
    ("part", "what", "severity"),
    [
        (Text("a", signature="s", signed_by="gemini"), "signature", "identity"),
        (Image(Link("u"), signature="s", signed_by="gemini"), "signature", "identity"),
        (Image(Link("u", "image/png")), "media type image/png", "identity"),
        (Image(Link("u"), "ultra"), "detail 'ultra' of an image", "option"),
        (Document(Link("u"), context="c"), "context of a document", "content"),
        (Document(Link("u"), cite=True), "citations requested", "option"),
    ],
)
def test_what_a_part_has_besides_is_a_loss(part, what, severity):
    document, lost = written(part)
    assert document is not None
    assert lost == [(what, severity)]


def test_our_own_spelling_comes_back():
    assert written(Text("a", extras={"type": "input_text", "x": 1}), NAME, OUTPUT) == (
        {"type": "input_text", "text": "a", "x": 1},
        [],
    )
    assert written(Text("a", extras={"annotations": None}), NAME, OUTPUT) == ({"type": "output_text", "text": "a"}, [])
    assert written(Text("a", extras={"logprobs": None}), NAME)[0] == {"type": "input_text", "text": "a", "logprobs": []}
    assert written(Image(Link("u"), "ultra"), NAME)[0] == {"type": "input_image", "image_url": "u", "detail": "ultra"}
    own = Audio(Inline("audio/flac", "AA"), extras={"input_audio": {"rate": 8}})
    assert written(own, NAME)[0] == {
        "type": "input_audio",
        "input_audio": {"data": "AA", "format": "flac", "rate": 8},
    }
