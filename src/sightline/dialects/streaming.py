"""Stream handling that all dialects share: decoding frames, ending exactly once, and ordering events without overlaps.

A dialect supplies a `Machine` that turns one decoded frame into events. The code around it does what no dialect may get
wrong: a frame that is not JSON or not of the dialect is reported, the finishes come last, nothing is read after the
end, and bytes that stop without a legal end are a failure and never a short success.

`Sequencer` is for dialects that write one block after another: one choice is kept (the others are a loss), parts are
renumbered from 0 in the order in which they are written, and events of a later part wait while a tool call is open.

`read_frames` is for typed decoders: all frames of a stream as one JSON array, which costs a fifth of decoding each.
"""

import re
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from itertools import islice
from operator import itemgetter
from typing import Final

import msgspec

from sightline.dialects.fields import rest
from sightline.errors import Code, Fault
from sightline.model.events import (
    ArgumentsReceived,
    CitationReceived,
    Ended,
    Failed,
    FieldReceived,
    Finished,
    FrameBroken,
    PartReceived,
    RefusalReceived,
    SignatureReceived,
    StreamEvent,
    TextReceived,
    ThinkingReceived,
    ToolCallBegun,
    ToolCallCompleted,
)
from sightline.model.json import JsonObject
from sightline.model.reply import Choice, Finish
from sightline.model.report import Report
from sightline.wire.jsontext import decode
from sightline.wire.pointer import join
from sightline.wire.sse import Frame

PartEvent = (
    TextReceived
    | RefusalReceived
    | ThinkingReceived
    | SignatureReceived
    | ToolCallBegun
    | ArgumentsReceived
    | ToolCallCompleted
    | CitationReceived
    | PartReceived
)
_PART_EVENTS = PartEvent.__args__


class Sequencer:
    """Takes events and returns them without overlap."""

    def __init__(self, report: Report, dialect: str) -> None:
        self._report = report
        self._dialect = dialect
        self._open_call: int | None = None
        self._current: int | None = None
        self._left: set[int] = set()
        self._block = -1
        self._waiting: deque[PartEvent] = deque()

    def feed(self, event: StreamEvent) -> list[StreamEvent]:
        """The events that can be written now."""
        if getattr(event, "choice", 0):
            if isinstance(event, Finished):
                place = event.at.rpartition("/")[0]
                self._report.lose(place, "another choice", f"{self._dialect} has one choice in a reply", "content")
            return []
        if isinstance(event, CitationReceived) and event.part in self._left:
            why = f"{self._dialect} has written the text that it belongs to"
            self._report.lose(event.citation.at, "a citation that came late", why, "option")
            return []
        if isinstance(event, _PART_EVENTS):
            if self._open_call is not None and event.part != self._open_call:
                self._waiting.append(event)
                return []
            return [self._renumber(event), *self._release()]
        if isinstance(event, (Finished, Failed)):
            # Release everything that waits, because no call will be completed any more.
            out: list[StreamEvent] = []
            while self._open_call is not None or self._waiting:
                self._open_call = None
                out.extend(self._release())
            return [*out, event]
        return [event]

    def _renumber(self, event: PartEvent) -> StreamEvent:
        if event.part != self._current:
            if self._current is not None:
                self._left.add(self._current)
            self._left.discard(event.part)
            self._current = event.part
            self._block += 1
        if isinstance(event, ToolCallBegun):
            self._open_call = event.part
        elif isinstance(event, ToolCallCompleted):
            self._open_call = None
        return msgspec.structs.replace(event, part=self._block)

    def _release(self) -> list[StreamEvent]:
        """The waiting events that need not wait any longer, part by part."""
        out: list[StreamEvent] = []
        while self._open_call is None and self._waiting:
            chosen = self._waiting[0].part
            still: deque[PartEvent] = deque()
            for event in self._waiting:
                if event.part == chosen:
                    out.append(self._renumber(event))
                else:
                    still.append(event)
            self._waiting = still
        return out


_STRING = msgspec.json.Decoder(str)
_ENCODER = msgspec.json.Encoder()
_MOST_MISSES: Final = 4
"""After this many frames that did not match, learning stops: some providers number their frames, or pad them."""


