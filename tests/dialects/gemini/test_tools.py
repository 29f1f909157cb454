"""Tools, the choice among them, and computer use."""

from typing import Any

import pytest

from sightline.dialects.gemini.tools import (
    WireSchema,
    read_computer,
    read_schema,
    read_tool_config,
    read_tools,
    strip_refused,
    write_choice,
    write_schema,
    write_tools,
)
from sightline.model.json import JsonObject
from sightline.model.parts import CacheBreakpoint
from sightline.model.report import Addition, Loss, Report
from sightline.model.request import CustomTool, FunctionTool, OpaqueTool, Request, ToolChoice
from tests.dialects.reports import named_losses, refused_at

WIRE: Any = [
    {
        "functionDeclarations": [
            {"name": "a", "description": "", "parameters": {"type": "OBJECT"}, "behavior": "BLOCKING"},
            {"name": "b", "parametersJsonSchema": {"type": "object"}},
            {"name": "c"},
        ],
        "googleSearch": {},
    },
    {"codeExecution": {}},
    {"functionDeclarations": []},
    {},
    {"functionDeclarations": [{"name": "d", "parameters": {"type": "object"}, "parametersJsonSchema": {"type": "x"}}]},
]


def test_declarations_are_functions_and_everything_else_is_opaque_in_place():
    tools = read_tools(WIRE, "/tools")
    assert tools == (
        FunctionTool(
            "a", "", {"type": "object"}, at="/tools/0/functionDeclarations/0", extras={"behavior": "BLOCKING"}
        ),
        FunctionTool("b", None, {"type": "object"}, at="/tools/0/functionDeclarations/1"),
        FunctionTool("c", at="/tools/0/functionDeclarations/2"),
        OpaqueTool("gemini", {"googleSearch": {}}, at="/tools/0"),
        OpaqueTool("gemini", {"codeExecution": {}}, at="/tools/1"),
        OpaqueTool("gemini", {"functionDeclarations": []}, at="/tools/2"),
        OpaqueTool("gemini", {}, at="/tools/3"),
        FunctionTool(
            "d", None, {"type": "x"}, at="/tools/4/functionDeclarations/0", extras={"parameters": {"type": "object"}}
        ),
    )
    assert write_tools(Request(tools=tools, dialect="gemini"), Report()) == WIRE


def test_a_composed_tool_is_written_beside_the_ones_that_were_read():
    tools = (*read_tools(WIRE[1:2], "/tools"), CustomTool("e", "Edits."))
    written: Any = write_tools(Request(tools=tools, dialect="gemini"), Report())
    assert written[0] == {"codeExecution": {}}
    assert written[1]["functionDeclarations"][0]["name"] == "e"


@pytest.mark.parametrize(
    ("value", "pointer"),
    [
        ({}, "/tools"),
        ([5], "/tools/0"),
        ([{"function_declarations": {}}], "/tools/0/function_declarations"),
        ([{"functionDeclarations": [{}]}], "/tools/0/functionDeclarations/0/name"),
        ([{"functionDeclarations": [{"name": "f", "parameters": 5}]}], "/tools/0/functionDeclarations/0/parameters"),
    ],
)
def test_wrong_shapes_are_named(value, pointer):
    assert refused_at(read_tools, value, "/tools") == pointer


def test_foreign_tools_become_declarations():
    report = Report()
    tools = (
        FunctionTool("f", "Does.", {"type": "object", "$schema": "x"}, strict=True, at="/tools/0"),
        OpaqueTool("openai-responses", {"type": "web_search"}, at="/tools/1"),
        OpaqueTool("openai-responses", "odd", at="/tools/2"),
        CustomTool("patch", None, cache=CacheBreakpoint(at="/tools/3/cache_control"), at="/tools/3"),
        FunctionTool("g", strict=False, cache=CacheBreakpoint(), at="/tools/4"),
    )
    written = write_tools(Request(tools=tools, dialect="openai-responses"), report)
    schema = {
        "type": "object",
        "properties": {"input": {"type": "string"}},
        "required": ["input"],
        "additionalProperties": False,
    }
    assert written == [
        {
            "functionDeclarations": [
                {"name": "f", "description": "Does.", "parametersJsonSchema": {"type": "object"}},
                {"name": "patch", "parametersJsonSchema": schema},
                {"name": "g"},
            ]
        }
    ]
    assert named_losses(report) == [
        ("/tools/0", "$schema at the root of the schema of f", "identity"),
        ("/tools/0", "strict", "option"),
        ("/tools/1", "tool 'web_search' of openai-responses", "option"),
        ("/tools/2", "opaque tool of openai-responses", "option"),
        ("/tools/3", "that the tool takes free text", "identity"),
        ("/tools/3/cache_control", "cache breakpoint", "option"),
        ("/tools/4", "strict", "identity"),
        ("/tools/4", "cache breakpoint", "option"),
    ]
    assert write_tools(Request(dialect="anthropic"), Report()) == []


