"""Which tool call a streamed fragment belongs to.

Providers agree on neither ids nor indexes: some repeat the id, some send it once, some number every call 0, some send
no ids at all. The rule here trusts an id over an index and never joins two calls on the index alone.
"""

from dataclasses import dataclass, field

import msgspec

from sightline.dialects.openai_chat.names import FIRST_CALL
from sightline.errors import Code, Fault
from sightline.model.events import ArgumentsReceived, StreamEvent, ToolCallBegun, ToolCallCompleted
from sightline.model.parts import ToolKind
from sightline.wire.partial_json import PartialJson


@dataclass(slots=True, eq=False)
class _Call:
    """A call so far. `id` is what the provider gave, empty where it gave none."""

    part: int
    index: int | None
    kind: ToolKind
    id: str = ""
    name: str = ""
    pieces: list[str] = field(default_factory=list)
    scanned: int = 0
    scan: PartialJson = field(default_factory=PartialJson)
    has_begun: bool = False
    is_completed: bool = False

    @property
    def is_whole(self) -> bool:
        """Whether the arguments so far are one whole JSON value; free text never says that it is whole."""
        if self.kind == "custom":
            return False
        for piece in self.pieces[self.scanned :]:
            self.scan.feed(piece)
        self.scanned = len(self.pieces)
        return self.scan.is_complete


class Fragment(msgspec.Struct, frozen=True):
    """One entry of a delta's `tool_calls`."""

    index: int | None
    id: str
    name: str
    arguments: str
    kind: ToolKind
    at: str


class Assembly:
    """The calls of one choice."""

    def __init__(self, choice: int) -> None:
        self._choice = choice
        self._calls: list[_Call] = []  # the one that was last spoken of is the last

    @property
    def has_calls(self) -> bool:
        """Whether there is a call to answer."""
        return bool(self._calls)

    @property
    def last_part(self) -> int:
        """The part of the call that the last fragment belonged to."""
        return self._calls[-1].part

    def grow(self, index: object, arguments: str) -> ArgumentsReceived | None:
        """The event of a fragment that has arguments only and continues the last call; None for any other."""
        call = self._calls[-1] if self._calls else None
        if call is None or call.index != index or not call.has_begun or call.is_completed:
            return None
        call.pieces.append(arguments)
        return ArgumentsReceived(call.part, arguments, self._choice)

    def add(self, fragment: Fragment) -> list[StreamEvent]:
        """The events of one more fragment."""
        call = self._call_of(fragment)
        events: list[StreamEvent] = []
        if call is None:
            events += self._complete_whole_ones()
            call = _Call(FIRST_CALL + len(self._calls), fragment.index, fragment.kind)
        else:
            self._calls.remove(call)
        self._calls.append(call)
        call.id = call.id or fragment.id
        call.name = call.name or fragment.name
        if call.name and not call.has_begun:
            events += self._begin(call, fragment.at)
        if fragment.arguments and not _is_repeated(call, fragment):
            events += self._argue(call, fragment)
        return events

    def finish(self) -> list[StreamEvent]:
        """Nothing more comes: every call is as complete as it will be."""
        events: list[StreamEvent] = []
        for call in sorted(self._calls, key=lambda call: call.part):
            if not call.has_begun:
                events += self._begin(call, "")
            if not call.is_completed:
                call.is_completed = True
                events.append(ToolCallCompleted(call.part, self._choice))
        return events

    def _begin(self, call: _Call, at: str) -> list[StreamEvent]:
        call.has_begun = True
        events: list[StreamEvent] = [ToolCallBegun(call.part, call.id, call.name, self._choice, call.kind, at=at)]
        events += [ArgumentsReceived(call.part, text, self._choice) for text in call.pieces]
        return events

    def _argue(self, call: _Call, fragment: Fragment) -> list[StreamEvent]:
        if call.is_completed:
            if not fragment.arguments.strip():
                return []
            raise Fault(Code.UPSTREAM_PROTOCOL, "arguments come for a tool call that was complete", pointer=fragment.at)
        call.pieces.append(fragment.arguments)
        return [ArgumentsReceived(call.part, fragment.arguments, self._choice)] if call.has_begun else []

    def _call_of(self, fragment: Fragment) -> _Call | None:
        """The call that the fragment continues, None if it begins one."""
        under_index = [call for call in self._calls if call.index == fragment.index]
        if fragment.id:
            known = [call for call in self._calls if call.id == fragment.id]
            if known and not all(_is_another(call, fragment) for call in known):
                return next((call for call in reversed(known) if call.index == fragment.index), known[0])
            waiting = [call for call in under_index if not call.id and _may_be_named(call, fragment)]
            return waiting[-1] if waiting else None
        if under_index:
            call = under_index[-1]
        elif self._calls and (fragment.index is None or not fragment.name):
            call = self._calls[-1]
        else:
            return None
        if fragment.name and call.name and (fragment.name != call.name or call.is_whole):
            return None
        return call

    def _complete_whole_ones(self) -> list[StreamEvent]:
        """A call whose JSON is closed when the next begins gets nothing more, so writers need not wait for it."""
        events: list[StreamEvent] = []
        for call in self._calls:
            if call.has_begun and not call.is_completed and call.is_whole:
                call.is_completed = True
                events.append(ToolCallCompleted(call.part, self._choice))
        return events


def _is_another(call: _Call, fragment: Fragment) -> bool:
    """Whether a fragment with the id of a call begins another: some models give the same id to all that they call."""
    is_elsewhere = fragment.index is not None and fragment.index != call.index
    return is_elsewhere and bool(fragment.name) and call.is_whole and not _is_repeated(call, fragment)


def _may_be_named(call: _Call, fragment: Fragment) -> bool:
    """Whether an id that comes late is that of this call: it was begun without a name, or goes on without one."""
    return not call.name or (not fragment.name and not call.is_whole)


def _is_repeated(call: _Call, fragment: Fragment) -> bool:
    """Some servers tell a whole call once more when it is complete."""
    is_suspect = bool(fragment.id and fragment.name == call.name and call.pieces) and call.is_whole
    return is_suspect and "".join(call.pieces) == fragment.arguments
