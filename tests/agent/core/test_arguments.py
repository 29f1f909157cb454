import pytest

from sightline.agent.core.arguments import (
    MOST_MISMATCHES,
    AcceptedArguments,
    RefusedArguments,
    check_edited,
    read_arguments,
)
from sightline.agent.core.tool import Definition, Toolbox
from sightline.model.json import JsonObject
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
    assert isinstance(accepted, AcceptedArguments)
    assert accepted.arguments == {"n": 1}
    assert [repair.pointer for repair in accepted.repairs] == ["", "/n"]


@pytest.mark.parametrize("toolbox", [Toolbox((FREE,)), Toolbox((Definition(name="free", schema={}),))])
def test_arguments_are_an_object_whatever_the_schema_leaves_open(toolbox: Toolbox) -> None:
    refused = asked("free", "[1]", toolbox)
    assert isinstance(refused, RefusedArguments)
    assert "must be a JSON object" in refused.text


def test_an_unknown_tool_is_answered_with_those_that_may_have_been_meant() -> None:
    assert asked("edit-file", "{}") == RefusedArguments(
        "The tool 'edit-file' does not exist. Tools that can be called: edit_file."
    )
    assert asked("x", "{}", Toolbox()) == RefusedArguments("The tool 'x' does not exist. No tool can be called.")


def test_a_disabled_tool_is_told_apart_from_an_unknown_one() -> None:
    refused = asked("format_disk", "{}")
    assert isinstance(refused, RefusedArguments)
    assert refused.text.startswith("The tool 'format_disk' is disabled and cannot be called.")


def test_every_wrong_place_is_named_up_to_a_point() -> None:
    properties: JsonObject = {f"p{n}": {"type": "integer"} for n in range(MOST_MISMATCHES + 3)}
    definition = Definition(name="many", schema={"properties": properties})
    written = "{" + ",".join(f'"{key}": "x"' for key in properties) + "}"
    refused = asked("many", written, Toolbox((definition,)))
    assert isinstance(refused, RefusedArguments)
    lines = refused.text.splitlines()
    assert lines[0] == "The arguments of 'many' are invalid:"
    assert lines[1].endswith(': expected integer, got string "x"')
    assert lines[-2:] == ["- and 3 more", "Please check your input and try again."]


def test_a_missing_argument_is_a_fault_of_the_whole() -> None:
    refused = asked("count", "{}")
    assert isinstance(refused, RefusedArguments)
    assert "- the arguments: 'n' is a required property" in refused.text


def test_what_a_person_writes_is_held_to_the_schema_and_never_changed() -> None:
    assert check_edited({"n": 1}, COUNT) == AcceptedArguments({"n": 1})
    assert check_edited({"x": 1}, FREE) == AcceptedArguments({"x": 1})
    assert check_edited("ls", SHELL) == AcceptedArguments("ls")
    refused = check_edited({"n": "1"}, COUNT)
    assert isinstance(refused, RefusedArguments)
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
    assert isinstance(accepted, AcceptedArguments)
    assert accepted.arguments == {"name": None, "must": None, "place": {}, "list": [{}, {"x": 1}], "any": None}
    assert [repair.pointer for repair in accepted.repairs] == ["/n", "/place/x", "/list/0/x"]
    assert isinstance(asked("f", '{"must": null, "gone": 1}', strict), RefusedArguments)
    loose = Toolbox((Definition(name="f", schema=schema),))
    assert isinstance(asked("f", given, loose), RefusedArguments)
