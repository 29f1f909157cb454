"""Frames of streamGenerateContent as events: each one is a reply of its own that continues the one before it."""

from sightline.dialects.gemini.reply_read import ReplyReading
from sightline.dialects.streaming import StreamReader
from sightline.model.events import StreamEvent
from sightline.model.json import JsonObject


class Machine:
    """The state of one stream. It has no end marker: after a finish, the end of the bytes is legal."""

    def __init__(self) -> None:
        self._reading = ReplyReading(is_stream=True)

    def read(self, document: JsonObject, index: int) -> list[StreamEvent]:
        """The events of one frame."""
        return self._reading.read(document, f"/{index}")

    def read_done_marker(self) -> list[StreamEvent]:
        """A marker that this API does not send owes nothing."""
        return []

    def is_over(self) -> bool:
        """Whether no more can come; candidates and counts may follow a finish."""
        return False


def stream_reader() -> StreamReader:
    """A reader for one stream."""
    return StreamReader(Machine())
