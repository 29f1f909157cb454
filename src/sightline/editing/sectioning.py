"""Sections from what a dialect reads in the whole document."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from sightline.editing.deletions import Deletions
from sightline.editing.document import WholeDocument
from sightline.editing.reading import (
    OPTIONS,
    OTHER,
    TOOLS,
    PartIds,
    list_of,
    options_of,
    part_key,
    tools_of,
    type_of,
)
from sightline.editing.section import (
    CallReference,
    Kind,
    PartType,
    Section,
    SectionPart,
    can_gain_text,
    category_of,
    details_of,
    kind_of,
    label_of,
    text_of,
    tool_name,
)
from sightline.editing.texts import EditableText, words_of, words_of_option, words_of_tool
from sightline.model.json import Json
from sightline.model.message import Message
from sightline.model.parts import CacheBreakpoint, Part, ToolCall, ToolResult
from sightline.model.request import Request
from sightline.model.tools import Tool
from sightline.wire.pointer import parse_pointer


class Sectioning:
    """Makes the sections of one document."""

    def __init__(self, whole: WholeDocument) -> None:
        self._reading = whole.reading
        self._names = whole.names
        self._deletions = whole.deletions

    def make_sections(self, data: bytes) -> tuple[Section, ...]:
        """The sections in the order of the conversation, then the tools and the options."""
        request = self._reading.request
        if request is None:
            return (self._unread(data),)
        sections = self._conversation(request)
        if tools := tools_of(self._reading):
            sections.append(self._tools(tools))
        if options := options_of(self._reading):
            sections.append(self._options(options))
        return tuple(sections)

    def _conversation(self, request: Request) -> list[Section]:
        calls, kinds = self._calls(request), [kind_of(message) for message in request.messages]
        last, counts = self._last_words(request, kinds), Counter[str]()
        sections: list[Section] = []
        for number, (message, kind) in enumerate(zip(request.messages, kinds, strict=True)):
            counts[kind] += 1
            sections.append(self._section(message, kind, counts[kind], calls, is_past=number < last))
        return sections

    def _calls(self, request: Request) -> Mapping[str, CallReference]:
        """The call that each result answers, by the result's place."""
        home = {
            part.at: self._names.sections[message.at].id
            for message in request.messages
            for part in message.parts
            if isinstance(part, ToolCall)
        }
        return {
            result.at: CallReference(call.id, call.name, call.arguments, home[call.at])
            for call, result in self._reading.pairs
            if isinstance(call, ToolCall)
        }

    def _last_words(self, request: Request, kinds: list[Kind]) -> int:
        """The number of the last message on screen that is a person's own."""
        for number in range(len(kinds) - 1, -1, -1):
            if kinds[number] == "user" and not self._deletions.holds(request.messages[number].at):
                return number
        return 0

    def _section(
        self, message: Message, kind: Kind, ordinal: int, calls: Mapping[str, CallReference], *, is_past: bool
    ) -> Section:
        named = self._names.sections[message.at]
        answers = tuple(calls[part.at] for part in message.parts if isinstance(part, ToolResult) and part.at in calls)
        is_deleted = self._deletions.holds(message.at)
        parts = tuple(self._part(part, message, named) for part in message.parts)
        # What is deleted is not what an edit replaces, unless all of it is.
        live = [part for part in parts if is_deleted or not part.deleted]
        text, reason = text_of(
            live, can_gain_text=can_gain_text(message, Deletions() if is_deleted else self._deletions)
        )
        return Section(
            id=named.id,
            kind=kind,
            role=message.role,
            label=label_of(message, kind, ordinal, tuple(answer.name for answer in answers)),
            pointer="" if is_deleted else self._deletions.to_screen(message.at),
            text=text,
            editable=not reason,
            deleted=is_deleted,
            parts=parts,
            category=category_of(message, kind, is_past=is_past),
            answers=answers,
            reason=reason,
            has_cache_mark=any(isinstance(part, CacheBreakpoint) for part in message.parts),
        )

    def _part(self, part: Part, message: Message, named: PartIds) -> SectionPart:
        kind = type_of(part)
        name = named.parts[part_key(kind, part.at, message.at)]
        return self._make_part(
            name, kind, part.at, words_of(part, self._reading.document, self._reading.name), **details_of(part)
        )

    def _make_part(self, part: str, kind: PartType, at: str, words: EditableText, **details: Any) -> SectionPart:
        is_deleted = self._deletions.holds(at)
        made = SectionPart(
            id=part,
            type=kind,
            pointer="" if is_deleted else self._deletions.to_screen(at),
            text=words.shown,
            editable=words.is_editable,
            deleted=is_deleted,
            reason=words.reason,
            is_json=words.is_json,
        )
        return replace(made, **details) if details else made

    def _tools(self, tools: tuple[Tool, ...]) -> Section:
        named, document = self._names.sections[TOOLS], self._reading.document
        parts = tuple(
            self._make_part(
                named.parts[part_key("tool", tool.at, TOOLS)],
                "tool",
                tool.at,
                words_of_tool(tool, document),
                name=tool_name(tool),
            )
            for tool in tools
        )
        return self._bundle(named, "tools", f"Tools ({len(tools)})", parts, list_of(tools[0].at))

    def _options(self, options: Mapping[str, Json]) -> Section:
        named = self._names.sections[OPTIONS]
        parts = tuple(
            self._make_part(
                named.parts[part_key("option", place, OPTIONS)],
                "option",
                place,
                words_of_option(place, value),
                name=parse_pointer(place)[-1],
            )
            for place, value in options.items()
        )
        return self._bundle(named, "options", "Options", parts, "")

    def _bundle(self, named: PartIds, kind: Kind, label: str, parts: tuple[SectionPart, ...], place: str) -> Section:
        """A section of parts that are edited one by one."""
        is_deleted = all(part.deleted for part in parts)
        return Section(
            id=named.id,
            kind=kind,
            role="",
            label=label,
            pointer="" if is_deleted else self._deletions.to_screen(place),
            text="",
            editable=False,
            deleted=is_deleted,
            parts=parts,
            category="tools" if kind == "tools" else "options",
            reason="Edit its parts one by one.",
        )

    def _unread(self, data: bytes) -> Section:
        fault = self._reading.fault
        return Section(
            id=self._names.sections[OTHER].id,
            kind="other",
            role="",
            label="Body",
            pointer="",
            text=data.decode("utf-8", "replace"),
            editable=False,
            deleted=False,
            parts=(),
            category="user",
            reason=f"It cannot be read ({fault.message if fault else ''}): edit it by its places, or as a whole.",
        )
