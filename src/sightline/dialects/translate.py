"""Translation from one dialect to another, with a report of what was lost: whole bodies, and streams while they arrive
(bytes in at any split, bytes out as soon as they can be written).

Two target forms belong to no provider: the canonical request as JSON, and a reply as its events or as one folded value.

Reasoning survives a translation: the target is asked for it in its own way, so that it can be shown to the client and
sent back with the client's next request. No provider needs to store it. A reply contains it signed (see `signatures`),
and only if the request asked for it: the Responses API returns it if `include` asks for it, Anthropic's models think
only with a thinking setting, and each shows its words only on request.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import msgspec

from sightline.catalog.facts import Facts
from sightline.catalog.fitting import budget_for, fit_to_model, is_reasoning
from sightline.dialects.conversation import with_words, without_private_lines
from sightline.dialects.dialect import Client, Dialect, StreamWriting, Target
from sightline.dialects.fields import wrong
from sightline.dialects.losses import UnreadLosses, lose_call_kind, lose_counts
from sightline.dialects.registry import dialect
from sightline.dialects.reply_decoder import ReplyDecoder, read_plain_document
from sightline.dialects.signatures import MARKED, OriginMarker, with_own_signatures
from sightline.dialects.streaming import fault_of_broken_frame
from sightline.dialects.text_runs import END, GrowingText, TextFraming, TextRuns
from sightline.dialects.tool_names import ANY_NAME, NameRestorer, NameRule, with_wire_names
from sightline.errors import Code, Fault
from sightline.model.events import (
    CitationReceived,
    Ended,
    Failed,
    FieldReceived,
    FrameBroken,
    PartReceived,
    Started,
    StreamEvent,
    TextReceived,
    ThinkingReceived,
    ToolCallBegun,
    UsageReceived,
)
from sightline.model.fold import Fold, fold
from sightline.model.json import Json
from sightline.model.reply import Reply, reply_json
from sightline.model.report import Report
from sightline.model.request import ADDED, Options, Reasoning, Request
from sightline.wire.document import WireDocument
from sightline.wire.jsontext import decode, encode


def ask_for_reasoning(request: Request, source: Dialect, target: Dialect, facts: Facts | None) -> Request:
    """The request of a client of `source`, with what `target` needs to return its reasoning. It already fits its model.

    Whatever this adds has `ADDED` as its place, by which the writers recognise and report it.
    """
    options = request.options
    if options.reasoning is not None and is_wanted(options.reasoning):
        reasoning = options.reasoning
        # Anthropic does not allow a forced call together with thinking.
        forces_call = request.tool_choice is not None and request.tool_choice.mode in ("required", "named")
        if target.reasoning == "mode" and not forces_call:
            reasoning = _switch_on(reasoning, facts)
        if source.reasoning == "mode" and reasoning.summary is None and "auto" in target.support.summaries:
            # A client of Anthropic's API sees what its model thinks unless it asks not to.
            reasoning = _with_added(reasoning, summary="auto")
        options = msgspec.structs.replace(options, reasoning=reasoning)
    if target.support.reasoning_include is not None and _will_reason(options, facts):
        missing = tuple(word for word in target.support.reasoning_include if word not in (options.include or ()))
        if missing:
            places = options.places | {"include": ADDED}
            options = msgspec.structs.replace(options, include=(*(options.include or ()), *missing), places=places)
    return msgspec.structs.replace(request, options=options)


def is_wanted(reasoning: Reasoning) -> bool:
    """Whether this asks for any reasoning at all."""
    if reasoning.mode == "off" or reasoning.effort == "none" or reasoning.budget == 0:
        return False
    return reasoning.mode is not None or reasoning.effort is not None or reasoning.budget is not None


def _switch_on(reasoning: Reasoning, facts: Facts | None) -> Reasoning:
    """An effort alone, as what makes the model think: adaptive thinking, or a budget if it has only that."""
    if reasoning.mode is not None or reasoning.budget is not None:
        return reasoning
    modes = None if facts is None else facts.thinking
    if modes is None or "adaptive" in modes:
        return _with_added(reasoning, mode="adaptive")
    if "budget" in modes:
        return _with_added(reasoning, budget=budget_for(reasoning.effort or ""))
    return reasoning


def _with_added(reasoning: Reasoning, **added: str | int) -> Reasoning:
    places = reasoning.places | dict.fromkeys(added, ADDED)
    return msgspec.structs.replace(reasoning, **added, places=places)


def _will_reason(options: Options, facts: Facts | None) -> bool:
    """Whether the reply will contain reasoning: it is requested, or the model is known to reason unasked."""
    if options.reasoning is not None and is_wanted(options.reasoning):
        return True
    return facts is not None and facts.reasoning is True and is_reasoning(options, facts)


_WORDS = frozenset({TextReceived, ThinkingReceived})
_MOST_TRIES = 8
"""How many frames of a chunk are fed one by one to find a text after them."""


class StreamTranslation:
    """Translates one stream. Between equal dialects the bytes stay as they are; `events` and `reply` are targets too.

    `request` is the client's own: calls get back the tool names that the client knows. `model` is the name that the
    reply reports, if it is not the provider's.
    """

    def __init__(
        self, source: str, target: str, *, client: Client | None = None, request: Request | None = None, model: str = ""
    ) -> None:
        self._reading = dialect(source)
        self.report = Report()
        self._target = target
        self._model = model
        self._is_verbatim = source == target
        self._is_foreign = not self._is_verbatim and target not in VIEWS
        self._losses = UnreadLosses(self._reading.unread, target, self.report)
        self._decoder = ReplyDecoder(self._reading)
        self._restorer = None if request is None else NameRestorer(request, self._reading.names)
        client = client or Client()
        if client.request is not request:
            client = replace(client, request=request)
        self._marker = OriginMarker(client.provider) if client.provider and self._is_foreign else None
        self._reply_id = client.reply_id
        self._writer: StreamWriting | None = None
        if target in VIEWS:
            self._writer = VIEWS[target]()
        elif self._is_foreign:
            self._writer = dialect(target).stream_writer(client, self.report)
        self._runs = TextRuns(self._writer) if isinstance(self._writer, TextFraming) else None
        self._fold = Fold(source)
        self._is_broken = False

    def feed(self, data: bytes) -> bytes:
        """The translation of these bytes."""
        if self._runs is not None:
            return self._feed_runs(data, self._runs)
        written = self._write(self._decoder.feed(data))
        return data if self._is_verbatim else written

    def _feed_runs(self, data: bytes, runs: TextRuns) -> bytes:
        """The same, with runs of frames of one text taken together. Any other frame is fed by itself, so that a run
        after it is found; after several misses the rest is fed at once, which is faster."""
        out: list[bytes] = []
        start, tries = 0, _MOST_TRIES
        hearing = self._decoder
        while start < len(data):
            is_between = hearing.is_between
            run = runs.take(data, start) if is_between and runs.is_known else None
            if run is not None:
                start, tries = run.end, _MOST_TRIES
                hearing.pass_frames(run.frames)
                self._fold.add(run.event)
                out.append(run.written)
                continue
            end = data.find(END, start) + len(END)
            if end < len(END) or not tries:
                end = len(data)
            tries -= 1
            frame, start, count = data[start:end], end, hearing.count
            events = hearing.feed(frame)
            written = self._write(events)
            out.append(written)
            runs.forget()
            is_one = is_between and len(events) == 1 and hearing.count == count + 1 and hearing.is_between
            if is_one and written and isinstance(event := events[0], GrowingText) and hearing.is_growing:
                runs.learn(frame, event)
        return b"".join(out)

    def close(self) -> bytes:
        """The last bytes when the source has ended: the target's terminal, or its own form of error."""
        written = self._write(self._decoder.close())
        return b"" if self._is_verbatim else written

    def fail(self, fault: Fault) -> bytes:
        """The last bytes when the source was interrupted: this error in the target's form, unless it has ended
        already."""
        return self._write(self._decoder.fail(fault))

    @property
    def has_ended(self) -> bool:
        """Whether the target has had its terminal, so that there is nothing more to wait for."""
        return self._is_broken or self._decoder.has_ended

    @property
    def may_end(self) -> bool:
        """Whether only the end of the source's bytes is missing."""
        return self._decoder.may_end

    @property
    def reply(self) -> Reply:
        """The reply as far as it has arrived."""
        return self._fold.reply

    def _write(self, events: list[StreamEvent]) -> bytes:
        out: list[bytes] = []
        if not self._is_verbatim:
            for at in self._decoder.late:
                self.report.lose(at, "a frame", "it came after the end of the stream", "content")
        for event in self._until_broken_frame(events) if self._is_foreign else events:
            if type(event) in _WORDS:  # the case for nearly all events; nothing in them is lost, named or signed
                self._fold.add(event)
                if self._writer is not None:
                    out.append(self._writer.feed(event))
                continue
            self._note(event)
            if isinstance(event, Started) and (self._model or self._reply_id):
                named = self._reply_id or event.id, self._model or event.model
                event = msgspec.structs.replace(event, id=named[0], model=named[1])
            for restored in [event] if self._restorer is None else self._restorer.feed(event):
                self._fold.add(restored)
                if self._writer is not None:
                    out.append(self._writer.feed(restored if self._marker is None else self._marker.mark(restored)))
        return b"".join(out)

    def _until_broken_frame(self, events: list[StreamEvent]) -> list[StreamEvent]:
        """The events up to the first frame that cannot be read: the stream fails there, and nothing follows."""
        if self._is_broken:
            return []
        for index, event in enumerate(events):
            if type(event) is FrameBroken:
                self._is_broken = True
                return [*events[:index], Failed(fault_of_broken_frame(event)), Ended()]
        return events

    def _note(self, event: StreamEvent) -> None:
        """Report what no other dialect can carry, and what cannot be read."""
        if isinstance(event, FrameBroken) and not self._is_verbatim:
            self.report.lose(event.at, "a frame", f"it cannot be read: {event.message}", "content")
        elif not self._is_foreign:
            return
        elif isinstance(event, (FieldReceived, PartReceived, CitationReceived)):
            self._losses.of_event(event)
        elif isinstance(event, UsageReceived):
            lose_counts(event.usage, self._target, self.report)
        else:
            lose_call_kind(event, dialect(self._target), self.report)


