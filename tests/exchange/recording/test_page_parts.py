import pytest

from sightline.exchange.recording.page import message_html, parts_html, tool_html, words
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
    Refusal,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from sightline.model.tools import CustomTool, FunctionTool, Grammar, OpaqueTool, Tool


@pytest.mark.parametrize(
    ("part", "shown"),
    [
        (Text(text="a < b"), "a &lt; b"),
        (Refusal(text="I won't"), "refused"),
        (Thinking(text="hm"), "<summary>thinking</summary>"),
        (Thinking(redacted=True), "withheld"),
        (Thinking(signature="s"), "sealed"),
        (ToolCall(id="c<1", name="Bash", arguments='{"a":1}'), "c&lt;1"),
        (ToolCall(id="", name="Bash", arguments="not <json>"), "not &lt;json&gt;"),
        (ToolResult(id="c", parts=(Text(text="done"),)), "<h3>result"),
        (ToolResult(id="c", structured={"a": 1}, is_error=True), "<h3>error"),
        (Image(source=Inline("image/png", "aGk=")), 'src="data:image/png;base64,aGk="'),
        (Image(source=Inline("image/svg+xml", "aGk=")), "image/svg+xml, 3 bytes"),
        (Image(source=Inline("image/png", '"><script>')), "picture · image/png"),
        (Image(source=Link("http://x/<y>")), "http://x/&lt;y&gt;"),
        (Document(source=PlainText("text"), title="T"), "document · T · text/plain"),
        (Document(source=FileId("f1")), "document · f1"),
        (Audio(transcript="said"), "kept by the provider"),
        (Opaque(dialect="anthropic", value={"type": "x<"}), "x&lt;"),
        (CacheBreakpoint(), "cached up to here"),
    ],
)
def test_every_part_has_a_form_in_which_it_can_do_no_harm(part: Part, shown: str) -> None:
    html = parts_html([part])
    assert shown in html
    assert "<script" not in html


@pytest.mark.parametrize(
    ("tool", "shown"),
    [
        (FunctionTool(name="f<", description="does", schema={"type": "object"}), "f&lt;"),
        (FunctionTool(name="f"), "{}"),
        (CustomTool(name="c", grammar=Grammar("lark", "start: <x>")), "start: &lt;x&gt;"),
        (CustomTool(name="c"), "<summary>c</summary>"),
        (OpaqueTool(dialect="anthropic", value={"type": "web_search"}), "web_search"),
    ],
)
def test_every_tool_is_shown(tool: Tool, shown: str) -> None:
    assert shown in tool_html(tool)


def test_a_message_says_whose_it_is_and_long_words_are_folded_away() -> None:
    html = message_html(Message("user", (Text(text="x" * 4000),), name="Bo<b"))
    assert '<article class="user"><h3>user · Bo&lt;b</h3><details>' in html
    assert "(4,000 characters)" in html
    assert words("") == ""
