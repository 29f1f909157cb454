"""The document under edit: what a dialect reads in it, the ids of its sections, and the changes of its bytes.

The whole document holds everything that was ever in it and was not removed permanently, so soft-deleted values too. All
places here are places in the whole document, not in the one on screen. Ids of sections and parts are assigned once,
tied to places, and kept through every change.
"""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple, TypeAlias, get_args

import msgspec

from sightline.dialects.registry import dialect
from sightline.editing.deletions import (
    Deletions,
    Shift,
    parent_of,
    resolve_position,
    shift_by_insertion,
    shift_by_move,
    shift_by_removal,
    shift_by_replacement,
    with_change,
    with_entry,
    without_entries,
)
from sightline.editing.section import Option, PartType, SectionContent
from sightline.errors import Fault
from sightline.model.json import Json
from sightline.model.parts import Opaque, Part, ToolCall, ToolResult
from sightline.model.request import Message, Request, Tool, parts_of
from sightline.wire import jsontext, spans
from sightline.wire.document import WireDocument
from sightline.wire.pointer import covers, join, parse_pointer, resolve

Pairs: TypeAlias = tuple[tuple[Part, Part], ...]
"""Each call with its result, identified by place: the text of these parts may be older than the document."""

_SERVER_CALLS = frozenset({"server_tool_use", "mcp_tool_use", "mcp_approval_request"})


def pairs_of(messages: Iterable[Message]) -> Iterator[tuple[Part, Part]]:
    """The pairs of a conversation: by id, or by name and order if there is none."""
    waiting: dict[str, list[Part]] = {}
    for part in parts_of(messages):
        if isinstance(part, ToolCall):
            waiting.setdefault(_key(part.id, part.name), []).append(part)
        elif isinstance(part, ToolResult):
            calls = waiting.get(_key(part.id, part.name)) or _calls_by_name(waiting, part)
            if calls:
                yield calls.pop(0), part
        elif isinstance(part, Opaque):
            # Kinds that only their dialect knows: a server's tools, and what they need approval for.
            role, call_id = _role(part.value)
            if role == "call":
                waiting.setdefault(f"~{call_id}", []).append(part)
            elif role == "result" and waiting.get(f"~{call_id}"):
                yield waiting[f"~{call_id}"].pop(0), part


def _key(call_id: str, name: str | None) -> str:
    return f"#{call_id}" if call_id else f"@{name}"


def _calls_by_name(waiting: dict[str, list[Part]], result: ToolResult) -> list[Part] | None:
    """The calls with a result's name, for pairs in which only one of the two has an id."""
    if not result.id:
        named = (calls for calls in waiting.values() if calls and getattr(calls[0], "name", None) == result.name)
        return next(named, None)
    return waiting.get(f"@{result.name}")


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


class DocumentReading:
    """A document and the request in it; `request` is None if the dialect cannot read it, and `fault` is the reason."""

    def __init__(self, name: str, document: Json, request: Request | None, fault: Fault | None = None) -> None:
        self.name = name
        self.document = document
        self.request = request
        self.fault = fault

    @classmethod
    def of(cls, name: str, document: Json) -> "DocumentReading":
        """Read a whole document."""
        try:
            return cls(name, document, dialect(name).read_request(document))
        except Fault as fault:
            return cls(name, document, None, fault)

    @cached_property
    def pairs(self) -> Pairs:
        """Which result answers which call."""
        return tuple(pairs_of(self.request.messages if self.request else ()))

    @cached_property
    def contents(self) -> Mapping[str, Sequence[SectionContent]]:
        """What each section consists of, by the key of the section, in the order of the sections."""
        if self.request is None:
            return {OTHER: ()}
        contents: dict[str, Sequence[SectionContent]] = {message.at: message.parts for message in self.request.messages}
        if tools := tools_of(self):
            contents[TOOLS] = tools
        if options := options_of(self):
            contents[OPTIONS] = [Option(*option) for option in options.items()]
        return contents

    @cached_property
    def outline(self) -> "Outline":
        """The keys of everything that gets an id."""
        outline: dict[str, Sequence[str]] = {}
        for key, contents in self.contents.items():
            start = len(key) if key.startswith("/") else 0
            outline[key] = [f"{_TYPES[type(each)]}:{each.at[start:]}" for each in contents]
        return outline

    @cached_property
    def container(self) -> str:
        """The place of the list that holds the conversation. If the document is a list, it is that list."""
        return "" if isinstance(self.document, list) else f"/{dialect(self.name).editing.container}"


Outline: TypeAlias = Mapping[str, Sequence[str]]
"""The sections of a document by their keys, each with the keys of its parts.

The key of an item is its place; `tools` and `options` are keys too. A part's key is its type, a colon and its place
relative to its section.
"""


class PartIds(msgspec.Struct, frozen=True):
    """The id of a section, the ids of its parts by key, and how many have been assigned."""

    id: str
    parts: Mapping[str, str] = {}
    count: int = 0


