"""Reads a raw reply, an assistant message that states how it ended, or a stream, as events.

A call of a stream is announced by name, perhaps before it has an id; its arguments may be shown while they grow, each
time from the start; and it is delivered as a whole. The delivery is decisive, so no arguments are reported before it.
"""

from dataclasses import dataclass

import msgspec

from sightline.dialects.fields import (
    as_list,
    as_object,
    as_str,
    opt_int,
    opt_object,
    opt_str,
    str_of,
    whole_number,
    wrong,
)
from sightline.dialects.openai_chat.choices import read_logprobs
from sightline.dialects.openai_chat.usage import read_usage
from sightline.dialects.raw.content import (
    NOTHING,
    OwnFields,
    carrier_kind,
    place_citations,
    read_beside,
    read_calls,
    read_content,
    read_part,
    read_signature,
)
from sightline.dialects.raw.names import (
    FIELDS,
    FIRST_CALL,
    MARKER,
    MOST_CHOICES,
    NAME,
    ROLE_NUMBERS,
    SIGHTLINE,
    read_error,
    read_finish,
)
from sightline.dialects.streaming import Machine, fields_of, unread_fields
from sightline.errors import Fault
from sightline.model.events import (
    ArgumentsReceived,
    CitationReceived,
    Ended,
    Failed,
    FieldReceived,
    Finished,
    FrameBroken,
    PartReceived,
    RefusalReceived,
    SignatureReceived,
    Started,
    StreamEvent,
    TextReceived,
    ThinkingReceived,
    ToolCallBegun,
    ToolCallCompleted,
    UsageReceived,
)
from sightline.model.fold import part_events
from sightline.model.json import Json, JsonObject
from sightline.model.parts import Part, ToolCall

IDENTITY = frozenset({"id", "model", "created", MARKER})
_CHOICE = FIELDS | {"role", "content", "toolCalls", "logprobs"}
_BODY = _CHOICE | IDENTITY | {"usage", "others", "error"}


def read_reply(document: Json) -> list[StreamEvent]:
    """The events of a reply, of one that failed midway, or of an error body."""
    body = as_object(document, "")
    error = body.get("error")
    if error is not None and "role" not in body:
        return [Failed(read_error(0, body, {})), Ended()]
    events: list[StreamEvent] = [read_started(body, "")]
    events += _read_choice(body, 0, "", _BODY)
    others = as_list(body.get("others") or [], "/others")
    if len(others) >= MOST_CHOICES:
        raise wrong(others, "/others", f"less than {MOST_CHOICES} choices")
    for index, value in enumerate(others):
        at = f"/others/{index}"
        events += _read_choice(as_object(value, at), index + 1, at, _CHOICE)
    if body.get("usage") is not None:
        events.append(UsageReceived(read_usage(body["usage"], "/usage")))
    if error is not None:
        events.append(Failed(read_error(0, body, {})))
    return [*_until_failed(events), Ended()]


def read_started(body: JsonObject, at: str) -> Started:
    """The id, model and time of a reply."""
    places = {key: f"{at}/{key}" for key in ("id", "model", "created") if body.get(key)}
    if body.get(MARKER):
        places["marker"] = f"{at}/{MARKER}"
    named, model, created = opt_str(body, "id", at), opt_str(body, "model", at), opt_int(body, "created", at)
    return Started(named, model, created, places, opt_str(body, MARKER, at) or None)


def _until_failed(events: list[StreamEvent]) -> list[StreamEvent]:
    """The events with only the last failure, at the end: it ends the whole reply and has a message of its own."""
    failures = [event for event in events if isinstance(event, Failed)]
    if not failures:
        return events
    return [*(event for event in events if not isinstance(event, (Finished, Failed))), failures[-1]]


def _read_choice(holder: JsonObject, choice: int, at: str, known: frozenset[str]) -> list[StreamEvent]:
    role = holder.get("role")
    if whole_number(role) != ROLE_NUMBERS["assistant"]:
        raise wrong(role, f"{at}/role", f"the number {ROLE_NUMBERS['assistant']} of an assistant message")
    events: list[StreamEvent] = []
    for number, part in enumerate(read_content(holder.get("content"), "assistant", f"{at}/content")):
        events += _part_events(part, number, choice)
    calls = read_calls(holder, at)
    for number, call in enumerate(calls):
        events += _part_events(call, FIRST_CALL + number, choice)
    events += read_logprobs(holder.get("logprobs"), choice, f"{at}/logprobs")
    events += fields_of(holder, known, at)
    has_calls = any(isinstance(call, ToolCall) for call in calls)
    return [*events, read_finish(holder, choice, at, has_calls=has_calls)]


