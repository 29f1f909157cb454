"""From the bytes of an answer to its events, while it arrives and however it was split."""

from functools import cached_property

from sightline.dialects.dialect import Dialect, StreamReading
from sightline.dialects.streaming import DONE, StreamReader, no_reply, truncation_fault
from sightline.errors import Code, Fault
from sightline.model.events import Ended, Failed, FrameBroken, StreamEvent
from sightline.model.reply import Reply
from sightline.wire.jsontext import BOM, decode
from sightline.wire.partial_json import JsonArrayDecoder, begins_array
from sightline.wire.sse import Frame, SseDecoder

LONGEST_FRAME = 64 << 20
"""Bytes that may come without a frame's end among them."""

_HEAD = 64
"""So many bytes tell an array from other answers; more white space than that stands before none."""

_QUOTED = 300
"""So many bytes of an answer that is no reply are quoted in its fault."""

_FIELDS = (b"data:", b"event:", b"id:", b"retry:", b":")


class ReplyDecoder:
    """One answer of one dialect. It is a stream of server-sent events, or turns out to be a whole body, or a JSON array
    whose elements are the events.

    `late` are the places of frames that came after the end of the stream and were ignored. One that `joins` reports
    several pieces of one text that came at once as of one piece.
    """

    def __init__(self, dialect: Dialect, *, joins: bool = False) -> None:
        self._dialect = dialect
        self._joins = joins
        self._unframed: bytearray | None = bytearray()
        self._array: JsonArrayDecoder | None = None
        self.count = 0
        """How many frames have been read."""
        self._waiting = 0
        self.has_ended = False
        self.has_failed = False
        self.late: list[str] = []
        self.has_unnamed_error = False
        """Whether the provider's error came in a frame that clients of its dialect do not see as one."""

    @cached_property
    def _reader(self) -> StreamReading:
        """An answer that is no stream never asks for it, nor for the next."""
        return self._dialect.stream_reader()

    @cached_property
    def _frames(self) -> SseDecoder:
        return SseDecoder()

    @property
    def may_end(self) -> bool:
        """Whether the answer is complete but for the end of its bytes, for which its dialect has no word."""
        return self._dialect.ends_with_bytes and self._reader.is_complete and not self.has_ended

    def feed(self, data: bytes) -> list[StreamEvent]:
        """What these bytes tell."""
        if self.has_failed:
            return []
        if self._array is not None or (self._unframed is not None and self._is_array(data)):
            assert self._array is not None
            frames = [Frame(element) for element in self._array.feed(data)]
        else:
            frames = self._frames.feed(data)
        self._waiting = 0 if frames else self._waiting + len(data)
        if self._waiting > LONGEST_FRAME:
            return self.fail(
                Fault(
                    Code.UPSTREAM_PROTOCOL,
                    f"the answer has a piece of more than {LONGEST_FRAME >> 20} MiB",
                    hint="Something other than the provider's API answered; check the base URL.",
                )
            )
        if self._unframed is not None and self._array is None:
            self._unframed += data
            if frames:
                self._unframed = None
        return self._events(frames)

    @property
    def is_between(self) -> bool:
        """Whether the answer is a stream of server-sent events that is open, and whose last frame is complete."""
        is_stream = self._unframed is None and self._array is None
        return is_stream and not (self.has_ended or self.has_failed) and self._frames.is_between

    @property
    def is_growing(self) -> bool:
        """Whether the last frame let a text grow, as would a next one that differs from it in its text alone."""
        return isinstance(self._reader, StreamReader) and self._reader.is_growing

    def pass_frames(self, count: int) -> None:
        """So many frames that let the text grow were read elsewhere; it `is_between` and `is_growing`."""
        assert isinstance(self._reader, StreamReader)
        self._reader.pass_frames(count)
        self.count += count

    def _is_array(self, data: bytes) -> bool:
        """Whether the answer turns out to be an array. Its first byte shows it, before any frame has come."""
        if self._unframed and begins_array(bytes(self._unframed[:_HEAD])) is not None:
            return False  # it was looked at before
        if begins_array(bytes(self._unframed or b"") + data[:_HEAD]):
            self._array = JsonArrayDecoder()
            self._unframed = bytearray(data[:_QUOTED])
            return True
        return False

    def close(self) -> list[StreamEvent]:
        """The bytes have ended."""
        if self.has_failed:
            return []
        if self._array is not None:
            # An array without its last bracket was cut off, whatever its elements say: no client can parse it.
            if self._array.is_over:
                return self._reader.close()
            return self.fail(truncation_fault() if self.count else no_reply(bytes(self._unframed or b"")))
        frames = self._frames.close()
        if self._unframed and not frames and not _is_framed(bytes(self._unframed)):
            return self._whole(bytes(self._unframed))
        # Half a frame is what a cut connection leaves, and the reader says so itself.
        last = [event for event in self._events(frames) if not isinstance(event, FrameBroken)]
        return [*last, *self._reader.close()]

    @property
    def can_add_element(self) -> bool:
        """Whether the answer is an array that is open, so that another element can be added to it."""
        return self._array is not None and self._array.is_between

    @property
    def was_cut(self) -> bool:
        """Whether the stream came to its end without a finish, and without an error of the provider's own."""
        return isinstance(self._reader, StreamReader) and self._reader.was_cut

    def whole(self, data: bytes) -> list[StreamEvent]:
        """An answer that is all here: one body, or all frames of a stream."""
        if data[:1] == b"{":
            return self._whole(data)
        return self.feed(data) + self.close()

    def fail(self, fault: Fault) -> list[StreamEvent]:
        """The connection failed before the answer had ended."""
        if self.has_ended:
            return []
        self.has_ended = self.has_failed = True
        return [Failed(fault), Ended()]

    def _whole(self, data: bytes) -> list[StreamEvent]:
        """What came is no stream: a refused request is answered by a body, and some servers send one anyway."""
        try:
            return self._dialect.read_reply(decode(data))
        except Fault:
            return [Failed(no_reply(data)), Ended()]

    def _events(self, frames: list[Frame]) -> list[StreamEvent]:
        events: list[StreamEvent] = []
        runner = self._reader if self._joins and isinstance(self._reader, StreamReader) else None
        joined = 0
        for position, frame in enumerate(frames):
            if position < joined:
                continue
            if runner is not None:
                grown, count = runner.feed_run(frames, position)
                if grown is not None:
                    joined = position + count
                    self.count += count
                    events.append(grown)
                    continue
            if self.has_ended and frame.data != DONE:
                self.late.append(f"/{self.count}")
            found = self._reader.feed(frame)
            if found and type(found[-1]) is Ended:
                self.has_ended = True
                name = self._dialect.error_event
                is_error = not self.was_cut and any(type(event) is Failed for event in found)
                self.has_unnamed_error = is_error and bool(name) and frame.event != name
            self.count += 1
            events += found
        return events


def _is_framed(data: bytes) -> bool:
    """Whether this is the beginning of a stream, however short."""
    head = data.removeprefix(BOM).lstrip()[:6]
    return any(head.startswith(name) or name.startswith(head) for name in _FIELDS)


def read_plain_reply(spoken: Dialect, data: bytes) -> Reply | None:
    """The reply of a whole response where it is of the most frequent kind, at a fraction of the cost of events; None
    where only a `ReplyDecoder` can tell."""
    if spoken.read_plain is None or data[:1] != b"{":
        return None
    try:
        return spoken.read_plain(decode(data), spoken.name)
    except Exception:  # noqa: BLE001 - the decoder says what is wrong with it
        return None
