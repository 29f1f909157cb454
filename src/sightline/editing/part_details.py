"""What is told of a part or a section beside its words: whose it is, what file it is, what it counts as."""

from collections.abc import Sequence
from typing import assert_never

from sightline.editing.deletions import Deletions
from sightline.editing.section import Category, Kind, SectionPart
from sightline.model.message import Message
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
    Source,
    ToolCall,
    ToolResult,
)
from sightline.model.tools import OpaqueTool, Tool

_MEDIA = (Image, Document, Audio)
_NOTHING = Deletions()
_SHOWN_INLINE = 8_000_000
"""A picture longer than this is not repeated in the view; the body has it."""


def details_of(part: Part) -> dict[str, str]:
    """The fields of a section's part that only some kinds of parts have."""
    match part:
        case ToolCall() | ToolResult():
            return {"call_id": part.id, "name": part.name or ""}
        case Image():
            return _file(part.source)
        case Document():
            return {**_file(part.source), "name": part.title or ""}
        case Audio():
            return {**_file(part.source), "name": part.id or "", "text": part.transcript or ""}
        case CacheBreakpoint():
            return {"name": part.kind, "text": part.ttl or ""}
        case _:
            return {}


def _file(source: Source | None) -> dict[str, str]:
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
    """Whether a message without text can be given one, in front of what it has.

    An opaque part in a list of parts does not mind a neighbour; an item that is opaque as a whole has no list for one.
    """
    return all(
        isinstance(part, (*_MEDIA, CacheBreakpoint)) or (isinstance(part, Opaque) and part.at != message.at)
        for part in message.parts
        if not deletions.holds(part.at)
    )


def text_of(parts: Sequence[SectionPart], *, can_gain_text: bool) -> tuple[str, str]:
    """What a section's text is made of these parts, and why it cannot be edited as one if it cannot."""
    words = [part for part in parts if part.type == "text"]
    if words:
        is_editable = any(part.editable for part in words)
        return "".join(part.text for part in words), "" if is_editable else words[0].reason
    paired = [part for part in parts if part.type in ("tool_call", "tool_result")]
    if len(paired) == 1:
        return paired[0].text, paired[0].reason
    return "", "" if can_gain_text else "It has no text of its own: edit its parts one by one."


def category_of(message: Message, kind: Kind, *, is_past: bool) -> Category:
    """What a message counts as; what the person said last, and all that came of it, is not history yet."""
    if kind in ("system", "developer"):
        return "system"
    parts = [part for part in message.parts if not isinstance(part, CacheBreakpoint)]
    if parts and all(isinstance(part, _MEDIA) for part in parts):
        return "attachments"
    return "history" if is_past else "user"


def tool_name(tool: Tool) -> str:
    """The name of a tool, or of its kind where it has none."""
    if not isinstance(tool, OpaqueTool):
        return tool.name
    value = tool.value if isinstance(tool.value, dict) else {}
    word = value.get("name") or value.get("type") or next(iter(value), "")
    return word if isinstance(word, str) else ""
