"""Which result answers which call: by id, or by name and order."""

from sightline.editing.pairs import halves_of, pairs_of
from sightline.model.message import Message
from sightline.model.parts import Opaque, Part, Text, ToolCall, ToolResult


def places(*parts: Part) -> list[tuple[str, str]]:
    return [(call.at, result.at) for call, result in pairs_of([Message("user", parts)])]


def call(at: str, call_id: str = "", name: str = "f") -> ToolCall:
    return ToolCall(call_id, name, "{}", at=at)


def result(at: str, call_id: str = "", name: str | None = "f") -> ToolResult:
    return ToolResult(call_id, (), name, at=at)


def foreign(at: str, **value: str) -> Opaque:
    return Opaque("anthropic", dict(value), at=at)


def test_pairs_share_an_id() -> None:
    assert places(call("/1", "a"), call("/2", "b"), result("/3", "b"), result("/4", "a"), Text("x")) == [
        ("/2", "/3"),
        ("/1", "/4"),
    ]
    assert places(call("/1", "a"), result("/2", "other", None)) == []


def test_without_ids_the_name_and_the_order_tell() -> None:
    assert places(call("/1"), call("/2"), call("/3", name="g"), result("/4", name="g"), result("/5")) == [
        ("/3", "/4"),
        ("/1", "/5"),
    ]


def test_where_only_one_of_the_two_has_an_id_the_name_tells() -> None:
    assert places(call("/1", "a"), result("/2")) == [("/1", "/2")]
    assert places(call("/1"), result("/2", "a")) == [("/1", "/2")]
    assert places(call("/1", "a"), result("/2", name="g")) == []


def test_tools_of_the_server_are_paired_too() -> None:
    used = foreign("/1", type="server_tool_use", id="w")
    found = foreign("/2", type="web_search_tool_result", tool_use_id="w")
    shell = foreign("/3", type="local_shell_call", call_id="c")
    output = foreign("/4", type="local_shell_call_output", call_id="c")
    assert places(used, found, shell, output) == [("/1", "/2"), ("/3", "/4")]
    assert places(found, foreign("/5", type="compaction"), foreign("/6"), Opaque("raw", 1, at="/7")) == []


def test_the_words_of_a_result_do_not_decide() -> None:
    one = Message("tool", (ToolResult("a", (Text("x"),), at="/1"), Text("y")))
    two = Message("tool", (ToolResult("a", (Text("z"),), at="/1"),))
    assert halves_of(one) == halves_of(two) != halves_of(Message("tool", (ToolResult("b", at="/1"),)))


def test_an_approval_answers_its_request() -> None:
    request = foreign("/1", type="mcp_approval_request", id="mcpr_1", name="f", arguments="{}")
    response = foreign("/2", type="mcp_approval_response", approval_request_id="mcpr_1")
    assert places(request, response) == [("/1", "/2")]
