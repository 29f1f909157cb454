"""Server-sent events: decodes bytes of a stream to frames, and encodes frames to bytes.

The decoder follows the standard and tolerates what providers do: any line ending, any split of the bytes, a missing
last blank line, and streams that never send a blank line. The result depends only on the lines, never on how the
network split them.
"""

import re

import msgspec

from sightline.errors import Code, Fault
from sightline.wire.jsontext import BOM
from sightline.wire.partial_json import PartialJson

_DONE = b"[DONE]"
_OPENINGS = (b"{", b"[")
_JSON = msgspec.json.Decoder(msgspec.Raw)
_LINE_END = re.compile(rb"\r\n|\n|\r")


class Frame(msgspec.Struct, frozen=True, gc=False):
    """An event of a stream; `event` and `id` are empty if the stream has none."""

    data: bytes
    event: str = ""
    id: str = ""


class SseDecoder:
    """Takes the bytes of one stream as they arrive and returns each frame as soon as it is complete."""

    __slots__ = ("_data", "_event", "_follows_cr", "_id", "_is_start", "_probe", "_probed", "_tail")

    def __init__(self) -> None:
        self._tail = bytearray()
        self._follows_cr = False
        self._is_start = True
        self._data: list[bytes] = []
        self._event = ""
        self._id = ""
        self._probe: PartialJson | None = None
        self._probed = 0

    def feed(self, data: bytes) -> list[Frame]:
        """The frames that these bytes complete."""
        if self._follows_cr and data:
            self._follows_cr = False
            data = data.removeprefix(b"\n")
        if data.find(b"\r") >= 0:  # `in` first tries to read bytes as a number, and fails each time
            self._follows_cr = data.endswith(b"\r")
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        cut = data.rfind(b"\n") + 1
        if not cut:
            self._tail += data
            return []
        lines = data[:cut]
        if self._tail:
            lines = bytes(self._tail) + lines
            self._tail.clear()
        self._tail += data[cut:]
        return self._read(self._without_bom(lines))

    @property
    def is_between(self) -> bool:
        """Whether a blank line came last, so that no part of the next frame has arrived."""
        return not (self._tail or self._data or self._event or self._id or self._follows_cr or self._is_start)

    def close(self) -> list[Frame]:
        """The frames still pending when the stream ends: some providers omit the last blank line."""
        frames: list[Frame] = []
        if self._tail:
            self._line(self._without_bom(bytes(self._tail)), frames)
            self._tail.clear()
        self._dispatch(frames)
        return frames

    def _read(self, lines: bytes) -> list[Frame]:
        frames: list[Frame] = []
        blocks = lines.split(b"\n\n")
        rest = blocks.pop()
        if blocks and (self._data or self._event or self._id):
            self._block(blocks.pop(0), frames)
        # Every block ends in a blank line, so from here on each one begins with nothing pending. Nearly every block is
        # a data line, alone or after the same event line as the block before.
        known, event, append = b"", "", frames.append
        for block in blocks:
            if block[:6] == b"data: " and block.find(b"\n") < 0:
                append(Frame(block[6:]))
                continue
            head, _, data = block.partition(b"\n")
            if data[:6] == b"data: " and data.find(b"\n") < 0 and (head == known or head[:7] == b"event: "):
                if head != known:
                    known, event = head, head[7:].decode("utf-8", "replace")
                append(Frame(data[6:], event))
            else:
                self._block(block, frames)
        for line in rest.split(b"\n")[:-1]:
            self._line(line, frames)
        return frames

    def _block(self, block: bytes, frames: list[Frame]) -> None:
        for line in block.split(b"\n"):
            self._line(line, frames)
        self._dispatch(frames)

    def _line(self, line: bytes, frames: list[Frame]) -> None:
        if not line:
            self._dispatch(frames)
            return
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            if self._data and self._is_over(value):
                self._dispatch(frames)
            self._data.append(value)
        elif name == b"event":
            if self._data and self._is_over(None):
                self._dispatch(frames)
            self._event = value.decode("utf-8", "replace")
        elif name == b"id" and b"\0" not in value:
            self._id = value.decode("utf-8", "replace")

    def _is_over(self, value: bytes | None) -> bool:
        """Whether the next line begins a new event although there was no blank line. `value` is that of a data line,
        None for an event line.

        It does if the pending data is a complete JSON object or array. It also does if the data was meant to be one,
        can no longer become one, and the next line may be one, so that one malformed event does not swallow all that
        follow.
        """
        first = self._data[0]
        if first[:1] not in _OPENINGS:
            return False
        if len(self._data) == 1:
            if first == _DONE:
                return True
            try:
                _JSON.decode(first)
                return True
            except (ValueError, RecursionError):
                pass  # this is only a shortcut; the probe below decides
        probe = self._probe = self._probe or PartialJson()
        for line in self._data[self._probed :]:
            # Latin-1 keeps every byte one character, and only the structure matters.
            probe.feed("\n" + line.decode("latin-1"))
        self._probed = len(self._data)
        return probe.is_complete or (probe.is_broken and (value is None or value[:1] in _OPENINGS))

    def _dispatch(self, frames: list[Frame]) -> None:
        if self._data:
            data = self._data[0] if len(self._data) == 1 else b"\n".join(self._data)
            frames.append(Frame(data, self._event, self._id))
            self._data = []
            self._probe, self._probed = None, 0
        self._event = self._id = ""

    def _without_bom(self, lines: bytes) -> bytes:
        if self._is_start:
            self._is_start = False
            return lines.removeprefix(BOM)
        return lines


def encode_frame(frame: Frame) -> bytes:
    """The bytes of one frame, with a data line for each line of its data."""
    head = _field("event", frame.event) + _field("id", frame.id)
    if b"\n" in frame.data or b"\r" in frame.data:
        return head + b"".join(b"data: %b\n" % line for line in _LINE_END.split(frame.data)) + b"\n"
    return b"%bdata: %b\n\n" % (head, frame.data)


def comment(text: str) -> bytes:
    """A comment, which readers ignore, sent as a keep-alive between frames."""
    return b"".join(b": %b\n" % line for line in _LINE_END.split(text.encode("utf-8"))) + b"\n"


def _field(name: str, value: str) -> bytes:
    if not value:
        return b""
    if "\n" in value or "\r" in value:
        message = f"a frame's {name} cannot hold a line break: {value!r}"
        raise Fault(Code.INVALID_REQUEST, message, hint="Put text of several lines into the frame's data.")
    return f"{name}: {value}\n".encode()
