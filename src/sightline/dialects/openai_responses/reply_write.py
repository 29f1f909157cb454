"""Writes a Responses reply, whole or as a stream: the output is the same, and a stream is closed by one terminal event.

A response repeats its request: the API, and the open specification that follows it, require every setting in each
`response` object, with its default if the request does not set it.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from sightline.dialects.conversation import plain_text
from sightline.dialects.dialect import Client, Target
from sightline.dialects.fields import as_object, object_at, objects_in
from sightline.dialects.losses import lose_choices, lose_finish, lose_partial
from sightline.dialects.openai_chat.errors import write_error
from sightline.dialects.openai_responses.names import NAME, write_failure
from sightline.dialects.openai_responses.output import Output
from sightline.dialects.openai_responses.request import write_request
from sightline.dialects.openai_responses.snapshots import write_usage
from sightline.dialects.streaming import PartEvent, Sequencer, finish_of, truncation_fault
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
from sightline.model.fold import part_events, update_usage
from sightline.model.json import Json, JsonObject
from sightline.model.parts import Part, Thinking
from sightline.model.reply import Reply, Usage
from sightline.model.report import Report
from sightline.model.request import Request
from sightline.wire.jsontext import encode
from sightline.wire.sse import Frame, encode_frame

_DEFAULTS: Mapping[str, Json] = {
    "instructions": None,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "prompt_cache_key": None,
    "safety_identifier": None,
    "service_tier": "default",
    "store": True,
    "background": False,
    "temperature": 1.0,
    "top_p": 1.0,
    "top_logprobs": 0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
    "tool_choice": "auto",
    "tools": [],
    "truncation": "disabled",
    "metadata": {},
    "user": None,
}
_FUNCTION: JsonObject = {"description": None, "parameters": None, "strict": True}
_SCHEMA: JsonObject = {"description": None, "schema": None, "strict": False}


def echo(request: Request) -> JsonObject:
    """The settings of a request of this dialect as its response repeats them; empty for any other request."""
    if request.dialect != NAME:
        return {}
    asked = as_object(write_request(msgspec.structs.replace(request, messages=()), Target(), Report()), "")
    first = request.messages[0] if request.messages else None
    asked["instructions"] = plain_text(first.parts) if first and first.at == "/instructions" else None
    shown: JsonObject = {
        name: default if asked.get(name) is None else asked[name] for name, default in _DEFAULTS.items()
    }
    shown["tools"] = [
        {**_FUNCTION, **tool} if tool.get("type") == "function" else tool for _, tool in objects_in(shown["tools"])
    ]
    output = {**object_at(asked, "text")}
    chosen: JsonObject = object_at(output, "format") or {"type": "text"}
    output["format"] = {**_SCHEMA, **chosen} if chosen.get("type") == "json_schema" else chosen
    reasoning: JsonObject = {"effort": None, "summary": None, **object_at(asked, "reasoning")}
    return {**shown, "text": output, "reasoning": reasoning}


DEFAULT_ID = "resp_0"

_REASONS = {"length": "max_output_tokens", "content_filter": "content_filter"}


@dataclass(frozen=True, slots=True)
class Ending:
    """How a reply ends: its status, why it is incomplete, what went wrong."""

    status: str
    reason: str | None = None
    fault: Fault | None = None


@dataclass(slots=True)
class Envelope:
    """The fields around the output of a reply. `echo` is what it repeats of its request, if that is known."""

    id: str
    model: str
    created: int
    echo: JsonObject

    @property
    def shown_id(self) -> str:
        """The id that the client gets."""
        return self.id or DEFAULT_ID

    def body(self, output: list[Json], ending: Ending, usage: JsonObject | None) -> JsonObject:
        """The `response` object."""
        is_completed = ending.status == "completed"
        time: JsonObject = {"completed_at": self.created if is_completed else None} if self.echo else {}
        return {
            "id": self.shown_id,
            "object": "response",
            "created_at": self.created,
            "status": ending.status,
            "error": None if ending.fault is None else write_failure(ending.fault),
            "incomplete_details": None if ending.reason is None else {"reason": ending.reason},
            "model": self.model,
            "output": output,
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            "usage": usage,
            **time,
            **self.echo,
        }

    def whole(self, output: list[Json], ending: Ending, usage: Usage | None, report: Report) -> JsonObject:
        """The last `response` object; fields that are there only because the API requires them are reported."""
        why = f"{NAME} demands an echo of the request"
        if self.echo:
            report.add("", "the settings of the request, and a time of completion", why, "identity")
        else:
            for name, value in (("parallel_tool_calls", "true"), ("tool_choice", "auto"), ("tools", "none")):
                report.add(f"/{name}", f"{name}: {value}", why, "identity")
        unknown = (("/id", self.id, DEFAULT_ID), ("/model", self.model, "''"), ("/created_at", self.created, "0"))
        for pointer, known, invented in unknown:
            if not known:
                report.add(pointer, f"{pointer[1:]}: {invented}", f"{NAME} demands one", "identity")
        return self.body(output, ending, None if usage is None else write_usage(usage, report))


def write_reply(reply: Reply, client: Client, report: Report) -> JsonObject:
    """The reply as a `response`. A failed one has that status and what had arrived; an error body if nothing had."""
    if reply.fault is not None and not _has_begun(reply):
        lose_partial(reply, NAME, report)
        return write_error(reply.fault)[1]
    choice = reply.choice
    lose_choices(reply, NAME, report)
    writer = ResponsesStreamWriter(client, report, is_streamed=False)
    writer.take(Started(reply.id, reply.model, reply.created))
    if choice.logprobs:
        writer.take(LogprobsReceived(choice.logprobs))
    for number, part in enumerate(choice.parts):
        for event in _events_of(part, number):
            writer.take(event)
    return writer.response(finish_of(choice), reply.fault, reply.usage)


def _has_begun(reply: Reply) -> bool:
    """Whether there was a response before it failed: part of it has arrived, or it has an id of this API."""
    return any(choice.parts for choice in reply.choices) or (reply.dialect == NAME and bool(reply.id))


def _events_of(part: Part, number: int) -> list[StreamEvent]:
    """A part as events. A reasoning item has the id that it is signed with, so the signature comes first."""
    events = part_events(part, number)
    if not isinstance(part, Thinking) or part.redacted:
        return events
    signing = SignatureReceived(number, part.signature, part.signed_by or "", id=part.id)
    return [signing, *(event for event in events if isinstance(event, ThinkingReceived))]


def ending_of(finished: Finished | None, fault: Fault | None, report: Report, *, has_refusal: bool) -> Ending:
    """How the reply ended; reports what this dialect cannot express about it."""
    if fault is not None:
        return Ending("failed", fault=fault)
    if finished is None:
        return Ending("in_progress")
    lose_finish(finished, NAME, report)
    if finished.finish in _REASONS:
        return Ending("incomplete", _REASONS[finished.finish])
    if finished.finish == "refusal" and not has_refusal:
        why = f"{NAME} tells a refusal by its words; without them a filtered answer is the nearest"
        report.lose(finished.at, "refusal", why, "identity")
        return Ending("incomplete", _REASONS["content_filter"])
    return Ending("completed")


_NUMBER = b'"sequence_number":'


class ResponsesStreamWriter(TextFraming):
    """Writes events as frames, numbered from 0; unless `is_streamed`, only the last `response` is made."""

    def __init__(self, client: Client, report: Report, *, is_streamed: bool = True) -> None:
        self._is_streamed = is_streamed
        self._client = client
        self._report = report
        self._sequencer = Sequencer(report, NAME)
        self._frames: list[JsonObject] = []
        self._number = 0
        self._open: tuple[Envelope, Output] | None = None
        self._started = Started()
        self._usage: Usage | None = None
        self._awaiting_signature: ToolCallBegun | TextReceived | None = None
        self._written_parts: dict[int, str] = {}
        """The places in the source of the parts that have begun to be written."""
        self._finished: Finished | None = None
        self._fault: Fault | None = None
        self._is_over = False

    def feed(self, event: StreamEvent) -> bytes:
        """The frames of the next event; nothing follows the terminal event."""
        if self._is_over:
            return b""
        for placed in self._sequencer.feed(event):
            self.take(placed)
        frames, self._frames = self._frames, []
        return b"".join([_encode(frame) for frame in frames])

    def text_frame(self, event: GrowingText) -> bytes | None:
        """The frame of one more piece of text; None for reasoning, which is written in full."""
        if not isinstance(event, TextReceived):
            return None
        words = self._output().open_message().next_words(event.text)
        return _encode(self._frame("response.output_text.delta", words))

    def note_text(self, event: GrowingText) -> None:
        """Record the text, because all of it is repeated at its end."""
        self._output().open_message().note_words(event.text)

    def write_pieces(self, opening: bytes, pieces: list[bytes], closing: bytes) -> bytes:
        """The frames, each with its sequence number."""
        before, _, behind = opening.partition(_NUMBER)
        before, behind = before + _NUMBER, b"," + behind.partition(b",")[2]
        first, self._number = self._number, self._number + len(pieces)
        frames = [b"%b%d%b%b%b" % (before, first + n, behind, each, closing) for n, each in enumerate(pieces)]
        return b"".join(frames)

    def take(self, event: StreamEvent) -> None:
        """Make the frames of the next event; events must arrive in an order without overlaps."""
        match event:
            case Started():
                self._start(event)
            case UsageReceived(usage):
                self._usage = update_usage(self._usage, usage)
            case Finished():
                self._finished = event
            case Failed(fault):
                self._fault = fault
            case Ended():
                # One terminal event, with the whole response. If none arrives, Codex reconnects five times and then
                # fails; it treats `response.incomplete` as an error (codex 0.166).
                self._is_over = True
                if self._finished is None and self._fault is None:
                    self._fault = truncation_fault()
                response = self.response(self._finished, self._fault, self._usage)
                self._emit(f"response.{response['status']}", {"response": response})
            case FieldReceived() | FrameBroken():
                pass
            case SignatureReceived() if (
                self._awaiting_signature is not None and self._awaiting_signature.part == event.part
            ):
                # A call has no field for a signature, so that is written first; an empty text consists only of its
                # signature.
                self._output().sign_alone(event.signature, event.signed_by)
                if isinstance(self._awaiting_signature, TextReceived):
                    self._awaiting_signature = None
                self._release()
            case ToolCallBegun():
                self._release()
                self._awaiting_signature = event
            case TextReceived(part, "") if part not in self._written_parts:
                self._release()
                self._awaiting_signature = event
            case _:
                self._release()
                self._write(event)

    def response(self, finished: Finished | None, fault: Fault | None, usage: Usage | None) -> JsonObject:
        """The last `response` object, with everything that was written."""
        self._release()
        around, output = self._open_output()
        ending = ending_of(finished, fault, self._report, has_refusal=output.has_refusal)
        output.end("incomplete" if fault is not None else ending.status)
        return around.whole(output.items, ending, usage, self._report)

    def _write(self, event: PartEvent | LogprobsReceived) -> None:
        output = self._output()
        match event:
            case TextReceived(part, text):
                self._written_parts[part] = event.at
                output.text(part, text)
            case RefusalReceived(part, text):
                self._written_parts[part] = event.at
                output.refusal(part, text)
            case ThinkingReceived(part, text):
                output.thinking(part, text, piece=event.piece, summary=event.summary)
            case ArgumentsReceived(_, fragment):
                output.arguments(fragment)
            case ToolCallCompleted(extras=extras):
                output.complete(extras)
            case CitationReceived(part, citation):
                output.cite(part, citation)
            case LogprobsReceived(tokens):
                output.logprobs(tokens)
            case PartReceived(part, value):
                self._written_parts[part] = value.at
                output.part(value)
            case ToolCallBegun(part):
                self._written_parts[part] = event.at
                output.call(event)
            case _:
                if event.part in self._written_parts:
                    # Text is sent before its signature is known; after it, the signature would belong to something
                    # else.
                    why = f"{NAME} has no field for it on a part that comes in pieces"
                    self._report.lose(self._written_parts[event.part], "signature", why, "identity")
                else:
                    output.sign(event)

    def _release(self) -> None:
        """Write the event that was held back for a signature."""
        held, self._awaiting_signature = self._awaiting_signature, None
        if held is not None:
            self._write(held)

    def _start(self, event: Started) -> None:
        known = self._started
        self._started = Started(known.id or event.id, known.model or event.model, known.created or event.created)
        if self._open is not None:
            around = self._open[0]
            around.model = around.model or event.model or ""
            around.created = around.created or event.created or 0
        elif self._started.id:
            self._open_output()

    def _output(self) -> Output:
        return self._open_output()[1]

    def _open_output(self) -> tuple[Envelope, Output]:
        """The envelope and the output. The first call fixes the id and writes the events that open a stream."""
        if self._open is None:
            started, client = self._started, self._client
            repeated = {} if client.request is None else echo(client.request)
            created = client.created if started.created is None else started.created
            around = Envelope(started.id or client.id, started.model or client.model, created, repeated)
            self._open = around, Output(around.shown_id, self._report, self._emit)
            for kind in ("response.created", "response.in_progress") if self._is_streamed else ():
                self._emit(kind, {"response": around.body([], Ending("in_progress"), None)})
        return self._open

    def _emit(self, kind: str, fields: JsonObject) -> None:
        if self._is_streamed:
            self._frames.append(self._frame(kind, fields))
            self._number += 1

    def _frame(self, kind: str, fields: JsonObject) -> JsonObject:
        return {"type": kind, "sequence_number": self._number, **fields}


def _encode(frame: JsonObject) -> bytes:
    return encode_frame(Frame(encode(frame), str(frame["type"])))
