"""Sections: a request as a person reads it, one after the other, each with the place where it stands on screen."""

from typing import Literal

import msgspec

Kind = Literal[
    "system",
    "developer",
    "user",
    "context",
    "history",
    "assistant",
    "tool_call",
    "tool_result",
    "thinking",
    "other",
    "tools",
    "options",
]
Category = Literal["system", "tools", "history", "user", "attachments", "options"]
"""What a section counts as in the budget."""

PartType = Literal[
    "text",
    "refusal",
    "image",
    "document",
    "audio",
    "thinking",
    "tool_call",
    "tool_result",
    "cache_breakpoint",
    "opaque",
    "tool",
    "option",
]


class Tokens(msgspec.Struct, frozen=True):
    """How many tokens, likely and at the ends of the band."""

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
    """One piece of a section. `reason` says why it cannot be edited; a deleted part has no place and so no pointer.

    `is_json`: its text is JSON on the wire, not a string, so that only JSON can take its place.
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
    """One item of the conversation, the system prompt, the tools or the options.

    `text` is what `set_text` without a part replaces. A deleted section keeps its old place in the list and has no
    pointer; an edit restores it. The viewer fills in `tokens`, and `original_content` and `source_message_index`: the
    text of an edited section as it came, and the number of the item in the conversation as it came, from 0; both are
    None for what was not there then.
    """

    id: str
    kind: Kind
    role: str
    label: str
    pointer: str
    text: str
    editable: bool
    deleted: bool
    parts: tuple[SectionPart, ...]
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
