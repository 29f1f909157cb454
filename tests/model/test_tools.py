import msgspec
import pytest

from sightline.model.tools import CustomTool, FunctionTool, Grammar, OpaqueTool, Tool, ToolChoice

TOOLS: list[Tool] = [
    FunctionTool("add", "adds", {"type": "object"}, strict=True, namespace="math"),
    CustomTool("patch", "patches", Grammar("lark", "start: /x/")),
    OpaqueTool("anthropic", {"type": "web_search"}),
]


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: type(tool).__name__)
def test_tools_are_told_apart(tool: Tool) -> None:
    assert msgspec.json.decode(msgspec.json.encode(tool), type=Tool) == tool


def test_a_choice_can_name_tools() -> None:
    assert msgspec.json.encode(ToolChoice("named", ("add",))) == b'{"mode":"named","names":["add"]}'
