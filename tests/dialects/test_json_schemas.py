from sightline.dialects.json_schemas import (
    is_object_schema,
    optional_properties,
    schema_nodes,
    strict_problems,
    type_problems,
)


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
    good = {**schema, "required": ["a", "b"], "properties": {**schema["properties"], "b": {"items": closed}}}
    assert found(strict_problems, good) == []


def test_keywords_that_a_strict_schema_cannot_use():
    schema = {"properties": {"a": {"oneOf": [{"type": "string"}]}}, "required": ["a"], "additionalProperties": False}
    assert found(strict_problems, schema) == [("/s/properties/a/oneOf", "")]


def test_what_is_an_object_and_what_it_may_do_without():
    assert is_object_schema({"properties": {}})
    assert not is_object_schema({"type": "array", "properties": {}})
    assert not is_object_schema({"type": ["string", "null"]})
    assert optional_properties({"properties": {"a": {}, "b": {}}, "required": "a"}) == ["a", "b"]
    assert optional_properties({"properties": [], "required": []}) == []
