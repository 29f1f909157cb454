from sightline.model.comparison import of_message, of_part, of_parts, of_tool
from sightline.model.message import Message
from sightline.model.parts import CacheBreakpoint, Citation, Image, Link, Text, Thinking, ToolCall, ToolResult
from sightline.model.tools import FunctionTool


def test_words_are_the_same_at_another_place() -> None:
    cited = Citation(url="https://example.com", at="/a/citations/0")
    here, there = Text("hello", (cited,), at="/a"), Text("hello", (Citation(url="https://example.com"),), at="/b")
    assert of_part(here) == of_part(there)
    assert of_part(here) != of_part(Text("hullo", (cited,), at="/a"))


def test_a_call_keeps_the_id_that_its_result_names_and_not_that_of_its_item() -> None:
    assert of_part(ToolCall("c1", "add", "{}", item="fc_1", at="/a")) == ToolCall("c1", "add", "{}")
    assert of_part(ToolCall("c1", "add", "{}")) != of_part(ToolCall("c2", "add", "{}"))


def test_a_result_is_the_same_as_a_string_and_as_a_list_with_a_mark() -> None:
    bare = ToolResult("c1", (Text("3", at="/a/content"),), bare=True, at="/a")
    listed = ToolResult("c1", (Text("3", at="/a/content/0"), CacheBreakpoint()), item="o_1", at="/b")
    assert of_part(bare) == of_part(listed)


def test_reasoning_is_the_same_without_its_item_id() -> None:
    assert of_part(Thinking("hm", id="rs_1", signature="s")) == of_part(Thinking("hm", signature="s", at="/x"))


def test_a_picture_only_loses_its_place() -> None:
    assert of_part(Image(Link("https://example.com/a.png"), at="/a")) == Image(Link("https://example.com/a.png"))


def test_a_message_is_the_same_with_and_without_marks() -> None:
    marked = Message("user", (Text("hello", at="/m/0"), CacheBreakpoint(at="/m/0/cache_control")), at="/m", id="msg_1")
    assert of_message(marked) == of_message(Message("user", (Text("hello"),), bare=True))
    assert of_parts(marked.parts) == (Text("hello"),)


def test_a_tool_is_the_same_with_and_without_a_mark() -> None:
    assert of_tool(FunctionTool("add", cache=CacheBreakpoint(), at="/tools/0")) == FunctionTool("add")
