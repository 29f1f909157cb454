import json

from sightline.dialects.json_schemas import (
    fit_strict,
    is_object_schema,
    optional_properties,
    schema_nodes,
    strict_problems,
    type_problems,
)
from sightline.dialects.translate import translate_request
from sightline.model.report import Report
from sightline.model.tools import FunctionTool


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
