"""Writes a raw reply: an assistant message with its finish and its usage; or deltas as the events arrive, then the end.

Beside its delta a frame has the whole text of its choice so far, as an editor's callback gets it, and the arguments of
a call are shown as they grow, each time from their start. Both make the size of a stream quadratic in its length; it is
a format for an editor on the same machine, not for a network. A delta names its `part` if the reader could not derive
it from the frame before, so that a stream results in the same message as the whole reply.
"""

from typing import assert_never

import msgspec

from sightline.dialects.dialect import Client
from sightline.dialects.fields import compact
from sightline.dialects.openai_chat.choices import CallIds, write_token
from sightline.dialects.openai_chat.reply_write import DONE_FRAME, write_frame
from sightline.dialects.openai_chat.usage import write_usage
from sightline.dialects.raw.content import (
    ContentWriter,
    OwnFields,
    carrier_kind,
    lose_order,
    without_place,
    write_beside,
    write_signature,
)
from sightline.dialects.raw.names import MARKER, ROLE_NUMBERS, error_object, write_finish
from sightline.dialects.streaming import PartEvent
from sightline.dialects.tool_names import as_function_arguments, flat_name
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
from sightline.model.fold import update_usage
from sightline.model.json import Json, JsonObject
from sightline.model.parts import Thinking, ToolCall
from sightline.model.reply import Choice, Reply, TokenLogprob, Usage
from sightline.model.report import Report


def write_reply(reply: Reply, client: Client, report: Report) -> JsonObject:
    """The reply as an assistant message; a failed reply has its parts so far and the error."""
    reply_id = reply.id or client.id
    first, *others = [_write_choice(choice, index, reply_id, report) for index, choice in enumerate(reply.choices)]
    document = first | compact(
        {
            "usage": None if reply.usage is None else write_usage(reply.usage, report),
            "model": reply.model or client.model or None,
            "id": reply.id or client.id or None,
            "created": reply.created or client.created or None,
            MARKER: reply.marker,
        }
    )
    if others:
        document["others"] = list(others)
    if reply.fault is not None:
        document["error"] = error_object(reply.fault)
    return document


def _write_choice(choice: Choice, index: int, reply_id: str, report: Report) -> JsonObject:
    writer, ids = ContentWriter(report, same=False), CallIds(index)

    def call_id(call: ToolCall, number: int) -> str:
        if not call.id:
            note_call_id(index, number, report)
        return ids.of(call.id, number, reply_id)

    content, calls = writer.split_calls(choice.parts, call_id)
    document: JsonObject = {"role": ROLE_NUMBERS["assistant"], "content": writer.parts(content)}
    if calls:
        document["toolCalls"] = calls
    if choice.logprobs:
        document["logprobs"] = write_logprobs(choice.logprobs)
    return document | write_finish(choice.finish, choice.detail, choice.stop_sequence)


def note_call_id(choice: int, number: int, report: Report) -> None:
    """Report an id that was made for a call without one."""
    holder = f"/others/{choice - 1}" if choice else ""
    report.add(
        f"{holder}/toolCalls/{number}/id", "id of a tool call", "a call and its result must share an id", "identity"
    )


def write_logprobs(tokens: tuple[TokenLogprob, ...]) -> JsonObject:
    """The log probabilities of the tokens."""
    return {"content": [write_token(token) for token in tokens]}


_WHOLE_PART = "part"
"""The kind of parts that arrive as a whole, so that each is a new part."""


class _Choice:
    """What has been written of one choice, and so what its reader assumes."""

    def __init__(self, index: int) -> None:
        self.ids = CallIds(index)
        self.kind = ""
        self.current = -1
        self.last = -1
        self.kinds: dict[int, str] = {}
        self.calls: dict[int, ToolCall] = {}
        self.finished: Finished | None = None
        self.text = ""

    def place(self, kind: str, part: int) -> JsonObject:
        """The number of the part, if the reader would assume another one."""
        implied = self.current if kind == self.kind and kind != _WHOLE_PART else self.last + 1
        self.kind, self.current, self.last = kind, part, max(self.last, part)
        self.kinds.setdefault(part, kind)
        return {} if implied == part else {"part": part}


