"""Writing a Chat Completions stream: chunks as the events come, then usage if it was asked for, then `[DONE]`."""

from dataclasses import dataclass, field

import msgspec

from sightline.dialects.dialect import Client
from sightline.dialects.losses import describe
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
from sightline.dialects.openai_chat.errors import error_object
from sightline.dialects.openai_chat.names import GEMINI, NAME
from sightline.dialects.openai_chat.reply_write import (
    lose_finish,
    lose_pieces,
    note_call_id,
    thinking_words,
    write_audio,
    write_head,
    write_seal,
)
from sightline.dialects.openai_chat.usage import write_usage
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
from sightline.model.fold import update_usage
from sightline.model.json import JsonObject
from sightline.model.parts import Audio, Opaque, Refusal, Thinking, ToolKind
from sightline.model.reply import Choice
from sightline.model.report import Report
from sightline.model.usage import Usage
from sightline.wire.jsontext import encode

_DONE = b"data: [DONE]\n\n"


@dataclass(slots=True)
class _Choice:
    """What was written of one choice so far."""

    ids: CallIds
    order: Order
    is_open: bool = False
    has_refused: bool = False
    has_finished: bool = False
    length: int = 0
    texts: dict[int, int] = field(default_factory=dict)
    """The text parts, and where each one begins in the content."""
    thoughts: dict[int, Thinking] = field(default_factory=dict)
    """The parts of reasoning, without their words."""
    thinks: tuple[int, bool, int] | None = None
    calls: dict[int, tuple[int, ToolKind]] = field(default_factory=dict)
    """The index and kind of the call that a part is."""
    call_count: int = 0
    places: dict[int, str] = field(default_factory=dict)
    """Where each part with words and each call begins in the source."""
    begun: dict[int, str] = field(default_factory=dict)
    """Where those begin that have no words yet."""

    def place(self, rank: int, part: int, at: str, *, has_words: bool = True) -> None:
        """A part begins, or has begun and gets its first words."""
        at = self.begun.get(part) or at
        if not has_words:
            self.begun[part] = at
            return
        self.places[part] = at
        self.order.note(rank, part, at)