def write_canonical(request: Request) -> bytes:
    """The request as JSON; unset fields are left out."""
    return encode(msgspec.to_builtins(request))


def read_canonical(data: bytes) -> Request:
    """The request in such JSON."""
    document = decode(data)
    if isinstance(document, dict) and not isinstance(document.get("messages"), list):
        raise wrong(document.get("messages"), "/messages", "a list")
    try:
        return msgspec.convert(document, Request)
    except (msgspec.ValidationError, UnicodeError) as error:
        raise Fault(
            Code.INVALID_REQUEST,
            f"not a canonical request: {error}",
            hint="Make one with `sightline translate request --to canonical` and change that.",
        ) from None


class EventLines:
    """Writes each event as one line of JSON."""

    def feed(self, event: StreamEvent) -> bytes:
        """The line of one event."""
        return encode(msgspec.to_builtins(event, enc_hook=_fault)) + b"\n"


class FoldedReply:
    """Writes nothing until the end, then the whole reply."""

    def __init__(self) -> None:
        self._fold = Fold()

    def feed(self, event: StreamEvent) -> bytes:
        """The reply after the last event; otherwise empty."""
        self._fold.add(event)
        return encode(reply_json(self._fold.reply)) + b"\n" if isinstance(event, Ended) else b""


VIEWS: Mapping[str, Callable[[], StreamWriting]] = {"events": EventLines, "reply": FoldedReply}