class RawStreamWriter:
    """Writes events as frames."""

    def __init__(self, client: Client, report: Report) -> None:
        self._client = client
        self._report = report
        self._content = ContentWriter(report, same=False)
        self._started = Started()
        self._choices: dict[int, _Choice] = {}
        self._usage: Usage | None = None
        self._has_failed = False

    def feed(self, event: StreamEvent) -> bytes:  # noqa: C901 - one flat case per event is the readable form
        """The frames of the next event."""
        match event:
            case TextReceived():
                return self._text(event)
            case ArgumentsReceived(part, fragment, choice):
                calls = self._choice(choice).calls
                calls[part] = msgspec.structs.replace(calls[part], arguments=calls[part].arguments + fragment)
                updates: list[Json] = [_entry(calls[part], part)]
                return self._frame(choice, {"copilotToolCallStreamUpdates": updates}) if fragment else b""
            case ThinkingReceived(text=text):
                thinking: JsonObject = {"text": text, "summary": event.summary or None, "piece": event.piece or None}
                return self._delta(event, "thinking", {"thinking": compact(thinking)}, event.at)
            case ToolCallBegun():
                return self._begin(event)
            case RefusalReceived(text=text):
                return self._delta(event, "refusal", {"refusal": text}, event.at)
            case SignatureReceived():
                return self._sign(event)
            case CitationReceived(citation=citation):
                return self._beside(event, OwnFields(citations=without_place((citation,))))
            case LogprobsReceived(tokens, choice):
                return self._frame(choice, {"logprobs": write_logprobs(tokens)})
            case PartReceived(value=value):
                written: list[Json] = [self._content.part(value)]
                kind = "thinking" if isinstance(value, Thinking) else _WHOLE_PART
                self._choice(event.choice).kinds.setdefault(event.part, kind)
                return self._delta(event, _WHOLE_PART, {"parts": written}, value.at)
            case Started():
                return self._start(event)
            case UsageReceived(usage):
                self._usage = update_usage(self._usage, usage)
            case Finished(choice=choice):
                self._choice(choice).finished = event
                return self._calls(choice)
            case Failed(fault):
                self._has_failed = True
                return write_frame({"error": error_object(fault)})
            case Ended():
                return b"" if self._has_failed else self._end()
            case ToolCallCompleted() | FieldReceived() | FrameBroken():
                pass
            case unreachable:
                assert_never(unreachable)
        return b""

    def _choice(self, index: int) -> _Choice:
        choice = self._choices.get(index)
        if choice is None:
            choice = self._choices[index] = _Choice(index)
        return choice

    def _start(self, event: Started) -> bytes:
        """Write what is newly known of the id, model and time."""
        new: JsonObject = {
            key: value
            for key in ("id", "model", "created")
            if (value := getattr(event, key)) and not getattr(self._started, key)
        }
        self._started = msgspec.structs.replace(self._started, **new, marker=event.marker or self._started.marker)
        return write_frame(new) if new else b""

    def _frame(self, index: int, fields: JsonObject) -> bytes:
        """A delta of one choice, after its whole text."""
        return write_frame({"text": self._choice(index).text, "index": index, "delta": {"text": "", **fields}})

    def _text(self, event: TextReceived) -> bytes:
        choice = self._choice(event.choice)
        if event.text:
            choice.text += event.text
            return self._delta(event, "text", {"text": event.text}, event.at)
        if event.part in choice.kinds:
            return b""
        self._note_order(event, event.at)
        choice.place("text", event.part)  # a part without text is known only by its number
        return self._frame(event.choice, {"part": event.part})

    def _delta(self, event: PartEvent, kind: str, fields: JsonObject, at: str) -> bytes:
        self._note_order(event, at)
        place = self._choice(event.choice).place(kind, event.part)
        return self._frame(event.choice, {**fields, **place})

    def _note_order(self, event: PartEvent, at: str) -> None:
        choice = self._choice(event.choice)
        if choice.calls and event.part not in choice.kinds and event.part > min(choice.calls):
            lose_order(at, self._report)

    def _beside(self, event: PartEvent, beside: OwnFields) -> bytes:
        """Write something about a part that has begun, without changing its kind."""
        choice = self._choice(event.choice)
        place: JsonObject = {} if event.part == choice.current else {"part": event.part}
        choice.current = event.part
        return self._frame(event.choice, {**write_beside(beside), **place})

    def _sign(self, event: SignatureReceived) -> bytes:
        choice = self._choice(event.choice)
        call = choice.calls.get(event.part)
        if call is not None:
            choice.calls[event.part] = msgspec.structs.replace(
                call, signature=event.signature, signed_by=event.signed_by
            )
            return b""
        if choice.kinds.get(event.part, "thinking") != "thinking":
            return self._beside(event, OwnFields(event.signature, event.signed_by))
        thinking: JsonObject = {"id": event.id, "encrypted": write_signature(event.signature, event.signed_by)}
        if event.part not in choice.kinds:
            thinking["text"] = ""
        return self._delta(event, "thinking", {"thinking": thinking}, "")

    def _begin(self, event: ToolCallBegun) -> bytes:
        choice = self._choice(event.choice)
        number = len(choice.calls)
        if not event.id:
            note_call_id(event.choice, number, self._report)
        call_id = choice.ids.of(event.id, number, self._started.id or self._client.id)
        choice.calls[event.part] = ToolCall(
            call_id, event.name, "", kind=event.kind, namespace=event.namespace, item=event.item
        )
        entry: JsonObject = {"name": flat_name(event.name, event.namespace), "id": call_id, "part": event.part}
        entry |= write_beside(OwnFields(item=event.item, kind=carrier_kind(event.kind)))
        return self._frame(event.choice, {"beginToolCalls": [entry]})

    def _calls(self, index: int) -> bytes:
        """All calls of a choice at once, in order, delivered at its end."""
        calls = self._choice(index).calls
        entries: list[Json] = [
            _entry(calls[part], part) | write_beside(OwnFields(calls[part].signature, calls[part].signed_by))
            for part in sorted(calls)
        ]
        return self._frame(index, {"copilotToolCalls": entries}) if entries else b""

    def _end(self) -> bytes:
        """Write the end of each choice, the counts and whatever else is missing with the last, and `[DONE]`."""
        frames: list[JsonObject] = [
            {
                "index": index,
                **write_finish(choice.finished.finish, choice.finished.detail, choice.finished.stop_sequence),
            }
            for index, choice in self._choices.items()
            if choice.finished is not None
        ]
        if self._usage is not None and self._client.include_usage:
            frames[-1]["usage"] = write_usage(self._usage, self._report)
        for key, known, fallback in (
            ("id", self._started.id, self._client.id),
            ("model", self._started.model, self._client.model),
            ("created", self._started.created, self._client.created),
        ):
            if fallback and not known:
                frames[-1][key] = fallback
        marker = self._started.marker
        marked = self._frame(min(self._choices), {MARKER: marker}) if marker else b""
        return b"".join([marked, *map(write_frame, frames), DONE_FRAME])


def _entry(call: ToolCall, part: int) -> JsonObject:
    """A call with its arguments so far."""
    return {
        "name": flat_name(call.name, call.namespace),
        "arguments": as_function_arguments(call) or "{}",
        "id": call.id,
        "part": part,
    }
