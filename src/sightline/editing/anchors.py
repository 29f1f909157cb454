"""Anchors and patches: how a section, or a change of its text, is found again in a later request.

An anchor identifies by content, never by position. A patch consists of hunks with context, which can be applied to a
text that has changed elsewhere.
"""

import hashlib
from collections.abc import Iterator, Sequence
from functools import cached_property

import msgspec

from sightline.editing.draft import Draft
from sightline.editing.section import Section, SectionPart
from sightline.editing.texts import differing_stretches
from sightline.model.parts import Part, ToolResult
from sightline.model.request import Message, Request, Tool, of_message, of_part, of_tool
from sightline.wire.jsontext import encode


class Anchor(msgspec.Struct, frozen=True):
    """The kind and content of a thing, and the content before it, which only tells equal things apart. A patch written
    by hand has only the kind."""

    kind: str
    content: str = ""
    before: str = ""


class Anchors:
    """The anchors of everything in a draft."""

    def __init__(self, draft: Draft) -> None:
        self._draft = draft
        self._request = draft.request or Request()

    @cached_property
    def _messages(self) -> dict[str, Message]:
        return {message.at: message for message in self._request.messages}

    @cached_property
    def _pieces(self) -> dict[str, Part | Tool]:
        parts = [part for message in self._request.messages for part in message.parts]
        inner = [each for part in parts if isinstance(part, ToolResult) for each in part.parts]
        return {piece.at: piece for piece in (*self._request.tools, *parts, *inner)}

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
        """The anchors of the parts of a section, by their ids."""
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


def _digest(value: object) -> str:
    return hashlib.blake2b(encode(value), digest_size=12).hexdigest()  # type: ignore[arg-type] # builtins are JSON


CONTEXT = 32
"""How many characters of its line a hunk has as context on each side, if they make it unique."""


class Hunk(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """`old`, between `before` and `after`, becomes `new`."""

    before: str = ""
    old: str = ""
    new: str = ""
    after: str = ""

    @property
    def sought(self) -> str:
        """The text that must be found exactly once for the hunk to be applied."""
        return self.before + self.old + self.after

    @property
    def made(self) -> str:
        """The text after the hunk has been applied."""
        return self.before + self.new + self.after


def hunks_between(old: str, new: str) -> tuple[Hunk, ...]:
    """The patch that turns `old` into `new`: one hunk for each group of differing lines, trimmed to what differs.

    The context of a hunk ends with its line, so that the patch survives when the lines around it change. It is longer
    only if the same text occurs more than once in `old`.
    """
    return tuple(_with_context(old, start, stop, text) for start, stop, text in differing_stretches(old, new))


def apply_patch(text: str, hunks: Sequence[Hunk]) -> str | None:
    """The text after all hunks; None if one of them does not have exactly one place, or two of them overlap."""
    spots: list[tuple[int, Hunk]] = []
    for hunk in hunks:
        places = find(text, hunk)
        if len(places) != 1:
            return None
        spots.append((places[0], hunk))
    spots.sort(key=lambda each: each[0], reverse=True)
    end = len(text)
    for at, hunk in spots:
        if at + len(hunk.old) > end:
            return None
        text = text[:at] + hunk.new + text[at + len(hunk.old) :]
        end = at
    return text


def find(text: str, hunk: Hunk) -> list[int]:
    """Every place that matches the context of a hunk, as the start of its `old`. Places where the change has already
    been made, such as an earlier insertion, do not count."""
    if not hunk.sought:
        return [] if text else [0]
    done = [(at, at + len(hunk.made)) for at in occurrences(text, hunk.made)] if hunk.sought in hunk.made else []
    size = len(hunk.sought)
    return [
        at + len(hunk.before)
        for at in occurrences(text, hunk.sought)
        if not any(start <= at and at + size <= stop for start, stop in done)
    ]


def occurrences(text: str, words: str) -> Iterator[int]:
    """Where the words begin, including overlapping occurrences."""
    at = text.find(words)
    while at >= 0:
        yield at
        at = text.find(words, at + 1)


def _with_context(text: str, start: int, stop: int, new: str) -> Hunk:
    begin = max(text.rfind("\n", 0, start) + 1, start - CONTEXT)
    line_end = text.find("\n", stop)
    end = min(len(text) if line_end < 0 else line_end, stop + CONTEXT)
    while True:
        hunk = Hunk(text[begin:start], text[start:stop], new, text[stop:end])
        is_whole = begin == 0 and end == len(text)
        if is_whole or (hunk.sought.strip() and find(text, hunk) == [start]):
            return hunk
        begin, end = max(0, begin - CONTEXT), min(len(text), end + CONTEXT)
