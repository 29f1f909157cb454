"""The frames by which a text grows are alike to the byte but for the text, and are read without taking them apart."""

from collections.abc import Sequence
from itertools import islice
from typing import Final

import msgspec

from sightline.model.events import TextReceived, ThinkingReceived
from sightline.wire.sse import Frame

_STRING = msgspec.json.Decoder(str)
_ENCODER = msgspec.json.Encoder()
_PATIENCE: Final = 4
"""After so many frames in vain it is not tried any more: some providers number their frames, or pad them."""


class TextDeltas:
    """What is the same in the frames of one stream that bring one piece of text each."""

    __slots__ = ("_before", "_behind", "_event", "_misses", "_shortest")

    def __init__(self) -> None:
        self._before = self._behind = b""
        self._event: TextReceived | ThinkingReceived | None = None
        self._shortest = 0
        self._misses = 0

    def read(self, data: bytes) -> TextReceived | ThinkingReceived | None:
        """The event of a frame like the last; None where it is another, which has to be taken apart."""
        event = self._event
        if event is None:
            return None
        if len(data) > self._shortest and data.startswith(self._before) and data.endswith(self._behind):
            try:
                text = _STRING.decode(b'"%b"' % data[len(self._before) : len(data) - len(self._behind)])
            except (msgspec.DecodeError, UnicodeDecodeError):
                text = ""  # it may hold the end of this text and the beginning of another
            if text:
                self._misses = 0
                return type(event)(event.part, text, event.choice)
        self._event = None
        return None

    def read_run(self, frames: Sequence[Frame], start: int) -> tuple[TextReceived | ThinkingReceived | None, int]:
        """The text of several frames like the last as one event, and how many they are; None where a single one has to
        be read. Only plain letters are put together: an escape, or a letter of several bytes, may be cut in two."""
        event, before, behind, shortest = self._event, self._before, self._behind, self._shortest
        if event is None:
            return None, 0
        first, last = len(before), -len(behind)
        pieces: list[bytes] = []
        for frame in islice(frames, start, None):
            data = frame.data
            if not data.startswith(before) or not data.endswith(behind) or len(data) <= shortest:
                break
            piece = data[first:last]
            # `in` takes bytes for a number first, and fails over that each time.
            if piece.find(b"\\") >= 0 or piece.find(b'"') >= 0 or not piece.isascii():
                break
            pieces.append(piece)
        if len(pieces) < 2:
            return None, 0
        try:
            text = _STRING.decode(b'"%b"' % b"".join(pieces))
        except msgspec.DecodeError:
            self._event = None  # one of them is no JSON, and whoever takes them apart says which
            return None, 0
        self._misses = 0
        return type(event)(event.part, text, event.choice), len(pieces)

    def learn(self, data: bytes, event: TextReceived | ThinkingReceived) -> None:
        """This frame was taken apart and brought this event alone."""
        self._misses += 1
        if self._misses > _PATIENCE:
            return
        try:
            spelled = _ENCODER.encode(event.text)
        except UnicodeEncodeError:
            return
        if data.count(spelled) != 1:
            return  # it is spelled in another way, or it is not certain where it stands
        before, _, behind = data.partition(spelled)
        self._before, self._behind, self._event = before + b'"', b'"' + behind, event
        self._shortest = len(self._before) + len(self._behind)