def _fault(value: object) -> object:
    """Encode faults: they are exceptions, the only objects in an event that are not plain values."""
    assert isinstance(value, Fault)
    return {"code": value.code.value, "message": value.message}


@dataclass(frozen=True, slots=True)
class RequestTranslation:
    """The body in the target's dialect, the report of what it lacks, and the request that was read."""

    data: bytes
    report: Report
    request: Request


@dataclass(frozen=True, slots=True)
class ReplyTranslation:
    """The body in the target's dialect, the report of what it lacks, and the reply that was read."""

    data: bytes
    report: Report
    reply: Reply


def translate_request(
    data: bytes, source: str, target: str, *, model: str = "", settings: Target | None = None
) -> RequestTranslation:
    """Translate a request body from one dialect to another. Between equal dialects the bytes stay as they are."""
    settings = settings or Target()
    wire = WireDocument(data)
    is_same = source == target and settings.system == "in_place"
    try:
        request = dialect(source).read_request(wire.document)
    except Fault:
        if not is_same:
            raise
        request = _unread(wire.document, source)  # the provider decides what it takes
    renames = bool(model) and request.model != model and not dialect(source).model_in_path
    if is_same and not (renames and isinstance(wire.document, list)):
        if renames:
            is_there = isinstance(wire.document, dict) and "model" in wire.document
            wire = wire.set("/model", model) if is_there else wire.insert("/model", model)
        return RequestTranslation(wire.data, Report(), request)
    if model:
        request = msgspec.structs.replace(request, model=model)
    report = Report()
    return RequestTranslation(write_request(request, target, settings, report), report, request)


