from typing import Any

import pytest

from sightline.dialects.dialect import Target
from sightline.dialects.openai_chat.settings import read_tool_choice, read_tools
from sightline.model.parts import CacheBreakpoint
from sightline.model.report import Report
from sightline.model.request import CustomTool, FunctionTool, Grammar, OpaqueTool, Request, ToolChoice
from tests.dialects.openai_chat.telling import DIALECT
from tests.dialects.reports import losses, refused_at

SCHEMA: Any = {"type": "object", "properties": {}}


def write(request):
    report = Report()
    return DIALECT.write_request(request, Target(), report), report


def test_function_custom_and_unknown_tools_are_read():
    grammar: Any = {"type": "grammar", "grammar": {"syntax": "lark", "definition": "start: A"}}
    search: Any = {"type": "web_search", "filters": {}}
    tools = read_tools(
        {
            "tools": [
                {
                    "type": "function",
                    "function": {"name": "f", "description": "d", "parameters": SCHEMA, "strict": True},
                },
                {"type": "custom", "custom": {"name": "g", "format": grammar}},
                search,
            ],
            "functions": [{"name": "old", "x": 1}],
        }
    )
    assert tools == (
        FunctionTool("f", "d", SCHEMA, True, at="/tools/0"),
        CustomTool("g", None, Grammar("lark", "start: A"), at="/tools/1"),
        OpaqueTool("openai-chat", search, at="/tools/2"),
        FunctionTool("old", at="/functions/0", extras={"x": 1}),
    )


def test_free_text_is_the_format_of_a_custom_tool_that_names_none():
    [tool] = read_tools({"tools": [{"type": "custom", "custom": {"name": "g", "format": {"type": "text"}}}]})
    assert tool == CustomTool("g", at="/tools/0")


def test_a_format_that_is_unknown_is_kept():
    [tool] = read_tools({"tools": [{"type": "custom", "custom": {"name": "g", "format": {"type": "abnf", "x": 1}}}]})
    assert tool.extras == {"custom": {"format": {"type": "abnf", "x": 1}}}


@pytest.mark.parametrize(
    ("document", "pointer"),
    [
        ({"tools": {}}, None),
        ({"tools": "f"}, "/tools"),
        ({"tools": ["f"]}, "/tools/0"),
        ({"tools": [{"type": "function", "function": {}}]}, "/tools/0/function/name"),
        ({"tools": [{"type": "custom", "custom": {"name": "g", "format": "text"}}]}, "/tools/0/custom/format"),
        ({"functions": [7]}, "/functions/0"),
    ],
)
def test_a_tool_of_the_wrong_shape_is_a_fault_with_its_place(document, pointer):
    if pointer is None:
        assert read_tools(document) == ()
        return
    assert refused_at(read_tools, document) == pointer


CHOICES = [
    ("auto", ToolChoice("auto", at="/tool_choice")),
    ("none", ToolChoice("none", at="/tool_choice")),
    ("required", ToolChoice("required", at="/tool_choice")),
    ({"type": "function", "function": {"name": "f"}}, ToolChoice("named", ("f",), at="/tool_choice")),
    ({"type": "custom", "custom": {"name": "g"}}, ToolChoice("named", ("g",), at="/tool_choice")),
    (
        {
            "type": "allowed_tools",
            "allowed_tools": {"mode": "auto", "tools": [{"type": "custom", "custom": {"name": "g"}}]},
        },
        ToolChoice("auto", ("g",), at="/tool_choice"),
    ),
]


@pytest.mark.parametrize(("value", "choice"), CHOICES)
def test_every_choice_is_read_and_written_back(value, choice):
    assert read_tool_choice({"tool_choice": value}) == choice
    tools = (FunctionTool("f"), CustomTool("g"))
    for dialect in ("openai-chat", "other"):
        document, report = write(Request(tools=tools, tool_choice=choice, dialect=dialect))
        assert document["tool_choice"] == value
        assert report.losses == ()


@pytest.mark.parametrize(
    "value",
    [
        "any",
        {"type": "mcp", "server": "x"},
        {"type": "function"},
        {"type": "allowed_tools"},
        {"type": "allowed_tools", "allowed_tools": {"mode": "any", "tools": []}},
        {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": ["f"]}},
        {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [{"type": "mcp", "mcp": {"name": "f"}}]}},
        {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [{"type": "function", "function": 1}]}},
    ],
)
def test_a_choice_that_only_this_dialect_knows_is_opaque_and_a_loss_elsewhere(value):
    choice = read_tool_choice({"tool_choice": value})
    assert choice == ToolChoice("opaque", value=value, at="/tool_choice")
    assert write(Request(tool_choice=choice, dialect="openai-chat"))[0]["tool_choice"] == value
    document, report = write(Request(tool_choice=choice, dialect="other"))
    assert "tool_choice" not in document
    assert losses(report) == [("/tool_choice", "option")]


def test_the_legacy_choice_stays_where_it_was():
    values: tuple[Any, ...] = ("auto", {"name": "f", "x": 1})
    plain, named = (read_tool_choice({"function_call": value}) for value in values)
    for choice, value in zip((plain, named), values, strict=True):
        assert write(Request(tool_choice=choice, dialect="openai-chat"))[0]["function_call"] == value
    assert write(Request(tools=(FunctionTool("f"),), tool_choice=named, dialect="other"))[0]["tool_choice"] == {
        "type": "function",
        "function": {"name": "f"},
    }
    assert read_tool_choice({}) is None


def test_a_legacy_choice_beside_the_new_one_is_kept():
    body = {"messages": [], "tool_choice": "auto", "function_call": "none"}
    request = DIALECT.read_request(body)
    assert (request.tool_choice.mode, request.extras) == ("auto", {"function_call": "none"})
    assert write(request)[0] == body


def test_tools_of_others_lose_what_this_dialect_cannot_say():
    tools = (
        FunctionTool("f", cache=CacheBreakpoint(at="/tools/0/cache_control")),
        OpaqueTool("anthropic", {"type": "bash_20250124"}, at="/tools/1"),
    )
    document, report = write(Request(tools=tools, dialect="anthropic"))
    assert document["tools"] == [{"type": "function", "function": {"name": "f"}}]
    assert losses(report) == [
        ("/tools/0/cache_control", "option"),
        ("/tools/1", "option"),
    ]


def test_tool_choice_is_never_written_without_a_tool():
    tools = (OpaqueTool("anthropic", {"type": "web_search_20250305"}, at="/tools/0"),)
    document, report = write(Request(tools=tools, tool_choice=ToolChoice("auto", at="/c"), dialect="anthropic"))
    assert "tool_choice" not in document
    assert losses(report) == [("/tools/0", "option"), ("/c", "identity")]


def test_parallel_calls_are_spoken_of_beside_tools_only():
    def told(wish, dialect="gemini", tools=()):
        document, report = write(Request(tools=tools, parallel_tool_calls=wish, dialect=dialect))
        return document.get("parallel_tool_calls"), losses(report)

    assert told(False, tools=(FunctionTool("f"),)) == (False, [])
    assert told(False) == told(True) == (None, [("/parallel_tool_calls", "identity")])
    assert told(True, "openai-chat") == (True, [])
