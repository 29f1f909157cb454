"""Replies that a user wrote or changed: from JSON to a reply, and from a reply to the bytes that a client reads."""

import re
from collections.abc import Sequence

import msgspec

from sightline.dialects.dialect import Client
from sightline.dialects.registry import dialect
from sightline.dialects.streaming import finish_for_content
from sightline.dialects.validity import is_object
from sightline.errors import Code, Fault
from sightline.model.events import (
    Ended,
    Failed,
    Finished,
    LogprobsReceived,
    Started,
    StreamEvent,
    UsageReceived,
)
from sightline.model.fold import part_events
from sightline.model.json import Json
from sightline.model.parts import Part, ToolCall
from sightline.model.reply import Choice, Finish, Reply, Usage
from sightline.model.report import Report
from sightline.wire.jsontext import MISFIT, encode
from sightline.wire.sse import SseDecoder, encode_frame

_NUMBER = re.compile(rb'"sequence_number":\s*(\d+)')
_KEPT_FOR_NUMBERS = 1 << 16

_HINT = (
    'A reply is {"parts": [{"type": "text", "text"}, {"type": "tool_call", "id", "name", "arguments": "a string"}…], '
    '"finish", "usage", "model", "id"}; only parts must be there.'
)
_NO_ENDS = ("error", "cancelled")


class _ReplyBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A folded reply as JSON. It may contain the role of the assistant, as every folded reply does."""

    parts: list[Json]
    role: str = "assistant"
    finish: Finish | None = None
    usage: Usage | None = None
    model: str | None = None
    id: str | None = None


def hand_written(value: Json, *, model: str, name: str, created: int) -> Reply:
    """The reply that this JSON describes, with missing fields filled in; `name` is used if it has no id. Raises a fault
    that says what is wrong with it."""
    try:
        written = msgspec.convert(value, _ReplyBody)
        parts = tuple(_part(each, f"call_{name.removeprefix('x_')}_{n}") for n, each in enumerate(written.parts, 1))
    except MISFIT as error:
        raise _wrong(str(error)) from None
    if not parts:
        raise _wrong("it has no parts")
    for part in parts:
        if isinstance(part, ToolCall) and part.kind != "custom" and not is_object(part.arguments):
            raise _wrong(f"the arguments of {part.name!r} are not a JSON object")
    if written.finish in _NO_ENDS:
        raise _wrong(f"a reply by hand cannot end with {written.finish!r}; drop the request instead")
    has_calls = any(isinstance(part, ToolCall) for part in parts)
    finish = finish_for_content(written.finish or "stop", has_calls=has_calls)
    return Reply(
        choices=(Choice(parts=parts, finish=finish),),
        id=written.id or name,
        model=written.model or model,
        created=created,
        usage=written.usage,
    )


def _part(value: Json, call_id: str) -> Part:
    if isinstance(value, dict) and value.get("type") == "tool_call" and not value.get("id"):
        value = {**value, "id": call_id}
    part: Part = msgspec.convert(value, Part)
    if isinstance(part, ToolCall) and part.kind == "function" and not part.arguments:
        return msgspec.structs.replace(part, arguments="{}")
    return part


def _wrong(why: str) -> Fault:
    return Fault(Code.INVALID_REQUEST, f"this is no reply: {why}", hint=_HINT, status=422)


def events_of(reply: Reply) -> list[StreamEvent]:
    """A complete reply as the events of a stream."""
    events: list[StreamEvent] = [Started(reply.id, reply.model, reply.created)]
    for index, choice in enumerate(reply.choices):
        for number, part in enumerate(choice.parts):
            events += part_events(part, number, index)
        if choice.logprobs:
            events.append(LogprobsReceived(choice.logprobs, index))
    if reply.usage is not None:
        events.append(UsageReceived(reply.usage))
    for index, choice in enumerate(reply.choices):
        finish = choice.finish or "stop"
        events.append(Finished(finish, index, detail=choice.detail, stop_sequence=choice.stop_sequence))
    return [*events, Ended()]


def write_reply(reply: Reply, spoken: str, client: Client, *, is_stream: bool) -> bytes:
    """The reply in a dialect, as a stream or as one body."""
    if is_stream:
        return write_stream(events_of(reply), spoken, client)
    return encode(dialect(spoken).write_reply(reply, client, Report()))


def write_failed_stream(fault: Fault, spoken: str, client: Client) -> bytes:
    """A stream of a dialect that contains only a failure."""
    return write_stream([Failed(fault), Ended()], spoken, client)


def write_stream(events: Sequence[StreamEvent], spoken: str, client: Client) -> bytes:
    """These events as a stream of a dialect."""
    writer = dialect(spoken).stream_writer(client, Report())
    return b"".join(writer.feed(event) for event in events)


def failure_frame(spoken: str, fault: Fault, reply: Reply, last: bytes) -> bytes:
    """The frame by which a stream of this dialect reports a failure; `last` are the bytes before it."""
    written = write_failed_stream(fault, spoken, Client(id=reply.id or "", model=reply.model or ""))
    # A new writer opens its stream first. This stream is open already, so only the last frame is used.
    data = encode_frame(SseDecoder().feed(written)[-1])
    if numbers := _NUMBER.findall(last[-_KEPT_FOR_NUMBERS:]):
        data = _NUMBER.sub(b'"sequence_number":%d' % (int(numbers[-1]) + 1), data, count=1)
    return data
