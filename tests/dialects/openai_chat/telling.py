"""Short ways to tell a Chat Completions answer, and what two tellings of it must agree on."""

from pathlib import Path
from typing import Any

from sightline.dialects import openai_chat
from sightline.dialects.dialect import Client
from sightline.model import fold as folding
from sightline.model.report import Report
from sightline.wire.jsontext import decode, encode
from sightline.wire.sse import Frame, SseDecoder

CASES = sorted((Path(__file__).parents[2] / "wire_cases" / "openai-chat").iterdir())
# Tests look into documents and events of any shape, so what they call here gives back anything.
DIALECT: Any = openai_chat.DIALECT
fold: Any = folding.fold
read_reply: Any = DIALECT.read_reply
read_request: Any = DIALECT.read_request


def chunk(delta: Any = None, finish: str | None = None, *, index: int = 0, **more: Any) -> dict[str, Any]:
    """One chunk with one choice."""
    return {"choices": [{"index": index, "delta": delta or {}, "finish_reason": finish, **more}]}


def calling(*calls: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    """One chunk with fragments of tool calls."""
    return chunk({"tool_calls": list(calls)}, finish)


def heard(*chunks: Any, done: bool = True) -> Any:
    """The events of a stream of these chunks."""
    reader = DIALECT.stream_reader()
    events = [event for document in chunks for event in reader.feed(Frame(encode(document)))]
    if done:
        events += reader.feed(Frame(b"[DONE]"))
    return events + reader.close()


def read_bytes(data: bytes) -> Any:
    """The events of the bytes of a stream."""
    decoder, reader = SseDecoder(), DIALECT.stream_reader()
    events = [event for frame in [*decoder.feed(data), *decoder.close()] for event in reader.feed(frame)]
    return events + reader.close()


def written(events: Any, client: Client | None = None) -> tuple[bytes, Report]:
    """The stream that the writer makes of these events, and what it could not say."""
    report = Report()
    writer = DIALECT.stream_writer(client or Client(), report)
    return b"".join(writer.feed(event) for event in events), report


def frames(data: bytes) -> list[Any]:
    """The documents of a written stream."""
    decoder = SseDecoder()
    found = [*decoder.feed(data), *decoder.close()]
    return [frame.data if frame.data == b"[DONE]" else decode(frame.data) for frame in found]


def whole(message: Any, finish: str | None = "stop", **more: Any) -> Any:
    """The reply whose one choice has this message."""
    body = {"choices": [{"index": 0, "message": message, "finish_reason": finish}], **more}
    return fold(DIALECT.read_reply(body))
