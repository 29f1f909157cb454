"""Writes a reply for a client of this API: as a stream, one block after another with exactly one end, or as the body
that results from the frames of that stream."""

import hashlib
from dataclasses import dataclass, field
from typing import Literal, assert_never

from sightline.dialects.anthropic.blocks import write_citation
from sightline.dialects.anthropic.errors import error_body
from sightline.dialects.anthropic.names import NAME, STOP_DETAILS, STOP_REASONS, stop_reason_of
from sightline.dialects.anthropic.usage import write_usage
from sightline.dialects.dialect import Client
from sightline.dialects.fields import object_at, opt_list, rest
from sightline.dialects.losses import lose_choices, lose_partial, lose_pieces, lose_unknown
from sightline.dialects.signatures import NEXT, wrap
from sightline.dialects.streaming import Sequencer, fault_of_broken_frame, finish_of, truncation_fault
from sightline.dialects.text_runs import GrowingText, TextFraming
from sightline.dialects.tool_names import INPUT, arguments_object, flat_name
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
from sightline.model.parts import Opaque, Part, Refusal, Text, Thinking, ToolCall
from sightline.model.reply import Reply, Usage
from sightline.model.report import Report
from sightline.wire.jsontext import encode
from sightline.wire.pointer import parse_pointer
from sightline.wire.sse import Frame, encode_frame

UNSIGNED = "unsigned"
"""The maker of thinking that is not signed, so that we recognise it when the client sends it back."""

DEFAULT_ID = "msg_0"

KEPT = (STOP_DETAILS, "container", "context_management")
"""Unmodelled fields of a reply that only this API has; they are written back."""

_EXPLANATION = f"/{STOP_DETAILS}/explanation"
_INVENTED = f"{NAME} demands it and it is not known"


def write_reply(reply: Reply, client: Client, report: Report) -> JsonObject:
    """The body. Messages cannot express a failure, so that is the API's error body."""
    choice = reply.choice
    if reply.fault is not None or (choice.finish is not None and choice.finish not in STOP_REASONS):
        lose_partial(reply, NAME, report)
        return error_body(reply.fault or truncation_fault())
    lose_choices(reply, NAME, report)
    writer = MessagesWriter(client, report)
    writer.write(Started(reply.id, reply.model, reply.created, reply.places))
    for number, part in enumerate(choice.parts):
        for event in part_events(part, number):
            writer.write(event)
    if choice.logprobs:
        writer.write(LogprobsReceived(choice.logprobs, at=choice.logprobs_at))
    for unread in reply.unmodelled:
        writer.write(FieldReceived(unread.at, unread.value))
    if reply.usage is not None:
        writer.write(UsageReceived(reply.usage))
    writer.end(finish_of(choice))
    return _message_of(writer.frames)


def _message_of(frames: list[JsonObject]) -> JsonObject:
    """The message that results from the frames of a stream."""
    body: JsonObject = {}
    content: list[JsonObject] = []
    for frame in frames:
        match frame["type"]:
            case "message_start":
                body = object_at(frame, "message")
            case "content_block_start":
                content.append({**object_at(frame, "content_block")})
            case "content_block_delta":
                _grow(content[-1], object_at(frame, "delta"))
            case "message_delta":
                body |= object_at(frame, "delta") | rest(frame, _MESSAGE_DELTA)
            case _:
                pass
    for block in content:
        if isinstance(text := block.get("input"), str):
            value = arguments_object(text)
            block["input"] = {INPUT: text} if value is None else value
    return body | {"content": list(content)}


_MESSAGE_DELTA = frozenset({"type", "delta"})


def _grow(block: JsonObject, delta: JsonObject) -> None:
    """Add a delta to a block; the input of a call stays text until it is complete."""
    *_, key = delta
    match key:
        case "citation":
            block["citations"] = [*opt_list(block, "citations", ""), delta[key]]
        case "partial_json":
            block["input"] = f"{block['input'] or ''}{delta[key]}"
        case _:
            block[key] = f"{block[key]}{delta[key]}"


@dataclass(slots=True)
class _Block:
    """The part that is being written. Its start is delayed until it has content (`is_written`)."""

    part: int
    kind: Literal["text", "thinking", "call"]
    is_written: bool = False
    call: ToolCallBegun | None = None
    arguments: list[str] = field(default_factory=list)
    signing: SignatureReceived | None = None
    piece: tuple[bool, int] = (False, 0)
    at: str = ""


