from typing import Any

import pytest

from sightline.dialects.openai_chat.content import ContentWriter, is_media
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
    ToolCall,
    ToolResult,
)
from sightline.model.report import Report


def write(*parts, source="other", bare=False, words_only=False):
    report = Report()
    content = ContentWriter(report, source).write(parts, bare=bare, words_only=words_only)
    return content, [(loss.pointer, loss.severity) for loss in report.losses]


def test_one_text_of_another_dialect_is_a_string():
    assert write(Text("hi")) == ("hi", [])
    assert write(Text("hi"), Text("ho"))[0] == [{"type": "text", "text": "hi"}, {"type": "text", "text": "ho"}]
    assert write() == (None, [])
    assert write(Text("")) == ("", [])


def test_content_of_its_own_dialect_stays_a_string_or_a_list():
    assert write(Text("hi"), source="openai-chat", bare=True)[0] == "hi"
    assert write(Text("hi"), source="openai-chat")[0] == [{"type": "text", "text": "hi"}]
    assert write(source="openai-chat")[0] == []
    assert write(source="openai-chat", bare=True)[0] is None


PNG = Inline("image/png", "AAAA")


@pytest.mark.parametrize(
    ("part", "document"),
    [
        (Refusal("no"), {"type": "refusal", "refusal": "no"}),
        (Image(PNG, "low"), {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA", "detail": "low"}}),
        (Image(Link("https://e.org/a")), {"type": "image_url", "image_url": {"url": "https://e.org/a"}}),
        (
            Audio(Inline("audio/mpeg", "AAAA")),
            {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "mp3"}},
        ),
        (
            Document(Inline("application/pdf", "AAAA"), "a.pdf"),
            {"type": "file", "file": {"file_data": "data:application/pdf;base64,AAAA", "filename": "a.pdf"}},
        ),
        (Document(PlainText("words")), {"type": "text", "text": "words"}),
    ],
)
def test_every_part_that_a_message_can_hold(part, document):
    assert write(part, Text("x")) == ([document, {"type": "text", "text": "x"}], [])


@pytest.mark.parametrize(
    ("part", "severities"),
    [
        (Text("t", citations=(Citation(url="u"),), at="/p"), ["option"]),
        (Text("t", signature="s", signed_by="gemini", at="/p"), ["identity"]),
        (Image(PNG, signature="s", signed_by="gemini", at="/p"), ["identity"]),
        (Image(PNG, "very high", at="/p"), ["option"]),
        (Image(FileId("file-1"), at="/p"), ["content"]),
        (Image(Link("https://e.org/a", "image/png"), at="/p"), ["identity"]),
        (Audio(Link("https://e.org/a.wav"), at="/p"), ["content"]),
        (Audio(Inline("video/mp4", "AAAA"), at="/p"), ["content"]),
        (Document(Link("https://e.org/a.pdf"), at="/p"), ["content"]),
        (Document(FileId("file-1"), at="/p"), ["content"]),
        (Document(PNG, context="c", cite=True, at="/p"), ["content", "option"]),
        (Document(PlainText("w", "text/csv"), "t.csv", at="/p"), ["identity", "identity"]),
        (CacheBreakpoint(at="/p"), ["option"]),
        (Thinking("hm", at="/p"), ["content"]),
        (ToolCall("1", "f", "{}", at="/p"), ["content"]),
        (ToolResult("1", at="/p"), ["content"]),
        (Opaque("anthropic", {"type": "x"}, at="/p"), ["content"]),
        (Opaque("anthropic", {"type": "x"}, mirrored=True, at="/p"), []),
    ],
)
def test_what_a_message_cannot_hold_is_reported_where_it_stood(part, severities):
    assert write(part)[1] == [("/p", severity) for severity in severities]


def test_a_file_id_is_good_for_the_vendors_other_api_and_a_link_for_the_same():
    expected = {"type": "file", "file": {"file_id": "file-1"}}
    assert write(Document(FileId("file-1")), source="openai-responses") == ([expected], [])
    linked = {"type": "file", "file": {"file_data": "https://e.org/a"}}
    assert write(Document(Link("https://e.org/a")), source="openai-chat") == ([linked], [])


def test_own_parts_keep_their_extras_and_opaque_ones_everything():
    odd: Any = Opaque("openai-chat", {"type": "video_url", "video_url": {"url": "u"}})
    assert write(Text("t", extras={"x": 1}), odd, source="openai-chat") == (
        [{"type": "text", "text": "t", "x": 1}, odd.value],
        [],
    )
    assert write(Opaque("openai-chat", "odd"), source="openai-chat", bare=True)[0] == ["odd"]


def test_roles_that_take_words_only_lose_the_rest():
    assert write(Text("t"), Image(PNG, at="/p"), words_only=True) == ("t", [("/p", "content")])
    assert write(Image(PNG), source="openai-chat", words_only=True)[1] == []


def test_a_text_document_is_words():
    assert is_media(Document(PNG))
    assert is_media(Audio())
    assert not is_media(Document(PlainText("w")))
    assert not is_media(Text("w"))


def test_a_structured_result_is_told_as_json():
    writer = ContentWriter(Report(), "gemini")
    assert writer.write_structured(ToolResult("1", structured={"a": [1]})).text == '{"a":[1]}'
    assert writer.write_structured(ToolResult("1")).text == "{}"
