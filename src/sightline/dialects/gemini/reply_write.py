"""Writes a reply as one generateContent response, or its events as frames of streamGenerateContent.

Text is sent as it arrives. A call is a single part here, so it is sent when it is complete, and whatever follows it
waits for it. The finish of each choice, its citations and the usage are in the last frame; a failure is a frame of its
own, after which nothing follows.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import assert_never

from sightline.dialects.dialect import Client
from sightline.dialects.gemini.errors import write_error
from sightline.dialects.gemini.field_names import NAME, restore_extras
from sightline.dialects.gemini.parts import REDACTED, call_part, for_client, is_carried, media_part, pack_thoughts
from sightline.dialects.gemini.reply_fields import write_citations, write_finish, write_logprobs, write_usage
from sightline.dialects.losses import lose_partial, lose_pieces, lose_unknown, thinking_words
from sightline.dialects.streaming import truncation_fault
from sightline.dialects.text_runs import GrowingText, TextFraming
from sightline.errors import Fault
from sightline.model.events import (
    ArgumentsReceived,
    CitationReceived,
    Ended,
    Failed,
    FieldReceived,
    Finished,
    FrameBroken,
    LogprobsReceived,
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
from sightline.model.fold import Fold
from sightline.model.json import Json, JsonObject
from sightline.model.parts import (
    Audio,
    CacheBreakpoint,
    Document,
    Image,
    Opaque,
    Part,
    Refusal,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from sightline.model.reply import Choice, Reply
from sightline.model.report import Report
from sightline.wire.jsontext import encode
from sightline.wire.sse import Frame, encode_frame

_LAST_SECOND = 253_402_300_800
"""The end of the year 9999, after which there are no dates."""


def write_reply(reply: Reply, client: Client, report: Report) -> JsonObject:
    """The body of a reply. A failed reply can only be written as the error."""
    if reply.fault is not None:
        lose_partial(reply, NAME, report)
        return write_error(reply.fault)[1]
    same = reply.dialect == NAME
    body: JsonObject = {
        "candidates": [_candidate(choice, index, report, same=same) for index, choice in enumerate(reply.choices)]
    }
    if reply.usage is not None:
        counts = write_usage(reply.usage, report)
        body["usageMetadata"] = restore_extras(counts, reply.usage.extras) if same else counts
    return body | _identity(reply, client)


def _identity(reply: Reply, client: Client) -> JsonObject:
    """The fields that identify a reply, as far as they are known."""
    fields: JsonObject = {}
    if model := reply.model or client.model:
        fields["modelVersion"] = model
    created = reply.created or client.created
    if 0 < created < _LAST_SECOND:
        fields["createTime"] = datetime.fromtimestamp(created, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    if reply_id := reply.id or client.id:
        fields["responseId"] = reply_id
    return fields


def write_part(part: Part, report: Report, *, same: bool = False) -> JsonObject | None:
    """One part of an answer; None if it is empty or cannot be expressed."""
    wire: JsonObject | None
    match part:
        case Text():
            wire = _text(part)
        case Thinking():
            wire = _thought(part, report)
        case ToolCall():
            if part.kind == "custom":
                report.lose(part.at, "that the call takes free text", "it became an object with one string", "identity")
            wire = add_signature(call_part(part, report), for_client(part.signature, part.signed_by))
        case Image():
            picture = media_part(part, "", report, same=same)
            wire = None if picture is None else add_signature(picture, for_client(part.signature, part.signed_by))
        case Document() | Audio():
            wire = media_part(part, "", report, same=same)
        case Refusal():
            report.lose(part.at, "that it is a refusal", "gemini has only text for it", "identity")
            wire = {"text": part.text} if part.text else None
        case Opaque():
            if part.dialect == NAME and isinstance(part.value, dict):
                return part.value
            lose_unknown(part, NAME, report)
            return None
        case ToolResult() | CacheBreakpoint():
            report.lose(part.at, "a part that no answer has", "gemini has none in a reply", "content")
            return None
        case unreachable:
            assert_never(unreachable)
    return restore_extras(wire, part.extras) if same and wire is not None and part.extras else wire


def _text(part: Text) -> JsonObject | None:
    wire = add_signature({"text": part.text}, for_client(part.signature, part.signed_by))
    return None if len(wire) == 1 and not part.text else wire


def add_signature(wire: JsonObject, signing: str | None) -> JsonObject:
    """The part with its signature."""
    if signing is not None:
        wire["thoughtSignature"] = signing
    return wire


def _candidate(choice: Choice, index: int, report: Report, *, same: bool) -> JsonObject:
    parts: list[Json] = []
    carried: list[Part] = []
    for part in choice.parts:
        wire = write_part(part, report, same=same)
        if is_carried(part):
            carried.append(part)
        elif wire is not None and isinstance(part, ToolCall):
            wire = _with_thoughts(wire, carried)
            carried = []
        if wire is not None:
            parts.append(wire)
    return _with_parts(choice, index, parts, report)


def _with_parts(choice: Choice, index: int, parts: list[Json], report: Report) -> JsonObject:
    """The candidate of a choice with these parts, and the fields beside them."""
    candidate: JsonObject = {"content": {"parts": parts, "role": "model"}, "index": index}
    if choice.finish is not None:
        candidate["finishReason"] = write_finish(choice, choice.finish, report)
    numbered = list(enumerate(choice.parts))
    texts = [(number, part.text) for number, part in numbered if isinstance(part, (Text, Refusal))]
    citations = [(number, each) for number, part in numbered if isinstance(part, Text) for each in part.citations]
    sources = write_citations(citations, texts, report)
    if sources:
        candidate["citationMetadata"] = {"citationSources": sources}
    if choice.logprobs:
        candidate["logprobsResult"] = write_logprobs(choice.logprobs)
        if any(token.bytes is not None for token in choice.logprobs):
            report.lose(choice.logprobs_at, "bytes of the tokens", "gemini gives tokens as text", "identity")
    return candidate


def _with_thoughts(wire: JsonObject, carried: list[Part]) -> JsonObject:
    """A call with the preceding thoughts of another provider's model, unless Google has signed it."""
    return wire if "thoughtSignature" in wire else add_signature(wire, pack_thoughts(carried))