def _part_events(part: Part, number: int, choice: int) -> list[StreamEvent]:
    events = part_events(part, number, choice)
    if isinstance(begun := events[0], ToolCallBegun):
        events[0] = msgspec.structs.replace(begun, kind=carrier_kind(begun.kind))
    elif isinstance(begun, PartReceived):
        return events
    return events + fields_of(part.extras, frozenset(), part.at)


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
        announced = [each for each in self._announced if each.name == entry.name]
        if announced:  # an announcement without an id belongs to its name's first call
            self._announced.remove(announced[0])
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


_PLAIN = frozenset({"index", "text", "delta"})
_FRAME = _PLAIN | FIELDS | IDENTITY | {"usage", "error"}
_CALLS = frozenset({_ANNOUNCED, _UPDATES, _WHOLE, _LEGACY})
_DELTA = _CALLS | {"text", "part", "refusal", "thinking", "parts", "logprobs", MARKER, SIGHTLINE}
_THINKING = frozenset({"text", "id", "encrypted", "summary", "piece"})


class _Choice:
    """What is known of one choice so far: the part that grows, and the calls."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.calls = Calls(index)
        self.current = -1
        self.kind = ""
        self.last = -1
        self.signatures: dict[int, tuple[str | None, str | None]] = {}
        self.unsigned: int | None = None
        self.has_finished = False

    def at_part(self, kind: str, named: int | None) -> int:
        """The number of the part that a delta belongs to: the named one, the current one of its kind, or a new one."""
        if named is not None:
            self.current = named
        elif kind != self.kind:
            self.current = self.last + 1
        self.kind = kind
        self.last = max(self.last, self.current)
        return self.current

    def sign(self) -> list[StreamEvent]:
        """The id of reasoning that has ended without a signature; a signature would have carried the id."""
        part, self.unsigned = self.unsigned, None
        if part is None:
            return []
        encrypted, item = self.signatures[part]
        signature, signed_by = read_signature(encrypted, item)
        return [SignatureReceived(part, signature, signed_by or NAME, self.index, item)]


class RawMachine(Machine):
    """Reads frames and returns events."""

    def __init__(self) -> None:
        self._choices: dict[int, _Choice] = {}
        self._frame_keys = set(_FRAME)
        self._delta_keys = set(_DELTA)
        self._thinking_keys = set(_THINKING)
        self._error: Json = None

    def read(self, document: JsonObject, index: int) -> list[StreamEvent]:
        """The events of one frame."""
        delta = document.get("delta")
        number = document.get("index")
        if (
            type(delta) is dict
            and len(delta) == 1
            and type(text := delta.get("text")) is str
            and type(number) is int
            and (choice := self._choices.get(number)) is not None
            and choice.kind == "text"
            and text
            and document.keys() <= _PLAIN
        ):  # the case for nearly all frames
            return [TextReceived(choice.current, text, number)]
        events: list[StreamEvent] = []
        try:
            self._read(document, f"/{index}", events)
        except Fault as fault:  # what was read before it is kept, because later frames depend on it
            events.append(FrameBroken(fault.pointer or f"/{index}", fault.message))
        return events

    def read_done_marker(self) -> list[StreamEvent]:
        """At `[DONE]` the reply is complete, so a choice without an end has stopped, unless an error arrived before."""
        open_ones = [choice for choice in self._choices.values() if not choice.has_finished]
        if open_ones and self._error is not None:
            return [*self.flush(), Failed(read_error(0, {"error": self._error}, {}))]
        return [event for choice in open_ones for event in _finish(choice, {}, "")]

    def flush(self) -> list[StreamEvent]:
        """What was held back of reasoning and calls that will not be completed any more."""
        return [event for choice in self._choices.values() for event in (*choice.sign(), *choice.calls.flush())]

    def _read(self, document: JsonObject, at: str, events: list[StreamEvent]) -> None:
        if not document.keys().isdisjoint(IDENTITY):
            events.append(read_started(document, at))
        events += unread_fields(document, self._frame_keys, at)
        if document.get("error") is not None:
            events += [*self.flush(), Failed(read_error(0, document, {}))]
            return
        delta = opt_object(document, "delta", at)
        if delta is not None or document.get("finishReason") is not None:
            number = opt_int(document, "index", at) or 0
            if not 0 <= number < MOST_CHOICES:
                raise wrong(number, f"{at}/index", f"the number of a choice, below {MOST_CHOICES}")
            choice = self._choices.setdefault(number, _Choice(number))
            if delta is not None:
                self._delta(delta, choice, f"{at}/delta", events)
            if document.get("finishReason") is not None:
                events += _finish(choice, document, at)
        if document.get("usage") is not None:
            events.append(UsageReceived(read_usage(document["usage"], f"{at}/usage")))

    def _delta(self, delta: JsonObject, choice: _Choice, at: str, events: list[StreamEvent]) -> None:
        if choice.has_finished:
            events += self._late(delta, choice, at)
            return
        if delta.get(MARKER):
            events.append(Started(marker=opt_str(delta, MARKER, at), places={"marker": f"{at}/{MARKER}"}))
        if self._error is None and delta.get("copilotErrors"):
            self._error = as_list(delta["copilotErrors"], f"{at}/copilotErrors")[0]
        events += unread_fields(delta, self._delta_keys, at)
        if delta.get("thinking") is None or delta.get("part", choice.current) != choice.current:
            events += choice.sign()
        named = opt_int(delta, "part", at)
        if named is not None and not 0 <= named < FIRST_CALL:
            raise wrong(named, f"{at}/part", "the number of a part")
        thinking = opt_object(delta, "thinking", at)
        if thinking is not None:
            events += self._thinking(thinking, choice, named, f"{at}/thinking")
        text = opt_str(delta, "text", at)
        if text or (named is not None and delta.keys() == {"text", "part"}):
            events.append(TextReceived(choice.at_part("text", named), text or "", choice.index))
        refusal = opt_str(delta, "refusal", at)
        if refusal is not None:
            events.append(RefusalReceived(choice.at_part("refusal", named), refusal, choice.index))
        for position, value in enumerate(as_list(delta.get("parts") or [], f"{at}/parts")):
            part = read_part(value, "assistant", f"{at}/parts/{position}")
            choice.kind = ""  # it is complete: what comes next is another part
            events.append(PartReceived(choice.at_part("part", named), part, choice.index))
        events += _beside(delta, choice, named, at)
        events += read_logprobs(delta.get("logprobs"), choice.index, f"{at}/logprobs")
        choice.calls.read(delta, at, events)

    def _late(self, delta: JsonObject, choice: _Choice, at: str) -> list[StreamEvent]:
        """After its end a choice may still get the id of its reasoning; anything else is only reported."""
        late: JsonObject = {key: value for key, value in delta.items() if value and key not in ("thinking", "part")}
        events: list[StreamEvent] = [FieldReceived(at, late)] if late else []
        thinking = opt_object(delta, "thinking", at)
        if thinking is not None:
            events += self._thinking(thinking, choice, opt_int(delta, "part", at), f"{at}/thinking")
        return events + choice.sign()

    def _thinking(self, thinking: JsonObject, choice: _Choice, named: int | None, at: str) -> list[StreamEvent]:
        events = unread_fields(thinking, self._thinking_keys, at)
        part = choice.at_part("thinking", named)
        words = thinking.get("text")
        if isinstance(words, list):
            pieces = [as_str(piece, f"{at}/text/{number}") for number, piece in enumerate(words)]
            events += [
                ThinkingReceived(part, piece, choice.index, number, summary=True) for number, piece in enumerate(pieces)
            ]
        elif words is not None:
            piece, summary = opt_int(thinking, "piece", at) or 0, thinking.get("summary") is True
            events.append(
                ThinkingReceived(part, opt_str(thinking, "text", at) or "", choice.index, piece, summary=summary)
            )
        before = choice.signatures.get(part, (None, None))
        known = (
            opt_str(thinking, "encrypted", at) if "encrypted" in thinking else before[0],
            opt_str(thinking, "id", at) if "id" in thinking else before[1],
        )
        if known != before:
            choice.signatures[part] = known
            choice.unsigned = part  # the id comes first, and the signature perhaps later
            if "encrypted" in thinking:
                events += choice.sign()
        return events


def _finish(choice: _Choice, holder: JsonObject, at: str) -> list[StreamEvent]:
    if choice.has_finished:
        return []
    choice.has_finished, choice.kind = True, ""
    events = [*choice.sign(), *choice.calls.finish()]
    return [*events, read_finish(holder, choice.index, at, has_calls=choice.calls.are_any)]


def _beside(delta: JsonObject, choice: _Choice, named: int | None, at: str) -> list[StreamEvent]:
    """Signatures and citations of the part that grows."""
    if delta.get(SIGHTLINE) is None:
        return []
    beside = read_beside(delta)
    if beside is None:
        return [FieldReceived(f"{at}/{SIGHTLINE}", delta[SIGHTLINE])]
    part = choice.at_part(choice.kind, named)
    events: list[StreamEvent] = [
        CitationReceived(part, citation, choice.index) for citation in place_citations(beside.citations, at)
    ]
    if beside.signed_by is not None:
        events.append(SignatureReceived(part, beside.signature, beside.signed_by, choice.index))
    return events
