"""Decodes the bytes of a response into events while they arrive, however they were split."""

from functools import cached_property

from sightline.dialects.dialect import Dialect, StreamReading
from sightline.dialects.streaming import DONE, StreamReader, no_reply, truncation_fault
from sightline.errors import Code, Fault
from sightline.model.events import Ended, Failed, FrameBroken, StreamEvent
from sightline.model.json import Json
from sightline.model.reply import Reply
from sightline.wire.jsontext import BOM, decode
from sightline.wire.partial_json import JsonArrayDecoder, begins_array
from sightline.wire.sse import Frame, SseDecoder

LONGEST_FRAME = 64 << 20
"""How many bytes may arrive without a frame ending."""

_HEAD = 64
"""How many bytes it takes to tell an array from other responses; no response begins with more white space than that."""

_QUOTED = 300
"""How many bytes of a response that is not a reply are quoted in its fault."""

_FIELDS = (b"data:", b"event:", b"id:", b"retry:", b":")


class ReplyDecoder:
    """Decodes one response of one dialect: a stream of server-sent events, a whole body, or a JSON array whose elements
    are the events.

    `late` are the places of frames that arrived after the end of the stream and were ignored. With `joins`, several
    pieces of one text that arrive together are reported as one piece.
    """

    def __init__(self, dialect: Dialect, *, joins: bool = False) -> None:
        self._dialect = dialect
        self._joins = joins
        self._head_bytes: bytearray | None = bytearray()
        self._array: JsonArrayDecoder | None = None
        self.count = 0
        """How many frames have been read."""
        self._waiting = 0
        self.has_ended = False
        self.has_failed = False
        self.late: list[str] = []
        self.has_unnamed_error = False
        """Whether the provider's error was in a frame that clients of its dialect do not recognise as one."""

    @cached_property
    def _reader(self) -> StreamReading:
        """Created on demand, like `_frames`: a response that is not a stream never needs them."""
        return self._dialect.stream_reader()

    @cached_property
    def _frames(self) -> SseDecoder:
        return SseDecoder()

    @property
    def may_end(self) -> bool:
        """Whether only the end of the bytes is missing, for which the dialect has no marker of its own."""
        return self._dialect.ends_with_bytes and self._reader.is_complete and not self.has_ended

    def feed(self, data: bytes) -> list[StreamEvent]:
        """The events of these bytes."""
        if self.has_failed:
            return []
        if self._array is not None or (self._head_bytes is not None and self._is_array(data)):
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
        if self._head_bytes is not None and self._array is None:
            self._head_bytes += data
            if frames:
                self._head_bytes = None
        return self._events(frames)

    @property
    def is_between(self) -> bool:
        """Whether the response is an open stream of server-sent events whose last frame is complete."""
        is_stream = self._head_bytes is None and self._array is None
        return is_stream and not (self.has_ended or self.has_failed) and self._frames.is_between

    @property
    def is_growing(self) -> bool:
        """Whether the last frame extended a text, so that one which differs only in its text would extend it too."""
        return isinstance(self._reader, StreamReader) and self._reader.is_growing

    def pass_frames(self, count: int) -> None:
        """Record that this many frames were read elsewhere; requires `is_between` and `is_growing`."""
        assert isinstance(self._reader, StreamReader)
        self._reader.pass_frames(count)
        self.count += count

    def _is_array(self, data: bytes) -> bool:
        """Whether the response turns out to be an array. Its first byte shows that, before any frame has arrived."""
        if self._head_bytes and begins_array(bytes(self._head_bytes[:_HEAD])) is not None:
            return False  # it was checked before
        if begins_array(bytes(self._head_bytes or b"") + data[:_HEAD]):
            self._array = JsonArrayDecoder()
            self._head_bytes = bytearray(data[:_QUOTED])
            return True
        return False

    def close(self) -> list[StreamEvent]:
        """The last events, at the end of the bytes."""
        if self.has_failed:
            return []
        if self._array is not None:
            # An array without its closing bracket was truncated, whatever its elements say: no client can parse it.
            if self._array.is_over:
                return self._reader.close()
            return self.fail(truncation_fault() if self.count else no_reply(bytes(self._head_bytes or b"")))
        frames = self._frames.close()
        if self._head_bytes and not frames:
            head = bytes(self._head_bytes).removeprefix(BOM).lstrip()[:6]
            if not any(head.startswith(name) or name.startswith(head) for name in _FIELDS):
                return self._whole(bytes(self._head_bytes))
        # A partial frame is what an aborted connection leaves; the reader reports the truncation itself.
        last = [event for event in self._events(frames) if not isinstance(event, FrameBroken)]
        return [*last, *self._reader.close()]

    @property
    def can_add_element(self) -> bool:
        """Whether the response is an open array, so that another element can be added to it."""
        return self._array is not None and self._array.is_between

    @property
    def was_cut(self) -> bool:
        """Whether the stream ended without a finish and without an error from the provider."""
        return isinstance(self._reader, StreamReader) and self._reader.was_cut

    def whole(self, data: bytes) -> list[StreamEvent]:
        """The events of a complete response: one body, or all frames of a stream."""
        if data[:1] == b"{":
            return self._whole(data)
        return self.feed(data) + self.close()

    def fail(self, fault: Fault) -> list[StreamEvent]:
        """The last events if the connection failed before the response had ended."""
        if self.has_ended:
            return []
        self.has_ended = self.has_failed = True
        return [Failed(fault), Ended()]

    def _whole(self, data: bytes) -> list[StreamEvent]:
        """The events of a response that is not a stream: a refused request is answered with a body, and some servers
        send a body anyway."""
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


def read_plain_reply(spoken: Dialect, data: bytes) -> Reply | None:
    """The reply of a whole response of the most frequent kind, at a fraction of the cost of events; None if only a
    `ReplyDecoder` can read it."""
    if spoken.read_plain is None or data[:1] != b"{":
        return None
    try:
        document = decode(data)
    except Fault:
        return None
    return read_plain_document(spoken, document)


def read_plain_document(spoken: Dialect, document: Json) -> Reply | None:
    """The reply of a decoded response of the most frequent kind; None if only `read_reply` can read it."""
    try:
        return spoken.read_plain(document, spoken.name) if spoken.read_plain else None
    except Exception:  # noqa: BLE001 - the full reader says what is wrong with it
        return None