@pytest.mark.parametrize(
    ("config", "choice"),
    [
        ({"mode": "AUTO"}, ToolChoice("auto", at="/t/functionCallingConfig")),
        ({"mode": "NONE"}, ToolChoice("none", at="/t/functionCallingConfig")),
        ({"mode": "AUTO", "allowedFunctionNames": ["f"]}, ToolChoice("auto", ("f",), at="/t/functionCallingConfig")),
        (
            {"mode": "ANY", "allowedFunctionNames": ["f"], "streamFunctionCallArguments": True},
            ToolChoice("required", ("f",), at="/t/functionCallingConfig", extras={"streamFunctionCallArguments": True}),
        ),
        (
            {"mode": "VALIDATED", "allowedFunctionNames": ["f"]},
            ToolChoice("auto", ("f",), at="/t/functionCallingConfig", extras={"mode": "VALIDATED"}),
        ),
        (
            {"mode": "MODE_UNSPECIFIED"},
            ToolChoice("opaque", value={"mode": "MODE_UNSPECIFIED"}, at="/t/functionCallingConfig"),
        ),
        (
            {"allowedFunctionNames": ["f"]},
            ToolChoice("opaque", value={"allowedFunctionNames": ["f"]}, at="/t/functionCallingConfig"),
        ),
    ],
)
def test_choices_are_read_and_written_back(config, choice):
    assert read_tool_config({"functionCallingConfig": config, "retrievalConfig": 1}, "/t") == (
        choice,
        {"retrievalConfig": 1},
    )
    assert write_choice(Request(tool_choice=choice, dialect="gemini"), [], Report()) == config


def test_snake_case_tool_config_with_lowercase_mode_is_read():
    config: Any = {"function_calling_config": {"mode": "any", "allowed_function_names": ["f"]}}
    choice, others = read_tool_config(config, "/t")
    assert choice == ToolChoice("required", ("f",), at="/t/function_calling_config")
    assert others == {}


def test_no_choice_is_made_by_an_empty_config():
    assert read_tool_config({}, "/t") == (None, {})
    assert read_tool_config({"functionCallingConfig": {}}, "/t") == (None, {"functionCallingConfig": {}})
    assert write_choice(Request(), [], Report()) is None


