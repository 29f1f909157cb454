"""Writes Chat Completions replies, whole or as chunks, which end with the usage if requested and `[DONE]`."""

from dataclasses import dataclass, field

import msgspec

from sightline.dialects.dialect import Client
from sightline.dialects.fields import compact, object_at, objects_in, rest
from sightline.dialects.losses import describe, lose_finish, lose_partial, lose_pieces, thinking_words
from sightline.dialects.openai_chat.choices import (
    CALL,
    THOUGHT,
    WORDS,
    CallIds,
    Order,
    write_citation,
    write_finish,
    write_token,
)
from sightline.dialects.openai_chat.errors import error_object, write_error
from sightline.dialects.openai_chat.names import GEMINI, NAME, REDACTED, SIGNATURE, SIGNATURE_ID
from sightline.dialects.openai_chat.usage import write_usage
from sightline.dialects.signatures import wrap
from sightline.dialects.streaming import finish_of
from sightline.dialects.text_runs import GrowingText, TextFraming
from sightline.dialects.tool_names import flat_name
from sightline.model.events import (
    ArgumentsReceived,
    CitationReceived,
    Ended,
    Failed,
    Finished,
    LogprobsReceived,
    PartReceived,
    RefusalReceived,
    SignatureReceived,
    Started,
    StreamEvent,
    TextReceived,
    ThinkingReceived,
    ToolCallBegun,
    UsageReceived,
)
from sightline.model.fold import part_events, update_usage
from sightline.model.json import JsonObject
from sightline.model.parts import Audio, Inline, Opaque, Refusal, Text, Thinking, ToolKind
from sightline.model.reply import Reply, TokenLogprob, Usage
from sightline.model.report import Report
from sightline.wire.jsontext import encode

DEFAULT_ID = "chatcmpl-0"


def write_reply(reply: Reply, client: Client, report: Report) -> JsonObject:
    """The reply as a `chat.completion`, or an error body if it failed."""
    if reply.fault is not None:
        lose_partial(reply, NAME, report)
        return write_error(reply.fault)[1]
    document = write_head("chat.completion", Started(reply.id, reply.model, reply.created), client, report)
    document["choices"] = [_write_choice(reply, index, client, report) for index in range(len(reply.choices))]
    if reply.usage is not None:
        document["usage"] = write_usage(reply.usage, report)
    return document


def _write_choice(reply: Reply, index: int, client: Client, report: Report) -> JsonObject:
    """One choice of a reply."""
    choice = reply.choices[index]
    finished = finish_of(choice)
    if finished is not None:
        is_own = reply.dialect == NAME
        lose_finish(msgspec.structs.replace(finished, detail=None) if is_own else finished, NAME, report)
    match choice.parts:
        case (Text(text, (), None, None),) if text:  # as in most replies, at a third of what joining deltas takes
            message: JsonObject = {"content": text, "refusal": None, "role": "assistant"}
        case _:
            message = _join_deltas(reply, index, client, report)
    return {
        "index": index,
        "message": message,
        "logprobs": write_logprobs(choice.logprobs) if choice.logprobs else None,
        "finish_reason": write_finish(choice.finish, has_refusal=Refusal in map(type, choice.parts)),
    }


def _join_deltas(reply: Reply, index: int, client: Client, report: Report) -> JsonObject:
    """The message that results from joining the deltas of a choice's parts."""
    choice = reply.choices[index]
    writer = ChatStreamWriter(client, report, "message")
    writer.feed(Started(reply.id, reply.model, reply.created))
    message: JsonObject = {"content": None, "refusal": None}
    calls: list[JsonObject] = []
    for number, part in enumerate(choice.parts):
        # Reasoning is written as a whole, because its events do not carry an id without a signature.
        is_thought = isinstance(part, Thinking)
        for event in [PartReceived(number, part, index)] if is_thought else part_events(part, number, index):
            delta = {**object_at(writer.entry(event), "delta")}
            for _, call in objects_in(delta.pop("tool_calls", None)):
                if isinstance(event, (ToolCallBegun, PartReceived)):
                    calls.append({})
                _grow(calls[-1], rest(call, _INDEX))
            _grow(message, delta)
    message = {**message, "role": "assistant", **writer.signature(index)}
    return {**message, "tool_calls": list(calls)} if calls else message


