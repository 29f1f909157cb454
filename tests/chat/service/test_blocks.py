"""An answer in blocks."""

from sightline.chat.core.pair import ChatAnswer
from sightline.chat.service.blocks import (
    CallBlock,
    MediaBlock,
    RefusalBlock,
    ResultShown,
    TextBlock,
    ThinkingBlock,
    blocks_of,
    is_shown,
    media_of,
)
from sightline.model.parts import (
    Audio,
    CacheBreakpoint,
    Image,
    Inline,
    Link,
    Opaque,
    Part,
    Refusal,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from sightline.model.request import Message

PICTURE = Image(Inline("image/png", "aGk="))
SOUND = Audio(Inline("audio/wav", "aG8="))
LINKED = Image(Link("https://example.org/x.png"))


def said(*parts: Part) -> Message:
    return Message("assistant", parts)


def results(*parts: ToolResult) -> Message:
    return Message("tool", parts)


def test_each_part_that_can_be_seen_is_a_block() -> None:
    parts = (Thinking("hm"), Text("yes"), Opaque("gemini", 1), CacheBreakpoint(), Refusal("no"), PICTURE, LINKED)
    assert blocks_of(ChatAnswer(messages=(said(*parts),))) == (
        ThinkingBlock("hm"),
        TextBlock("yes"),
        RefusalBlock("no"),
        MediaBlock(0, "image/png"),
        MediaBlock(1, "application/octet-stream"),
    )
    assert [is_shown(part) for part in parts] == [True, True, False, False, True, True, True]


def test_tool_results_are_matched_to_calls_even_with_reused_ids() -> None:
    answer = ChatAnswer(
        messages=(
            said(Text("let me see"), ToolCall("1", "look", "{}"), ToolCall("2", "hear", "{}")),
            results(ToolResult("1", (Text("a "), Text("cat"), PICTURE)), ToolResult("2", (SOUND,), is_error=True)),
            said(ToolCall("1", "count", "{}"), ToolCall("3", "never", "{}")),
            results(ToolResult("1", structured={"n": 1})),
            said(ToolCall("4", "cut", "{}")),
            results(ToolResult("4", structured={"half": "\ud83d"})),
            said(Text("one cat")),
        )
    )
    assert blocks_of(answer) == (
        TextBlock("let me see"),
        CallBlock("1", "look", "{}", ResultShown("a cat", media=1, first=0)),
        CallBlock("2", "hear", "{}", ResultShown("", is_error=True, media=1, first=1)),
        CallBlock("1", "count", "{}", ResultShown('{"n":1}')),
        CallBlock("3", "never", "{}"),
        CallBlock("4", "cut", "{}", ResultShown('{"half":"\\ud83d"}')),
        TextBlock("one cat"),
    )
    assert media_of(answer) == (PICTURE, SOUND)


def test_a_call_that_was_not_allowed_is_told_apart_from_one_that_failed() -> None:
    calls = tuple(ToolCall(name, "add", "{}") for name in "ab")
    results = (
        ToolResult("a", (Text("The user does not allow this call. Not today."),), is_error=True),
        ToolResult("b", (Text("division by zero"),), is_error=True),
    )
    answer = ChatAnswer(messages=(Message("assistant", calls), Message("tool", results)))
    shown = [block.result for block in blocks_of(answer) if isinstance(block, CallBlock)]
    assert [(each.is_error, each.is_denied) for each in shown if each is not None] == [(True, True), (True, False)]
