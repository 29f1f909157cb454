import msgspec
import pytest

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
    Part,
    PlainText,
    Refusal,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)

EVERY_PART: list[Part] = [
    Text(
        "hi", (Citation(url="https://example.com", start=0, end=2, value={"a": [1]}),), at="/content/0", extras={"x": 1}
    ),
    Refusal("no"),
    Image(Inline("image/png", "AAAA"), "high"),
    Image(Link("https://example.com/a.png")),
    Document(FileId("file-1"), "title", "context", cite=True),
    Document(PlainText("words")),
    Audio(Inline("audio/wav", "AAAA"), "a1", "words"),
    Thinking("hm", ("hm",), "r1", "sealed", "anthropic", redacted=False),
    ToolCall("c1", "add", '{"a": 1}', "custom", "ns", "i1"),
    ToolResult("c1", (Text("2"), Image(Link("u"))), "add", is_error=True, structured={"a": 1}),
    CacheBreakpoint("ephemeral", "1h"),
    Opaque("gemini", {"executableCode": {"code": "1"}}),
]


@pytest.mark.parametrize("part", EVERY_PART, ids=lambda part: type(part).__name__)
def test_every_part_is_tagged_and_comes_back_as_it_was(part: Part) -> None:
    text = msgspec.json.encode(part)
    assert b'"type":' in text
    assert msgspec.json.decode(text, type=Part) == part


def test_parts_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        Text("hi").text = "ho"  # type: ignore[misc] # that it is refused is the point


def test_what_is_unset_is_not_written() -> None:
    assert msgspec.json.encode(Text("hi")) == b'{"type":"text","text":"hi"}'