class TextDeltas:
    """The bytes that are the same in all frames of one stream that carry a piece of text each."""

    __slots__ = ("_after", "_before", "_event", "_misses", "_shortest")

    def __init__(self) -> None:
        self._before = self._after = b""
        self._event: TextReceived | ThinkingReceived | None = None
        self._shortest = 0
        self._misses = 0

    @property
    def is_known(self) -> bool:
        """Whether the last frame carried a piece of text, so that the unchanging bytes of the next one are known."""
        return self._event is not None

    def read(self, data: bytes) -> TextReceived | ThinkingReceived | None:
        """The event of a frame like the last one; None if it is different and has to be parsed."""
        event = self._event
        if event is None:
            return None
        if len(data) > self._shortest and data.startswith(self._before) and data.endswith(self._after):
            try:
                text = _STRING.decode(b'"%b"' % data[len(self._before) : len(data) - len(self._after)])
            except (msgspec.DecodeError, UnicodeDecodeError):
                text = ""  # the bytes may hold the end of this text and the beginning of another
            if text:
                self._misses = 0
                return type(event)(event.part, text, event.choice)
        self._event = None
        return None

    def read_run(self, frames: Sequence[Frame], start: int) -> tuple[TextReceived | ThinkingReceived | None, int]:
        """The text of several frames like the last one as one event, and the number of frames; None if the next frame
        has to be read by itself. Only ASCII without escapes is joined: an escape or a multi-byte character may be cut
        in two."""
        event, before, behind, shortest = self._event, self._before, self._after, self._shortest
        if event is None:
            return None, 0
        first, last = len(before), -len(behind)
        pieces: list[bytes] = []
        for frame in islice(frames, start, None):
            data = frame.data
            if not data.startswith(before) or not data.endswith(behind) or len(data) <= shortest:
                break
            piece = data[first:last]
            # `in` first tries to treat the bytes as a number, and fails each time.
            if piece.find(b"\\") >= 0 or piece.find(b'"') >= 0 or not piece.isascii():
                break
            pieces.append(piece)
        if len(pieces) < 2:
            return None, 0
        try:
            text = _STRING.decode(b'"%b"' % b"".join(pieces))
        except msgspec.DecodeError:
            self._event = None  # one of the pieces is not JSON: parsing them one by one shows which
            return None, 0
        self._misses = 0
        return type(event)(event.part, text, event.choice), len(pieces)

    def learn(self, data: bytes, event: TextReceived | ThinkingReceived) -> None:
        """Learn from this frame, which was parsed and held only this event."""
        self._misses += 1
        if self._misses > _MOST_MISSES:
            return
        around = find_text(data, event.text)
        if around is None:
            return
        self._before, self._after = around
        self._event = event
        self._shortest = len(self._before) + len(self._after)

    def note_found(self) -> None:
        """Frames like the last one were read elsewhere, so learning was worthwhile."""
        self._misses = 0


def find_text(data: bytes, text: str) -> tuple[bytes, bytes] | None:
    """The bytes before and after the text in JSON that holds it once as a string, quotation marks included. None if the
    text is encoded differently, or if it is not certain which string it is."""
    try:
        spelled = _ENCODER.encode(text)
    except UnicodeEncodeError:
        return None
    at = data.find(spelled)
    # `count` would miss an occurrence that begins with the end of another, as `":"` does in `"text":":"`.
    if at < 0 or data.find(spelled, at + 1) >= 0:
        return None
    before, behind = data[: at + 1], data[at + len(spelled) - 1 :]
    if before.find(b"\\") >= 0 or behind.find(b"\\") >= 0:
        return None  # the text may be written there with an escape, and the match may be another field or a key
    return before, behind


DONE = b"[DONE]"
_WORDS = frozenset({TextReceived, ThinkingReceived})
_PAGES = ("<!doctype html", "<html", "<head", "<body")
_FRAGMENTS = frozenset({TextReceived, ThinkingReceived, ArgumentsReceived})


class Machine(ABC):
    """One dialect's state while a stream is read."""

    is_over = False
    """Whether the last frame was the stream's legal end, so that there is nothing more to wait for."""

    @abstractmethod
    def read(self, document: JsonObject, index: int) -> list[StreamEvent]:
        """The events of one frame; `index` is the number of the frame, with which its pointers begin."""

    def read_done_marker(self) -> list[StreamEvent]:
        """The remaining events when `[DONE]` arrives, including the finish of each choice. In an API without this
        marker, one that a server or a relay adds means nothing."""
        return []

    def flush(self) -> list[StreamEvent]:
        """The events that were held back, when the bytes end too early."""
        return []


def fields_of(holder: JsonObject, known: frozenset[str], at: str) -> list[StreamEvent]:
    """The fields that are not modelled, each as an event."""
    return [FieldReceived(join(at, key), value) for key, value in rest(holder, known).items()]


def unread_fields(holder: JsonObject, known: set[str], at: str) -> list[StreamEvent]:
    """The fields that are not modelled, each as an event, reported once per name and stream: `known` grows."""
    if holder.keys() <= known:
        return []
    unread = rest(holder, frozenset(known))
    known.update(unread)
    return [FieldReceived(join(at, key), value) for key, value in unread.items()]


