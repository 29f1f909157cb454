"""What is told of parts and sections beside their words."""

import pytest

from sightline.editing.deletions import Deletions
from sightline.editing.part_details import can_gain_text, category_of, details_of, text_of, tool_name
from sightline.editing.section import SectionPart
from sightline.model.message import Message
from sightline.model.parts import (
    Audio,
    CacheBreakpoint,
    Document,
    FileId,
    Image,
    Inline,
    Link,
    Opaque,
    Part,
    PlainText,
    Text,
    ToolCall,
    ToolResult,
)
from sightline.model.tools import CustomTool, OpaqueTool


@pytest.mark.parametrize(
    ("part", "told"),
    [
        (Text("x"), {}),
        (ToolCall("c", "Bash", "{}"), {"call_id": "c", "name": "Bash"}),
        (ToolResult("c"), {"call_id": "c", "name": ""}),
        (Image(Inline("image/png", "AA==")), {"media_type": "image/png", "url": "data:image/png;base64,AA=="}),
        (Image(Inline("image/png", "A" * 9_000_000)), {"media_type": "image/png", "url": ""}),
        (
            Image(Link("https://example.com/a", "image/png")),
            {"media_type": "image/png", "url": "https://example.com/a"},
        ),
        (Document(FileId("f1"), "a.pdf"), {"url": "file:f1", "name": "a.pdf"}),
        (Document(PlainText("words")), {"media_type": "text/plain", "text": "words", "name": ""}),
        (Audio(id="a1", transcript="hello"), {"name": "a1", "text": "hello"}),
        (CacheBreakpoint(ttl="1h"), {"name": "ephemeral", "text": "1h"}),
    ],
)
def test_details(part: Part, told: dict[str, str]) -> None:
    assert details_of(part) == told


def part(kind: str, text: str = "", reason: str = "") -> SectionPart:
    return SectionPart(id="p", type=kind, pointer="/p", text=text, editable=not reason, reason=reason)  # type: ignore[arg-type]


def test_a_message_without_words_gains_a_text_where_it_has_a_list_for_one() -> None:
    picture, opaque = Image(Link("https://example.com/a"), at="/m/0"), Opaque("raw", {}, at="/m/1")
    assert can_gain_text(Message("user", (picture, opaque, CacheBreakpoint(at="/m/2")), at="/m"))
    assert not can_gain_text(Message("user", (Opaque("raw", {}, at="/m"),), at="/m"))
    call = ToolCall("c", "f", "{}", at="/m/3")
    assert not can_gain_text(Message("assistant", (opaque, call), at="/m"))
    gone = Deletions((frozenset({"/m/3"}),))
    assert can_gain_text(Message("assistant", (opaque, call), at="/m"), gone)


def test_the_text_of_a_section_is_that_of_its_text_parts() -> None:
    assert text_of([part("text", "a"), part("image", reason="no"), part("text", "b")], can_gain_text=False) == (
        "ab",
        "",
    )
    assert text_of([part("text", "a", "sealed"), part("text", "b")], can_gain_text=False) == ("ab", "")
    assert text_of([part("text", "a", "sealed")], can_gain_text=False) == ("a", "sealed")


def test_without_text_parts_it_is_that_of_the_one_call_or_result() -> None:
    assert text_of([part("thinking", "t", "sealed"), part("tool_call", "{}")], can_gain_text=False) == ("{}", "")
    assert text_of([part("tool_result", "out", "no words")], can_gain_text=False) == ("out", "no words")
    text, reason = text_of([part("tool_call", "{}"), part("tool_call", "{}")], can_gain_text=False)
    assert text == ""
    assert "one by one" in reason
    assert text_of([part("image", reason="no")], can_gain_text=True) == ("", "")


def test_categories() -> None:
    picture = Message("user", (Image(Link("https://example.com/a")), CacheBreakpoint()))
    words = Message("user", (Text("x"),))
    assert category_of(picture, "user", is_past=True) == "attachments"
    assert category_of(words, "system", is_past=True) == "system"
    assert category_of(words, "user", is_past=True) == "history"
    assert category_of(Message("user"), "user", is_past=False) == "user"


def test_tools_have_names_or_kinds() -> None:
    assert tool_name(CustomTool("patch")) == "patch"
    assert tool_name(OpaqueTool("x", {"type": "bash_1", "name": "bash"})) == "bash"
    assert tool_name(OpaqueTool("x", {"googleSearch": {}})) == "googleSearch"
    assert tool_name(OpaqueTool("x", {"type": 1})) == ""
    assert tool_name(OpaqueTool("x", None)) == ""
