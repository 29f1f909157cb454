"""Anchors: how a section or a part is found again in a later request, by what it says and never by its number."""

import hashlib
from collections.abc import Iterator
from functools import cached_property

import msgspec

from sightline.editing.draft import Draft
from sightline.editing.section import Section, SectionPart
from sightline.model.comparison import of_message, of_part, of_tool
from sightline.model.message import Message
from sightline.model.parts import Part, ToolResult
from sightline.model.request import Request
from sightline.model.tools import Tool
from sightline.wire.jsontext import encode

_SIZE = 12


class Anchor(msgspec.Struct, frozen=True):
    """What a thing is, what it says, and what stood before it, which only tells equal things apart. A patch written by
    hand names the kind alone."""

    kind: str
    content: str = ""
    before: str = ""


class Anchors:
    """The anchors of all that stands in a draft."""

    def __init__(self, draft: Draft) -> None:
        self._draft = draft
        self._request = draft.request or Request()

    @cached_property
    def _messages(self) -> dict[str, Message]:
        return {message.at: message for message in self._request.messages}

    @cached_property
    def _pieces(self) -> dict[str, Part | Tool]:
        found: dict[str, Part | Tool] = {tool.at: tool for tool in self._request.tools}
        found |= {part.at: part for message in self._request.messages for part in _all_parts(message.parts)}
        return found

    @cached_property
    def sections(self) -> dict[str, Anchor]:
        """By the ids of the sections that are in the document."""
        found: dict[str, Anchor] = {}
        before = ""
        for section in self._draft.sections:
            if not section.deleted:
                found[section.id] = Anchor(section.kind, self._section(section), before)
                before = found[section.id].content
        return found

    def parts(self, section: Section) -> dict[str, Anchor]:
        """Those of the parts of a section, by their ids."""
        found: dict[str, Anchor] = {}
        before = ""
        for part in section.parts:
            if not part.deleted and part.type != "cache_breakpoint":
                found[part.id] = Anchor(part.type, self._part(part), before)
                before = found[part.id].content
        return found

    def _section(self, section: Section) -> str:
        message = self._messages.get(section.pointer)
        if message is not None and section.kind not in ("tools", "options"):
            return _digest(msgspec.to_builtins(of_message(message)))
        return _digest([self._part(part) for part in section.parts if not part.deleted])

    def _part(self, part: SectionPart) -> str:
        piece = self._pieces.get(part.pointer)
        if piece is None:
            return _digest([part.type, part.name, part.text])
        return _digest(msgspec.to_builtins(of_tool(piece) if isinstance(piece, Tool) else of_part(piece)))


def _all_parts(parts: tuple[Part, ...]) -> Iterator[Part]:
    for part in parts:
        yield part
        if isinstance(part, ToolResult):
            yield from part.parts


def _digest(value: object) -> str:
    return hashlib.blake2b(encode(value), digest_size=_SIZE).hexdigest()  # type: ignore[arg-type] # builtins are JSON
