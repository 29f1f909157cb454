from typing import Any

from sightline.dialects.gemini.tools import WireSchema, read_schema, strip_refused, write_schema
from sightline.model.report import Addition, Loss, Report

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
        "properties": {
            "tags": {"type": "array", "items": {"type": "string"}},
            "$schema": {"type": "string"},
        },
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