class SectionIds(msgspec.Struct, frozen=True):
    """All ids by key, and how many sections have been assigned one."""

    sections: Mapping[str, PartIds] = {}
    count: int = 0

    def key_of(self, section: str) -> str | None:
        """The key of the section with this id, or None."""
        return next((key for key, named in self.sections.items() if named.id == section), None)

    def with_count(self, count: int) -> "SectionIds":
        """The same ids; the next one follows this number."""
        return SectionIds(self.sections, max(count, self.count))

    def complete(self, outline: Outline, *, is_all: bool = True) -> "SectionIds":
        """With an id for every key that has none; if `is_all`, without the ids of keys that the outline does not
        have."""
        sections: dict[str, PartIds] = {} if is_all else dict(self.sections)
        count = self.count
        for key, parts in outline.items():
            named = self.sections.get(key)
            if named is None:
                count += 1
                named = PartIds(f"s{count}")
            sections[key] = _complete_parts(named, parts)
        return SectionIds(sections, count)

    def apply_shift(self, shift: Shift) -> "SectionIds":
        """The same ids in a document whose places have moved."""
        sections: dict[str, PartIds] = {}
        for key, named in self.sections.items():
            if not key.startswith("/"):
                sections[key] = _shift_parts(named, "", "", shift)
            elif (place := shift(key)) is not None:
                sections[place] = _shift_parts(named, key, place, shift)
        return SectionIds(sections, self.count)

    def match_content(self, before: Mapping[str, Json], after: Mapping[str, Json]) -> "SectionIds":
        """The ids for another document, by content: an equal item keeps its id, the others keep theirs in order."""
        waiting: dict[bytes, list[str]] = {}
        for key, value in before.items():
            waiting.setdefault(jsontext.encode(value), []).append(key)
        pairs: dict[str, str] = {}
        for key, value in after.items():
            same = waiting.get(jsontext.encode(value))
            if same:
                # An item that stayed in place is not confused with its duplicate.
                pairs[key] = same.pop(same.index(key) if key in same else 0)
        taken = set(pairs.values())
        left = iter([key for key in before if key not in taken])
        pairs |= dict(zip([key for key in after if key not in pairs], left, strict=False))
        sections = {key: self.sections[old] for key, old in pairs.items()}
        return SectionIds(sections | {key: each for key, each in self.sections.items() if key[:1] != "/"}, self.count)


def _complete_parts(named: PartIds, keys: Iterable[str]) -> PartIds:
    parts, count = named.parts, named.count
    if all(map(parts.__contains__, keys)):
        return named
    parts = dict(parts)
    for key in keys:
        if key not in parts:
            count += 1
            parts[key] = f"{named.id}.p{count}"
    return PartIds(named.id, parts, count)


def _shift_parts(named: PartIds, section: str, place: str, shift: Callable[[str], str | None]) -> PartIds:
    parts: dict[str, str] = {}
    for key, part in named.parts.items():
        kind, _, at = key.partition(":")
        moved = shift(section + at)
        if moved is not None:
            parts[f"{kind}:{moved[len(place) :]}"] = part
    return named if parts == named.parts else PartIds(named.id, parts, named.count)


TOOLS, OPTIONS, OTHER = "tools", "options", "other"
"""The keys of the sections that are not items of the conversation."""


_TYPES: Mapping[type, PartType] = {
    Option: "option",
    **dict.fromkeys(get_args(Tool), "tool"),
    **{each: each.__struct_config__.tag for each in get_args(Part)},
}


def type_of(content: SectionContent) -> PartType:
    """The type of a part, as the API calls it."""
    return _TYPES[type(content)]


def tools_of(reading: DocumentReading) -> tuple[Tool, ...]:
    """The tools of a request, without those that are inside items of the conversation."""
    if reading.request is None:
        return ()
    return tuple(tool for tool in reading.request.tools if not covers(reading.container, tool.at))


def options_of(reading: DocumentReading) -> dict[str, Json]:
    """The values beside the conversation and the tools, by place."""
    document, request = reading.document, reading.request
    if not isinstance(document, dict) or request is None:
        return {}
    shown = {reading.container, *(message.at for message in request.messages)}
    shown |= {list_of(tool.at) for tool in tools_of(reading)}
    found: dict[str, Json] = {}
    for key, value in document.items():
        place = join("", key)
        if place in shown:
            continue
        if isinstance(value, dict) and any(covers(place, other) for other in shown):
            # Settings that also hold the tools are shown one by one.
            found |= {join(place, inner): each for inner, each in value.items() if join(place, inner) not in shown}
        else:
            found[place] = value
    return found


def list_of(place: str) -> str:
    """The outermost list that holds a tool."""
    tokens = place.split("/")
    first = next(number for number, token in enumerate(tokens) if token.isdecimal())
    return "/".join(tokens[:first])