class StreamReader:
    """Runs a machine over the frames of one stream. `growth` is for machines whose state does not change when one piece
    of text or thinking follows another."""

    def __init__(self, machine: Machine, growth: TextDeltas | None = None) -> None:
        self._machine = machine
        self._growth = growth
        self._read = machine.read
        self._index = 0
        self._seen: set[int] = set()
        self._finished: dict[int, Finished] = {}
        self._has_failed = False
        self._has_ended = False
        self.was_cut = False
        """Whether the stream ended without a finish, as opposed to an error that the provider sent."""

    def feed(self, frame: Frame) -> list[StreamEvent]:
        """The events of the next frame."""
        if self._has_ended:
            return []
        index = self._index
        self._index = index + 1
        data = frame.data
        growth = self._growth
        if growth is not None and (grown := growth.read(data)) is not None:
            return [grown]
        if data == DONE:
            return self._end(self._hold_finishes(self._machine.read_done_marker()))
        try:
            document = decode(data)
            if type(document) is not dict:
                raise Fault(Code.UPSTREAM_PROTOCOL, "a frame is not a JSON object", pointer=f"/{index}")
            events = self._read(document, index)
        except Fault as fault:
            return [FrameBroken(fault.pointer or f"/{index}", fault.message)]
        if len(events) == 1 and type(event := events[0]) in _FRAGMENTS and not event.choice:  # type: ignore[union-attr] # fragments have a choice
            if growth is not None and type(event) in _WORDS and not event.at:  # type: ignore[union-attr] # these have one
                growth.learn(data, event)  # type: ignore[arg-type] # and nothing else is learned
            return events  # the case for nearly all frames
        events = self._hold_finishes(events)
        if self._has_failed or self._machine.is_over:
            return self._end(events)
        return events

    def feed_run(self, frames: Sequence[Frame], start: int) -> tuple[StreamEvent | None, int]:
        """One event for several frames that only extend a text, and their number; None if the next must be fed by
        itself."""
        if self._has_ended or self._growth is None:
            return None, 0
        grown, count = self._growth.read_run(frames, start)
        self._index += count
        return grown, count

    @property
    def is_growing(self) -> bool:
        """Whether a frame that differs from the last one only in its text would be read as more of that text."""
        return self._growth is not None and self._growth.is_known and not self._has_ended

    def pass_frames(self, count: int) -> None:
        """Record that this many frames that extend the text were read elsewhere."""
        assert self._growth is not None
        self._growth.note_found()
        self._index += count

    @property
    def is_complete(self) -> bool:
        """Whether the bytes could end here: every choice that has begun has finished."""
        return 0 in self._finished and self._seen <= self._finished.keys()

    def close(self) -> list[StreamEvent]:
        """Handle the end of the bytes, which is legal only after a finish."""
        return [] if self._has_ended else [*self._machine.flush(), *self._end([])]

    def _hold_finishes(self, events: list[StreamEvent]) -> list[StreamEvent]:
        """The events without the finishes, which are held back: parts of a choice may still arrive after its finish."""
        passed: list[StreamEvent] = []
        for event in events:
            if isinstance(event, Finished):
                self._finished[event.choice] = event
                continue
            passed.append(event)
            if isinstance(event, Failed):
                self._has_failed = True
                break
            if (choice := getattr(event, "choice", None)) is not None:
                self._seen.add(choice)
        return passed

    def _end(self, events: list[StreamEvent]) -> list[StreamEvent]:
        """End the stream. Every choice that has begun must have finished; otherwise the whole stream has failed."""
        self._has_ended = True
        if self._has_failed:
            return [*events, Ended()]
        if not self.is_complete:
            self.was_cut = True
            return [*events, Failed(truncation_fault()), Ended()]
        return [*events, *self._finished.values(), Ended()]


def truncation_fault() -> Fault:
    """The fault of a stream that stops without a legal end."""
    return Fault(
        Code.UPSTREAM_PROTOCOL,
        "the stream ended before the reply was complete",
        hint="The provider or the network cut the connection; what arrived is kept. Send the request again.",
    )


def no_reply(data: bytes) -> Fault:
    """The fault of a response that is neither a stream nor a body of its dialect, with what it is instead."""
    words = " ".join(data[:300].decode("utf-8", "replace").split())
    what = "a web page" if words.lower().startswith(_PAGES) else "no reply of the provider's API"
    return Fault(
        Code.UPSTREAM_PROTOCOL,
        f"the answer is {what}: {words}" if words else "the answer is empty",
        hint="Something other than the provider's API answered, a proxy or a web page; check the base URL.",
    )


def fault_of_broken_frame(frame: FrameBroken) -> Fault:
    """The fault of a stream that cannot be translated because a part of it cannot be read."""
    return Fault(
        Code.UPSTREAM_PROTOCOL,
        f"the stream holds a frame that cannot be read: {frame.message}",
        hint="The provider sent something that is not of its dialect; look at the raw frames.",
        pointer=frame.at,
    )


