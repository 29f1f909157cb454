"""Carries in the raw schema what it has no kind or field for, so that almost nothing is lost in it.

A part of a kind that the schema lacks is stored unchanged in an opaque part, `{"type": "sightline", "part": …}`; fields
that a known kind lacks (a signature, citations) are stored in a member `sightline` beside the known ones. Both are read
back as what they were. Anything that is not exactly what we would have written is not ours and stays as it is.

A call of a stream is announced by name, perhaps before it has an id; its arguments may be shown while they grow, each
time from the start; and it is delivered as a whole. The delivery is decisive, so no arguments are reported before it.
"""

from dataclasses import dataclass

import msgspec

from sightline.dialects.fields import as_list, as_object, opt_int, opt_str, rest, str_of, wrong
from sightline.dialects.raw.names import FIRST_CALL, NAME, OPAQUE, SIGHTLINE
from sightline.dialects.tool_names import BUILT_IN
from sightline.errors import Code, Fault
from sightline.model.events import (
    ArgumentsReceived,
    FieldReceived,
    SignatureReceived,
    StreamEvent,
    ToolCallBegun,
    ToolCallCompleted,
)
from sightline.model.json import Json, JsonObject
from sightline.model.parts import (
    Audio,
    Citation,
    Document,
    Image,
    Inline,
    Link,
    Opaque,
    Part,
    Refusal,
    Text,
    ToolCall,
    ToolKind,
    ToolResult,
)
from sightline.model.request import Role
from sightline.wire.jsontext import decode, encode

_OPAQUE = frozenset({"type", "value"})
_NOT_OURS = (msgspec.ValidationError, UnicodeEncodeError)
"""What a value of another form raises; the second if a name or a tag has half a surrogate pair."""


