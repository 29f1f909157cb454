"""Arguments of calls: read, repaired, checked and refused."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.agent.core.arguments import (
    MOST_MISMATCHES,
    MOST_REPAIRS,
    AcceptedArguments,
    RefusedArguments,
    Repair,
    check_edited,
    read_arguments,
    repair_value,
    unwrap,
    without_nulls,
)
from sightline.agent.core.tool import Definition, Toolbox, validate
from sightline.model.json import Json, JsonObject
from sightline.model.parts import ToolCall
from tests.loop_stage import COUNT, SHELL, TOOLBOX

FREE = Definition(name="free")


def asked(name: str, arguments: str, toolbox: Toolbox = TOOLBOX) -> AcceptedArguments | RefusedArguments:
    return read_arguments(ToolCall("c", name, arguments), toolbox)


def test_arguments_that_fit_are_taken() -> None:
    assert asked("count", '{"n": 1}') == AcceptedArguments({"n": 1})
    assert asked("free", "", Toolbox((FREE,))) == AcceptedArguments({})
    assert asked("shell", "rm x") == AcceptedArguments("rm x")


def test_arguments_in_a_string_are_taken_with_a_record() -> None:
    accepted = asked("count", '"{\\"n\\": \\"1\\"}"')
    assert accepted.arguments == {"n": 1}
    assert [repair.pointer for repair in accepted.repairs] == ["", "/n"]


@pytest.mark.parametrize("toolbox", [Toolbox((FREE,)), Toolbox((Definition(name="free", schema={}),))])
def test_arguments_are_an_object_whatever_the_schema_leaves_open(toolbox: Toolbox) -> None:
    refused = asked("free", "[1]", toolbox)
    assert "must be a JSON object" in refused.text


def test_an_unknown_tool_is_answered_with_those_that_may_have_been_meant() -> None:
    assert asked("edit-file", "{}") == RefusedArguments(
        "The tool 'edit-file' does not exist. Tools that can be called: edit_file."
    )
    assert asked("x", "{}", Toolbox()) == RefusedArguments("The tool 'x' does not exist. No tool can be called.")


def test_disabled_tool_is_reported_differently_from_an_unknown_tool() -> None:
    refused = asked("format_disk", "{}")
    assert refused.text.startswith("The tool 'format_disk' is disabled and cannot be called.")


def test_every_wrong_place_is_named_up_to_a_point() -> None:
    properties: JsonObject = {f"p{n}": {"type": "integer"} for n in range(MOST_MISMATCHES + 3)}
    definition = Definition(name="many", schema={"properties": properties})
    written = "{" + ",".join(f'"{key}": "x"' for key in properties) + "}"
    refused = asked("many", written, Toolbox((definition,)))
    lines = refused.text.splitlines()
    assert lines[0] == "The arguments of 'many' are invalid:"
    assert lines[1].endswith(': expected integer, got string "x"')
    assert lines[-2:] == ["- and 3 more", "Please check your input and try again."]


def test_a_missing_argument_is_a_fault_of_the_whole() -> None:
    refused = asked("count", "{}")
    assert "- the arguments: 'n' is a required property" in refused.text


def test_what_a_person_writes_is_held_to_the_schema_and_never_changed() -> None:
    assert check_edited({"n": 1}, COUNT) == AcceptedArguments({"n": 1})
    assert check_edited({"x": 1}, FREE) == AcceptedArguments({"x": 1})
    assert check_edited("ls", SHELL) == AcceptedArguments("ls")
    refused = check_edited({"n": "1"}, COUNT)
    assert "expected integer" in refused.text
    assert check_edited("x", COUNT) == RefusedArguments("'count' takes an object.")
    assert check_edited({}, SHELL) == RefusedArguments("'shell' takes text.")


def test_the_text_of_a_function_that_stood_for_free_text_is_that_text() -> None:
    assert asked("shell", '{"input": "rm x"}') == AcceptedArguments("rm x")
    assert read_arguments(ToolCall("c", "shell", '{"input": "rm x"}', "custom"), TOOLBOX) == AcceptedArguments(
        '{"input": "rm x"}'
    )


def test_what_the_provider_runs_is_not_run_here() -> None:
    refused = asked("web_search", "{}", Toolbox((Definition(name="web_search", hosted="web_search"),)))
    assert refused == RefusedArguments("The tool 'web_search' is run by the provider, and cannot be called here.")


def test_a_null_in_strict_arguments_means_left_out_where_null_is_no_value() -> None:
    schema: JsonObject = {
        "type": "object",
        "properties": {
            "n": {"type": "integer"},
            "name": {"type": ["string", "null"]},
            "must": {"type": "null"},
            "place": {"$ref": "#/$defs/P"},
            "list": {"type": "array", "items": {"$ref": "#/$defs/P"}},
            "gone": {"$ref": "#/$defs/missing"},
            "self": {"$ref": "#/properties/self"},
            "any": True,
        },
        "required": ["must"],
        "$defs": {"P": {"type": "object", "properties": {"x": {"type": "number"}}}},
    }
    strict = Toolbox((Definition(name="f", schema=schema, strict=True),))
    given = (
        '{"n": null, "name": null, "must": null, "place": {"x": null}, "list": [{"x": null}, {"x": 1}], "any": null}'
    )
    accepted = asked("f", given, strict)
    assert accepted.arguments == {"name": None, "must": None, "place": {}, "list": [{}, {"x": 1}], "any": None}
    assert [repair.pointer for repair in accepted.repairs] == ["/n", "/place/x", "/list/0/x"]
    assert isinstance(asked("f", '{"must": null, "gone": 1}', strict), RefusedArguments)
    loose = Toolbox((Definition(name="f", schema=schema),))
    assert isinstance(asked("f", given, loose), RefusedArguments)


FIELD: JsonObject = {"type": "object", "properties": {}, "$defs": {"P": {"type": "object", "required": ["x"]}}}


def of(rule: JsonObject) -> JsonObject:
    return {**FIELD, "properties": {"a": rule}}


@pytest.mark.parametrize(
    ("rule", "written", "meant"),
    [
        ({"type": "integer"}, "42", 42),
        ({"type": "integer"}, " -7 ", -7),
        ({"type": "number"}, "1.5", 1.5),
        ({"type": "number"}, "2e3", 2000.0),
        ({"type": "boolean"}, "true", True),
        ({"type": "boolean"}, "False", False),
        ({"type": "null"}, "null", None),
        ({"type": "string"}, 42, "42"),
        ({"type": "array"}, "[1, 2]", [1, 2]),
        ({"type": "object"}, '{"x": 1}', {"x": 1}),
        ({"$ref": "#/$defs/P"}, '{"x": 1}', {"x": 1}),
        ({"anyOf": [{"$ref": "#/$defs/P"}, {"type": "null"}]}, '{"x": 1}', {"x": 1}),
        ({"anyOf": [{"type": "integer"}, {"type": "boolean"}]}, "true", True),
        ({"type": ["integer", "null"]}, "3", 3),
        ({"type": "object", "properties": {"b": {"type": "array"}}}, '{"b": "[\\"c\\"]"}', {"b": ["c"]}),
        ({"type": "array", "items": {"type": "integer"}}, '["1", 2]', [1, 2]),
        ({"type": "object"}, json.dumps(json.dumps({"x": 1})), {"x": 1}),
    ],
)
def test_what_was_meant_is_found_and_each_change_is_recorded(rule: JsonObject, written: Json, meant: Json) -> None:
    before: Json = {"a": written}
    value, verdict, repairs = repair_value(before, of(rule))
    assert (value, verdict.count) == ({"a": meant}, 0)
    assert before == {"a": written}, "what the model wrote stays as it is"
    assert repairs
    assert repairs[0].pointer == "/a"


@pytest.mark.parametrize(
    ("rule", "written"),
    [
        ({"type": "integer"}, "4.5"),
        ({"type": "integer"}, "many"),
        ({"type": "number"}, "1e999"),
        ({"type": "boolean"}, "yes"),
        ({"type": "null"}, ""),
        ({"type": "array"}, '{"x": 1}'),
        ({"type": "object"}, "{broken"),
        ({"type": "string"}, True),
        ({"type": "integer"}, [1]),
        ({"allOf": [{"type": "string"}, {"type": "integer"}]}, "5"),
        ({"type": "integer", "minimum": 10}, "5"),
    ],
)
def test_what_would_be_a_guess_stays_as_it_was_written(rule: JsonObject, written: Json) -> None:
    value, verdict, repairs = repair_value({"a": written}, of(rule))
    assert (value, repairs) == ({"a": written}, ())
    assert verdict.count


def test_text_is_never_taken_for_something_else_where_text_is_right() -> None:
    rule: JsonObject = {"anyOf": [{"type": "string"}, {"type": "object"}, {"type": "integer"}]}
    assert repair_value({"a": '{"x": 1}'}, of(rule))[0] == {"a": '{"x": 1}'}


def test_value_parsed_from_a_string_is_still_validated() -> None:
    value, verdict, repairs = repair_value({"a": "{}"}, of({"$ref": "#/$defs/P"}))
    assert (value, [each.what for each in repairs]) == ({"a": {}}, ["JSON in a string was read as object"])
    assert [each.pointer for each in verdict.mismatches] == ["/a"]


def test_repairing_has_an_end() -> None:
    schema = of({"type": "array", "items": {"type": "integer"}})
    value, verdict, repairs = repair_value({"a": ["1"] * (MOST_REPAIRS + 5)}, schema)
    assert (len(repairs), verdict.count) == (MOST_REPAIRS, 5)
    assert isinstance(value, dict)


def test_places_in_lists_are_repaired_too() -> None:
    value, _, repairs = repair_value({"a": [{"b": "1"}]}, of({"items": {"properties": {"b": {"type": "integer"}}}}))
    assert value == {"a": [{"b": 1}]}
    assert repairs == (Repair("/a/0/b", "a string was read as integer"),)


@pytest.mark.parametrize(
    ("written", "meant", "count"),
    [
        ({"x": 1}, {"x": 1}, 0),
        ('{"x": 1}', {"x": 1}, 1),
        (json.dumps('{"x": 1}'), {"x": 1}, 1),
        (None, {}, 1),
        ("text", "text", 0),
        ("[1]", "[1]", 0),
        ([1], [1], 0),
    ],
)
def test_arguments_that_were_encoded_twice_are_taken_out(written: Json, meant: Json, count: int) -> None:
    value, repairs = unwrap(written)
    assert (value, len(repairs)) == (meant, count)


def test_a_string_that_is_the_whole_value_is_read_where_an_object_is_wanted() -> None:
    assert repair_value('{"x": 1}', {"type": "object"})[0] == {"x": 1}


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(json_values)
def test_what_is_right_is_never_touched_and_what_is_wrong_never_gets_worse(value: Json) -> None:
    schema = of({"type": "integer"})
    before = validate(schema, value).count
    after, verdict, repairs = repair_value(value, schema)
    assert verdict.count <= before
    assert repairs or after == value


def test_a_definition_that_leads_in_a_circle_is_not_followed_for_ever() -> None:
    schema: JsonObject = {"properties": {"a": {"$ref": "#/properties/a"}, "b": {"$ref": "#/nowhere"}}}
    assert without_nulls({"a": {"x": None}, "b": {"x": None}}, schema) == ({"a": {"x": None}, "b": {"x": None}}, ())
