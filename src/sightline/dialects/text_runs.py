"""Frames that bring a piece of a text each, from the bytes of one dialect to those of another without being parsed.

Most frames of a stream differ from the last one in nothing but their text. What stands around the text in both dialects
is learned from a frame that was read and written in full: the reader vouches that the next frame of that look means the
same, and the writer says how the next piece would look (`TextFraming`). From then on a run of such frames takes a few
operations on bytes, however many they are. Whatever looks different is left for the full way.

A frame that is read and written in full costs 10 µs; in a run of a thousand it costs 0.4, and 0.7 if its text has to be
spelled anew.
"""

from abc import ABC, abstractmethod
from typing import NamedTuple

import msgspec

from sightline.dialects.streaming import find_text
from sightline.model.events import StreamEvent, TextReceived, ThinkingReceived

GrowingText = TextReceived | ThinkingReceived

END = b"\n\n"
_STRING = msgspec.json.Decoder(str)
_ENCODER = msgspec.json.Encoder()
_MARK = "\0é"
"""The letter is spelled in another way in a frame that UTF-8 cannot carry: then nothing is learned."""
_SPELLED_MARK = _ENCODER.encode(_MARK)
_MOST_AT_ONCE = 1 << 12
"""So many bytes are split into texts at a time. A frame that differs ends a run, and what was split behind it is split
again: with no limit, a chunk in which each third frame differs would take a time that grows with its square."""


class TextFraming(ABC):
    """A writer of streams that writes the pieces of one text in frames which differ in nothing but that."""

    @abstractmethod
    def feed(self, event: StreamEvent) -> bytes:
        """Take the next event, as every writer does."""

    @abstractmethod
    def text_frame(self, event: GrowingText) -> bytes | None:
        """The frame of one more piece of the text that was written last, without changing anything; None if frames
        differ in more."""

    @abstractmethod
    def note_text(self, event: GrowingText) -> None:
        """So much more of the same text was written in such frames."""

    def write_pieces(self, opening: bytes, pieces: list[bytes], closing: bytes) -> bytes:
        """The frames of these pieces, which are spelled as JSON; `opening` and `closing` stand around the piece in the
        frame that `text_frame` gave."""
        return b"%b%b%b" % (opening, (closing + opening).join(pieces), closing)


class Run(NamedTuple):
    """Frames that were taken: where they end, how many they are, their text as one event, and what was written."""

    end: int
    frames: int
    event: GrowingText
    written: bytes


class TextRuns:
    """What stands around the pieces of the text that grows in one stream, in the bytes that come and in those that are
    written. It knows nothing until `learn` was called, and again after `forget`."""

    __slots__ = ("_after", "_before", "_between", "_closing", "_event", "_opening", "_writer")

    def __init__(self, writer: TextFraming) -> None:
        self._writer = writer
        self._event: GrowingText | None = None
        self._before = self._after = self._between = self._opening = self._closing = b""

    @property
    def is_known(self) -> bool:
        """Whether there is anything that `take` could know."""
        return self._event is not None

    def forget(self) -> None:
        """Another frame has come, so that the next may mean something else."""
        self._event = None

    def learn(self, frame: bytes, event: GrowingText) -> None:
        """This frame, blank line included, was read as this event alone and has been written; the reader reads each
        frame that differs from it in its text alone as such an event."""
        self._event = None
        is_usual = event == type(event)(event.part, event.text, event.choice)
        if not is_usual or not event.text or b"\r" in frame:
            return  # a part may begin with an empty text, and is treated as one with words only from the next on
        around = find_text(frame, event.text)
        if around is None:
            return
        written = self._writer.text_frame(type(event)(event.part, _MARK, event.choice))
        if written is None:
            return
        opening, is_spelled, closing = written.rpartition(_SPELLED_MARK)
        if not is_spelled:
            return
        self._opening, self._closing = opening + b'"', b'"' + closing
        self._before, self._after = around
        self._between = self._after + self._before
        self._event = event

    def take(self, data: bytes, start: int) -> Run | None:
        """The frames from here on that are like the one that was learned; None if there is none."""
        event, before, after = self._event, self._before, self._after
        if event is None or not data.startswith(before, start):
            return None
        # What stands between two texts has a line break in it, so that it cannot be a part of one.
        looked_at = data[start + len(before) : start + _MOST_AT_ONCE]
        end = start + len(before) + len(looked_at)
        pieces = looked_at.split(self._between)
        last, is_whole, rest = pieces.pop().partition(after)
        if is_whole:
            pieces.append(last)
            end -= len(rest)
        else:
            end -= len(last) + len(before)
        text, written = _read_plain(pieces), pieces
        if not text:
            texts, written, size = _read_each(pieces)
            if not texts:
                return None
            text = "".join(texts)
            end = end if len(texts) == len(pieces) else start + size + len(texts) * len(self._between)
        grown = type(event)(event.part, text, event.choice)
        self._writer.note_text(grown)
        return Run(end, len(written), grown, self._writer.write_pieces(self._opening, written, self._closing))


def _read_plain(pieces: list[bytes]) -> str:
    """The text of pieces that are spelled in one way only; empty where one may not be."""
    joined = b"".join(pieces)
    # An escape, or a letter of several bytes, may be cut in two; and a reader looks twice at a piece that is empty.
    if not joined.isascii() or joined.find(b"\\") >= 0 or not all(pieces):
        return ""
    try:
        return _STRING.decode(b'"%b"' % joined)
    except msgspec.DecodeError:
        return ""


def _read_each(pieces: list[bytes]) -> tuple[list[str], list[bytes], int]:
    """The texts of the first pieces, as far as each is one that is not empty, their spelling, and how many bytes they
    have."""
    texts: list[str] = []
    spelled: list[bytes] = []
    size = 0
    for piece in pieces:
        try:
            text = _STRING.decode(b'"%b"' % piece)
            if not text:
                break
            spelled.append(_ENCODER.encode(text)[1:-1])
        except (msgspec.DecodeError, UnicodeError):
            break
        texts.append(text)
        size += len(piece)
    return texts, spelled, size
