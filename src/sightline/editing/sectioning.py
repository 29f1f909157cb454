"""Sections from what a dialect reads in the whole document; what an edit did not touch is taken over as it was."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from sightline.editing.deletions import Deletions
from sightline.editing.document import WholeDocument
from sightline.editing.leaves import EditableText, words_of, words_of_option, words_of_tool
from sightline.editing.outline import OPTIONS, OTHER, TOOLS, list_of, options_of, tools_of, type_of
from sightline.editing.pairs import Pairs
from sightline.editing.part_details import can_gain_text, category_of, details_of, text_of, tool_name
from sightline.editing.section import CallReference, Kind, PartType, Section, SectionPart
from sightline.editing.section_ids import PartIds, part_key
from sightline.model.json import Json
from sightline.model.message import Message
from sightline.model.parts import CacheBreakpoint, Opaque, Part, Text, Thinking, ToolCall, ToolResult
from sightline.model.request import Request
from sightline.model.tools import Tool
from sightline.wire.pointer import resolve

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


class _Known(NamedTuple):
    """A section that was made, and everything that it was made from."""

    section: Section
    message: Message
    named: PartIds
    ordinal: int
    is_past: bool
    answers: tuple[CallReference, ...]
    taken: frozenset[str]
    place: str


class _Bundle(NamedTuple):
    """The section of the tools or of the options, and what it was made from."""

    section: Section
    made_from: tuple[object, ...]


class SectionList(NamedTuple):
    """The sections of one draft, and what spares the next one the making of most of them."""

    sections: tuple[Section, ...] = ()
    messages: Mapping[str, _Known] = {}
    bundles: Mapping[str, _Bundle] = {}
    calls: Mapping[str, CallReference] = {}
    pairs: Pairs = ()
    deletions: Deletions = Deletions()


class Sectioning:
    """Makes the sections of one draft from those of the draft before it."""

    def __init__(self, whole: WholeDocument, before: SectionList) -> None:
        self._reading = whole.reading
        self._names = whole.names
        self._deletions = whole.deletions
        self._before = before
        self._messages: dict[str, _Known] = {}
        self._bundles: dict[str, _Bundle] = {}

    def make_sections(self, data: bytes) -> SectionList:
        """The sections in the order of the conversation, then the tools and the options."""
        request = self._reading.request
        if request is None:
            return SectionList((self._unread(data),))
        calls = self._calls(request)
        sections = self._conversation(request, calls)
        if tools := tools_of(self._reading):
            sections.append(self._tools(tools))
        if options := options_of(self._reading):
            sections.append(self._options(options))
        return SectionList(tuple(sections), self._messages, self._bundles, calls, self._reading.pairs, self._deletions)

    def _conversation(self, request: Request, calls: Mapping[str, CallReference]) -> list[Section]:
        names, before = self._names.sections, self._before.messages
        is_still = calls is self._before.calls and self._deletions is self._before.deletions
        last, counts = self._last_words(request), Counter[str]()
        sections: list[Section] = []
        for number, message in enumerate(request.messages):
            named = names[message.at]
            known = before.get(named.id)
            kind = self._kind(message, known)
            counts[kind] += 1
            seen = (counts[kind], number < last)
            if not (
                is_still
                and known is not None
                and known.message is message
                and known.named is named
                and (known.ordinal, known.is_past) == seen
            ):
                known = self._remake_section(known, message, kind, *seen, calls)
            self._messages[named.id] = known
            sections.append(known.section)
        return sections

    def _kind(self, message: Message, known: "_Known | None") -> Kind:
        return known.section.kind if known is not None and known.message is message else kind_of(message)

    def _remake_section(
        self,
        known: "_Known | None",
        message: Message,
        kind: Kind,
        ordinal: int,
        is_past: bool,  # noqa: FBT001 - it comes with its ordinal
        calls: Mapping[str, CallReference],
    ) -> "_Known":
        """What is known of a section now; if only its place differs, the section is as it was."""
        named = self._names.sections[message.at]
        answers = tuple(calls[part.at] for part in message.parts if isinstance(part, ToolResult) and part.at in calls)
        taken = self._deletions.within(message.at)
        place = "" if self._deletions.holds(message.at) else self._deletions.to_screen(message.at)
        inputs = (message, named, ordinal, is_past, answers, taken)
        if known is not None and known[1:7] == inputs:
            section = known.section
            if place and known.place and not taken:
                section = _move_section(section, place)
            elif place != known.place:
                section = self._section(message, named, kind, answers, ordinal, is_past=is_past)
        else:
            section = self._section(message, named, kind, answers, ordinal, is_past=is_past)
        return _Known(section, *inputs, place)

    def _calls(self, request: Request) -> Mapping[str, CallReference]:
        """The call that each result answers, by the result's place."""
        pairs = self._reading.pairs
        if pairs is self._before.pairs:
            return self._before.calls
        home = {
            part.at: self._names.sections[message.at].id
            for message in request.messages
            for part in message.parts
            if isinstance(part, ToolCall)
        }
        return {
            result.at: CallReference(call.id, call.name, call.arguments, home[call.at])
            for call, result in pairs
            if isinstance(call, ToolCall)
        }

    def _last_words(self, request: Request) -> int:
        """The number of the last message on screen that is a person's own."""
        for number in range(len(request.messages) - 1, -1, -1):
            message = request.messages[number]
            known = self._before.messages.get(self._names.sections[message.at].id)
            if self._kind(message, known) == "user" and not self._deletions.holds(message.at):
                return number
        return 0

    def _section(
        self,
        message: Message,
        named: PartIds,
        kind: Kind,
        answers: tuple[CallReference, ...],
        ordinal: int,
        *,
        is_past: bool,
    ) -> Section:
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
        words = words_of(part, self._reading.document, self._reading.name)
        made = self._make_part(named.parts[part_key(kind, part.at, message.at)], kind, part.at, words)
        return replace(made, **details_of(part))

    def _make_part(self, name: str, kind: PartType, at: str, words: EditableText) -> SectionPart:
        is_deleted = self._deletions.holds(at)
        return SectionPart(
            id=name,
            type=kind,
            pointer="" if is_deleted else self._deletions.to_screen(at),
            text=words.shown,
            editable=words.is_editable,
            deleted=is_deleted,
            reason=words.reason,
            is_json=words.is_json,
        )

    def _tools(self, tools: tuple[Tool, ...]) -> Section:
        named = self._names.sections[TOOLS]
        known = self._before.bundles.get(named.id)
        made_from = (tools, named, self._deletions, self._values(tools))
        if known is None or known.made_from != made_from:
            parts = tuple(
                replace(
                    self._make_part(
                        named.parts[part_key("tool", tool.at, TOOLS)],
                        "tool",
                        tool.at,
                        words_of_tool(tool, self._reading.document),
                    ),
                    name=tool_name(tool),
                )
                for tool in tools
            )
            section = self._bundle(named, "tools", f"Tools ({len(tools)})", parts, list_of(tools[0].at))
            known = _Bundle(section, made_from)
        self._bundles[named.id] = known
        return known.section

    def _values(self, tools: tuple[Tool, ...]) -> tuple[Json, ...]:
        return tuple(resolve(self._reading.document, tool.at) for tool in tools)

    def _options(self, options: Mapping[str, Json]) -> Section:
        named = self._names.sections[OPTIONS]
        known = self._before.bundles.get(named.id)
        made_from = (options, list(options), named, self._deletions)
        if known is None or known.made_from != made_from:
            parts = tuple(
                replace(
                    self._make_part(
                        named.parts[part_key("option", place, OPTIONS)], "option", place, words_of_option(place, value)
                    ),
                    name=place.rpartition("/")[2].replace("~1", "/").replace("~0", "~"),
                )
                for place, value in options.items()
            )
            known = _Bundle(self._bundle(named, "options", "Options", parts, ""), made_from)
        self._bundles[named.id] = known
        return known.section

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


def _move_section(section: Section, place: str) -> Section:
    """The same section where it stands now, with nothing in it deleted."""
    if section.pointer == place:
        return section
    cut = len(section.pointer)
    parts = tuple([replace(part, pointer=place + part.pointer[cut:]) for part in section.parts])
    return replace(section, pointer=place, parts=parts)