class MessagesWriter(TextFraming):
    """Takes the events of one reply and returns the bytes of the stream. `frames` are those not returned yet."""

    def __init__(self, client: Client, report: Report) -> None:
        self.frames: list[JsonObject] = []
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
        self._own_fields: JsonObject = {}
        self._is_over = False

    def feed(self, event: StreamEvent) -> bytes:
        """The bytes of the next event."""
        if self._is_over:
            return b""
        events = [event]
        part = getattr(event, "part", None)
        if part is not None and part not in self._seen and not getattr(event, "choice", 0):
            self._seen.add(part)
            if isinstance(event, SignatureReceived):
                # A part that begins with its signature is thinking without text.
                events = [ThinkingReceived(part, ""), event]
        for each in events:
            for placed in self._sequencer.feed(each):
                self.write(placed)
        frames, self.frames = self.frames, []
        return b"".join([_encode(frame) for frame in frames])

    def text_frame(self, event: GrowingText) -> bytes:
        """The delta of one more piece, whose block is open."""
        key = "text" if isinstance(event, TextReceived) else "thinking"
        delta: JsonObject = {"type": f"{key}_delta", key: event.text}
        return _encode({"type": "content_block_delta", "index": self._index, "delta": delta})

    def note_text(self, event: GrowingText) -> None:
        """Nothing to record: no later frame depends on the text."""

    def write(self, event: StreamEvent) -> None:  # noqa: C901 - one flat case per event
        """Make the frames of the next event; events must arrive in an order without overlaps."""
        match event:
            case TextReceived(part, text, _, at):
                self._text(part, text, at)
            case ThinkingReceived():
                self._thinking(event)
            case ArgumentsReceived(part, fragment):
                self._arguments(part, fragment)
            case RefusalReceived():
                self._write_refusal(event)
            case ToolCallBegun(part):
                self._lose_call_form(event)
                self._has_calls = True
                self._open(_Block(part, "call", call=event))
            case ToolCallCompleted(part):
                if self._is_open(part):
                    self._close()
            case SignatureReceived():
                self._sign(event)
            case CitationReceived(part, citation):
                value = write_citation(citation, self._report)
                if value is not None:
                    self._start_text(part, citation.at)
                    self._delta("citations_delta", citation=value)
            case PartReceived():
                self._part(event)
            case Started():
                self._begin(event)
            case UsageReceived(usage):
                self._usage = update_usage(self._usage, usage)
            case FieldReceived(at, value):
                self._keep_own_field(at, value)
            case LogprobsReceived():
                if not self._has_logprobs:
                    self._report.lose(event.at, "logprobs", f"{NAME} has no such field", "option")
                self._has_logprobs = True
            case Finished():
                self._finished = event
                self._close()
            case Failed(fault):
                self._fail(fault)
            case FrameBroken():
                self._fail(fault_of_broken_frame(event))
            case Ended():
                if self._finished is None or self._finished.finish not in STOP_REASONS:
                    self._fail(truncation_fault())
                else:
                    self.end(self._finished)
            case unreachable:
                assert_never(unreachable)

    # --- the message ----------------------------------------------------------------------------------

    def _begin(self, started: Started | None = None) -> None:
        """Write `message_start`, once."""
        started = started or Started()
        if started.created is not None and not self._is_dated:
            self._is_dated = True
            place = started.places.get("created", "/created")
            self._report.lose(place, "time of the reply", f"{NAME} has no such field", "identity")
        if self._id:
            return
        self._id, model = started.id or self._client.id, started.model or self._client.model
        if not self._id:
            self._id = DEFAULT_ID
            self._report.add("/id", "id of the reply", _INVENTED, "identity")
        if not model:
            self._report.add("/model", "an empty name of the model", _INVENTED, "identity")
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
        self.frames.append({"type": "message_start", "message": message})

    def _fail(self, fault: Fault) -> None:
        self._is_over = True
        self.frames.append(error_body(fault))

    def end(self, finished: Finished | None) -> None:
        """Write the end of the message; without a finish it has no stop reason."""
        self._close()
        self._begin()
        self._is_over = True
        usage = self._usage or Usage()
        if usage.input_tokens is None and not self._client.input_tokens:
            self._report.add("/usage/input_tokens", "a count of 0", _INVENTED, "identity")
        if usage.output_tokens is None:
            self._report.add("/usage/output_tokens", "a count of 0", _INVENTED, "identity")
        delta: JsonObject = {"stop_reason": None, "stop_sequence": None}
        if finished is not None:
            delta = {"stop_reason": self._stop_reason(finished), "stop_sequence": finished.stop_sequence}
        counts = write_usage(usage, self._client.input_tokens)
        message_delta: JsonObject = {"type": "message_delta", "delta": delta, "usage": counts}
        for key, value in self._own_fields.items():
            (message_delta if key == "context_management" else delta)[key] = value
        self.frames += [message_delta, {"type": "message_stop"}]

    def _stop_reason(self, finished: Finished) -> str | None:
        finish, detail = finished.finish, finished.detail
        word = stop_reason_of(finish, detail, finished.stop_sequence, has_calls=self._has_calls)
        if finish == "content_filter":
            why = "the nearest stop reason is refusal"
            self._report.lose(finished.at, "that a filter stopped it", why, "option")
        if detail is not None and word != detail:
            self._report.lose(finished.at, f"the provider's own word {detail!r}", f"{NAME} says {word}", "identity")
        return word

    def _keep_own_field(self, at: str, value: Json) -> None:
        """Collect a field that only this API has, under its name here; any other is left out."""
        *_, holder, key = ("", "", *parse_pointer(at))
        if key in KEPT:
            self._own_fields[key] = value
        elif holder == STOP_DETAILS:
            details = self._own_fields.setdefault(STOP_DETAILS, {})
            if isinstance(details, dict):
                details[key] = value

    # --- blocks ---------------------------------------------------------------------------------------

    def _is_open(self, part: int) -> bool:
        return self._block is not None and self._block.part == part

    def _open(self, block: _Block) -> None:
        self._close()
        self._block = block
        self._begin()

    def _start(self, block: JsonObject) -> None:
        self._index += 1
        self.frames.append({"type": "content_block_start", "index": self._index, "content_block": block})

    def _delta(self, kind: str, **delta: Json) -> None:
        self.frames.append({"type": "content_block_delta", "index": self._index, "delta": {"type": kind, **delta}})

    def _stop(self) -> None:
        self.frames.append({"type": "content_block_stop", "index": self._index})

    def _whole(self, block: JsonObject) -> None:
        self._start(block)
        self._stop()

    def _part(self, event: PartReceived) -> None:
        """Write a part that arrived as a whole: as if it had grown in one step, if this API has such parts grow."""
        value: Part = event.value
        if isinstance(value, (Text, Refusal, ToolCall)) or (isinstance(value, Thinking) and not value.redacted):
            for each in part_events(value, event.part):
                self.write(each)
            return
        self._close()
        self._begin()
        if isinstance(value, Thinking):
            self._whole({"type": "redacted_thinking", "data": _signature(value.signature, value.signed_by, value.id)})
        elif isinstance(value, Opaque):
            if value.dialect == NAME and isinstance(value.value, dict):
                self._whole(value.value)
            else:
                lose_unknown(value, NAME, self._report)
        else:
            what = f"{type(value).__name__.lower()} in a reply"
            self._report.lose(value.at, what, f"a reply of {NAME} holds none", "content")

    def _close(self) -> None:
        """End the open block."""
        block, self._block = self._block, None
        if block is None:
            return
        if block.call is not None:
            self._close_call(block, block.call)
        elif block.kind == "thinking" and (block.is_written or block.signing is not None):
            signing = block.signing
            if not block.is_written:
                self._start(_thinking_block(""))
            if signing is None or not signing.signed_by:  # the provider has not signed its reasoning
                what, why = "signature of reasoning that is not signed", f"{NAME} demands one"
                self._report.add(f"/content/{self._index}/signature", what, why, "identity")
            given = (None, None, None) if signing is None else (signing.signature, signing.signed_by, signing.id)
            self._delta("signature_delta", signature=_signature(*given))
        elif not block.is_written:
            return
        self._stop()

    # --- text and thinking ----------------------------------------------------------------------------

    def _text(self, part: int, text: str, at: str) -> None:
        if text:
            self._start_text(part, at)
            self._delta("text_delta", text=text)
        elif not self._is_open(part):
            self._open(_Block(part, "text", at=at))

    def _write_refusal(self, event: RefusalReceived) -> None:
        if event.at.endswith(_EXPLANATION):  # it explains the end of the message and is not a block of it
            self._keep_own_field(event.at, event.text)
            return
        if not self._is_open(event.part):
            self._report.lose(event.at, "that these words are a refusal", f"{NAME} has no such block", "identity")
        self._text(event.part, event.text, event.at)

    def _start_text(self, part: int, at: str) -> None:
        block = self._block
        if block is None or block.part != part:
            block = _Block(part, "text", at=at)
            self._open(block)
        if not block.is_written:
            block.is_written = True
            self._start({"type": "text", "text": ""})

    def _thinking(self, event: ThinkingReceived) -> None:
        block = self._block
        if block is None or block.part != event.part:
            block = _Block(event.part, "thinking", at=event.at)
            self._open(block)
        if not event.text:
            return
        text, piece = event.text, (event.summary, event.piece)
        if not block.is_written:
            block.is_written = True
            self._start(_thinking_block(""))
        elif piece != block.piece:
            text = f"\n\n{text}"
            if event.summary or block.piece[0]:
                lose_pieces(block.at, NAME, self._report)
        block.piece = piece
        self._delta("thinking_delta", thinking=text)

    def _sign(self, event: SignatureReceived) -> None:
        block = self._block
        if block is None or block.part != event.part or (block.is_written and block.kind != "thinking"):
            # Text is sent before its signature is known, and after it the signature would belong to something else.
            at = block.at if block is not None and block.part == event.part else ""
            self._report.lose(at, "a signature over text", f"{NAME} has no place for it", "identity")
        elif block.kind == "thinking":
            block.signing = event
        else:  # an empty thinking block carries the signature of the part after it
            self._whole(_thinking_block(wrap(event.signature or "", event.signed_by or UNSIGNED, NEXT)))

    # --- calls ----------------------------------------------------------------------------------------

    def _lose_call_form(self, call: ToolCallBegun) -> None:
        """Report what a `tool_use` block cannot express about a call."""
        if call.item is not None:
            self._report.lose(call.at, "id of the item", f"{NAME} has blocks, not items", "identity")
        if call.kind == "custom":
            why = "it became an object with one string"
            self._report.lose(call.at, "that the call takes free text", why, "identity")

    def _arguments(self, part: int, fragment: str) -> None:
        block = self._block
        if block is None or block.call is None or block.part != part or not fragment:
            return
        block.arguments.append(fragment)
        # The first fragment waits for the next event, which may be the call's signature: that is written before the
        # call.
        if block.call.kind != "custom" and len(block.arguments) > 1:
            self._start_call(block, block.call)
            self._delta("input_json_delta", partial_json=fragment)

    def _start_call(self, block: _Block, call: ToolCallBegun) -> None:
        if block.is_written:
            return
        block.is_written = True
        call_id = call.id or self._make_call_id()
        name = flat_name(call.name, call.namespace)
        self._start({"type": "tool_use", "id": call_id, "name": name, "input": {}})
        if call.kind != "custom" and block.arguments:
            self._delta("input_json_delta", partial_json=block.arguments[0])

    def _make_call_id(self) -> str:
        """An id for a call without one; the same each time for one reply, different for the next reply."""
        index = self._index + 1
        self._report.add(f"/content/{index}/id", "id of a tool call", f"{NAME} demands one", "identity")
        return "toolu_" + hashlib.sha256(f"{self._id}/{index}".encode("utf-8", "surrogatepass")).hexdigest()[:24]

    def _close_call(self, block: _Block, call: ToolCallBegun) -> None:
        self._start_call(block, call)
        arguments = "".join(block.arguments)
        if call.kind == "custom":
            self._delta("input_json_delta", partial_json=encode({INPUT: arguments}).decode())
        elif arguments_object(arguments) is None:
            why = f"{NAME} takes a JSON object only"
            self._report.lose(call.at, "arguments as they were written", why, "content")


def _thinking_block(signature: str) -> JsonObject:
    return {"type": "thinking", "thinking": "", "signature": signature}


def _signature(signature: str | None, signed_by: str | None, item: str | None) -> str:
    """The value of the signature field: our own unchanged, another provider's wrapped with its maker's name."""
    return (signature or "") if signed_by == NAME else wrap(signature, signed_by or UNSIGNED, item)


def _encode(frame: JsonObject) -> bytes:
    return encode_frame(Frame(encode(frame), event=str(frame["type"])))
