"""Calls and the results that answer them, as far as a conversation tells."""

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from sightline.model.json import Json
from sightline.model.message import Message
from sightline.model.parts import Opaque, Part, ToolCall, ToolResult

Pairs: TypeAlias = tuple[tuple[Part, Part], ...]
"""Each call with its result, which is known by its place: its words may be older than the document."""

_SERVER_CALLS = frozenset({"server_tool_use", "mcp_tool_use", "mcp_approval_request"})


def halves_of(message: Message) -> list[object]:
    """What in here decides who is paired with whom; of a result its words do not."""
    return [
        (part.id, part.name, part.at) if isinstance(part, ToolResult) else part
        for part in message.parts
        if isinstance(part, (ToolCall, ToolResult, Opaque))
    ]


def pairs_of(messages: Iterable[Message]) -> Pairs:
    """The pairs of a conversation: by id, or by name and order where there is none."""
    return tuple(_pairs(messages))


def _pairs(messages: Iterable[Message]) -> Iterator[tuple[Part, Part]]:
    waiting: dict[str, list[Part]] = {}
    for message in messages:
        for part in message.parts:
            match part:
                case ToolCall():
                    waiting.setdefault(_key(part.id, part.name), []).append(part)
                case ToolResult():
                    calls = waiting.get(_key(part.id, part.name)) or _calls_by_name(waiting, part)
                    if calls:
                        yield calls.pop(0), part
                case Opaque():
                    yield from _foreign(part, waiting)
                case _:
                    pass


def _key(call_id: str, name: str | None) -> str:
    return f"#{call_id}" if call_id else f"@{name}"


def _calls_by_name(waiting: dict[str, list[Part]], result: ToolResult) -> list[Part] | None:
    """The calls of a result's name, where only one of the two has an id."""
    if not result.id:
        named = (calls for calls in waiting.values() if calls and getattr(calls[0], "name", None) == result.name)
        return next(named, None)
    return waiting.get(f"@{result.name}")


def _foreign(part: Opaque, waiting: dict[str, list[Part]]) -> Iterator[tuple[Part, Part]]:
    """Calls and results of kinds that only their dialect knows: a server's tools, and what they need approval for."""
    role, call_id = _role(part.value)
    if role == "call":
        waiting.setdefault(f"~{call_id}", []).append(part)
    elif role == "result" and waiting.get(f"~{call_id}"):
        yield waiting[f"~{call_id}"].pop(0), part


def _role(value: Json) -> tuple[str, str]:
    if not isinstance(value, dict):
        return "", ""
    kind, call_id = value.get("type"), value.get("call_id")
    used = value.get("tool_use_id") or value.get("approval_request_id")
    if not isinstance(kind, str):
        return "", ""
    if isinstance(used, str):
        return "result", used
    if kind in _SERVER_CALLS:
        return "call", str(value.get("id"))
    if isinstance(call_id, str):
        return "result" if kind.endswith("_output") else "call", call_id
    return "", ""