_INDEX = frozenset({"index"})


def _grow(holder: JsonObject, delta: JsonObject) -> None:
    """Add a delta to a message or to one of its calls."""
    for key, value in delta.items():
        before = holder.get(key)
        if isinstance(before, dict) and isinstance(value, dict):
            _grow(before, value)
        elif isinstance(before, list) and isinstance(value, list):
            before.extend(value)
        else:
            holder[key] = before + value if isinstance(before, str) and isinstance(value, str) else value


def write_head(kind: str, started: Started, client: Client, report: Report) -> JsonObject:
    """The id, time and model of a reply. All are required; what is not known is made up and reported."""
    head: JsonObject = {
        "id": started.id or client.id,
        "object": kind,
        "created": started.created or client.created,
        "model": started.model or client.model,
    }
    for key, made in (("id", DEFAULT_ID), ("created", 0), ("model", "")):
        if not head[key]:
            head[key] = made
            report.add(f"/{key}", f"{key} of the reply", f"{NAME} demands it and it is not known", "identity")
    return head


def write_logprobs(tokens: tuple[TokenLogprob, ...]) -> JsonObject:
    """The log probabilities of the tokens of the content."""
    return {"content": [write_token(token) for token in tokens], "refusal": None}


def write_signature(thoughts: list[Thinking], report: Report) -> JsonObject:
    """The fields for the signature of the reasoning; another dialect's is wrapped so that the client can send it back.

    A signature is valid only for the text that it was made for, so if several texts become one it is lost, and with it
    any block that consists only of a signature.
    """
    if len(thoughts) == 1 and (maker := thoughts[0].signed_by) is not None:
        signature, item = thoughts[0].signature, thoughts[0].id
        if maker == NAME:
            return compact({SIGNATURE: signature, SIGNATURE_ID: item})
        return {SIGNATURE: wrap(signature, maker, REDACTED if _is_withheld(thoughts[0]) else item)}
    for part in thoughts:
        if _is_withheld(part):
            report.lose(part.at, "redacted reasoning", f"{NAME} has a field for one block only", "content")
        elif part.signature is not None or part.id is not None:
            report.lose(part.at, "signature of the reasoning", f"{NAME} has a field for one only", "identity")
    return {}


def _is_withheld(part: Thinking) -> bool:
    return part.redacted and not thinking_words(part)


DONE_FRAME = b"data: [DONE]\n\n"


@dataclass(slots=True)
class _Choice:
    """What has been written of one choice."""

    ids: CallIds
    order: Order
    is_open: bool = False
    has_refused: bool = False
    has_finished: bool = False
    length: int = 0
    texts: dict[int, int] = field(default_factory=dict)
    """The text parts, and where each one begins in the content."""
    thoughts: dict[int, Thinking] = field(default_factory=dict)
    """The parts of reasoning, without their text."""
    thinks: tuple[int, bool, int] | None = None
    calls: dict[int, tuple[int, ToolKind]] = field(default_factory=dict)
    """The index and kind of each part that is a call."""
    call_count: int = 0
    places: dict[int, str] = field(default_factory=dict)
    """Where each part with text and each call begins in the source."""
    begun: dict[int, str] = field(default_factory=dict)
    """Where the parts begin that have no text yet."""

    def place(self, rank: int, part: int, at: str, *, has_words: bool = True) -> None:
        """Record that a part begins, or gets its first text."""
        at = self.begun.get(part) or at
        if not has_words:
            self.begun[part] = at
            return
        self.places[part] = at
        self.order.note(rank, part, at)