def test_a_name_is_a_string():
    assert (
        refused_at(read_tool_config, {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": [5]}}, "/t")
        == "/t/functionCallingConfig/allowedFunctionNames/0"
    )


@pytest.mark.parametrize(
    ("choice", "written"),
    [
        (ToolChoice("auto"), {"mode": "AUTO"}),
        (ToolChoice("auto", ("f",)), {"mode": "VALIDATED", "allowedFunctionNames": ["f"]}),
        (ToolChoice("none"), {"mode": "NONE"}),
        (ToolChoice("required"), {"mode": "ANY"}),
        (ToolChoice("required", ("f", "x")), {"mode": "ANY", "allowedFunctionNames": ["f", "x"]}),
        (ToolChoice("named", ("f",)), {"mode": "ANY", "allowedFunctionNames": ["f"]}),
    ],
)
def test_foreign_choices_are_written(choice, written):
    report = Report()
    tools = (FunctionTool("f"), CustomTool("x"), OpaqueTool("anthropic", {}))
    assert write_choice(Request(tools=tools, tool_choice=choice), [{}], report) == written
    assert report.losses == ()


@pytest.mark.parametrize("key", ["computerUse", "computer_use"])
def test_computer_use_is_the_functions_that_the_model_would_call(key: str) -> None:
    tool: JsonObject = {key: {"environment": "ENVIRONMENT_BROWSER", "excluded_predefined_functions": ["search"]}}
    read = read_computer(tool, "/tools/0")
    assert read is not None
    names = [function.name for function in read.functions]
    assert "click_at" in names
    assert "search" not in names
    assert '"ENVIRONMENT_BROWSER"' in (read.functions[0].description or "")
    assert (read.value, read.extras) == (tool, {})


def test_what_the_functions_do_not_say_is_left() -> None:
    tool: JsonObject = {"computerUse": {"excludedPredefinedFunctions": None, "new": 1}, "googleSearch": {}}
    read = read_computer(tool, "/tools/0")
    assert read is not None
    assert read.extras == {"googleSearch": {}, "computerUse": {"new": 1}}


def test_other_tools_are_not_computer_use() -> None:
    assert read_computer({"googleSearch": {}}, "") is None
    assert read_computer({"computerUse": True}, "") is None


OPENAPI: Any = {
    "type": "OBJECT",
    "properties": {
        "colour": {"type": "STRING", "enum": ["RED"], "default": {"type": "STRING"}},
        "layers": {"type": "ARRAY", "items": {"type": "INTEGER"}, "min_items": "1", "maxItems": 3},
        "note": {"any_of": [{"type": "STRING"}, {"type": "NULL"}, True], "nullable": True},
        "size": {"type": "NUMBER", "nullable": True},
        "odd": 5,
    },
    "defs": {"a": {"type": "BOOLEAN"}},
    "additionalProperties": False,
}


def test_the_openapi_form_is_read_as_json_schema():
    schema = read_schema(OPENAPI, "parameters", is_openapi=True)
    assert schema == {
        "type": "object",
        "properties": {
            "colour": {"type": "string", "enum": ["RED"], "default": {"type": "STRING"}},
            "layers": {"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 3},
            "note": {"anyOf": [{"type": "string"}, {"type": "null"}, True], "nullable": True},
            "size": {"type": ["number", "null"]},
            "odd": 5,
        },
        "$defs": {"a": {"type": "boolean"}},
        "additionalProperties": False,
    }


def test_it_remembers_the_form_and_the_key_in_which_it_stood():
    assert write_schema(read_schema(OPENAPI, "parameters", is_openapi=True), "x") == ("parameters", OPENAPI)
    upper: Any = {"type": "OBJECT"}
    assert write_schema(read_schema(upper, "responseJsonSchema", is_openapi=False), "x") == (
        "responseJsonSchema",
        upper,
    )


def test_lower_case_types_are_json_schema_already():
    lower: Any = {"type": "object", "properties": {"a": {"type": "STRING"}}}
    assert read_schema(lower, "parametersJsonSchema", is_openapi=False) is lower
    kept = read_schema(lower, "parameters", is_openapi=True)
    assert isinstance(kept, WireSchema)
    assert kept == lower
    assert write_schema(lower, "parametersJsonSchema") == ("parametersJsonSchema", lower)


def test_numbers_that_are_no_counts_stay_words():
    assert read_schema({"minItems": "many", "maxLength": "9" * 30}, "parameters", is_openapi=True) == {
        "minItems": "many",
        "maxLength": "9" * 30,
    }


def test_a_schema_that_is_nested_beyond_reason_is_left_alone_below():
    deep: Any = {"type": "STRING"}
    for _ in range(150):
        deep = {"type": "ARRAY", "items": deep}
    schema: Any = read_schema(deep, "parameters", is_openapi=True)
    assert schema["type"] == "array"
    for _ in range(150):
        schema = schema["items"]
    assert schema == {"type": "STRING"}


def test_keywords_that_the_api_refuses_are_lost_by_name():
    report = Report()
    schema: Any = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {
            "tags": {"type": "array", "uniqueItems": True, "items": {"type": "string", "$comment": "short"}},
            "$schema": {"type": "string"},
        },
        "anyOf": [{"enumDescriptions": ["a"], "enum": ["a"]}],
    }
    assert strip_refused(schema, "/tools/0", "/t", report) == {
        "type": "object",
        "properties": {"tags": {"type": "array", "items": {"type": "string"}}, "$schema": {"type": "string"}},
        "anyOf": [{"enum": ["a"]}],
    }
    assert report.losses == (
        Loss("/tools/0", "$comment at /properties/tags/items of the schema", "gemini refuses the keyword", "identity"),
        Loss("/tools/0", "uniqueItems at /properties/tags of the schema", "gemini refuses the keyword", "option"),
        Loss("/tools/0", "enumDescriptions at /anyOf/0 of the schema", "gemini refuses the keyword", "option"),
        Loss("/tools/0", "$schema at the root of the schema", "gemini refuses the keyword", "identity"),
    )
    assert report.additions == ()


def test_a_reference_with_neighbours_says_the_same_in_a_form_that_may_have_them():
    report = Report()
    schema: Any = {
        "type": "object",
        "properties": {
            "a": {"$ref": "#/$defs/A", "description": "d"},
            "b": {"$ref": "#/$defs/A", "title": "B"},
            "c": {"$ref": "#/$defs/A", "title": "C", "anyOf": [{}]},
            "d": {"$ref": "#/$defs/A", "$id": "d"},
        },
        "$defs": {"A": {"type": "string"}},
    }
    properties: Any = strip_refused(schema, "", "", report)["properties"]
    assert properties == {
        "a": {"description": "d", "anyOf": [{"$ref": "#/$defs/A"}]},
        "b": {"title": "B", "anyOf": [{"$ref": "#/$defs/A"}]},
        "c": {"title": "C", "anyOf": [{"$ref": "#/$defs/A"}]},
        "d": {"$ref": "#/$defs/A", "$id": "d"},
    }
    assert [(loss.what, loss.severity) for loss in report.losses] == [
        ("anyOf at /properties/c of the schema", "option")
    ]


def test_a_root_that_is_a_reference_has_no_type_beside_it():
    schema: Any = {"$ref": "#/$defs/A", "$defs": {"A": {"type": "object"}}}
    assert strip_refused(schema, "", "", Report()) == {
        "type": "object",
        "anyOf": [{"$ref": "#/$defs/A"}],
        "$defs": {"A": {"type": "object"}},
    }


def test_a_root_without_a_type_gets_one():
    report = Report()
    assert strip_refused({}, "/tools/0", "/tools/0/x", report) == {"type": "object"}
    what, why = "type object of the schema", "gemini wants a type at the root of a schema"
    assert report.additions == (Addition("/tools/0/x/type", what, why),)
