"""One small answer with a tool call in each dialect, whole and streamed, written by the dialects themselves."""

from sightline.dialects.dialect import Client
from sightline.dialects.registry import dialect
from sightline.dialects.reply_decoder import ReplyDecoder
from sightline.model.events import (
    ArgumentsReceived,
    Ended,
    Finished,
    Started,
    StreamEvent,
    TextReceived,
    ToolCallBegun,
    ToolCallCompleted,
    UsageReceived,
)
from sightline.model.fold import fold
from sightline.model.reply import Reply, Usage
from sightline.model.report import Report
from sightline.wire.jsontext import encode
from sightline.wire.sse import SseDecoder, encode_frame

CALLS: list[StreamEvent] = [
    Started("r_1", "m-large", 1_760_000_000),
    TextReceived(0, "Let me "),
    TextReceived(0, "look."),
    ToolCallBegun(1, "call_1", "weather"),
    ArgumentsReceived(1, '{"city":'),
    ArgumentsReceived(1, '"Rome"}'),
    ToolCallCompleted(1),
    UsageReceived(Usage(input_tokens=11, output_tokens=7)),
    Finished("tool_calls"),
    Ended(),
]
SAYS: list[StreamEvent] = [
    Started("r_1", "m-large", 1_760_000_000),
    TextReceived(0, "Hello "),
    TextReceived(0, "there."),
    UsageReceived(Usage(input_tokens=11, output_tokens=7)),
    Finished("stop"),
    Ended(),
]


def streamed(spoken: str, events: list[StreamEvent] = CALLS) -> list[bytes]:
    """The frames of a stream."""
    writer = dialect(spoken).stream_writer(Client(), Report())
    decoder = SseDecoder()
    frames = decoder.feed(b"".join(writer.feed(event) for event in events)) + decoder.close()
    return [encode_frame(frame) for frame in frames]


def whole(spoken: str, events: list[StreamEvent] = CALLS) -> bytes:
    """The body of a whole reply."""
    return encode(dialect(spoken).write_reply(fold(events), Client(), Report()))


def heard(spoken: str, data: bytes) -> Reply:
    """The reply in an answer, whole or streamed."""
    hearing = ReplyDecoder(dialect(spoken))
    return fold([*hearing.feed(data), *hearing.close()], spoken)
