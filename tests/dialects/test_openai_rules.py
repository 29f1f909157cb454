import pytest

from sightline.dialects.openai_rules import (
    choice_problems,
    format_problems,
    name_problems,
    option_problems,
    tool_problems,
)
from sightline.dialects.option_table import OF_CHAT

OBJECT = {"type": "object", "properties": {}}


def tools(*given, is_nested=False):
    found = tool_problems(list(given), "/tools", is_nested=is_nested)
    return [(problem.pointer, problem.rule) for problem in found]


def options(**fields):
    return [(problem.pointer, problem.message) for problem in option_problems(fields, OF_CHAT)]


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("temperature", (0, 1.5, 2), (-0.1, 2.1, 7)),
        ("top_p", (0, 1), (-1, 1.01)),
        ("presence_penalty", (-2, 2), (-2.5, 3)),
        ("frequency_penalty", (-2, 2), (-2.5, 3)),
        ("top_logprobs", (0, 20), (21,)),
        ("n", (1, 128), (0,)),
    ],
)
def test_options_have_ranges(name, good, bad):
    assert [options(**{name: value}) for value in (*good, None, True, "7")] == [[]] * (len(good) + 3)
    for value in bad:
        ((pointer, message),) = options(**{name: value})
        assert pointer == f"/{name}"
        assert message.startswith(f"{name} must be between")


def test_ids_of_users_have_limits_and_tiers_have_names():
    assert options(user="u" * 64, safety_identifier="s" * 128, service_tier="flex") == []
    found = options(user="u" * 65, safety_identifier="s" * 129, service_tier="standard_only")
    assert [pointer for pointer, _ in found] == ["/user", "/safety_identifier", "/service_tier"]
    assert found[2][1].endswith("there are auto, default, flex, priority, scale, fast")


def test_tool_must_be_flat_or_nested_as_the_dialect_requires():
    flat, nested = {"type": "function", "name": "f"}, {"type": "function", "function": {"name": "f"}}
    assert tools(flat) == tools(nested, is_nested=True) == []
    assert tools(nested) == tools(flat, is_nested=True) == [("/tools/0", "tool_form")]
    assert tools({"type": "custom", "custom": {"name": "c"}}) == [("/tools/0", "tool_form")]
    assert tools({"type": "web_search"}, "no tool", {"type": "namespace", "tools": [nested]}) == [
        ("/tools/2/tools/0", "tool_form")
    ]


@pytest.mark.parametrize("name", ["", "a b", "a.b", "x" * 65, "é"])
def test_names_that_are_not_taken(name):
    assert tools({"type": "function", "name": name}) == [("/tools/0/name", "tool_name")]
    assert tools({"type": "custom", "custom": {"name": name}}, is_nested=True) == [
        ("/tools/0/custom/name", "tool_name")
    ]
    assert [each.pointer for each in name_problems(name, "/input/3", "name of a call")] == ["/input/3/name"]
    assert list(name_problems(None, "/input/3", "name of a call")) == []


def test_grammars_have_two_syntaxes():
    def custom(output):
        return {"type": "custom", "name": "c", "format": output}

    for syntax in ("lark", "regex"):
        assert tools(custom({"type": "grammar", "syntax": syntax, "definition": "x"})) == []
    assert tools(custom({"type": "text"})) == []
    assert tools(custom({"type": "grammar", "syntax": "ebnf", "definition": "x"})) == [
        ("/tools/0/format/syntax", "grammar_syntax")
    ]
    chat = {"type": "custom", "custom": {"name": "c", "format": {"type": "grammar", "grammar": {"syntax": "gbnf"}}}}
    assert tools(chat, is_nested=True) == [("/tools/0/custom/format/grammar/syntax", "grammar_syntax")]


def test_parameters_are_a_schema_that_exists():
    def function(schema, **more):
        return {"type": "function", "name": "f", "parameters": schema, **more}

    assert tools(function(OBJECT)) == tools(function(None)) == []
    assert tools(function({**OBJECT, "properties": {"a": {"type": "str"}}})) == [
        ("/tools/0/parameters/properties/a/type", "schema_type")
    ]
    assert tools(function({**OBJECT, "anyOf": [OBJECT]})) == [("/tools/0/parameters/anyOf", "")]
    optional = {**OBJECT, "properties": {"a": {"type": "string"}}}
    assert tools(function(optional)) == tools(function(optional, strict=False)) == []
    assert tools(function(optional, strict=True)) == [
        ("/tools/0/parameters", "closed_object"),
        ("/tools/0/parameters", "required_properties"),
    ]
    assert tools(function({}, strict=True)) == []


def test_the_schema_of_the_answer():
    def answer(**output):
        return [problem.pointer for problem in format_problems(output, "/f")]

    assert answer() == answer(name="r", schema={"type": "object"}) == []
    assert answer(name="a b", schema={"type": "objekt"}) == ["/f/name", "/f/schema/type"]
    assert answer(strict=True, schema={"anyOf": [{"type": "string"}]}) == ["/f/schema/anyOf"]
    assert answer(strict=True, schema=OBJECT) == ["/f/schema"]


def test_a_choice_has_the_form_of_its_api():
    flat, nested = {"type": "function", "name": "f"}, {"type": "function", "function": {"name": "f"}}
    for good, bad, is_nested in ((flat, nested, False), (nested, flat, True)):
        for choice in (good, "auto", None, {"type": "allowed_tools"}):
            assert list(choice_problems(choice, is_nested=is_nested)) == []
        (problem,) = choice_problems(bad, is_nested=is_nested)
        assert (problem.pointer, problem.rule) == ("/tool_choice", "tool_form")