class WholeDocument(NamedTuple):
    """The bytes, what was read from them, what is deleted, and the ids of the sections."""

    data: bytes
    reading: DocumentReading
    deletions: Deletions
    names: SectionIds

    @classmethod
    def of(cls, data: bytes, dialect: str) -> "WholeDocument":
        """The document of these bytes, which need not even be JSON."""
        try:
            reading = DocumentReading.of(dialect, jsontext.decode(data))
        except Fault as fault:
            reading = DocumentReading(dialect, None, None, fault)
        return cls(data, reading, Deletions(), SectionIds().complete(reading.outline))

    def replace_document(self, data: bytes) -> "WholeDocument":
        """Replace the whole document; what is equal in both keeps its id."""
        reading = DocumentReading.of(self.reading.name, jsontext.decode(data))
        return self._with(data, reading, Deletions(), self._match_names(reading))

    def set(self, pointer: str, value: Json) -> "WholeDocument":
        """Replace an existing value."""
        text = jsontext.encode(value)
        if not pointer:
            return self.replace_document(text)
        start, stop = spans.find(self.data, pointer)
        data = b"".join((self.data[:start], text, self.data[stop:]))
        _check(data, value)
        document = with_change(self.reading.document, parse_pointer(pointer), lambda _: value)
        reading = DocumentReading.of(self.reading.name, document)
        deletions = self.deletions.apply_shift(shift_by_replacement(pointer), document)
        if pointer == self.reading.container:
            return self._with(data, reading, deletions, self._match_names(reading))
        return self._with(data, reading, deletions, self.names)

    def insert(self, pointer: str, value: Json, text: bytes | None = None) -> "WholeDocument":
        """Insert an entry, written as `text` if that is given."""
        spelled = jsontext.encode(value) if text is None else text
        pointer = resolve_position(self.reading.document, pointer)
        data = WireDocument(self.data).insert_text(pointer, spelled).data
        _check(data, value)
        *above, token = parse_pointer(pointer)
        document = with_change(self.reading.document, above, lambda holder: with_entry(holder, token, value))
        shift: Shift = shift_by_insertion(pointer) if self._is_in_array(pointer) else lambda place: place
        return self._with_shift(data, document, shift)

    def remove(self, pointer: str) -> "WholeDocument":
        """Remove an entry."""
        data = WireDocument(self.data).remove(pointer).data
        return self._with_shift(
            data, self._without(pointer), shift_by_removal(pointer, in_array=self._is_in_array(pointer))
        )

    def move(self, source: str, pointer: str) -> "WholeDocument":
        """Move an entry; `pointer` is a place on screen, resolved after the entry has been removed."""
        value, text = resolve(self.reading.document, source), WireDocument(self.data).text_of(source)
        gone = shift_by_removal(source, in_array=self._is_in_array(source))
        without = self._without(source)
        target = resolve_position(without, self.deletions.apply_shift(gone, without).to_whole(pointer))
        data = WireDocument(self.data).remove(source).insert_text(target, text).data
        *above, token = parse_pointer(target)
        is_array = isinstance(resolve(without, parent_of(target)), list)
        document = with_change(without, above, lambda holder: with_entry(holder, token, value))
        come: Shift = shift_by_insertion(target) if is_array else lambda place: place
        return self._with_shift(data, document, shift_by_move(source, target, gone, come))

    def with_deletions(self, deletions: Deletions) -> "WholeDocument":
        """The same document with these deletions."""
        return self._replace(deletions=deletions)

    def _match_names(self, reading: DocumentReading) -> SectionIds:
        """The ids for another document. If it cannot be read, the ids are kept for the next one that can."""
        if reading.request is None:
            return self.names
        after = [message.at for message in reading.request.messages]
        return self.names.match_content(_items(self.reading, self.names.sections), _items(reading, after))

    def _is_in_array(self, pointer: str) -> bool:
        return isinstance(resolve(self.reading.document, parent_of(pointer)), list)

    def _without(self, pointer: str) -> Json:
        *above, token = parse_pointer(pointer)
        return with_change(self.reading.document, above, lambda holder: without_entries(holder, {token}))

    def _with_shift(self, data: bytes, document: Json, shift: Shift) -> "WholeDocument":
        reading = DocumentReading.of(self.reading.name, document)
        return self._with(data, reading, self.deletions.apply_shift(shift, document), self.names.apply_shift(shift))

    def _with(self, data: bytes, reading: DocumentReading, deletions: Deletions, names: SectionIds) -> "WholeDocument":
        # What cannot be read now may be readable after the next edit, and then has its old ids.
        is_all = reading.request is not None
        return WholeDocument(data, reading, deletions, names.complete(reading.outline, is_all=is_all))


def _items(reading: DocumentReading, places: Iterable[str]) -> dict[str, Json]:
    """The values at these places, without places that are keys of other sections or do not exist."""
    found: dict[str, Json] = {}
    for place in places:
        if place.startswith("/"):
            with contextlib.suppress(Fault):
                found[place] = resolve(reading.document, place)
    return found


def _check(data: bytes, value: Json) -> None:
    """Raise a Fault if a container makes the document deeper than the parser reads."""
    if isinstance(value, (dict, list)):
        jsontext.decode(data)
