"""What the tests of this dialect share: its wire cases, its streams read and written, and replies without places."""

from pathlib import Path
from typing import Any

from sightline.dialects.dialect import Client, Target
from sightline.dialects.openai_responses import DIALECT
from sightline.model.events import Ended, Failed, Finished, StreamEvent
from sightline.model.json import Json
from sightline.model.report import Report
from sightline.model.request import Request
from sightline.wire.jsontext import decode, encode
from sightline.wire.sse import Frame, SseDecoder

CASES = sorted((Path(__file__).parents[2] / "wire_cases" / "openai-responses").iterdir())
CLIENT = Client(id="resp_c", model="m", created=7)


def loaded(case: Path, name: str) -> Any:
    return decode((case / name).read_bytes())


def having(*names: str) -> list[Path]:
    return [case for case in CASES if all((case / name).exists() for name in names)]


def read(body: Any) -> Request:
    return DIALECT.read_request(body)


def write(request: Request, report: Report | None = None, target: Target | None = None) -> Any:
    return DIALECT.write_request(request, target or Target(), report or Report())


def streamed(*frames: Json) -> list[StreamEvent]:
    reader = DIALECT.stream_reader()
    events = [event for frame in frames for event in reader.feed(Frame(encode(frame)))]
    return events + reader.close()


def read_sse(data: bytes) -> list[StreamEvent]:
    decoder, reader = SseDecoder(), DIALECT.stream_reader()
    frames = [*decoder.feed(data), *decoder.close()]
    return [event for frame in frames for event in reader.feed(frame)] + reader.close()


def written(events: list[StreamEvent], report: Report | None = None, client: Client = CLIENT) -> list[Any]:
    """The frames that our writer makes of these events, decoded."""
    writer = DIALECT.stream_writer(client, report or Report())
    if not isinstance(events[-1], Ended):
        ending: list[StreamEvent] = [] if isinstance(events[-1], (Finished, Failed)) else [Finished("stop")]
        events = [*events, *ending, Ended()]
    data = b"".join(writer.feed(event) for event in events)
    return [decode(frame.data) for frame in SseDecoder().feed(data)]


def types(frames: list[Any]) -> list[str]:
    return [frame["type"].removeprefix("response.") for frame in frames]