def _unread(document: Json, source: str) -> Request:
    """What is known of a request that cannot be read: its model."""
    model = document.get("model") if isinstance(document, dict) else None
    return Request(model if isinstance(model, str) else "", dialect=source)


def write_request(request: Request, target: str, settings: Target, report: Report, *, with_url: bool = False) -> bytes:
    """The body of a canonical request, whichever dialect it was read from; `with_url` if the caller writes the URL too.

    What the model of `settings` refuses is left out, unless the request is of the target's own dialect: then the client
    decides.
    """
    writing = dialect(target)
    source = dialect(request.dialect) if request.dialect and request.dialect != target else None
    if source is not None:
        UnreadLosses(source.unread, target, report).of_request(request)
        request = without_private_lines(with_own_signatures(request, settings.provider), source, report)
        if not writing.carries_parts:
            messages = with_words(request.messages, report, target)
            request = msgspec.structs.replace(request, messages=messages)
        request = with_wire_names(request, writing.names, report, target, keeps_kinds=writing.keeps_kinds)
    if request.dialect != target and settings.facts is not None:
        request = fit_to_model(request, settings.facts, writing.reasoning, report)
    if source is not None:
        request = ask_for_reasoning(request, source, writing, settings.facts)
    body = writing.write_request(request, settings, report)
    if writing.model_in_path and request.dialect != target and not with_url:
        for name, value in (("model", request.model), ("stream", request.options.stream)):
            if value:
                place = request.options.place(name)
                report.lose(place, name, f"{target} says it in the URL, not in the body", "identity")
    return encode(body)


def translate_reply(
    data: bytes,
    source: str,
    target: str,
    *,
    client: Client | None = None,
    request: Request | None = None,
    model: str = "",
) -> ReplyTranslation:
    """Translate a whole reply from one dialect to another, or to `events` or `reply`.

    `request` is the client's own: calls get back the tool names that the client knows. `model` is the name that the
    reply reports, if it is not the provider's.
    """
    reading = dialect(source)
    document = decode(data)
    plain = None if model or target in VIEWS else read_plain_document(reading, document)
    read = reading.read_reply(document) if plain is None else []  # a plain reply needs no events
    kinds = set(map(type, read))
    has_calls = ToolCallBegun in kinds
    events = restore_names(read, request, reading.names) if has_calls else read
    if model:
        events = [msgspec.structs.replace(e, model=model) if isinstance(e, Started) else e for e in events]
    reply = plain or fold(events, source)
    report = Report()
    if source == target:
        return ReplyTranslation(data, report, reply)
    if target in VIEWS:
        view = VIEWS[target]()
        return ReplyTranslation(b"".join(view.feed(event) for event in events), report, reply)
    writing = dialect(target)
    for event in read if has_calls else ():
        lose_call_kind(event, writing, report)
    UnreadLosses(reading.unread, target, report).of_reply(reply)
    client = client or Client()
    shown = reply
    if client.provider and not kinds.isdisjoint(MARKED):
        marker = OriginMarker(client.provider)
        shown = fold([marker.mark(event) for event in events], source)
    if client.reply_id:
        shown = msgspec.structs.replace(shown, id=client.reply_id)
    if client.request is not request:
        client = replace(client, request=request)
    return ReplyTranslation(encode(writing.write_reply(shown, client, report)), report, reply)


def restore_names(events: list[StreamEvent], request: Request | None, rule: NameRule = ANY_NAME) -> list[StreamEvent]:
    """The events in the terms of the client's request; `rule` is that of the provider that made them."""
    if request is None:
        return events
    restorer = NameRestorer(request, rule)
    return [restored for event in events for restored in restorer.feed(event)]
