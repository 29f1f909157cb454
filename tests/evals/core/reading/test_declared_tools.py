import json

import msgspec
import pytest

from sightline.model.tools import CustomTool, FunctionTool, OpaqueTool
from tests.evals.core.reading.stage import case, one, problem, read

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
WEATHER = FunctionTool(name="weather", description="Tells it.", schema=SCHEMA)


@pytest.mark.parametrize(
    "written",
    [
        {"name": "weather", "description": "Tells it.", "parameters": SCHEMA},
        {"name": "weather", "description": "Tells it.", "input_schema": SCHEMA},
        {"type": "function", "function": {"name": "weather", "description": "Tells it.", "parameters": SCHEMA}},
        msgspec.to_builtins(WEATHER),
    ],
)
def test_a_tool_is_declared_as_any_provider_writes_it(written: object) -> None:
    assert case(f"input: x\ntools: [{json.dumps(written)}]").tools == (WEATHER,)
    files = {"suites/a/tools.json": json.dumps([written], indent=2).encode()}
    assert case("input: x\ntools: a/tools.json", files).tools == (WEATHER,)


def test_tools_of_other_kinds_are_read_as_a_made_case_has_them() -> None:
    tools = (CustomTool(name="shell"), OpaqueTool(dialect="anthropic", value={"type": "web_search"}))
    files = {"tools.json": msgspec.json.encode(tools)}
    assert case("input: x\ntools: tools.json", files).tools == tools


@pytest.mark.parametrize(
    ("written", "words", "column"),
    [
        ("{name: x}", "tools must be a list", 12),
        ("[x]", "a tool must be a mapping", 13),
        ("[{description: x}]", 'a tool lacks the key "name"', 13),
        ("[{name: x, parametres: {}}]", 'no key "parametres"', 23),
        ("[{name: x, parameters: 3}]", "parameters must be a mapping", 35),
        ("[{name: x, parameters: {}, schema: {}}]", "schema is another name of parameters", 39),
        ("[{name: x}, {name: x}]", 'the tool "x" is declared twice', 24),
        ("[{type: functoin, name: x}]", "type must be one of", 20),
        ("[{type: custom}]", "it is no custom tool", 13),
        ("[{type: function, function: x}]", "a tool must be a mapping", 40),
        ("~/tools.json", "absolute", 12),
        ("nowhere.json", 'there is no file "nowhere.json"', 12),
    ],
)
def test_what_is_no_tool_is_refused_at_its_place(written: str, words: str, column: int) -> None:
    found = problem(one(f"input: x\ntools: {written}"))
    assert words in found.message
    assert (found.place.line, found.place.column) == (5, column)


def test_a_file_that_cannot_be_read_is_told_at_its_own_place() -> None:
    found = problem(one("input: x\ntools: t.json"), {"suites/t.json": b"[{"})
    assert found.place.file == "suites/t.json"


def test_a_file_that_is_missing_is_an_error_of_its_case() -> None:
    reading = read(one("input: x\ntools: nowhere.json"))
    assert [(each.severity, each.case) for each in reading.problems] == [("error", "one")]
    assert reading.suite is not None
    assert [each.missing for each in reading.suite.cases] == ["nowhere.json"]
    assert case("input: x\ntools: []").tools == ()