class OwnFields(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The member `sightline` of a text, an image or a call: the fields that the schema has no place for."""

    signature: str | None = None
    signed_by: str | None = None
    citations: tuple[Citation, ...] = ()
    item: str | None = None
    media_type: str = ""
    kind: ToolKind = "function"


NOTHING = OwnFields()


def write_beside(beside: OwnFields) -> JsonObject:
    """The member itself, in an object to be merged; an empty object if there is nothing to store."""
    return {} if beside == NOTHING else {SIGHTLINE: _plain(beside)}


def read_beside(holder: JsonObject) -> OwnFields | None:
    """The content of the member `sightline`; None if the member is not one of ours."""
    value = holder.get(SIGHTLINE)
    if value is None:
        return NOTHING
    try:
        beside = msgspec.convert(value, OwnFields)
    except _NOT_OURS:
        return None
    return beside if _plain(beside) == value else None


def carrier_kind(kind: ToolKind) -> ToolKind:
    """The kind of a call or a result that is carried: free text is recognised by its tool, a built-in tool is not."""
    return kind if kind in BUILT_IN else "function"


def without_place(citations: tuple[Citation, ...]) -> tuple[Citation, ...]:
    """The citations without their pointers, which mean nothing in another document."""
    return tuple(msgspec.structs.replace(citation, at="", extras={}) for citation in citations)


def is_native(part: Part, role: Role) -> bool:
    """Whether the schema has a form of its own for this part in a message of this role."""
    match part:
        case Document() | Audio() | Refusal():
            return False
        case Image():
            return isinstance(part.source, (Inline, Link))
        case Opaque():
            return part.dialect == NAME
        case ToolCall():
            return role == "assistant"
        case ToolResult():
            return role != "assistant"
        case _:
            return True


def carry(part: Part) -> JsonObject:
    """The opaque part that carries a part which the schema has no kind for."""
    return {"type": OPAQUE, "value": {"type": SIGHTLINE, "part": _plain(_without_place(part))}}


def read_carried_part(holder: JsonObject, role: Role, at: str) -> Part | None:
    """The part that an opaque one carries; None if we would not have carried it so."""
    part = _convert_part(holder.get("value"))
    if part is None or is_native(part, role):
        return None
    return msgspec.structs.replace(part, at=at, extras=rest(holder, _OPAQUE))


def carry_result(result: ToolResult) -> JsonObject | None:
    """The fields of a result that a tool message lacks, as its last part; None if it lacks none."""
    kind = carrier_kind(result.kind)
    beyond = ToolResult(result.id, is_error=result.is_error, structured=result.structured, item=result.item, kind=kind)
    return None if beyond == ToolResult(result.id) else carry(beyond)


def read_carried_result(value: Json, call_id: str) -> ToolResult | None:
    """The result that the last part of a tool message carries, without its parts; None if it carries none."""
    holder = value if isinstance(value, dict) else {}
    part = _convert_part(holder.get("value"))
    if not isinstance(part, ToolResult) or part.id != call_id or carry_result(part) != holder:
        return None
    return part


def _convert_part(value: Json) -> Part | None:
    if not isinstance(value, dict) or value.get("type") != SIGHTLINE:
        return None
    try:
        part: Part = msgspec.convert(value.get("part"), Part)
    except _NOT_OURS:
        return None
    return part if carry(part)["value"] == value else None


def _without_place(part: Part) -> Part:
    """The part without its place and without its dialect's own fields, which are reported elsewhere."""
    match part:
        case ToolResult():
            return msgspec.structs.replace(
                part, at="", extras={}, parts=tuple(_without_place(inner) for inner in part.parts)
            )
        case Text():
            return msgspec.structs.replace(part, at="", extras={}, citations=without_place(part.citations))
        case _:
            return msgspec.structs.replace(part, at="", extras={})


def _plain(value: msgspec.Struct) -> Json:
    """The value as JSON: lists for tuples, and without defaults."""
    try:
        return decode(encode(msgspec.to_builtins(value)))
    except RecursionError:
        raise Fault(Code.INVALID_REQUEST, "a part is nested too deep to be carried") from None


_ANNOUNCED, _UPDATES, _WHOLE = "beginToolCalls", "copilotToolCallStreamUpdates", "copilotToolCalls"
_LEGACY = "_deprecatedCopilotFunctionCalls"


@dataclass(slots=True)
class _Call:
    part: int
    id: str
    name: str
    arguments: str = ""


@dataclass(slots=True, frozen=True)
class _Entry:
    """One entry of any of the lists."""

    name: str
    id: str
    part: int | None
    arguments: str
    beside: OwnFields
    at: str
    value: Json


class Calls:
    """Takes deltas and returns the events of their calls."""

    def __init__(self, choice: int) -> None:
        self._choice = choice
        self._open: list[_Call] = []
        self._announced: list[_Entry] = []
        self._delivered: set[str] = set()
        self._next = FIRST_CALL

    @property
    def are_any(self) -> bool:
        """Whether there is a call to answer."""
        return self._next > FIRST_CALL

    def read(self, delta: JsonObject, at: str, events: list[StreamEvent]) -> None:
        """Add the events of the next delta."""
        for entry in _entries(delta, _ANNOUNCED, at):
            if entry.id or entry.part is not None:
                events += self._begin(entry, entry.id)[1]
            else:
                self._announced.append(entry)
        for entry in _entries(delta, _UPDATES, at):
            events += self._grow(entry)
        for key in (_WHOLE, _LEGACY):
            for entry in _entries(delta, key, at):
                events += self._deliver(entry)

    def flush(self) -> list[StreamEvent]:
        """The arguments that were shown of calls that were not delivered, when nothing more arrives."""
        events: list[StreamEvent] = [
            ArgumentsReceived(call.part, call.arguments, self._choice) for call in self._open if call.arguments
        ]
        events += [FieldReceived(entry.at, entry.value) for entry in self._announced]
        self._announced = []
        for call in self._open:
            call.arguments = ""
        return events

    def finish(self) -> list[StreamEvent]:
        """The events at the end of the choice: every call is as complete as it will be."""
        events = self.flush()
        events += [ToolCallCompleted(call.part, self._choice) for call in self._open]
        self._open = []
        return events

    def _begin(self, entry: _Entry, call_id: str) -> tuple[_Call, list[StreamEvent]]:
        part = self._next if entry.part is None else FIRST_CALL + entry.part
        self._next = max(self._next, part + 1)
        call = _Call(part, call_id, entry.name)
        self._open.append(call)
        self._announced = _without_first(self._announced, entry.name)
        beside = entry.beside
        begun = ToolCallBegun(part, call_id, entry.name, self._choice, beside.kind, item=beside.item, at=entry.at)
        return call, [begun]

    def _grow(self, entry: _Entry) -> list[StreamEvent]:
        call, events = self._call_or_begin(entry)
        if call is not None:
            call.arguments = entry.arguments
        return events

    def _deliver(self, entry: _Entry) -> list[StreamEvent]:
        call, events = self._call_or_begin(entry)
        if call is None:
            return events
        self._open.remove(call)
        self._delivered.add(call.id)
        beside = entry.beside
        if beside.signed_by is not None:
            events.append(SignatureReceived(call.part, beside.signature, beside.signed_by, self._choice))
        if entry.arguments:
            events.append(ArgumentsReceived(call.part, entry.arguments, self._choice))
        return [*events, ToolCallCompleted(call.part, self._choice)]

    def _call_or_begin(self, entry: _Entry) -> tuple[_Call | None, list[StreamEvent]]:
        """The call that an entry is about, with the events of a call that it begins; if the call was delivered before,
        None and a report of the entry."""
        call = self._call_of(entry)
        if call is not None:
            return call, []
        if entry.part is None and entry.id and entry.id in self._delivered:
            return None, [FieldReceived(entry.at, entry.value)]
        return self._begin(entry, entry.id or f"call_{self._next - FIRST_CALL}")

    def _call_of(self, entry: _Entry) -> _Call | None:
        """The open call that an entry is about: by number, by id, or the last of its name. None if there is none."""
        if entry.part is not None:
            found = [call for call in self._open if call.part == FIRST_CALL + entry.part]
        elif entry.id:
            found = [call for call in self._open if call.id == entry.id]
        else:
            found = [call for call in self._open if call.name == entry.name][-1:]
        return found[0] if found else None


def _entries(delta: JsonObject, key: str, at: str) -> list[_Entry]:
    values = delta.get(key)
    if values is None:
        return []
    at = f"{at}/{key}"
    return [_entry(value, f"{at}/{index}") for index, value in enumerate(as_list(values, at))]


def _entry(value: Json, at: str) -> _Entry:
    holder = as_object(value, at)
    part = opt_int(holder, "part", at)
    if part is not None and part < 0:
        raise wrong(part, f"{at}/part", "the number of a part")
    return _Entry(
        str_of(holder, "name", at),
        opt_str(holder, "id", at) or "",
        part,
        opt_str(holder, "arguments", at) or "",
        read_beside(holder) or NOTHING,
        at,
        value,
    )


def _without_first(entries: list[_Entry], name: str) -> list[_Entry]:
    """The entries without the first of this name: an announcement without an id belongs to its name's first call."""
    for index, entry in enumerate(entries):
        if entry.name == name:
            return [*entries[:index], *entries[index + 1 :]]
    return entries
