"""Events to a Messages stream for a client of this API: one block after another, and exactly one end."""

from dataclasses import dataclass, field
from typing import Literal, assert_never

from sightline.dialects.anthropic.blocks import arguments_object, write_citation
from sightline.dialects.anthropic.errors import error_body
from sightline.dialects.anthropic.names import NAME
from sightline.dialects.anthropic.reply_write import (
    add_uncounted,
    call_id_for,
    identity_of,
    is_explanation,
    keep,
    lose_arguments,
    lose_call_form,
    lose_created,
    lose_logprobs,
    lose_refusal,
    lose_signature,
    note_signature,
    reply_blocks,
    signature_block,
    signature_text,
    thinking_block,
    tool_use_block,
    write_finish,
)
from sightline.dialects.anthropic.usage import write_usage
from sightline.dialects.dialect import Client
from sightline.dialects.losses import lose_pieces
from sightline.dialects.streaming import Sequencer, fault_of_broken_frame, truncation_fault
from sightline.dialects.text_runs import GrowingText, TextFraming
from sightline.dialects.tool_names import INPUT, flat_name
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
from sightline.model.parts import Part, ToolCall
from sightline.model.reply import Usage
from sightline.model.report import Report
from sightline.wire.jsontext import encode
from sightline.wire.sse import Frame, encode_frame


@dataclass(slots=True)
class _Block:
    """The part that is being written. Its start waits until there is something to say (`is_written`)."""

    part: int
    kind: Literal["text", "thinking", "call"]
    is_written: bool = False
    call: ToolCallBegun | None = None
    arguments: list[str] = field(default_factory=list)
    signing: SignatureReceived | None = None
    piece: tuple[bool, int] = (False, 0)
    at: str = ""