def finish_for_content(finish: Finish, *, has_calls: bool) -> Finish:
    """The finish that agrees with the content: `tool_calls` if and only if there is a call to answer."""
    if finish == "stop" and has_calls:
        return "tool_calls"
    if finish == "tool_calls" and not has_calls:
        return "stop"
    return finish


def finish_of(choice: Choice) -> Finished | None:
    """How a choice of a whole reply ended, as the event that its stream would have had; None if it has not ended."""
    if choice.finish is None:
        return None
    return Finished(choice.finish, 0, choice.detail, choice.stop_sequence, choice.finish_at, choice.stop_at)


_FIRST = re.compile(rb"(?:event: [a-z_.]+\n)?data: ")
_NEXT = re.compile(rb"\n\n(?:event: [a-z_.]+\n)?data: ")
_BARE = b"data: "
_DONE = b"\n\ndata: [DONE]"
_TEXT = re.compile(rb'"(?:content|text|thinking|partial_json|arguments)":"([^"\\]*(?:\\.[^"\\]*)*)"')
_IN_STRING = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+')
_SURROGATE_ESCAPE = re.compile(rb"\\u[dD]")
_LEAST_JOINED = 1024
"""Decoding a shorter stream is faster than joining its texts."""


def join_texts(data: bytes) -> bytes:
    """Join the frames that differ only in their text into one frame with all of it. Most frames of a stream differ
    in nothing else, and a typed decoder takes several times as long for each of them as this does.

    The frame in the middle shows what they have in common. The bytes between two texts contain a line break, so they
    cannot be part of a text.
    """
    begin = data.rfind(b"\n\n", 0, len(data) // 2) + 2
    end = data.find(b"\n\n", begin)
    text = _TEXT.search(data, begin, end) if len(data) >= _LEAST_JOINED and 1 < begin < end else None
    if text is None or _TEXT.search(data, text.end(), end) is not None:
        return data  # of two texts, the second would be in the joined frame once, however often it was repeated
    before, after = data[begin : text.start(1)], data[text.end(1) : end + 2]
    if b"\\" in data and (_SURROGATE_ESCAPE.search(data) is not None or b"\\" + after in data):
        return data  # half a character, or half an escape, at the end of a text must not become a whole one
    # `replace` would scan a long text again for each occurrence.
    first, *others, last = data.split(after)
    if others and not _ends_in_text(first, before):
        first += after + others.pop(0)
    grows, cut = _ends_in_text(first, before), len(before)
    texts = list(map(itemgetter(slice(cut, None)), others))
    alike, joined = (after + before).join([b"", *texts]), b"".join(texts)
    is_alike = len(first) + len(alike) + len(after) + len(last) == len(data) and data.startswith(alike, len(first))
    if not (grows and is_alike and (joined.find(b'"') < 0 or _IN_STRING.fullmatch(joined))):
        texts, previous = [], first  # takes twice as long
        for each in others:
            is_text = each.startswith(before) and (each.find(b'"', cut) < 0 or bool(_IN_STRING.fullmatch(each, cut)))
            grows = is_text and (grows or _ends_in_text(previous, before))
            texts.append(each[cut:] if grows else after + each)
            previous, grows = each, is_text
        joined = b"".join(texts)
    return b"".join((first, joined, after, last))


def _ends_in_text(data: bytes, before: bytes) -> bool:
    """Whether the last of these frames begins like this and ends in its text, so that more text can be added. Frames
    may end alike in other strings: that of the beginning of a thought ends in its signature."""
    at = data.rfind(b"\n\n") + 2 if b"\n\n" in data else 0
    return data.startswith(before, at) and _IN_STRING.fullmatch(data, at + len(before)) is not None


def read_frames(data: bytes) -> tuple[bytes, int, bool] | None:
    """A JSON array of the frames of a stream, the number of frames, and whether `[DONE]` ended it. None if the stream
    is not written in the usual way, or was cut off within a frame."""
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n")  # strings in JSON contain no line breaks
    data = join_texts(data)
    first = _FIRST.match(data)
    if first is None or not data.endswith(b"\n\n"):
        return None
    data = data[first.end() : -2]
    is_done = data.endswith(_DONE)
    if is_done:
        data = data[: -len(_DONE)]
    if first[0] == _BARE:  # usually no frame has an event name then, and this is four times as fast
        count = data.count(b"\n\n" + _BARE)
        joined = data.replace(b"\n\n" + _BARE, b",")
    else:
        joined, count = _NEXT.subn(b",", data)
    return None if b"\n" in joined else (b"[" + joined + b"]", count + 1, is_done)
