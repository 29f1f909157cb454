"""What a value says, wherever it stands: the same words at another place, or marked for a cache, are the same.

Clients send a conversation again and again. Between two turns a part moves in the document, gets or loses a cache mark
or an item id, and a string becomes a list of one part; none of that is read by the model.
"""

import msgspec

from sightline.model.message import Message
from sightline.model.parts import CacheBreakpoint, Part, Text, Thinking, ToolCall, ToolResult
from sightline.model.tools import Tool


def of_part(part: Part) -> Part:
    """The part without its place and the ids that only the wire needs."""
    match part:
        case Text():
            citations = tuple(msgspec.structs.replace(citation, at="") for citation in part.citations)
            return msgspec.structs.replace(part, at="", citations=citations)
        case ToolCall():
            return msgspec.structs.replace(part, at="", item=None)
        case ToolResult():
            return msgspec.structs.replace(part, at="", item=None, bare=False, parts=of_parts(part.parts))
        case Thinking():
            return msgspec.structs.replace(part, at="", id=None)
        case _:
            return msgspec.structs.replace(part, at="")


def of_parts(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """The parts that say something: all but cache marks."""
    return tuple(of_part(part) for part in parts if not isinstance(part, CacheBreakpoint))


def of_message(message: Message) -> Message:
    """The message without its place, its item id and its cache marks."""
    return msgspec.structs.replace(message, at="", id=None, bare=False, parts=of_parts(message.parts))


def of_tool(tool: Tool) -> Tool:
    """The tool without its place and its cache mark."""
    return msgspec.structs.replace(tool, at="", cache=None)
