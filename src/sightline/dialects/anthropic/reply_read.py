"""Reads a Messages reply, whole or as a stream, as events."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from sightline.dialects.anthropic.blocks import BLOCKS, read_citation, read_content
from sightline.dialects.anthropic.errors import error_fields, extra_fields, is_error, read_error
from sightline.dialects.anthropic.names import NAME, STOP_DETAILS, finish_of
from sightline.dialects.anthropic.usage import Counter
from sightline.dialects.fields import as_list, as_object, opt_object, opt_str, str_of, whole_number, wrong
from sightline.dialects.signatures import unwrap
from sightline.dialects.streaming import Machine, finish_for_content
from sightline.errors import Code, Fault
from sightline.model.events import (
    ArgumentsReceived,
    CitationReceived,
    Ended,
    Failed,
    FieldReceived,
    Finished,
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
from sightline.model.parts import CacheBreakpoint, Opaque, Part, Text, ToolCall
from sightline.model.reply import Choice, Finish, Reply
from sightline.wire.jsontext import decode, encode

KNOWN = frozenset({"id", "type", "role", "model", "content", "stop_reason", "stop_sequence", "usage"})
_PLAIN = KNOWN | {STOP_DETAILS}
_TEXT = frozenset({"type", "text", "citations"})


def read_reply(document: Json) -> list[StreamEvent]:
    """The events of this body."""
    body = as_object(document, "")
    if is_error(body):
        return [*error_fields(body, ""), Failed(read_error(200, body, {})), Ended()]
    parts, _ = read_content(as_list(body.get("content"), "/content"), "/content")
    parts = tuple(part for part in parts if not isinstance(part, CacheBreakpoint))
    events: list[StreamEvent] = [read_identity(body, "")]
    for number, part in enumerate(parts):
        events += events_of(number, part)
    events += extra_fields(body, "", _PLAIN)
    usage = opt_object(body, "usage", "")
    if usage is not None:
        events.append(UsageReceived(Counter().read(usage, "/usage")))
    stop_sequence = opt_str(body, "stop_sequence", "")
    finish, detail = finish_of(str_of(body, "stop_reason", ""), stop_sequence)
    finish = finish_for_content(finish, has_calls=any(isinstance(part, ToolCall) for part in parts))
    events += details_of(body, "", len(parts), finish)
    return [*events, Finished(finish, 0, detail, stop_sequence, "/stop_reason", "/stop_sequence"), Ended()]


def read_plain(document: Json, dialect: str) -> Reply | None:
    """A reply that is a single text, as most are, without the detour of events; None for any other."""
    if type(document) is not dict or document.get("type") != "message" or not document.keys() <= _PLAIN:
        return None
    blocks, usage = document.get("content"), document.get("usage")
    if type(blocks) is not list or len(blocks) != 1 or type(blocks[0]) is not dict or not blocks[0].keys() <= _TEXT:
        return None
    text, stop_sequence = blocks[0].get("text"), opt_str(document, "stop_sequence", "")
    if blocks[0].get("type") != "text" or type(text) is not str or not text:
        return None
    if blocks[0].get("citations") not in (None, []) or document.get(STOP_DETAILS) is not None:
        return None
    finish, detail = finish_of(str_of(document, "stop_reason", ""), stop_sequence)
    started = read_identity(document, "")
    answer = Choice(
        parts=(Text(text, at="/content/0"),),
        finish=finish_for_content(finish, has_calls=False),
        detail=detail,
        stop_sequence=stop_sequence,
        finish_at="/stop_reason",
        stop_at="/stop_sequence",
    )
    return Reply(
        choices=(answer,),
        id=started.id,
        model=started.model,
        places=started.places,
        usage=None if usage is None else Counter().read(as_object(usage, "/usage"), "/usage"),
        dialect=dialect,
    )


def read_identity(message: JsonObject, at: str) -> Started:
    """The id and model of a reply, and their places."""
    places = {name: f"{at}/{name}" for name in ("id", "model") if message.get(name) is not None}
    return Started(opt_str(message, "id", at), opt_str(message, "model", at), places=places)


def events_of(number: int, part: Part) -> list[StreamEvent]:
    """One block of the reply, as its stream would have sent it."""
    events = part_events(part, number)
    return (
        events if isinstance(events[0], PartReceived) else [*events, *extra_fields(part.extras, part.at, frozenset())]
    )


def details_of(holder: JsonObject, at: str, number: int, finish: Finish) -> list[StreamEvent]:
    """Read `stop_details`: the explanation of a refusal is a part of its own, after all blocks."""
    details = holder.get(STOP_DETAILS)
    text = details.get("explanation") if isinstance(details, dict) and finish == "refusal" else None
    if not isinstance(details, dict) or not isinstance(text, str) or not text:
        return extra_fields({STOP_DETAILS: details}, at, frozenset())
    place = f"{at}/{STOP_DETAILS}"
    refusal = RefusalReceived(number, text, at=f"{place}/explanation")
    return [refusal, *extra_fields(details, place, frozenset({"explanation"}))]


_START = frozenset({"type", "message"})
_BLOCK_START = frozenset({"type", "index", "content_block"})
_TOOL_USE = frozenset({"type", "id", "name", "input"})
_BLOCK_DELTA = frozenset({"type", "index", "delta"})
_DELTA = frozenset({"type", "text", "thinking", "signature", "partial_json", "citation"})
_MESSAGE_DELTA = frozenset({"type", "delta", "usage"})
_STOP = frozenset({"stop_reason", "stop_sequence", STOP_DETAILS})
_NOTHING = ("", "")
_GROWING: Mapping[str, tuple[str, str]] = {
    "text": ("text_delta", "text"),
    "thinking": ("thinking_delta", "thinking"),
    "tool_use": ("input_json_delta", "partial_json"),
}
"""The delta by which a block grows, and the field that holds the fragment."""

_WHOLE = frozenset({"text", "thinking", "redacted_thinking"})
"""Blocks whose start contains everything that is needed to begin them."""


@dataclass(slots=True)
class _Block:
    """A block that has begun and not ended."""

    kind: str
    value: JsonObject
    at: str
    fragments: list[str] = field(default_factory=list)


class MessagesMachine(Machine):
    """The state of one stream: its open blocks, its counts so far, and whether it has finished."""

    def __init__(self) -> None:
        self._blocks: dict[int, _Block] = {}
        self._used: set[int] = set()
        self._noted: set[str] = set()
        self._counter = Counter()
        self._has_calls = False
        self._has_finished = False
        self._handlers: Mapping[str, Callable[[JsonObject, str], list[StreamEvent]]] = {
            "message_start": self._message_start,
            "content_block_start": self._block_start,
            "content_block_delta": self._block_delta,
            "content_block_stop": lambda document, at: self._close_block(self._number(document, at)),
            "message_delta": self._message_delta,
            "message_stop": self._message_stop,
            "ping": lambda _document, _at: [],
        }

    def read(self, document: JsonObject, index: int) -> list[StreamEvent]:
        """The events of one frame. Fragments of a block, which nearly all frames are, take a short path."""
        if len(document) == 3 and document.get("type") == "content_block_delta":
            number, delta = document.get("index"), document.get("delta")
            if type(number) is int and type(delta) is dict and len(delta) == 2 and number in self._blocks:
                block = self._blocks[number]
                kind, key = _GROWING.get(block.kind, _NOTHING)
                text = delta.get(key)
                if type(text) is str and text and delta.get("type") == kind:
                    if kind == "text_delta":
                        return [TextReceived(number, text)]
                    if kind == "thinking_delta":
                        return [ThinkingReceived(number, text)]
                    block.fragments.append(text)
                    return [ArgumentsReceived(number, text)]
        at = f"/{index}"
        if is_error(document):
            return [*error_fields(document, at), Failed(read_error(200, document, {}))]
        kind = str_of(document, "type", at)
        handler = self._handlers.get(kind)
        return self._once(kind, at, document) if handler is None else handler(document, at)

    def _message_start(self, document: JsonObject, at: str) -> list[StreamEvent]:
        place = f"{at}/message"
        message = as_object(document.get("message"), place)
        events: list[StreamEvent] = [read_identity(message, place)]
        events += self._unknown(message, KNOWN, place)
        events += self._unknown(document, _START, at)
        return events + self._usage(message, place)

    def _block_start(self, document: JsonObject, at: str) -> list[StreamEvent]:
        number = self._number(document, at)
        if number in self._used:
            raise Fault(Code.UPSTREAM_PROTOCOL, f"the block {number} begins twice", pointer=f"{at}/index")
        place = f"{at}/content_block"
        value = as_object(document.get("content_block"), place)
        block = _Block(str_of(value, "type", place), value, place)
        unknown = self._unknown(document, _BLOCK_START, at)
        if block.kind in _WHOLE:
            unknown = events_of(number, BLOCKS[block.kind](value, place)) + unknown
        elif block.kind == "tool_use":
            self._has_calls = True
            begun = ToolCallBegun(number, str_of(value, "id", place), str_of(value, "name", place), at=place)
            unknown = [begun, *self._unknown(value, _TOOL_USE, place), *unknown]
            opt_object(value, "input", place)
        self._used.add(number)
        self._blocks[number] = block
        return unknown

    def _block_delta(self, document: JsonObject, at: str) -> list[StreamEvent]:
        number = self._number(document, at)
        block = self._blocks.get(number)
        if block is None:
            raise Fault(Code.UPSTREAM_PROTOCOL, f"the block {number} is not open", pointer=f"{at}/index")
        place = f"{at}/delta"
        delta = as_object(document.get("delta"), place)
        kind = str_of(delta, "type", place)
        unknown = self._unknown(document, _BLOCK_DELTA, at)
        events: list[StreamEvent]
        match block.kind, kind:
            case "text", "text_delta":
                events = [TextReceived(number, str_of(delta, "text", place))]
            case "text", "citations_delta":
                citation = read_citation(delta.get("citation"), f"{place}/citation")
                events = [CitationReceived(number, citation)]
            case "thinking", "thinking_delta":
                events = [ThinkingReceived(number, str_of(delta, "thinking", place))]
            case "thinking", "signature_delta":
                signature, signed_by, item = unwrap(str_of(delta, "signature", place), NAME)
                events = [] if signature == "" else [SignatureReceived(number, signature, signed_by, id=item)]
            case "tool_use", "input_json_delta":
                fragment = str_of(delta, "partial_json", place)
                block.fragments += [fragment] if fragment else []
                events = [ArgumentsReceived(number, fragment)] if fragment else []
            case (("text" | "thinking" | "redacted_thinking" | "tool_use"), _):
                return self._once(kind, place, delta) + unknown
            case _:
                _grow(block, kind, delta, place)
                return unknown
        return events + self._unknown(delta, _DELTA, place) + unknown

    def _close_block(self, number: int) -> list[StreamEvent]:
        block = self._blocks.pop(number, None)
        if block is None or block.kind in _WHOLE:
            return []
        if block.kind != "tool_use":
            return [PartReceived(number, Opaque(NAME, _whole(block), at=block.at))]
        if block.fragments:
            return [ToolCallCompleted(number)]
        return [ArgumentsReceived(number, encode(block.value.get("input") or {}).decode()), ToolCallCompleted(number)]

    def _message_delta(self, document: JsonObject, at: str) -> list[StreamEvent]:
        place = f"{at}/delta"
        delta = as_object(document.get("delta"), place)
        events = self._usage(document, at)
        events += self._unknown(delta, _STOP, place) + self._unknown(document, _MESSAGE_DELTA, at)
        word = opt_str(delta, "stop_reason", place)
        if word is None or self._has_finished:
            return events + self._unknown(delta, _STOP - {STOP_DETAILS}, place)
        self._has_finished = True
        stop_sequence = opt_str(delta, "stop_sequence", place)
        finish, detail = finish_of(word, stop_sequence)
        finish = finish_for_content(finish, has_calls=self._has_calls)
        closed = [event for number in list(self._blocks) for event in self._close_block(number)]
        return [
            *closed,
            *events,
            *details_of(delta, place, max(self._used, default=-1) + 1, finish),
            Finished(finish, 0, detail, stop_sequence, f"{place}/stop_reason", f"{place}/stop_sequence"),
        ]

    def _message_stop(self, _document: JsonObject, _at: str) -> list[StreamEvent]:
        self.is_over = True
        return []

    def _usage(self, holder: JsonObject, at: str) -> list[StreamEvent]:
        usage = opt_object(holder, "usage", at)
        return [] if usage is None else [UsageReceived(self._counter.read(usage, f"{at}/usage"))]

    def _number(self, document: JsonObject, at: str) -> int:
        number = whole_number(document.get("index"))
        if number is None:
            raise wrong(document.get("index"), f"{at}/index", "a whole number")
        return number

    def _unknown(self, holder: JsonObject, known: frozenset[str], at: str) -> list[StreamEvent]:
        """The unmodelled fields of this object, each name once per stream."""
        if holder.keys() <= known:
            return []
        known |= self._noted
        fresh: JsonObject = {key: value for key, value in holder.items() if key not in known and value is not None}
        self._noted |= fresh.keys()
        return extra_fields(fresh, at, frozenset())

    def _once(self, kind: str, at: str, value: Json) -> list[StreamEvent]:
        if kind in self._noted:
            return []
        self._noted.add(kind)
        return [FieldReceived(at, value)]


def _grow(block: _Block, kind: str, delta: JsonObject, at: str) -> None:
    """Apply a delta to an unmodelled block: its input arrives as JSON text, other fields as strings to append."""
    if kind == "input_json_delta":
        block.fragments.append(str_of(delta, "partial_json", at))
        return
    for key, value in delta.items():
        so_far = block.value.get(key)
        if key != "type":
            block.value[key] = so_far + value if isinstance(so_far, str) and isinstance(value, str) else value


def _whole(block: _Block) -> JsonObject:
    text = "".join(block.fragments)
    if not text:
        return block.value
    try:
        return {**block.value, "input": decode(text)}
    except Fault:
        return {**block.value, "input": text}