class ChatStreamWriter(TextFraming):
    """Writes events as chunks."""

    def __init__(self, client: Client, report: Report, holder: str = "delta") -> None:
        self._client = client
        self._report = report
        self._holder = holder
        """The key under which the reader finds the content, for the places of what is added."""
        self._started = Started()
        self._head: JsonObject | None = None
        self._choices: dict[int, _Choice] = {}
        self._usage: Usage | None = None
        self._has_failed = False

    def feed(self, event: StreamEvent) -> bytes:
        """The chunks of the next event."""
        entry = self.entry(event)
        if entry is not None:
            return write_frame(self._chunk([entry]))
        match event:
            case Started(started_id, model, created):
                known = self._started
                self._started = Started(known.id or started_id, known.model or model, known.created or created)
                self._head = None
            case UsageReceived(usage):
                self._usage = update_usage(self._usage, usage)
            case Failed(fault):
                self._has_failed = True
                return write_frame({"error": error_object(fault)})
            case Ended():
                return self._end()
            case _:  # that a call is complete, and unmodelled fields, have no form here
                pass
        return b""

    def entry(self, event: StreamEvent) -> JsonObject | None:
        """The entry of `choices` for an event of the content or for the end of a choice; None for any other event."""
        match event:
            case TextReceived(part, text, number) | RefusalReceived(part, text, number):
                choice = self._choice(number)
                if part not in choice.places:
                    choice.place(WORDS, part, event.at, has_words=bool(text))
                if isinstance(event, RefusalReceived):
                    choice.has_refused = True
                    return self._delta(number, {"refusal": text})
                choice.texts.setdefault(part, choice.length)
                choice.length += len(text)
                return self._delta(number, {"content": text})
            case ArgumentsReceived(part, fragment, number):
                index, kind = self._choice(number).calls[part]
                return self._call(number, index, {kind: {_words(kind): fragment}})
            case ThinkingReceived():
                return self._thinking_entry(event)
            case ToolCallBegun():
                return self._begin(event)
            case SignatureReceived():
                return self._signature_entry(event)
            case CitationReceived():
                return self._citation_entry(event)
            case LogprobsReceived(tokens, number):
                return {**self._delta(number, {}), "logprobs": write_logprobs(tokens)}
            case PartReceived():
                return self._part(event)
            case Finished():
                return self._finish(event)
            case _:
                return None

    def text_frame(self, event: GrowingText) -> bytes:
        """The chunk of one more piece."""
        key = "content" if isinstance(event, TextReceived) else "reasoning_content"
        return write_frame(self._chunk([self._delta(event.choice, {key: event.text})]))

    def note_text(self, event: GrowingText) -> None:
        """Record the length of the text, because citations state their place in it."""
        if isinstance(event, TextReceived):
            self._choice(event.choice).length += len(event.text)

    def _choice(self, number: int) -> _Choice:
        choice = self._choices.get(number)
        if choice is None:
            choice = self._choices[number] = _Choice(CallIds(number), Order(self._report))
        return choice

    def _chunk(self, choices: list[JsonObject]) -> JsonObject:
        if self._head is None:
            self._head = write_head("chat.completion.chunk", self._started, self._client, self._report)
        return {**self._head, "choices": list(choices)}

    def _delta(self, number: int, delta: JsonObject, finish: str | None = None) -> JsonObject:
        choice = self._choice(number)
        if not choice.is_open:
            choice.is_open = True
            delta = {"role": "assistant", **delta}
        return {"index": number, "delta": delta, "finish_reason": finish}

    def _call(self, number: int, index: int, fields: JsonObject) -> JsonObject:
        return self._delta(number, {"tool_calls": [{"index": index, **fields}]})

    def _thinking_entry(self, event: ThinkingReceived) -> JsonObject | None:
        """Pieces of reasoning, separated by a blank line as in a whole reply."""
        choice = self._choice(event.choice)
        thought = choice.thoughts.setdefault(event.part, Thinking(at=event.at))
        if not event.text:
            return None
        here, before = (event.part, event.summary, event.piece), choice.thinks
        choice.thinks = here
        if event.part not in choice.places:
            choice.place(THOUGHT, event.part, event.at or thought.at)
        elif before is not None and before[0] == event.part and before != here and (before[1] or event.summary):
            lose_pieces(thought.at, NAME, self._report)
        gap = "\n\n" if before is not None and before != here else ""
        return self._delta(event.choice, {"reasoning_content": gap + event.text})

    def _begin(self, event: ToolCallBegun) -> JsonObject:
        choice = self._choice(event.choice)
        index = choice.call_count
        choice.call_count += 1
        kind: ToolKind = "custom" if event.kind == "custom" else "function"
        choice.calls[event.part] = (index, kind)
        choice.place(CALL, event.part, event.at)
        if not event.id:
            place = f"/choices/{event.choice}/{self._holder}/tool_calls/{index}/id"
            self._report.add(place, "id of a tool call", "a call and its result must share an id", "identity")
        call_id = choice.ids.of(event.id, index, self._started.id or self._client.id)
        if event.item is not None:
            self._report.lose(event.at, "id of an item", f"{NAME} calls have one id", "identity")
        inner: JsonObject = {"name": flat_name(event.name, event.namespace), _words(kind): ""}
        return self._call(event.choice, index, {"id": call_id, "type": kind, kind: inner})

    def _signature_entry(self, event: SignatureReceived) -> JsonObject | None:
        choice = self._choice(event.choice)
        call = choice.calls.get(event.part)
        if call is not None and event.signed_by == GEMINI:
            index, kind = call
            content: JsonObject = {"google": {"thought_signature": event.signature}}
            # The vendor's own reader requires arguments in every fragment, even if they are empty.
            return self._call(event.choice, index, {kind: {_words(kind): ""}, "extra_content": content})
        if call is not None or event.part in choice.texts:
            place = choice.places.get(event.part) or choice.begun.get(event.part, "")
            self._report.lose(place, "signature", f"{NAME} has no field for it", "identity")
            return None
        thought = choice.thoughts.get(event.part, Thinking())
        signed = {"signature": event.signature, "signed_by": event.signed_by, "id": event.id}
        choice.thoughts[event.part] = msgspec.structs.replace(thought, **signed)
        # It is sent with the finish, when it is known that there is no other.
        return self._delta(event.choice, self.signature(event.choice)) if choice.has_finished else None

    def signature(self, number: int) -> JsonObject:
        """The fields for the signature of a choice's reasoning."""
        return write_signature(list(self._choice(number).thoughts.values()), self._report)

    def _citation_entry(self, event: CitationReceived) -> JsonObject | None:
        offset = self._choice(event.choice).texts.get(event.part, 0)
        annotation = write_citation(event.citation, offset)
        place = event.citation.at or self._choice(event.choice).places.get(event.part, "")
        if annotation is not None and event.citation.cited_text:
            self._report.lose(place, "the quotation of a citation", f"{NAME} has no field for it", "option")
        if annotation is None:
            self._report.lose(place, "citation", f"{NAME} cites URLs with their place only", "option")
            return None
        return self._delta(event.choice, {"annotations": [annotation]})

    def _part(self, event: PartReceived) -> JsonObject | None:
        """A part that arrives as a whole, in the pieces in which this dialect sends it."""
        number, part, value = event.choice, event.part, event.value
        choice = self._choice(number)
        match value:
            case Audio():
                data = value.source.data if isinstance(value.source, Inline) else None
                audio = compact({"id": value.id, "data": data, "transcript": value.transcript, **value.extras})
                return self._delta(number, {"audio": audio})
            case Thinking():
                words = thinking_words(value)
                entry = self._thinking_entry(ThinkingReceived(part, words, number, at=value.at)) if words else None
                if value.summary and words != value.summary[0]:
                    lose_pieces(value.at, NAME, self._report)
                choice.thoughts[part] = value
                return entry
            case Opaque(dialect="openai-chat", value=dict(call)) if "/tool_calls/" in value.at:
                choice.call_count += 1
                return self._call(number, choice.call_count - 1, call)
            case _:
                self._report.lose(value.at, describe(value), f"a {NAME} reply has none", "content")
                return None

    def _finish(self, event: Finished) -> JsonObject:
        choice = self._choice(event.choice)
        choice.has_finished = True
        lose_finish(event, NAME, self._report)
        word = write_finish(event.finish, has_refusal=choice.has_refused)
        return self._delta(event.choice, self.signature(event.choice), word)

    def _end(self) -> bytes:
        if self._has_failed:
            return b""
        if self._usage is None or not self._client.include_usage:
            return DONE_FRAME
        return write_frame({**self._chunk([]), "usage": write_usage(self._usage, self._report)}) + DONE_FRAME


def _words(kind: ToolKind) -> str:
    return "input" if kind == "custom" else "arguments"


def write_frame(document: JsonObject) -> bytes:
    """A frame without an event name."""
    return b"data: %b\n\n" % encode(document)
