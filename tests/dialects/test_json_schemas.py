"""Schemas and requests that strict mode takes."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.dialects.json_schemas import (
    fit_strict,
    is_object_schema,
    optional_properties,
    schema_nodes,
    strict_problems,
    strict_schema,
    type_problems,
    with_strict_schemas,
)
from sightline.dialects.translate import translate_request
from sightline.model.json import Json, JsonObject
from sightline.model.report import Report
from sightline.model.request import CustomTool, FunctionTool, JsonFormat, Options, Request, SchemaFormat


def found(rule, schema):
    return [(problem.pointer, problem.rule) for problem in rule(schema, "/s")]


def test_every_schema_within_a_schema_is_found_and_no_value():
    schema = {
        "type": "object",
        "properties": {"a/b": {"type": "array", "items": {"type": "string", "default": {"type": "x"}}}, "c": True},
        "anyOf": [{"enum": [{"type": "x"}]}, 7],
        "additionalProperties": {"const": {"type": "x"}},
        "$defs": {"d": {}},
        "required": ["c"],
    }
    assert [place for place, _ in schema_nodes(schema, "")] == [
        "",
        "/properties/a~1b",
        "/properties/a~1b/items",
        "/anyOf/0",
        "/additionalProperties",
        "/$defs/d",
    ]


def test_a_schema_of_a_thousand_levels_is_no_trouble():
    schema = {"type": "nothing"}
    for _ in range(1000):
        schema = {"items": schema}
    assert len(list(schema_nodes(schema, ""))) == 101


def test_types_that_do_not_exist():
    schema = {
        "type": "object",
        "properties": {
            "a": {"type": "strin"},
            "b": {"type": ["string", "null"]},
            "c": {"type": ["int", "null"]},
            "d": {"type": 7},
            "e": {},
        },
    }
    assert found(type_problems, schema) == [
        ("/s/properties/a/type", "schema_type"),
        ("/s/properties/c/type", "schema_type"),
        ("/s/properties/d/type", "schema_type"),
    ]


def test_a_strict_schema_is_closed_and_requires_everything_at_every_level():
    inner = {"type": ["object", "null"], "properties": {"c": {"type": "string"}}, "required": []}
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "array", "items": inner}},
        "required": ["a"],
        "additionalProperties": False,
    }
    assert found(strict_problems, schema) == [
        ("/s", "required_properties"),
        ("/s/properties/b/items", "closed_object"),
        ("/s/properties/b/items", "required_properties"),
    ]
    closed = {**inner, "required": ["c"], "additionalProperties": False}
    good = {
        **schema,
        "required": ["a", "b"],
        "properties": {**schema["properties"], "b": {"type": "array", "items": closed}},
    }
    assert found(strict_problems, good) == []


def test_keywords_that_a_strict_schema_cannot_use():
    properties = {"a": {"oneOf": [{"type": "string"}]}, "b": {"type": "array", "uniqueItems": True}}
    schema = {"type": "object", "properties": properties, "required": ["a", "b"], "additionalProperties": False}
    assert found(strict_problems, schema) == [
        ("/s/properties/a/oneOf", "strict_keyword"),
        ("/s/properties/b/uniqueItems", "strict_keyword"),
    ]


def test_a_strict_schema_says_what_every_value_is():
    properties = {
        "a": {},
        "b": True,
        "c": {"type": "array", "items": True},
        "d": {"$ref": "#"},
        "e": {"properties": {}},
    }
    closed = {"required": list(properties), "additionalProperties": False}
    assert found(strict_problems, {"type": "object", "properties": properties, **closed}) == [
        ("/s/properties/b", "untyped"),
        ("/s/properties/a", "untyped"),
        ("/s/properties/c/items", "untyped"),
        ("/s/properties/e", "closed_object"),
        ("/s/properties/e", "untyped"),
    ]


def test_what_is_an_object_and_what_it_may_do_without():
    assert is_object_schema({"properties": {}})
    assert not is_object_schema({"type": "array", "properties": {}})
    assert not is_object_schema({"type": ["string", "null"]})
    assert optional_properties({"properties": {"a": {}, "b": {}}, "required": "a"}) == ["a", "b"]
    assert optional_properties({"properties": [], "required": []}) == []


def test_a_schema_that_openai_could_not_keep_to_is_not_strict_there():
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": False}
    body = {
        "model": "m",
        "max_tokens": 9,
        "messages": [{"role": "user", "content": "hi"}],
        "tools": [{"name": "f", "strict": True, "input_schema": schema}],
    }
    for target, path in (("openai-chat", ("function", "strict")), ("openai-responses", ("strict",))):
        result = translate_request(json.dumps(body).encode(), "anthropic", target)
        written = json.loads(result.data)["tools"][0]
        for key in path:
            written = written[key]
        assert written is False
        assert ("/tools/0", "strict", "option") in [
            (each.pointer, each.what, each.severity) for each in result.report.losses
        ]
    report = Report()
    for tool in (
        FunctionTool("f", schema={**schema, "required": ["a"]}, strict=True, at="/x"),
        FunctionTool("f", schema=schema, strict=True),  # our own are made valid where they are composed
        FunctionTool("f", schema=schema, at="/x"),
        FunctionTool("f", strict=True, at="/x"),
    ):
        assert fit_strict(tool, report, "d") is tool.strict
    assert report.losses == ()


def test_a_schema_of_the_answer_goes_the_same_way():
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    output = {"type": "json_schema", "name": "r", "strict": True, "schema": schema}
    body = {"model": "m", "input": "hi", "text": {"format": output}}
    result = translate_request(json.dumps(body).encode(), "openai-responses", "openai-chat")
    assert json.loads(result.data)["response_format"]["json_schema"]["strict"] is False
    chat = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    inner = {key: value for key, value in output.items() if key != "type"}
    chat["response_format"] = {"type": "json_schema", "json_schema": inner}
    result = translate_request(json.dumps(chat).encode(), "openai-chat", "openai-responses")
    assert json.loads(result.data)["text"]["format"]["strict"] is False


def made(schema: JsonObject) -> JsonObject:
    result = strict_schema(schema)
    assert result.obstacle is None
    assert strict_schema(result.schema).schema == result.schema  # what is strict stays as it is
    assert strict_schema(result.schema).changes == ()
    return result.schema


def test_every_property_is_required_and_null_where_it_may_be_left_out() -> None:
    schema: JsonObject = {
        "type": "object",
        "properties": {
            "city": {"type": "string"},
            "days": {"type": "integer", "default": 3, "description": "How many."},
        },
        "required": ["city"],
    }
    assert made(schema) == {
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": ["integer", "null"], "description": "How many."}},
        "required": ["city", "days"],
        "additionalProperties": False,
    }
    assert strict_schema(schema).changes == (
        ("/properties/days/default", "removed"),
        ("/properties/days", "required, with null for an absent value"),
        ("/additionalProperties", "set to false"),
    )


def test_two_lists_of_alternatives_at_once_cannot_be_strict() -> None:
    """Strict mode has one keyword for both; one of the lists would be lost."""
    either: JsonObject = {"anyOf": [{"type": "string"}], "oneOf": [{"type": "string", "enum": ["a"]}]}
    result = strict_schema({"type": "object", "properties": {"a": either}, "required": ["a"]})
    assert result.obstacle is not None
    assert result.obstacle[0] == "/properties/a/oneOf"


def test_a_schema_that_is_strict_already_is_not_touched() -> None:
    schema: JsonObject = {
        "type": "object",
        "properties": {"a": {"type": "string"}},
        "required": ["a"],
        "additionalProperties": False,
    }
    assert (strict_schema(schema).schema, strict_schema(schema).changes) == (schema, ())
    assert made({}) == {"type": "object", "properties": {}, "required": [], "additionalProperties": False}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"type": "string"}, {"type": ["string", "null"]}),
        ({"type": ["string", "null"]}, {"type": ["string", "null"]}),
        ({"type": "string", "enum": ["a"]}, {"type": ["string", "null"], "enum": ["a", None]}),
        ({"type": "string", "enum": ["a", None]}, {"type": ["string", "null"], "enum": ["a", None]}),
        ({"anyOf": [{"type": "string"}]}, {"anyOf": [{"type": "string"}, {"type": "null"}]}),
        ({"oneOf": [{"type": "string"}, {"type": "null"}]}, {"anyOf": [{"type": "string"}, {"type": "null"}]}),
        (
            {"$ref": "#/$defs/P", "description": "A place."},
            {"description": "A place.", "anyOf": [{"$ref": "#/$defs/P"}, {"type": "null"}]},
        ),
        ({"const": 1}, {"anyOf": [{"const": 1}, {"type": "null"}]}),
        (False, False),
    ],
)
def test_each_way_to_say_or_null(before: Json, after: Json) -> None:
    assert made({"properties": {"a": before}})["properties"] == {"a": after}


def test_objects_are_closed_wherever_they_are() -> None:
    inner: JsonObject = {"type": "object", "properties": {"x": {"type": "number"}}}
    closed: JsonObject = {
        "type": "object",
        "properties": {"x": {"type": ["number", "null"]}},
        "required": ["x"],
        "additionalProperties": False,
    }
    schema: JsonObject = {
        "type": "object",
        "properties": {
            "list": {"type": "array", "items": inner},
            "either": {"anyOf": [inner, {"type": "string"}]},
            "a/b": {"type": ["object", "null"], "properties": {"y": {"type": "null"}}},
        },
        "required": ["list", "either", "a/b", 7],
        "additionalProperties": True,
        "$defs": {"P": inner},
    }
    result = made(schema)
    assert result["$defs"] == {"P": closed}
    properties = result["properties"]
    assert isinstance(properties, dict)
    assert properties["list"] == {"type": "array", "items": closed}
    assert properties["either"] == {"anyOf": [closed, {"type": "string"}]}
    assert ("/properties/a~1b/additionalProperties", "set to false") in strict_schema(schema).changes
    assert result["required"] == ["list", "either", "a/b"]


@pytest.mark.parametrize(
    ("schema", "place"),
    [
        ({"type": "object", "additionalProperties": {"type": "string"}}, "/additionalProperties"),
        ({"type": "object", "additionalProperties": True}, "/additionalProperties"),
        ({"properties": {"a": {"allOf": [{"type": "string"}]}}}, "/properties/a/allOf"),
        ({"properties": {"a": True}}, "/properties/a"),
        ({"properties": {"a": {"description": "Anything."}}}, "/properties/a"),
        ({"properties": {"a": {"type": "object"}}}, "/properties/a"),  # closed, it could only be empty
        ({"properties": {"a": {"type": "array", "uniqueItems": True}}}, "/properties/a/uniqueItems"),
        ({"anyOf": [{"type": "object", "properties": {}}]}, "/anyOf"),
    ],
)
def test_what_cannot_be_strict_says_where(schema: JsonObject, place: str) -> None:
    result = strict_schema(schema)
    assert result.obstacle is not None
    assert (result.obstacle[0], result.schema, result.changes) == (place, schema, ())


def test_every_other_schema_correction_is_listed() -> None:
    schema: JsonObject = {"properties": {"a": {"properties": {"b": {"type": "null"}}, "required": ["b", "gone"]}}}
    schema["required"] = ["a"]
    closed = {"required": ["b"], "additionalProperties": False, "properties": {"b": {"type": "null"}}}
    assert made(schema)["properties"] == {"a": {"type": "object", **closed}}
    assert [place for place, _ in strict_schema(schema).changes] == [
        "/properties/a/required",
        "/properties/a/type",
        "/properties/a/additionalProperties",
        "/additionalProperties",
    ]


def _wrapped(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    names = st.sampled_from(["a", "b/c", "d"])
    return st.one_of(
        st.fixed_dictionaries(
            {"properties": st.dictionaries(names, inner, max_size=3)},
            optional={
                "type": st.sampled_from(["object", ["object", "null"]]),
                "required": st.lists(names, max_size=3),
                "additionalProperties": st.one_of(st.booleans(), inner),
            },
        ),
        st.fixed_dictionaries({"type": st.just("array"), "items": inner}, optional={"uniqueItems": st.just(True)}),
        st.fixed_dictionaries({"anyOf": st.lists(inner, min_size=1, max_size=2)}),
        st.fixed_dictionaries({"oneOf": st.lists(inner, min_size=1, max_size=2)}),
    )


SCHEMAS = st.recursive(
    st.sampled_from([True, {}, {"type": "string"}, {"type": "string", "enum": ["x"]}, {"const": 1}, {"$ref": "#"}]),
    _wrapped,
    max_leaves=8,
)
ROOTS = st.fixed_dictionaries(
    {"type": st.just("object"), "properties": st.dictionaries(st.sampled_from("ab"), SCHEMAS, max_size=2)}
)


@given(ROOTS)
def test_what_is_made_strict_is_what_the_check_of_strict_schemas_takes(schema: JsonObject) -> None:
    result = strict_schema(schema)
    if result.obstacle is None:
        assert list(strict_problems(result.schema, "")) == []
    else:
        assert list(strict_problems(schema, "")) != []
    if not list(strict_problems(schema, "")):
        assert (result.obstacle, result.changes) == (None, ())


OPEN: JsonObject = {"type": "object", "properties": {"a": {"type": "string"}}}
CLOSED: JsonObject = {
    "type": "object",
    "properties": {"a": {"type": ["string", "null"]}},
    "required": ["a"],
    "additionalProperties": False,
}
MAP: JsonObject = {"type": "object", "additionalProperties": {"type": "string"}}


def test_strict_tools_and_answers_are_made_valid_and_each_change_is_reported() -> None:
    tools = (CustomTool("free"), FunctionTool("f", " ", OPEN, strict=True), FunctionTool("g", "G.", OPEN))
    request = Request("m", tools=tools, options=Options(format=SchemaFormat(OPEN, "response", strict=True)))
    for dialect, tool, output in (
        ("openai-responses", "/tools/1", "/text/format/schema"),
        ("openai-chat", "/tools/1/function", "/response_format/json_schema/schema"),
    ):
        report = Report()
        made = with_strict_schemas(request, dialect, report)
        assert made.tools == (tools[0], FunctionTool("f", "The tool f.", CLOSED, strict=True), tools[2])
        assert made.options.format == SchemaFormat(CLOSED, "response", strict=True)
        assert [each.pointer for each in report.additions] == [
            f"{tool}/parameters/properties/a",
            f"{tool}/parameters/additionalProperties",
            f"{tool}/description",
            f"{output}/properties/a",
            f"{output}/additionalProperties",
        ]
        assert report.losses == ()


def test_what_cannot_be_strict_is_not_and_that_is_a_loss() -> None:
    report = Report()
    tools = (FunctionTool("f", "F.", MAP, strict=True),)
    request = Request("m", tools=tools, options=Options(format=SchemaFormat(MAP, strict=True)))
    made = with_strict_schemas(request, "openai-chat", report)
    assert made.tools == (FunctionTool("f", "F.", MAP, strict=False),)
    assert made.options.format == SchemaFormat(MAP, strict=False)
    assert [(each.what, each.severity) for each in report.losses] == [("strict", "option")] * 2


def test_other_dialects_and_what_was_written_in_this_one_stay_as_they_are() -> None:
    request = Request("m", tools=(FunctionTool("f", None, None, strict=True),), options=Options(format=JsonFormat()))
    assert with_strict_schemas(request, "anthropic", Report()) is request
    own = Request("m", tools=request.tools, dialect="openai-chat")
    assert with_strict_schemas(own, "openai-chat", Report()) is own
    assert with_strict_schemas(request, "openai-chat", Report()).options.format == JsonFormat()


def test_a_description_that_is_there_stays() -> None:
    tool = FunctionTool("f", "F.", CLOSED, strict=True)
    report = Report()
    assert with_strict_schemas(Request("m", tools=(tool,)), "openai-chat", report).tools == (tool,)
    assert report.additions == ()
