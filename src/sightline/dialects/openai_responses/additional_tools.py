"""Tools that `additional_tools` items bring back from a dialect that carried them.

There they stand twice: in the item, whole, and among the tools of the request, under flat names. The item is written,
they are not, and calls and choices get their namespaces back.
"""

from sightline.dialects.openai_responses.names import NAME
from sightline.dialects.openai_responses.tools import Spaces, read_tools
from sightline.dialects.tool_names import flat_name
from sightline.model.json import Json
from sightline.model.message import Message
from sightline.model.parts import Opaque
from sightline.model.report import Report
from sightline.model.tools import CustomTool, FunctionTool, OpaqueTool, Tool


class Brought:
    """The tools that the items of these messages bring."""

    def __init__(self, messages: tuple[Message, ...]) -> None:
        self._tools: list[Tool] = []
        for message in messages:
            for part in message.parts:
                item = part.value if isinstance(part, Opaque) and part.dialect == NAME else None
                if isinstance(item, dict) and item.get("type") == "additional_tools":
                    self._tools += read_tools(item.get("tools"), f"{part.at}/tools")
        self.spaces: Spaces = {
            flat_name(tool.name, tool.namespace): (tool.name, tool.namespace)
            for tool in self._tools
            if not isinstance(tool, OpaqueTool)
        }

    def others(self, tools: tuple[Tool, ...], report: Report) -> list[Tool]:
        """The tools that nothing brings; one that is not what its item says is a loss."""
        waiting = list(self._tools)
        left: list[Tool] = []
        for tool in reversed(tools):  # they were read behind the others
            same = next((other for other in waiting if _identity_of(other) == _identity_of(tool)), None)
            if same is None:
                left.append(tool)
                continue
            waiting.remove(same)
            if _content(same) != _content(tool):
                why = "an additional_tools item brings it, and says something else"
                report.lose(tool.at, "definition of a tool", why, "option")
        return left[::-1]


def _identity_of(tool: Tool) -> Json:
    """What a tool is known by where there are no namespaces."""
    return tool.value if isinstance(tool, OpaqueTool) else flat_name(tool.name, tool.namespace)


def _content(tool: Tool) -> tuple[object, ...]:
    match tool:
        case FunctionTool():
            return tool.description, tool.schema, tool.strict
        case CustomTool():
            return tool.description, tool.grammar
        case _:
            return ()
