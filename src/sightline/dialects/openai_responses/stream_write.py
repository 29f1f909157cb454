"""Writing a Responses stream: the same output as a whole reply, event by event, closed by one terminal event."""

from sightline.dialects.dialect import Client
from sightline.dialects.openai_responses.names import NAME
from sightline.dialects.openai_responses.output import Output
from sightline.dialects.openai_responses.reply_write import Ending, Envelope, end, envelope, lose_seal
from sightline.dialects.sequence import PartEvent, Sequencer
from sightline.dialects.streaming import truncation_fault
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
from sightline.model.fold import update_usage
from sightline.model.json import JsonObject
from sightline.model.report import Report
from sightline.model.usage import Usage
from sightline.wire.jsontext import encode
from sightline.wire.sse import Frame, encode_frame


class ResponsesStreamWriter:
    """Turns events into frames, numbered from 0."""

    def __init__(self, client: Client, report: Report) -> None:
        self._client = client
        self._report = report
        self._sequencer = Sequencer(report, NAME)
        self._frames: list[bytes] = []
        self._number = 0
        self._open: tuple[Envelope, Output] | None = None
        self._started = Started()
        self._usage: Usage | None = None
        self._held: ToolCallBegun | TextReceived | None = None
        self._spoken: set[int] = set()
        self._finished: Finished | None = None
        self._fault: Fault | None = None
        self._is_over = False

    def feed(self, event: StreamEvent) -> bytes:
        """The frames of one more event; nothing comes behind the terminal."""
        if self._is_over:
            return b""
        for placed in self._sequencer.feed(event):
            self._take(placed)
        frames, self._frames = self._frames, []
        return b"".join(frames)

    def _take(self, event: StreamEvent) -> None:
        match event:
            case Started():
                self._start(event)
            case UsageReceived(usage):
                self._usage = usage if self._usage is None else update_usage(self._usage, usage)
            case Finished():
                self._finished = event
            case Failed(fault):
                self._fault = fault
            case Ended():
                self._end()
            case FieldReceived() | FrameBroken():
                pass
            case SignatureReceived() if self._held is not None and self._held.part == event.part:
                self._seal(event)
            case ToolCallBegun():
                self._release()
                self._held = event
            case TextReceived(part, "") if part not in self._spoken:
                self._release()
                self._held = event
            case _:
                self._release()
                self._write(event)

    def _write(self, event: PartEvent | LogprobsReceived) -> None:
        output = self._output()
        match event:
            case TextReceived(part, text):
                self._spoken.add(part)
                output.text(part, text)
            case RefusalReceived(part, text):
                self._spoken.add(part)
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
                self._spoken.add(part)
                output.part(value)
            case ToolCallBegun(part):
                self._spoken.add(part)
                output.call(event)
            case _:
                self._sign(event, output)

    def _sign(self, seal: SignatureReceived, output: Output) -> None:
        if seal.part in self._spoken:
            lose_seal("", self._report)
        else:
            output.sign(seal)

    def _seal(self, seal: SignatureReceived) -> None:
        """A call has no field for a seal, so the seal goes first; an empty text is nothing but its seal."""
        self._output().seal_next(seal.signature, seal.signed_by)
        if isinstance(self._held, TextReceived):
            self._held = None
        self._release()

    def _release(self) -> None:
        """Write what was held back for a seal."""
        held, self._held = self._held, None
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
        """What is being written; the first time, with the events that open a stream. Its id is fixed from then on."""
        if self._open is None:
            started = self._started
            around = envelope(started.id, started.model, started.created, self._client)
            self._open = around, Output(around.shown_id, self._report, self._emit)
            for kind in ("response.created", "response.in_progress"):
                self._emit(kind, {"response": around.body([], Ending("in_progress"), None)})
        return self._open

    def _end(self) -> None:
        """One terminal event, with the whole response."""
        self._is_over = True
        self._release()
        if self._finished is None and self._fault is None:
            self._fault = truncation_fault()
        around, output = self._open_output()
        ending = end(output, self._finished, self._fault, self._report)
        self._emit(
            f"response.{ending.status}", {"response": around.whole(output.items, ending, self._usage, self._report)}
        )

    def _emit(self, kind: str, fields: JsonObject) -> None:
        document: JsonObject = {"type": kind, "sequence_number": self._number, **fields}
        self._number += 1
        self._frames.append(encode_frame(Frame(encode(document), kind)))