class MessagesWriter(TextFraming):
    """Feed it the events of one reply; it gives the bytes of the stream."""

    def __init__(self, client: Client, report: Report) -> None:
        self._client = client
        self._report = report
        self._sequencer = Sequencer(report, NAME)
        self._usage: Usage | None = None
        self._seen: set[int] = set()
        self._id = ""
        self._index = -1
        self._block: _Block | None = None
        self._has_calls = False
        self._has_logprobs = False
        self._is_dated = False
        self._finished: Finished | None = None
        self._kept: JsonObject = {}
        self._is_over = False

    def feed(self, event: StreamEvent) -> bytes:
        """The bytes that this event amounts to."""
        if self._is_over:
            return b""
        events = [event]
        part = getattr(event, "part", None)
        if part is not None and part not in self._seen and not getattr(event, "choice", 0):
            self._seen.add(part)
            if isinstance(event, SignatureReceived):
                # A part that begins with its signature is thinking without words.
                events = [ThinkingReceived(part, ""), event]
        return b"".join(self._write(placed) for one in events for placed in self._sequencer.feed(one))

    def text_frame(self, event: GrowingText) -> bytes:
        """The delta of one more piece, whose block is open."""
        if isinstance(event, TextReceived):
            return self._delta({"type": "text_delta", "text": event.text})
        return self._delta({"type": "thinking_delta", "thinking": event.text})

    def note_text(self, event: GrowingText) -> None:
        """Nothing that follows depends on it."""

    def _write(self, event: StreamEvent) -> bytes:  # noqa: C901 - one flat case per event
        match event:
            case TextReceived(part, text, _, at):
                return self._text(part, text, at)
            case ThinkingReceived():
                return self._thinking(event)
            case ArgumentsReceived(part, fragment):
                return self._arguments(part, fragment)
            case RefusalReceived():
                return self._refuse(event)
            case ToolCallBegun(part):
                lose_call_form(event.at, event.item, event.kind, self._report)
                self._has_calls = True
                return self._open(_Block(part, "call", call=event))
            case ToolCallCompleted(part):
                return self._close() if self._is_open(part) else b""
            case SignatureReceived():
                return self._sign(event)
            case CitationReceived(part, citation):
                value = write_citation(citation, self._report)
                if value is None:
                    return b""
                return self._text_start(part, citation.at) + self._delta({"type": "citations_delta", "citation": value})
            case PartReceived(_, value):
                return self._close() + self._begin() + self._part(value)
            case Started():
                return self._begin(event)
            case UsageReceived(usage):
                self._usage = usage if self._usage is None else update_usage(self._usage, usage)
            case FieldReceived(at, value):
                keep(self._kept, at, value)
            case LogprobsReceived():
                if not self._has_logprobs:
                    lose_logprobs(event.at, self._report)
                self._has_logprobs = True
            case Finished():
                self._finished = event
                return self._close()
            case Failed(fault):
                return self._fail(fault)
            case FrameBroken():
                return self._fail(fault_of_broken_frame(event))
            case Ended():
                return self._end()
            case unreachable:
                assert_never(unreachable)
        return b""

    # --- the message ----------------------------------------------------------------------------------

    def _begin(self, started: Started | None = None) -> bytes:
        """message_start, once."""
        started = started or Started()
        if not self._is_dated:
            lose_created(started.created, started.places, self._report)
        self._is_dated = self._is_dated or started.created is not None
        if self._id:
            return b""
        self._id, model = identity_of(started.id, started.model, self._client, self._report)
        message: JsonObject = {
            "id": self._id,
            "type": "message",
            "role": "assistant",
            "model": model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": write_usage(None, self._client.input_tokens),
        }
        return _frame({"type": "message_start", "message": message})

    def _fail(self, fault: Fault) -> bytes:
        self._is_over = True
        return _frame(error_body(fault))

    def _end(self) -> bytes:
        finished = self._finished
        reason = None if finished is None else write_finish(finished, self._report, has_calls=self._has_calls)
        if finished is None or reason is None:
            return self._fail(truncation_fault())
        begun = self._begin()
        self._is_over = True
        add_uncounted(self._usage, self._client, self._report)
        delta: JsonObject = {"stop_reason": reason, "stop_sequence": finished.stop_sequence}
        message_delta: JsonObject = {
            "type": "message_delta",
            "delta": delta,
            "usage": write_usage(self._usage, self._client.input_tokens),
        }
        for key, value in self._kept.items():
            (message_delta if key == "context_management" else delta)[key] = value
        return begun + _frame(message_delta) + _frame({"type": "message_stop"})

    # --- blocks ---------------------------------------------------------------------------------------

    def _is_open(self, part: int) -> bool:
        return self._block is not None and self._block.part == part

    def _open(self, block: _Block) -> bytes:
        closed = self._close()
        self._block = block
        return closed + self._begin()

    def _start(self, block: JsonObject) -> bytes:
        self._index += 1
        return _frame({"type": "content_block_start", "index": self._index, "content_block": block})

    def _delta(self, delta: JsonObject) -> bytes:
        return _frame({"type": "content_block_delta", "index": self._index, "delta": delta})

    def _stop(self) -> bytes:
        return _frame({"type": "content_block_stop", "index": self._index})

    def _whole(self, blocks: list[JsonObject]) -> bytes:
        return b"".join(self._start(block) + self._stop() for block in blocks)

    def _part(self, value: Part) -> bytes:
        self._has_calls = self._has_calls or isinstance(value, ToolCall)
        return self._whole(reply_blocks(value, self._id, self._index + 1, self._report))

    def _close(self) -> bytes:
        """The end of the block that is open."""
        block, self._block = self._block, None
        if block is None:
            return b""
        out = b""
        if block.call is not None:
            out = self._call_end(block, block.call)
        elif block.kind == "thinking" and (block.is_written or block.signing is not None):
            signing = block.signing
            given = (None, None, None) if signing is None else (signing.signature, signing.signed_by, signing.id)
            out = b"" if block.is_written else self._start(thinking_block("", ""))
            note_signature(None if signing is None else signing.signed_by, self._index, self._report)
            out += self._delta({"type": "signature_delta", "signature": signature_text(*given)})
        elif not block.is_written:
            return b""
        return out + self._stop()

    # --- text and thinking ----------------------------------------------------------------------------

    def _text(self, part: int, text: str, at: str) -> bytes:
        if not text:
            return b"" if self._is_open(part) else self._open(_Block(part, "text", at=at))
        return self._text_start(part, at) + self._delta({"type": "text_delta", "text": text})

    def _refuse(self, event: RefusalReceived) -> bytes:
        if is_explanation(event.at):
            keep(self._kept, event.at, event.text)
            return b""
        if not self._is_open(event.part):
            lose_refusal(event.at, self._report)
        return self._text(event.part, event.text, event.at)

    def _text_start(self, part: int, at: str) -> bytes:
        block = self._block
        if block is None or block.part != part:
            opened = self._open(_Block(part, "text", is_written=True, at=at))
        elif block.is_written:
            return b""
        else:
            opened, block.is_written = b"", True
        return opened + self._start({"type": "text", "text": ""})

    def _thinking(self, event: ThinkingReceived) -> bytes:
        out, block = b"", self._block
        if block is None or block.part != event.part:
            block = _Block(event.part, "thinking", at=event.at)
            out = self._open(block)
        if not event.text:
            return out
        text, piece = event.text, (event.summary, event.piece)
        if not block.is_written:
            block.is_written = True
            out += self._start(thinking_block("", ""))
        elif piece != block.piece:
            text = f"\n\n{text}"
            if event.summary or block.piece[0]:
                lose_pieces(block.at, NAME, self._report)
        block.piece = piece
        return out + self._delta({"type": "thinking_delta", "thinking": text})

    def _sign(self, event: SignatureReceived) -> bytes:
        block = self._block
        if block is None or block.part != event.part or (block.is_written and block.kind != "thinking"):
            lose_signature(block.at if block is not None and block.part == event.part else "", self._report)
            return b""
        if block.kind == "thinking":
            block.signing = event
            return b""
        return self._whole([signature_block(event.signature or "", event.signed_by)])

    # --- calls ----------------------------------------------------------------------------------------

    def _arguments(self, part: int, fragment: str) -> bytes:
        block = self._block
        if block is None or block.call is None or block.part != part or not fragment:
            return b""
        block.arguments.append(fragment)
        # The first fragment waits for the next event: it may be the call's signature, which goes before the call.
        if block.call.kind == "custom" or len(block.arguments) == 1:
            return b""
        return self._call_start(block, block.call) + self._fragment(fragment)

    def _fragment(self, fragment: str) -> bytes:
        return self._delta({"type": "input_json_delta", "partial_json": fragment})

    def _call_start(self, block: _Block, call: ToolCallBegun) -> bytes:
        if block.is_written:
            return b""
        block.is_written = True
        call_id = call.id or call_id_for(self._id, self._index + 1, self._report)
        start = self._start(tool_use_block(call_id, flat_name(call.name, call.namespace), {}))
        if call.kind == "custom" or not block.arguments:
            return start
        return start + self._fragment(block.arguments[0])

    def _call_end(self, block: _Block, call: ToolCallBegun) -> bytes:
        out = self._call_start(block, call)
        arguments = "".join(block.arguments)
        if call.kind == "custom":
            out += self._fragment(encode({INPUT: arguments}).decode())
        elif arguments_object(arguments) is None:
            lose_arguments(call.at, self._report)
        return out


def _frame(document: JsonObject) -> bytes:
    return encode_frame(Frame(encode(document), event=str(document["type"])))
