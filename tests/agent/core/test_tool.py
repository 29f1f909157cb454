import pytest

from sightline.agent.core.tool import Definition, Toolbox, definition_problems
from sightline.errors import Code, Fault
from sightline.model.tools import CustomTool, FunctionTool, Grammar, OpaqueTool
from tests.loop_stage import TOOLBOX


def test_tools_are_offered_without_those_that_are_disabled() -> None:
    grammar = Grammar("lark", "start: /x/")
    toolbox = Toolbox(
        (
            Definition(name="a", description="A."),
            Definition(name="b", kind="custom", grammar=grammar),
            *TOOLBOX.definitions,
        )
    )
    first, second, *others = toolbox.tools_for()
    assert first == FunctionTool("a", "A.", {"type": "object", "properties": {}})
    assert second == CustomTool("b", None, grammar)
    assert "format_disk" not in [tool.name for tool in others if not isinstance(tool, OpaqueTool)]


def test_a_tool_that_the_request_has_already_stays_as_it_is_written_there() -> None:
    own, server = FunctionTool("count", "Mine."), OpaqueTool("anthropic", {"type": "web_search"})
    offered = TOOLBOX.tools_for((server, own))
    assert offered[:2] == (server, own)
    assert [tool.name for tool in offered[2:] if not isinstance(tool, OpaqueTool)] == ["edit_file", "shell"]


def test_the_nearest_names_come_first_and_all_of_them_where_none_is_near() -> None:
    assert TOOLBOX.nearest("Edit_Files") == ("edit_file",)
    assert TOOLBOX.nearest("zzzz") == ("edit_file", "count", "shell")
    assert TOOLBOX.nearest("format_disk")[0] != "format_disk"


def test_tools_are_found_by_name() -> None:
    assert TOOLBOX.find("nope") is None
    assert TOOLBOX.find("format_disk") is not None


def test_bad_tools_are_reported_all_at_once() -> None:
    TOOLBOX.check()
    bad = Definition(name="bad", schema={"type": "nothing"})
    toolbox = Toolbox((bad, bad, Definition(name="words", kind="custom", schema={})))
    with pytest.raises(Fault) as caught:
        toolbox.check()
    assert caught.value.code is Code.CONFIG
    for words in ("bad: /type", "words: a tool for free text has no schema", "there are 2 tools named 'bad'"):
        assert words in caught.value.message


def test_a_tool_without_a_schema_takes_any_object() -> None:
    assert definition_problems(Definition(name="x")) == []


def test_a_tool_that_the_api_has_by_itself_is_offered_once_in_whatever_dialect() -> None:
    toolbox = Toolbox((Definition(name="web_search", hosted="web_search"), Definition(name="f", strict=True)))
    search, function = toolbox.tools_for()
    assert search == OpaqueTool("openai-responses", {"type": "web_search"})
    assert isinstance(function, FunctionTool)
    assert function.strict is True
    there = OpaqueTool("gemini", {"googleSearch": {}})
    assert toolbox.tools_for((there,)) == (there, function)
    assert [each.is_remote for each in toolbox.definitions] == [True, False]