def _thought(part: Thinking, report: Report) -> JsonObject | None:
    if part.id is not None and part.signed_by is None:
        report.lose(part.at, "id of the reasoning", "gemini has no ids on thoughts", "identity")
    signing = for_client(part.signature, part.signed_by, REDACTED if part.redacted else part.id)
    words = thinking_words(part)
    if part.summary and words != part.summary[0]:
        lose_pieces(part.at, NAME, report)
    wire = add_signature({"text": words, "thought": True}, signing)
    return wire if wire["text"] or "thoughtSignature" in wire else None


@dataclass(slots=True)
class _Call:
    """A call that is still being written: where it begins, its events so far, and the thoughts before it."""

    at: str
    carried: list[Part]
    fold: Fold = field(default_factory=Fold)
    is_complete: bool = False


@dataclass(slots=True)
class _Choice:
    """What remains to be written of one choice."""

    waiting: list[_Call | JsonObject] = field(default_factory=list)
    calls: dict[int, _Call] = field(default_factory=dict)
    texts: set[int] = field(default_factory=set)
    pieces: dict[int, tuple[bool, int]] = field(default_factory=dict)
    thoughts: dict[int, str] = field(default_factory=dict)
    words: dict[int, str] = field(default_factory=dict)
    carried: list[Part] = field(default_factory=list)
    signing: SignatureReceived | None = None


