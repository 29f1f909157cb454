"""Tools that a target does not know, under names and arguments that it does, and back again in the reply.

A custom tool becomes a function with one string argument; a tool in a namespace gets a flat name. Both directions are
functions of the client's own request, so a reply needs nothing but that request to be told in the client's terms.
"""

import msgspec

from sightline.errors import Fault
from sightline.model.events import (
    ArgumentsReceived,
    Failed,
    Finished,
    StreamEvent,
    ToolCallBegun,
    ToolCallCompleted,
)
from sightline.model.json import Json
from sightline.model.parts import ToolCall
from sightline.model.request import Request
from sightline.model.tools import CustomTool, FunctionTool, OpaqueTool
from sightline.wire.jsontext import decode, encode

INPUT = "input"
"""The one argument of the function that stands for a custom tool."""


def flat_name(name: str, namespace: str | None) -> str:
    """The name of a tool where there are no namespaces."""
    return f"{namespace}__{name}" if namespace else name


def flat_names(request: Request) -> dict[str, str]:
    """The flat name of each tool that a choice may name."""
    named = (tool for tool in request.tools if not isinstance(tool, OpaqueTool))
    return {tool.name: flat_name(tool.name, tool.namespace) for tool in named}


def function_for(tool: CustomTool) -> FunctionTool:
    """The function that stands for a custom tool; the grammar is told to the model in words."""
    description = tool.description or ""
    if tool.grammar is not None:
        rule = f"The input must follow this {tool.grammar.syntax} grammar:\n{tool.grammar.definition}"
        description = f"{description}\n\n{rule}".strip()
    schema: dict[str, Json] = {
        "type": "object",
        "properties": {INPUT: {"type": "string"}},
        "required": [INPUT],
        "additionalProperties": False,
    }
    return FunctionTool(tool.name, description or None, schema, namespace=tool.namespace, cache=tool.cache, at=tool.at)


def as_function_arguments(call: ToolCall) -> str:
    """A call's arguments as a function takes them."""
    return encode({INPUT: call.arguments}).decode() if call.kind == "custom" else call.arguments


def free_text(arguments: str) -> str:
    """The text that a custom tool gets from the arguments of the function that stood for it."""
    try:
        value = decode(arguments)
    except Fault:
        return arguments
    if isinstance(value, dict) and len(value) == 1 and isinstance(text := value.get(INPUT), str):
        return text
    return arguments


class NameRestorer:
    """Gives the calls of a reply back the names and kinds that the client's request has for them."""

    def __init__(self, request: Request) -> None:
        self._tools: dict[str, FunctionTool | CustomTool] = {}
        for tool in request.tools:
            if not isinstance(tool, OpaqueTool) and (tool.namespace or isinstance(tool, CustomTool)):
                self._tools[flat_name(tool.name, tool.namespace)] = tool
        self._open: dict[tuple[int, int], list[str]] = {}

    def feed(self, event: StreamEvent) -> list[StreamEvent]:
        """The event, in the client's terms; a custom tool's arguments come whole when they are complete."""
        match event:
            case ToolCallBegun(kind="function") if (tool := self._tools.get(event.name)) is not None:
                is_custom = isinstance(tool, CustomTool)
                if is_custom:
                    self._open[event.choice, event.part] = []
                return [
                    msgspec.structs.replace(
                        event, name=tool.name, namespace=tool.namespace, kind="custom" if is_custom else "function"
                    )
                ]
            case ArgumentsReceived(part, fragment, choice) if (choice, part) in self._open:
                self._open[choice, part].append(fragment)
                return []
            case ToolCallCompleted(part, choice) if (choice, part) in self._open:
                return [self._whole(choice, part), event]
            case Finished() | Failed():
                return [*(self._whole(*key) for key in list(self._open)), event]
            case _:
                return [event]

    def _whole(self, choice: int, part: int) -> StreamEvent:
        return ArgumentsReceived(part, free_text("".join(self._open.pop((choice, part)))), choice)
