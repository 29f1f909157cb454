import pytest

from sightline.agent.core.tool import Mismatch, schema_problems, validate
from sightline.model.json import Json, JsonObject

LINKED: JsonObject = {
    "type": "object",
    "properties": {"n": {"anyOf": [{"$ref": "#/$defs/N"}, {"type": "null"}]}},
    "$defs": {"N": {"type": "object", "properties": {"t": {"type": "array", "items": {"type": "integer"}}}}},
}


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "strin"}, "/type: 'strin' is not valid"),
        ({"type": "string"}, "are an object"),
        ({"properties": {"a": {"pattern": "("}}}, "/properties/a/pattern"),
        ({"$schema": 7}, "/$schema: expected a string"),
        ({"properties": {"a": {"$ref": "#/$defs/none"}}}, "'#/$defs/none' leads nowhere"),
        ({"properties": {"a": {"$ref": "http://example.com/s.json"}}}, "leads nowhere"),
        ({"properties": {"a": {"$ref": "#/properties/a"}}}, "leads round and round"),
        ({"allOf": [{"properties": {"a": {"$ref": "#/nope"}}}]}, "leads nowhere"),
    ],
)
def test_invalid_argument_schema_is_reported_with_its_location(schema: JsonObject, words: str) -> None:
    assert words in "; ".join(schema_problems(schema))


def test_too_deeply_nested_schema_is_rejected() -> None:
    schema: JsonObject = {}
    for _ in range(2000):
        schema = {"properties": {"a": schema}}
    assert schema_problems(schema) == ["it is nested too deep"]


@pytest.mark.parametrize(
    "schema",
    [
        LINKED,
        {},
        {"$schema": "http://json-schema.org/draft-07/schema#", "definitions": {"A": {"type": "string"}}},
        {"$schema": "urn:unknown", "type": "object"},
        {"properties": {"a": {"const": {"$ref": "#/data"}}, "b": {"default": [{"$ref": "#/data"}]}}},
        {"$defs": {"other": {"$id": "urn:other", "properties": {"a": {"$ref": "#/elsewhere"}}}}},
    ],
)
def test_schemas_that_can_be_used(schema: JsonObject) -> None:
    assert schema_problems(schema) == []


def test_valid_value_has_no_mismatches() -> None:
    verdict = validate(LINKED, {"n": {"t": [1, 2]}})
    assert (verdict.mismatches, verdict.types, verdict.count) == ((), (), 0)


@pytest.mark.parametrize(
    ("value", "got"),
    [
        (None, "null null"),
        (True, "boolean true"),
        ("x", 'string "x"'),
        ({}, "object {}"),
        ([], "array []"),
        (1.5, "number 1.5"),
        ("y" * 200, 'string "' + "y" * 79 + "…"),
    ],
)
def test_type_mismatch_message_includes_the_actual_value(value: Json, got: str) -> None:
    schema: JsonObject = {"properties": {"a/b": {"type": "integer"}}}
    (mismatch,) = validate(schema, {"a/b": value}).mismatches
    assert mismatch == Mismatch("/a~1b", f"expected integer, got {got}", ("integer",))


def test_enum_union_and_required_violations_have_specific_messages() -> None:
    schema: JsonObject = {
        "properties": {"a": {"enum": ["x", "y"]}, "b": {"type": ["integer", "null"]}},
        "required": ["c"],
        "additionalProperties": False,
    }
    told = {each.pointer: each.message for each in validate(schema, {"a": "z", "b": "q"}).mismatches}
    assert told["/a"] == 'expected one of ["x","y"], got "z"'
    assert told["/b"] == 'expected integer or null, got string "q"'
    assert told[""] == "'c' is a required property"


def test_of_several_branches_the_one_that_comes_nearest_tells_why() -> None:
    verdict = validate(LINKED, {"n": {"t": ["x"]}})
    assert [each.pointer for each in verdict.mismatches] == ["/n/t/0"]
    assert {each.pointer for each in verdict.types} == {"/n", "/n/t/0"}


def test_where_none_comes_nearest_all_of_them_do() -> None:
    schema: JsonObject = {"properties": {"a": {"oneOf": [{"type": "integer"}, {"type": "boolean"}]}}}
    (mismatch,) = validate(schema, {"a": "x"}).mismatches
    assert mismatch.message == '"x" fits none: expected integer, got string "x"; or expected boolean, got string "x"'


def test_a_value_that_fits_several_branches_of_which_one_is_wanted() -> None:
    schema: JsonObject = {"properties": {"a": {"oneOf": [{"type": "integer"}, {"minimum": 1}]}}}
    (mismatch,) = validate(schema, {"a": 2}).mismatches
    assert "valid under each of" in mismatch.message


@pytest.mark.parametrize(
    "schema",
    [{"allOf": [{"$ref": "#"}]}, {"$ref": "http://example.com/s.json"}],
)
def test_a_schema_that_leads_nowhere_is_right_for_nothing(schema: JsonObject) -> None:
    verdict = validate(schema, {})
    assert (verdict.count, verdict.types) == (1, ())
    assert "cannot be followed" in verdict.mismatches[0].message


def test_nothing_is_fetched_whatever_a_schema_refers_to(monkeypatch: pytest.MonkeyPatch) -> None:
    fetched: list[object] = []
    monkeypatch.setattr("urllib.request.urlopen", lambda *asked, **_: fetched.append(asked))
    schema: JsonObject = {"properties": {"a": {"$ref": "http://127.0.0.1:9/s.json"}}}
    assert schema_problems(schema)
    assert validate(schema, {"a": 1}).count == 1
    assert not fetched