class StreamWriter(TextFraming):
    """Writes one stream."""

    def __init__(self, client: Client, report: Report) -> None:
        self._client = client
        self._report = report
        self._choices: defaultdict[int, _Choice] = defaultdict(_Choice)
        self._known = Fold()
        self._identity = _identity(self._known.reply, client)
        self._is_over = False
        self._separator = b"["

    def feed(self, event: StreamEvent) -> bytes:  # noqa: C901 - one flat case per event is the readable form
        """The bytes that can be sent now."""
        if self._is_over:
            return b""
        self._known.add(event)
        match event:
            case TextReceived(part, text, choice):
                self._choices[choice].texts.add(part)
                return self._write_or_queue(choice, part, {"text": text}) if text else b""
            case ThinkingReceived():
                return self._think(event)
            case ArgumentsReceived(part, choice=choice):
                self._choices[choice].calls[part].fold.add(event)
            case ToolCallBegun(part, choice=choice):
                signed, state = self._write_signature(choice), self._choices[choice]
                call = state.calls[part] = _Call(event.at, state.carried)
                call.fold.add(event)
                state.carried = []
                state.waiting.append(call)
                return signed
            case ToolCallCompleted(part, choice):
                self._choices[choice].calls[part].is_complete = True
                return self._release(choice)
            case SignatureReceived():
                return self._sign(event)
            case RefusalReceived():
                texts = self._choices[event.choice].texts
                if event.part not in texts:
                    write_part(Refusal(event.text, at=event.at), self._report)
                texts.add(event.part)
                return self._write_or_queue(event.choice, event.part, {"text": event.text}) if event.text else b""
            case PartReceived(part, value, choice):
                carried, wire = self._choices[choice].carried, write_part(value, self._report)
                if is_carried(value):
                    carried.append(value)
                return b"" if wire is None else self._write_or_queue(choice, part, wire)
            case Started() | UsageReceived():
                self._identity = _identity(self._known.reply, self._client)
            case Finished():
                return self._finish(event)
            case Failed(fault):
                return self._fail(fault)
            case Ended():
                return self._end()
            case CitationReceived(choice=choice) | LogprobsReceived(choice=choice):
                self._choices.setdefault(choice, _Choice())  # it is written with the end
            case FieldReceived() | FrameBroken():
                pass
            case unreachable:
                assert_never(unreachable)
        return b""

    def text_frame(self, event: GrowingText) -> bytes | None:
        """The frame of one more piece of text. Reasoning and array elements are written in full: None."""
        choice = self._choices[event.choice]
        if self._client.as_array or choice.waiting or choice.signing is not None or not isinstance(event, TextReceived):
            return None
        return self._content(event.choice, [{"text": event.text}])

    def note_text(self, event: GrowingText) -> None:
        """Record the text, because citations need all of it."""
        self._known.add(event)

    def _write_or_queue(self, number: int, part: int, wire: JsonObject) -> bytes:
        """Write a piece of a part now, or when the calls before it are complete."""
        choice = self._choices[number]
        signed = b"" if choice.signing is None or choice.signing.part == part else self._write_signature(number)
        if choice.waiting:
            choice.waiting.append(wire)
            return signed
        return signed + self._content(number, [wire])

    def _write_signature(self, number: int) -> bytes:
        """Write the signature of a part that has ended, as Google does: on an empty text."""
        choice = self._choices[number]
        event, choice.signing = choice.signing, None
        if event is None:
            return b""
        is_text = event.part in choice.texts
        signing = for_client(event.signature, event.signed_by, None if is_text else event.id)
        words = choice.words.get(event.part, "")
        thought = Thinking(words, id=event.id, signature=event.signature, signed_by=event.signed_by)
        if not is_text and is_carried(thought):
            choice.carried.append(thought)
        wire: JsonObject = {"text": ""} if is_text else {"text": "", "thought": True}
        return b"" if signing is None else self._write_or_queue(number, event.part, add_signature(wire, signing))

    def _think(self, event: ThinkingReceived) -> bytes:
        choice = self._choices[event.choice]
        at = choice.thoughts.setdefault(event.part, event.at)
        if not event.text:
            return b""
        pieces, piece = choice.pieces, (event.summary, event.piece)
        before = pieces.get(event.part, piece)
        pieces[event.part] = piece
        if before != piece and (before[0] or event.summary):
            lose_pieces(at, NAME, self._report)
        text = event.text if before == piece else f"\n\n{event.text}"
        choice.words[event.part] = choice.words.get(event.part, "") + text
        return self._write_or_queue(event.choice, event.part, {"text": text, "thought": True})

    def _sign(self, event: SignatureReceived) -> bytes:
        """Keep a signature until the end of its part: a signature may arrive in pieces."""
        choice = self._choices[event.choice]
        call = choice.calls.get(event.part)
        if call is not None:
            call.fold.add(event)
            return b""
        before = (
            b"" if choice.signing is None or choice.signing.part == event.part else self._write_signature(event.choice)
        )
        choice.signing = event
        return before

    def _release(self, number: int) -> bytes:
        """Write everything that no longer waits for a call."""
        waiting = self._choices[number].waiting
        parts: list[Json] = []
        while waiting and (not isinstance(waiting[0], _Call) or waiting[0].is_complete):
            first = waiting.pop(0)
            if isinstance(first, _Call):
                wire = write_part(first.fold.reply.choice.parts[0], self._report)
                assert wire is not None  # a call can always be written
                first = _with_thoughts(wire, first.carried)
            parts.append(first)
        return self._content(number, parts) if parts else b""

    def _finish(self, event: Finished) -> bytes:
        for call in self._choices[event.choice].calls.values():
            call.is_complete = True
        return self._write_signature(event.choice) + self._release(event.choice)

    def _fail(self, fault: Fault) -> bytes:
        data = b""
        for number, choice in self._choices.items():
            for call in choice.calls.values():
                if not call.is_complete:
                    self._report.lose(call.at, "an unfinished call", "gemini has whole calls only", "content")
            choice.waiting = [one for one in choice.waiting if not isinstance(one, _Call) or one.is_complete]
            data += self._release(number) + self._write_signature(number)
        self._is_over = True
        return data + self._frame(write_error(fault)[1])

    def _end(self) -> bytes:
        reply = self._known.reply
        if not any(choice.finish for choice in reply.choices):
            return self._fail(truncation_fault())
        numbers = sorted(self._choices)
        signed = b"".join([self._write_signature(number) for number in numbers])
        self._is_over = True
        candidates: list[Json] = [
            _with_parts(choice, number, [], self._report) for number, choice in zip(numbers, reply.choices, strict=True)
        ]
        body: JsonObject = {"candidates": candidates}
        if reply.usage is not None:
            body["usageMetadata"] = write_usage(reply.usage, self._report)
        return signed + self._frame(body | self._identity)

    def _content(self, number: int, parts: list[Json]) -> bytes:
        candidate: Json = {"content": {"parts": parts, "role": "model"}, "index": number}
        return self._frame({"candidates": [candidate], **self._identity})

    def _frame(self, body: JsonObject) -> bytes:
        """One piece of the stream. Without `alt=sse` Google sends one JSON array, whose elements arrive one by one."""
        if not self._client.as_array:
            return encode_frame(Frame(encode(body)))
        opening, self._separator = self._separator, b",\n"
        return opening + encode(body) + (b"]" if self._is_over else b"")
