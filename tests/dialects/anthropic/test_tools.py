"""Tools and the choice among them, client tools included."""

from typing import Any

import pytest

from sightline.dialects.anthropic.request import read_choice, read_client_tool, read_tools, write_choice, write_tools
from sightline.model.parts import CacheBreakpoint
from sightline.model.report import Report
from sightline.model.request import CustomTool, FunctionTool, Grammar, OpaqueTool, Request, ToolChoice
from tests.dialects.reports import added_at, losses, refused_at

SCHEMA: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "string"}}}
F = FunctionTool("f", "F", SCHEMA)

OWN_TOOLS: list[Any] = [
    {"name": "f", "description": "F", "input_schema": SCHEMA, "strict": True},
    {"type": "custom", "name": "f", "cache_control": {"type": "ephemeral", "ttl": "1h"}, "input_examples": [{}]},
    {"type": "web_search_20250305", "name": "web_search", "cache_control": {"type": "ephemeral"}},
    {"type": "mcp_toolset", "mcp_server_name": "kb"},
]

OWN_CHOICES: list[Any] = [
    {"type": "auto"},
    {"type": "any", "disable_parallel_tool_use": False},
    {"type": "tool", "name": "f", "disable_parallel_tool_use": True, "new": 1},
    {"type": "none"},
    {"type": "oracle", "disable_parallel_tool_use": True},
]


def write(*tools, choice=None, parallel=None, same=False):
    report = Report()
    body: dict[str, Any] = {}
    request = Request(tools=tools, tool_choice=choice, parallel_tool_calls=parallel)
    write_tools(request, body, report, same=same)
    write_choice(request, body, report, same=same)
    return body, report


def test_tools_are_read():
    f, typed, search, toolset = read_tools({"tools": OWN_TOOLS})
    assert f == FunctionTool("f", "F", SCHEMA, strict=True, at="/tools/0")
    cache = CacheBreakpoint("ephemeral", "1h", at="/tools/1/cache_control")
    assert typed == FunctionTool("f", cache=cache, at="/tools/1", extras={"type": "custom", "input_examples": [{}]})
    assert search == OpaqueTool("anthropic", OWN_TOOLS[2], at="/tools/2")
    assert toolset == OpaqueTool("anthropic", OWN_TOOLS[3], at="/tools/3")


def test_own_tools_are_written_back_as_they_were():
    body, report = write(*read_tools({"tools": OWN_TOOLS}), same=True)
    assert body == {"tools": OWN_TOOLS}
    assert not report.losses


def test_a_custom_tool_that_was_put_into_an_own_request_becomes_a_function():
    body, _ = write(CustomTool("patch", "P"), same=True)
    assert body["tools"][0]["input_schema"]["required"] == ["input"]


@pytest.mark.parametrize(
    ("tool", "pointer"),
    [
        ("f", "/tools/0"),
        ({"description": "F"}, "/tools/0/name"),
        ({"name": "f", "type": 5}, "/tools/0/type"),
        ({"name": "f", "input_schema": "x"}, "/tools/0/input_schema"),
    ],
)
def test_a_malformed_tool_names_the_place(tool, pointer):
    assert refused_at(read_tools, {"tools": [tool]}) == pointer


def test_a_function_is_carried_and_no_description_is_no_null():
    body, report = write(FunctionTool("f", None, SCHEMA, strict=False, cache=CacheBreakpoint("ephemeral", "1h")))
    cache = {"type": "ephemeral", "ttl": "1h"}
    assert body["tools"] == [{"name": "f", "input_schema": SCHEMA, "strict": False, "cache_control": cache}]
    assert not report.losses
    assert not report.additions


@pytest.mark.parametrize(
    ("schema", "written"),
    [
        (None, {"type": "object", "properties": {}}),
        ({}, {"type": "object"}),
        ({"properties": {}}, {"type": "object", "properties": {}}),
    ],
)
def test_a_schema_of_an_object_is_demanded(schema, written):
    body, report = write(FunctionTool("f", schema=schema))
    assert body["tools"][0]["input_schema"] == written
    assert added_at(report) == ["/tools/0/input_schema"]


def test_a_custom_tool_becomes_a_function_of_one_string():
    body, report = write(CustomTool("patch", "P", Grammar("lark", "start: x"), at="/tools/3"))
    tool = body["tools"][0]
    assert tool["name"] == "patch"
    assert "start: x" in tool["description"]
    assert tool["input_schema"]["properties"] == {"input": {"type": "string"}}
    assert losses(report) == [("/tools/3", "identity"), ("/tools/3", "option")]
    assert losses(write(CustomTool("patch"))[1]) == [("", "identity")]


def test_a_server_tool_of_another_provider_is_lost():
    body, report = write(OpaqueTool("openai-responses", {"type": "web_search"}, at="/tools/0"))
    assert body == {}
    assert losses(report) == [("/tools/0", "option")]


def test_an_own_server_tool_comes_home():
    body, _ = write(OpaqueTool("anthropic", {"type": "bash_20250124", "name": "bash"}))
    assert body["tools"] == [{"type": "bash_20250124", "name": "bash"}]


@pytest.mark.parametrize("wire", OWN_CHOICES)
def test_an_own_choice_is_written_back_as_it_was(wire):
    choice, parallel = read_choice({"tool_choice": wire})
    body, report = write(F, choice=choice, parallel=parallel, same=True)
    assert body["tool_choice"] == wire
    assert not report.losses


