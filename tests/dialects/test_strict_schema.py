import pytest

from sightline.dialects.strict_schema import strict_schema
from sightline.model.json import Json, JsonObject


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
            "a/b": {"type": ["object", "null"], "properties": {}},
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
    ],
)
def test_what_cannot_be_strict_says_where(schema: JsonObject, place: str) -> None:
    result = strict_schema(schema)
    assert result.obstacle is not None
    assert (result.obstacle[0], result.schema, result.changes) == (place, schema, ())