class ChatStreamWriter:
    """Turns events into chunks."""

    def __init__(self, client: Client, report: Report) -> None:
        self._client = client
        self._report = report
        self._started = Started()
        self._head: JsonObject | None = None
        self._choices: dict[int, _Choice] = {}
        self._usage: Usage | None = None
        self._has_failed = False

    def feed(self, event: StreamEvent) -> bytes:  # noqa: C901 - one flat case per event is the readable form
        """The chunks of one more event."""
        match event:
            case TextReceived(part, text, number):
                choice = self._choice(number)
                if part not in choice.places:
                    choice.place(WORDS, part, event.at, has_words=bool(text))
                choice.texts.setdefault(part, choice.length)
                choice.length += len(text)
                return self._delta(number, {"content": text})
            case ArgumentsReceived(part, fragment, number):
                index, kind = self._choice(number).calls[part]
                return self._call(number, index, {kind: {_words(kind): fragment}})
            case ThinkingReceived():
                return self._think(event)
            case ToolCallBegun():
                return self._begin(event)
            case RefusalReceived(part, text, number):
                choice = self._choice(number)
                choice.has_refused = True
                if part not in choice.places:
                    choice.place(WORDS, part, event.at, has_words=bool(text))
                return self._delta(number, {"refusal": text})
            case SignatureReceived():
                return self._sign(event)
            case CitationReceived():
                return self._cite(event)
            case LogprobsReceived(tokens, number):
                logprobs: JsonObject = {"content": [write_token(token) for token in tokens], "refusal": None}
                return self._delta(number, {}, logprobs=logprobs)
            case PartReceived():
                return self._part(event)
            case Started(started_id, model, created):
                known = self._started
                self._started = Started(known.id or started_id, known.model or model, known.created or created)
                self._head = None
            case UsageReceived(usage):
                self._usage = usage if self._usage is None else update_usage(self._usage, usage)
            case Finished():
                return self._finish(event)
            case Failed(fault):
                self._has_failed = True
                return _frame({"error": error_object(fault)})
            case Ended():
                return self._end()
            case _:  # that a call is complete, and what is not modelled, has no form here
                pass
        return b""

    def _choice(self, number: int) -> _Choice:
        choice = self._choices.get(number)
        if choice is None:
            choice = self._choices[number] = _Choice(CallIds(number), Order(self._report))
        return choice

    def _chunk(self, choices: list[JsonObject]) -> JsonObject:
        if self._head is None:
            self._head = write_head("chat.completion.chunk", self._started, self._client, self._report)
        return {**self._head, "choices": list(choices)}

    def _delta(
        self, number: int, delta: JsonObject, finish: str | None = None, logprobs: JsonObject | None = None
    ) -> bytes:
        choice = self._choice(number)
        if not choice.is_open:
            choice.is_open = True
            delta = {"role": "assistant", **delta}
        entry: JsonObject = {"index": number, "delta": delta, "finish_reason": finish}
        if logprobs is not None:
            entry["logprobs"] = logprobs
        return _frame(self._chunk([entry]))

    def _call(self, number: int, index: int, fields: JsonObject) -> bytes:
        return self._delta(number, {"tool_calls": [{"index": index, **fields}]})

    def _think(self, event: ThinkingReceived) -> bytes:
        """Pieces of reasoning, a blank line between them as in a whole reply."""
        choice = self._choice(event.choice)
        thought = choice.thoughts.setdefault(event.part, Thinking(at=event.at))
        if not event.text:
            return b""
        here, before = (event.part, event.summary, event.piece), choice.thinks
        choice.thinks = here
        if event.part not in choice.places:
            choice.place(THOUGHT, event.part, event.at or thought.at)
        elif before is not None and before[0] == event.part and before != here and (before[1] or event.summary):
            lose_pieces(thought.at, self._report)
        gap = "\n\n" if before is not None and before != here else ""
        return self._delta(event.choice, {"reasoning_content": gap + event.text})

    def _begin(self, event: ToolCallBegun) -> bytes:
        choice = self._choice(event.choice)
        index = choice.call_count
        choice.call_count += 1
        kind: ToolKind = "custom" if event.kind == "custom" else "function"
        choice.calls[event.part] = (index, kind)
        choice.place(CALL, event.part, event.at)
        if not event.id:
            note_call_id(f"/choices/{event.choice}/delta/tool_calls/{index}", self._report)
        call_id = choice.ids.of(event.id, index, self._started.id or self._client.id)
        if event.item is not None:
            self._report.lose(event.at, "id of an item", f"{NAME} calls have one id", "identity")
        inner: JsonObject = {"name": flat_name(event.name, event.namespace), _words(kind): ""}
        return self._call(event.choice, index, {"id": call_id, "type": kind, kind: inner})

    def _sign(self, event: SignatureReceived) -> bytes:
        choice = self._choice(event.choice)
        call = choice.calls.get(event.part)
        if call is not None and event.signed_by == GEMINI:
            index, kind = call
            content: JsonObject = {"google": {"thought_signature": event.signature}}
            # The vendor's own reader wants arguments in every fragment, be they empty.
            return self._call(event.choice, index, {kind: {_words(kind): ""}, "extra_content": content})
        if call is not None or event.part in choice.texts:
            self._report.lose(choice.places.get(event.part, ""), "signature", f"{NAME} has no field for it", "identity")
            return b""
        thought = choice.thoughts.get(event.part, Thinking())
        seal = {"signature": event.signature, "signed_by": event.signed_by, "id": event.id}
        choice.thoughts[event.part] = msgspec.structs.replace(thought, **seal)
        if not choice.has_finished:  # it goes out with the finish, when it is known that there is no other
            return b""
        return self._delta(event.choice, write_seal(list(choice.thoughts.values()), self._report))

    def _cite(self, event: CitationReceived) -> bytes:
        offset = self._choice(event.choice).texts.get(event.part, 0)
        annotation = write_citation(event.citation, offset)
        if annotation is None:
            self._report.lose(event.citation.at, "citation", f"{NAME} cites URLs with their place only", "option")
            return b""
        return self._delta(event.choice, {"annotations": [annotation]})

    def _part(self, event: PartReceived) -> bytes:
        """A part that comes whole, as the pieces in which this dialect tells it."""
        number, part, value = event.choice, event.part, event.value
        choice = self._choice(number)
        match value:
            case Audio():
                return self._delta(number, {"audio": write_audio(value)})
            case Thinking():
                words = thinking_words(value)
                data = self.feed(ThinkingReceived(part, words, number, at=value.at)) if words else b""
                if value.summary and words != value.summary[0]:
                    lose_pieces(value.at, self._report)
                choice.thoughts[part] = value
                return data
            case Opaque(dialect="openai-chat", value=dict(call)) if "/tool_calls/" in value.at:
                choice.call_count += 1
                return self._call(number, choice.call_count - 1, call)
            case _:
                self._report.lose(value.at, describe(value), f"a {NAME} reply has none", "content")
                return b""

    def _finish(self, event: Finished) -> bytes:
        choice = self._choice(event.choice)
        choice.has_finished = True
        finished = Choice(
            parts=(Refusal(),) if choice.has_refused else (),
            finish=event.finish,
            detail=event.detail,
            stop_sequence=event.stop_sequence,
            finish_at=event.at,
            stop_at=event.stop_at,
        )
        lose_finish(finished, self._report, own=False)
        seal = write_seal(list(choice.thoughts.values()), self._report)
        return self._delta(event.choice, seal, write_finish(finished))

    def _end(self) -> bytes:
        if self._has_failed:
            return b""
        if self._usage is None or not self._client.include_usage:
            return _DONE
        return _frame({**self._chunk([]), "usage": write_usage(self._usage, self._report)}) + _DONE


def _words(kind: ToolKind) -> str:
    return "input" if kind == "custom" else "arguments"


def _frame(document: JsonObject) -> bytes:
    return b"data: %b\n\n" % encode(document)
