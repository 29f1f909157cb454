"""Messages in the form that the conventions for generative AI give them."""

from collections.abc import Iterable, Iterator

from sightline.model.json import Json, JsonObject
from sightline.model.parts import Part, Refusal, Text, Thinking, ToolCall, ToolResult
from sightline.model.reply import Choice
from sightline.model.request import Request

_SYSTEM = ("system", "developer")
_FINISHES = {"tool_calls": "tool_call"}


def system_parts(request: Request) -> list[Json]:
    """The instructions."""
    return [part for message in request.messages if message.role in _SYSTEM for part in _parts(message.parts)]


def input_messages(request: Request) -> list[Json]:
    """The conversation without the instructions."""
    return [
        {"role": message.role, "parts": list(_parts(message.parts))}
        for message in request.messages
        if message.role not in _SYSTEM
    ]


def output_message(choice: Choice) -> JsonObject:
    """One answer."""
    finish = choice.finish or "error"
    return {
        "role": "assistant",
        "parts": list(_parts(choice.parts)),
        "finish_reason": _FINISHES.get(finish, finish),
    }


def _parts(parts: Iterable[Part]) -> Iterator[Json]:
    for part in parts:
        match part:
            case Text(text=text) | Refusal(text=text):
                yield {"type": "text", "content": text}
            case Thinking(text=text) if text:
                yield {"type": "reasoning", "content": text}
            case ToolCall(id=name, name=tool, arguments=arguments):
                yield {"type": "tool_call", "id": name, "name": tool, "arguments": arguments}
            case ToolResult(id=name, parts=inner, structured=structured):
                words: Json = "".join(each.text for each in inner if isinstance(each, Text))
                yield {
                    "type": "tool_call_response",
                    "id": name,
                    "response": words if structured is None else dict(structured),
                }
            case _:
                yield {"type": type(part).__name__.lower()}
