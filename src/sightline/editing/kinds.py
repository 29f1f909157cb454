"""What a message is to a person who reads a request: its kind, and the label on it."""

import re
from collections.abc import Sequence

from sightline.editing.section import Kind
from sightline.model.message import Message
from sightline.model.parts import CacheBreakpoint, Opaque, Part, Text, Thinking, ToolCall, ToolResult

_CONTEXT = re.compile(
    r"\s*(?:<([a-z][a-z_-]*(?:reminder|context|environment|instructions|attachments|workspace|info|memory|git)[a-z_-]*)"
    r"[\s>]|<(context|env|instructions|files|documents|attachments|memory|workspace)[\s>]|# (AGENTS\.md|CLAUDE\.md))"
)
"""How agents open the words that they put in a user's mouth."""

_TITLES: dict[Kind, str] = {
    "system": "System",
    "developer": "Developer",
    "user": "User",
    "context": "Context",
    "history": "History",
    "assistant": "Assistant",
    "tool_call": "Assistant",
    "tool_result": "Result",
    "thinking": "Thinking",
    "other": "Other",
}


def kind_of(message: Message) -> Kind:
    """The kind of a message, by its role and by what it holds."""
    parts = [part for part in message.parts if not isinstance(part, CacheBreakpoint)]
    match message.role:
        case "system" | "developer":
            return message.role
        case "tool":
            return "tool_result"
        case "assistant":
            return _answer(parts)
        case _:
            return _kind_of_user_message(message, parts)


def _answer(parts: Sequence[Part]) -> Kind:
    others = [part for part in parts if not isinstance(part, Thinking)]
    if not others:
        return "thinking" if parts else "assistant"
    if all(isinstance(part, ToolCall) for part in others):
        return "tool_call"
    return "other" if all(isinstance(part, Opaque) for part in parts) else "assistant"


def _kind_of_user_message(message: Message, parts: Sequence[Part]) -> Kind:
    name = (message.name or "").lower()
    if "history" in name:
        return "history"
    words = [part for part in parts if isinstance(part, Text)]
    told = bool(words) and all(_CONTEXT.match(part.text) for part in words)
    if any(isinstance(part, ToolResult) for part in parts):
        others = [part for part in parts if not isinstance(part, (ToolResult, Text))]
        return "tool_result" if not others and (told or not words) else "user"
    if told or "context" in name:
        return "context"
    return "other" if parts and all(isinstance(part, Opaque) for part in parts) else "user"


def label_of(message: Message, kind: Kind, ordinal: int, answered: tuple[str, ...]) -> str:
    """The label of a message: what it is, and whom or what it is about. `ordinal` counts the messages of its kind."""
    title = _TITLES[kind]
    if kind == "system" and not message.at.rpartition("/")[2].isdecimal():
        return "System prompt"
    about = message.name or _about(message, kind, answered)
    if kind in ("assistant", "tool_call", "other"):
        names = dict.fromkeys(part.name for part in message.parts if isinstance(part, ToolCall))
        about = f"calls {', '.join(names)}" if names else about
    if about:
        return f"{title} · {about}"
    return f"{title} {ordinal}" if kind in ("user", "assistant") else title


def _about(message: Message, kind: Kind, answered: tuple[str, ...]) -> str:
    if kind == "tool_result":
        return ", ".join(dict.fromkeys(name for name in answered if name))
    if kind == "context":
        opened = next((_CONTEXT.match(part.text) for part in message.parts if isinstance(part, Text)), None)
        return next(filter(None, opened.groups()), "") if opened else ""
    if kind == "other":
        value = next((part.value for part in message.parts if isinstance(part, Opaque)), None)
        word = value.get("type") if isinstance(value, dict) else None
        return word if isinstance(word, str) else ""
    return ""
