"""The shape of a request: what rules look at, without the words.

Whether a request is taken depends on who speaks when, on ids and on what is empty, not on what is said. So a keystroke
within a text, which leaves the shape as it is, brings no new problem and mends none.
"""

import msgspec

from sightline.dialects.validity import is_object
from sightline.model.message import Message
from sightline.model.parts import Part, Refusal, Text, Thinking, ToolCall, ToolResult
from sightline.model.request import Request

_SAID = "x"


def is_same_shape(one: Request, other: Request) -> bool:
    """Whether the two differ in words at most."""
    if len(one.messages) != len(other.messages):
        return False
    pairs = [(mine, theirs) for mine, theirs in zip(one.messages, other.messages, strict=True) if mine is not theirs]
    if any(shape_of(mine) != shape_of(theirs) for mine, theirs in pairs):
        return False
    return msgspec.structs.replace(one, messages=()) == msgspec.structs.replace(other, messages=())


def shape_of(message: Message) -> Message:
    """The message with its words left out; what is sealed stays, since every letter of it counts."""
    return msgspec.structs.replace(message, parts=_shapes(message.parts))


def _shapes(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    return tuple(map(_shape, parts))


def _shape(part: Part) -> Part:
    match part:
        case Text(signature=None) | Thinking(signature=None) | Refusal():
            return msgspec.structs.replace(part, text=_words(part.text))
        case ToolCall(signature=None):
            return msgspec.structs.replace(part, arguments=_arguments(part))
        case ToolResult():
            return msgspec.structs.replace(part, parts=_shapes(part.parts))
        case _:
            return part


def _words(text: str) -> str:
    """Nothing, only blanks, or something, which may end in blanks."""
    if not text.strip():
        return text[:1]
    return _SAID + text[len(text.rstrip()) :][:1]


def _arguments(call: ToolCall) -> str:
    if call.kind == "custom" or is_object(call.arguments):
        return "{}"
    return _words(call.arguments)
