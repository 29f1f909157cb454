"""Sections: a request as the user sees it, with the kind, label, category and details of each section."""

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias, TypedDict, assert_never

import msgspec

from sightline.editing.deletions import Deletions
from sightline.model.json import Json
from sightline.model.parts import (
    Audio,
    CacheBreakpoint,
    Document,
    FileId,
    Image,
    Inline,
    Link,
    Opaque,
    Part,
    PlainText,
    Refusal,
    Source,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from sightline.model.request import CustomTool, FunctionTool, Message, OpaqueTool, Tool
from sightline.wire.pointer import parse_pointer

Kind = Literal[
    "system", "developer", "user", "context", "history", "assistant", "tool_call", "tool_result", "thinking", "other",
    "tools", "options",
]  # fmt: skip
Category = Literal["system", "tools", "history", "results", "user", "attachments", "options"]
"""What a section counts as in the token budget."""

PartType = Literal[
    "text", "refusal", "image", "document", "audio", "thinking", "tool_call", "tool_result", "cache_breakpoint",
    "opaque", "tool", "option",
]  # fmt: skip


class Option(NamedTuple):
    """A value beside the conversation and the tools."""

    at: str
    value: Json


SectionContent: TypeAlias = Part | Tool | Option
"""What a part of a section shows."""


class Tokens(msgspec.Struct, frozen=True):
    """A token estimate with its low and high bounds."""

    tokens: int
    low: int
    high: int


class CallReference(msgspec.Struct, frozen=True):
    """The call that a result answers, and the section that holds it."""

    call_id: str
    name: str
    arguments: str
    section: str


class SectionPart(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a section. `reason` is why it cannot be edited; a deleted part has no place and so no pointer.

    With `is_json` its text is JSON on the wire, not a string, so that only JSON can replace it.
    """

    id: str
    type: PartType
    pointer: str
    text: str = ""
    editable: bool = False
    deleted: bool = False
    call_id: str = ""
    name: str = ""
    reason: str = ""
    media_type: str = ""
    url: str = ""
    tokens: int | None = None
    is_json: bool = False


class Section(msgspec.Struct, frozen=True, kw_only=True):
    """An item of the conversation, the system prompt, the tools or the options.

    `text` is what `set_text` without a part replaces. A deleted section keeps its old position in the list and has no
    pointer; an edit restores it. The viewer fills in `tokens`, `original_content` (the text of an edited section as it
    arrived) and `source_message_index` (the number of the item in the conversation as it arrived, from 0). The last two
    are None for sections that were not there on arrival.
    """

    id: str
    kind: Kind
    role: str = ""
    label: str
    pointer: str = ""
    text: str = ""
    editable: bool = False
    deleted: bool = False
    parts: tuple[SectionPart, ...] = ()
    category: Category
    tokens: Tokens | None = None
    answers: tuple[CallReference, ...] = ()
    reason: str = ""
    has_cache_mark: bool = False
    original_content: str | None = None
    source_message_index: int | None = None


def text_in(section: Section, part: str) -> str:
    """The text of a section, or of the part with this id."""
    return next((each.text for each in section.parts if each.id == part), section.text)


_CONTEXT = re.compile(
    r"\s*(?:<([a-z][a-z_-]*(?:reminder|context|environment|instructions|attachments|workspace|info|memory|git)[a-z_-]*)"
    r"[\s>]|<(context|env|instructions|files|documents|attachments|memory|workspace)[\s>]|# (AGENTS\.md|CLAUDE\.md))"
)
"""How agents begin the text that they add to user messages."""


def is_added(text: str) -> bool:
    """Whether an agent, not the user, wrote this text of a user message."""
    return _CONTEXT.match(text) is not None


def _name_of_added(text: str) -> str:
    """What an agent added to a message, by how it begins: `System reminder`, `CLAUDE.md`. Empty for other text."""
    opened = _CONTEXT.match(text)
    word = next(filter(None, opened.groups())) if opened else ""
    return word if "." in word else word.replace("-", " ").replace("_", " ").capitalize()


def kind_of(message: Message) -> Kind:
    """The kind of a message, by its role and content."""
    types = _types_of(message)
    match message.role:
        case "system" | "developer":
            return message.role
        case "tool":
            return "tool_result"
        case "assistant":
            others = types - {Thinking}
            if not others:
                return "thinking" if types else "assistant"
            if others == {ToolCall}:
                return "tool_call"
            return "other" if types == {Opaque} else "assistant"
        case _:
            return _kind_of_user_message(message, types)


def _types_of(message: Message) -> set[type[Part]]:
    """The types of the parts of a message, without cache marks."""
    return {*map(type, message.parts)} - {CacheBreakpoint}


def _kind_of_user_message(message: Message, types: set[type[Part]]) -> Kind:
    name = (message.name or "").lower()
    if "history" in name:
        return "history"
    is_context = Text in types and all(is_added(part.text) for part in message.parts if isinstance(part, Text))
    if ToolResult in types:
        return "tool_result" if types <= {ToolResult, Text} and (is_context or Text not in types) else "user"
    if is_context or "context" in name:
        return "context"
    return "other" if types == {Opaque} else "user"


_DESCRIPTIVE_ARGUMENTS = (
    "command",
    "cmd",
    "script",
    "code",
    "pattern",
    "query",
    "url",
    "description",
    "prompt",
    "task",
    "name",
)
"""Arguments that by themselves describe what a call does, most descriptive first."""
_PATHS = ("file_path", "path", "notebook_path", "absolute_path", "filename", "file", "dir_path", "directory")
_SHELLS = frozenset({"bash", "sh", "zsh", "/bin/bash", "/bin/sh", "/bin/zsh", "powershell.exe"})
_MOST_WORDS = 60


def call_words(name: str, arguments: str) -> str:
    """A tool's name and what it is called on: `Read parser.py`, `Bash: ls -la`. Only the name if the arguments do not
    tell, or are not JSON. `mcp__SERVER__TOOL` is the tool of a server: `SERVER TOOL`."""
    tool = name.removeprefix("mcp__").replace("__", " ", 1) if name.startswith("mcp__") else name
    try:
        given = msgspec.json.decode(arguments)
    except (msgspec.DecodeError, UnicodeEncodeError):  # a lone surrogate is not UTF-8
        return tool
    if not isinstance(given, dict):
        return tool
    command = given.get("command") or given.get("cmd")
    if isinstance(command, list) and all(isinstance(word, str) for word in command):
        # Codex passes commands to a shell: ["bash", "-lc", "ls -la"].
        is_handed = len(command) > 2 and command[0] in _SHELLS
        return _join_words(tool, command[-1] if is_handed else " ".join(command))
    texts = {key: value for key, value in given.items() if isinstance(value, str) and value.strip()}
    if "command" not in texts and (path := next(filter(None, map(texts.get, _PATHS)), "")):
        pattern = texts.get("pattern")
        short = path.rstrip("/\\").replace("\\", "/").rpartition("/")[2] or path
        return _join_words(tool, f"{pattern} in {short}") if pattern else f"{tool} {_one_line(short)}"
    words = next(filter(None, map(texts.get, _DESCRIPTIVE_ARGUMENTS)), "")
    return _join_words(tool, words) if words else tool


def _join_words(tool: str, words: str) -> str:
    return f"{tool}: {_one_line(words)}"


def _one_line(words: str) -> str:
    line = " ".join(words.split())
    return line if len(line) <= _MOST_WORDS else f"{line[: _MOST_WORDS - 1]}…"


def label_of(message: Message, kind: Kind, ordinal: int, answered: Sequence[CallReference]) -> str:
    """The label of a message: what it is, and what it is about. `ordinal` counts the messages of its kind, `answered`
    are the calls that its results answer."""
    title = {"tool_call": "Assistant", "tool_result": "Result"}.get(kind, kind.capitalize())
    if kind == "system" and not message.at.rpartition("/")[2].isdecimal():
        return "System prompt"
    about = message.name or _about(message, kind, answered)
    if kind in ("assistant", "tool_call", "other"):
        calls = (part for part in message.parts if isinstance(part, ToolCall))
        names = dict.fromkeys(call_words(part.name, part.arguments) for part in calls)
        about = f"calls {', '.join(names)}" if names else about
    if kind == "context" and about and not message.name:
        return about
    if about:
        return f"{title} · {about}"
    return f"{title} {ordinal}" if kind in ("user", "assistant") else title


def _about(message: Message, kind: Kind, answered: Sequence[CallReference]) -> str:
    if kind == "tool_result":
        return ", ".join(dict.fromkeys(filter(None, (call_words(call.name, call.arguments) for call in answered))))
    if kind == "context":
        return next((_name_of_added(part.text) for part in message.parts if isinstance(part, Text)), "")
    if kind == "other":
        value = next((part.value for part in message.parts if isinstance(part, Opaque)), None)
        word = value.get("type") if isinstance(value, dict) else None
        return word if isinstance(word, str) else ""
    return ""


_MEDIA = (Image, Document, Audio)
_NOTHING = Deletions()
_SHOWN_INLINE = 8_000_000
"""An image longer than this is not repeated in the view; it is in the body."""


class PartDetails(TypedDict, total=False):
    """The fields of a section part that only some kinds of parts have."""

    text: str
    name: str
    call_id: str
    media_type: str
    url: str


def details_of(content: SectionContent) -> PartDetails:
    """The fields of a section part that only some kinds of parts have."""
    match content:
        case Text():
            return {"name": _name_of_added(content.text)} if is_added(content.text) else {}
        case Thinking() | Refusal() | Opaque():
            return {}
        case ToolCall() | ToolResult():
            return {"call_id": content.id, "name": content.name or ""}
        case Image():
            return _file(content.source)
        case Document():
            return {**_file(content.source), "name": content.title or ""}
        case Audio():
            return {**_file(content.source), "name": content.id or "", "text": content.transcript or ""}
        case CacheBreakpoint():
            return {"name": content.kind, "text": content.ttl or ""}
        case FunctionTool() | CustomTool() | OpaqueTool():
            return {"name": tool_name(content)}
        case Option():
            return {"name": parse_pointer(content.at)[-1]}
        case unreachable:
            assert_never(unreachable)


def _file(source: Source | None) -> PartDetails:
    match source:
        case Inline(media_type, data):
            is_shown = len(data) <= _SHOWN_INLINE
            return {"media_type": media_type, "url": f"data:{media_type};base64,{data}" if is_shown else ""}
        case Link(url, media_type):
            return {"media_type": media_type, "url": url}
        case FileId(file_id):
            return {"url": f"file:{file_id}"}
        case PlainText(text, media_type):
            return {"media_type": media_type, "text": text}
        case None:
            return {}
        case unreachable:
            assert_never(unreachable)


def can_gain_text(message: Message, deletions: Deletions = _NOTHING) -> bool:
    """Whether a text can be added to a message without one, before its other parts.

    That is possible beside an opaque part in a list of parts. An item that is opaque as a whole has no list to add it
    to.
    """
    return all(
        isinstance(part, (*_MEDIA, CacheBreakpoint)) or (isinstance(part, Opaque) and part.at != message.at)
        for part in message.parts
        if not deletions.holds(part.at)
    )


def text_of(parts: Sequence[SectionPart]) -> tuple[str, str] | None:
    """The text of a section with these parts, and why it cannot be edited as one text; None if it has no text."""
    words = [part for part in parts if part.type == "text"]
    if words:
        is_editable = any(part.editable for part in words)
        return "".join([part.text for part in words]), "" if is_editable else words[0].reason
    paired = [part for part in parts if part.type in ("tool_call", "tool_result")]
    return (paired[0].text, paired[0].reason) if len(paired) == 1 else None


def category_of(message: Message, kind: Kind, *, is_past: bool) -> Category:
    """The budget category of a message. The user's last turn is not history yet; what the model said always is, even
    after that turn. Tool results have their own category, because they fill most contexts."""
    if kind in ("system", "developer"):
        return "system"
    types = _types_of(message)
    if types and types <= {*_MEDIA}:
        return "attachments"
    if kind == "tool_result":
        return "results"
    return "history" if is_past or message.role == "assistant" else "user"


def tool_name(tool: Tool) -> str:
    """The name of a tool, or its type if it has no name."""
    if not isinstance(tool, OpaqueTool):
        return tool.name
    value = tool.value if isinstance(tool.value, dict) else {}
    word = value.get("name") or value.get("type") or next(iter(value), "")
    return word if isinstance(word, str) else ""
