"""The tool calls of one choice of a raw stream, from the announcement to the delivery.

A call is announced by name, perhaps before it has an id; its arguments may be shown while they grow, each time from the
start; and it is delivered whole. The delivery decides, so no arguments are reported before it.
"""

from dataclasses import dataclass

from sightline.dialects.fields import as_list, as_object, opt_int, opt_str, str_of, wrong
from sightline.dialects.raw.carrier import NOTHING, Beside, read_beside
from sightline.dialects.raw.names import FIRST_CALL
from sightline.model.events import (
    ArgumentsReceived,
    FieldReceived,
    SignatureReceived,
    StreamEvent,
    ToolCallBegun,
    ToolCallCompleted,
)
from sightline.model.json import Json, JsonObject

_BEGUN, _GROWN, _WHOLE = "beginToolCalls", "copilotToolCallStreamUpdates", "copilotToolCalls"
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
    beside: Beside
    at: str
    value: Json


class Calls:
    """Feed it deltas; it gives the events of their calls."""

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
        """Add the events of one more delta."""
        for entry in _entries(delta, _BEGUN, at):
            if entry.id or entry.part is not None:
                events += self._begin(entry, entry.id)[1]
            else:
                self._announced.append(entry)
        for entry in _entries(delta, _GROWN, at):
            events += self._grow(entry)
        for key in (_WHOLE, _LEGACY):
            for entry in _entries(delta, key, at):
                events += self._deliver(entry)

    def flush(self) -> list[StreamEvent]:
        """The arguments that were shown of calls that are not delivered, when nothing more comes."""
        events: list[StreamEvent] = [
            ArgumentsReceived(call.part, call.arguments, self._choice) for call in self._open if call.arguments
        ]
        events += [FieldReceived(entry.at, entry.value) for entry in self._announced]
        self._announced = []
        for call in self._open:
            call.arguments = ""
        return events

    def finish(self) -> list[StreamEvent]:
        """The choice has come to its end: every call is as complete as it will be."""
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
        call = self._call_of(entry)
        events: list[StreamEvent] = []
        if call is None and self._is_repeated(entry):
            return [FieldReceived(entry.at, entry.value)]
        if call is None:
            call, events = self._begin(entry, entry.id or self._fallback())
        call.arguments = entry.arguments
        return events

    def _deliver(self, entry: _Entry) -> list[StreamEvent]:
        call = self._call_of(entry)
        events: list[StreamEvent] = []
        if call is None and self._is_repeated(entry):
            return [FieldReceived(entry.at, entry.value)]
        if call is None:
            call, events = self._begin(entry, entry.id or self._fallback())
        self._open.remove(call)
        self._delivered.add(call.id)
        beside = entry.beside
        if beside.signed_by is not None:
            events.append(SignatureReceived(call.part, beside.signature, beside.signed_by, self._choice))
        if entry.arguments:
            events.append(ArgumentsReceived(call.part, entry.arguments, self._choice))
        return [*events, ToolCallCompleted(call.part, self._choice)]

    def _call_of(self, entry: _Entry) -> _Call | None:
        """The open call that an entry is about: by its number, by its id, else the last of its name."""
        if entry.part is not None:
            found = [call for call in self._open if call.part == FIRST_CALL + entry.part]
        elif entry.id:
            found = [call for call in self._open if call.id == entry.id]
        else:
            found = [call for call in self._open if call.name == entry.name][-1:]
        return found[0] if found else None

    def _is_repeated(self, entry: _Entry) -> bool:
        return entry.part is None and bool(entry.id) and entry.id in self._delivered

    def _fallback(self) -> str:
        return f"call_{self._next - FIRST_CALL}"


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
    """An announcement without an id is kept by the first call of its name."""
    for index, entry in enumerate(entries):
        if entry.name == name:
            return [*entries[:index], *entries[index + 1 :]]
    return entries