def test_choices_are_read():
    assert read_choice({}) == (None, None)
    assert read_choice({"tool_choice": OWN_CHOICES[1]}) == (ToolChoice("required", at="/tool_choice"), True)
    assert read_choice({"tool_choice": OWN_CHOICES[2]}) == (
        ToolChoice("named", ("f",), at="/tool_choice", extras={"new": 1}),
        False,
    )


def test_the_parallel_flag_alone_in_an_own_request():
    assert write(F, parallel=False, same=True)[0]["tool_choice"] == {"type": "auto", "disable_parallel_tool_use": True}
    assert "tool_choice" not in write(F, same=True)[0]


@pytest.mark.parametrize(
    ("choice", "parallel", "written"),
    [
        (None, None, None),
        (None, True, None),
        (None, False, {"type": "auto", "disable_parallel_tool_use": True}),
        (ToolChoice("auto"), None, {"type": "auto"}),
        (ToolChoice("required"), False, {"type": "any", "disable_parallel_tool_use": True}),
        (ToolChoice("none"), None, {"type": "none"}),
        (ToolChoice("named", ("f",)), True, {"type": "tool", "name": "f"}),
        (ToolChoice("required", ("f",)), None, {"type": "tool", "name": "f"}),
        (ToolChoice("named", ("g",)), None, {"type": "tool", "name": "g"}),
        (ToolChoice("named", ("server",)), None, {"type": "tool", "name": "server"}),
        (ToolChoice("named"), None, {"type": "any"}),
    ],
)
def test_a_foreign_choice_is_carried(choice, parallel, written):
    others = (FunctionTool("g", schema=SCHEMA), OpaqueTool("anthropic", {"type": "x", "name": "server"}))
    body, report = write(F, *others, choice=choice, parallel=parallel)
    assert body.get("tool_choice") == written
    assert not report.losses


def test_where_no_call_is_allowed_none_can_be_parallel():
    body, report = write(F, choice=ToolChoice("none"), parallel=False)
    assert body["tool_choice"] == {"type": "none"}
    assert losses(report) == [("/parallel_tool_calls", "identity")]


@pytest.mark.parametrize(
    ("choice", "written"),
    [
        (ToolChoice("auto", ("f",), at="/tool_choice"), {"type": "auto"}),
        (ToolChoice("required", ("f", "g"), at="/tool_choice"), {"type": "tool", "name": "f"}),
        (ToolChoice("required", ("f", "h"), at="/tool_choice"), {"type": "any"}),
        (ToolChoice("named", ("g",), at="/tool_choice"), None),
        (ToolChoice("auto", ("g",), at="/tool_choice"), None),
        (ToolChoice("opaque", value={"x": 1}, at="/tool_choice"), None),
    ],
)
def test_unsupported_tool_choice_is_reported_as_lost(choice, written):
    body, report = write(F, FunctionTool("h", schema=SCHEMA), choice=choice)
    assert body.get("tool_choice") == written
    assert losses(report) == [("/tool_choice", "option")]


def test_a_strict_tool_gets_a_closed_schema():
    body, report = write(FunctionTool("f", schema={"type": "object"}, strict=True, at="/tools/0"))
    assert body["tools"][0]["input_schema"] == {"type": "object", "additionalProperties": False}
    assert body["tools"][0]["strict"] is True
    assert added_at(report) == ["/tools/0/input_schema/additionalProperties"]
    assert not report.losses


def test_a_tool_that_takes_any_property_cannot_be_strict():
    schema: Any = {"type": "object", "additionalProperties": {"type": "string"}}
    body, report = write(FunctionTool("f", schema=schema, strict=True, at="/tools/0"))
    assert body["tools"] == [{"name": "f", "input_schema": schema}]
    assert losses(report) == [("/tools/0", "option")]


def test_without_tools_there_is_nothing_to_choose():
    body, report = write(choice=ToolChoice("auto", at="/tool_choice"), parallel=False)
    assert body == {}
    assert losses(report) == [("/tool_choice", "identity"), ("/parallel_tool_calls", "identity")]
    assert losses(write(choice=ToolChoice("required", at="/tool_choice"))[1]) == [("/tool_choice", "option")]
    assert not write()[1].losses


@pytest.mark.parametrize(
    ("kind", "name", "argument"),
    [
        ("bash_20250124", "bash", "command"),
        ("text_editor_20250728", "str_replace_based_edit_tool", "old_str"),
        ("computer_20251124", "computer", "coordinate"),
        ("memory_20250818", "memory", "new_path"),
    ],
)
def test_a_tool_that_the_client_runs_has_a_function_of_its_own_name(kind: str, name: str, argument: str) -> None:
    tool = {"type": kind, "name": name, "cache_control": {"type": "ephemeral"}, "strict": True}
    read = read_client_tool(tool, "/tools/0")
    assert read is not None
    (function,) = read.functions
    assert (read.value, read.extras, read.kind, function.name) == (tool, {"strict": True}, "function", name)
    assert isinstance(function.cache, CacheBreakpoint)
    schema: Any = function.schema
    assert argument in schema["properties"]


def test_screen_size_is_given_in_the_tool_description() -> None:
    tool = {"type": "computer_20250124", "name": "computer", "display_width_px": 800, "display_height_px": 600}
    read = read_client_tool({**tool, "display_number": 1}, "/tools/0")
    assert read is not None
    assert "800 by 600 pixels" in (read.functions[0].description or "")
    assert read.extras == {"display_number": 1}


@pytest.mark.parametrize(
    "tool", [{"type": "web_search_20250305", "name": "web_search"}, {"type": "bash_20250124", "name": 7}]
)
def test_other_tools_are_none_of_these(tool: dict[str, Any]) -> None:
    assert read_client_tool(tool, "") is None
