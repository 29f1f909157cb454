"""An exchange of which one record of a journal holds everything, as it does of most.

Such a record has the body of the request, its arrival, one attempt, what came, and the end. What the database needs of
it is read by a decoder of its own, which passes over headers and times; the rest goes into a block as it is. Behind the
entries there may be a text: the words of the reply, where the gateway has read them, so that they are not read again.
"""

import re
import struct
from collections.abc import Iterable, Sequence
from typing import Literal, TypeAlias

import msgspec
from msgspec.structs import replace

from sightline.model.exchange import AttemptStarted, Received
from sightline.model.header_names import TAG_HEADER, tag_of
from sightline.model.reply import Usage
from sightline.store.entries import BodyEntry, FactEntry, FramesEntry, KeptEntry


class _Received(msgspec.Struct, tag_field="kind", tag="received", gc=False):
    dialect: str
    model: str
    sha256: str
    session: str = ""
    client: str = ""
    path: str = ""
    is_stream: bool = False
    headers: msgspec.Raw = msgspec.Raw(b"\x90")
    origin: str = ""
    transport: str = "http"
    method: str = ""


class _Attempt(msgspec.Struct, tag_field="kind", tag="attempt", gc=False):
    number: int
    provider: str
    sha256: str
    model: str = ""
    dialect: str = ""
    url: str = ""


class _Finished(msgspec.Struct, tag_field="kind", tag="finished", gc=False):
    finish: str
    status: int = 0
    model: str = ""
    usage: Usage | None = None
    tools: tuple[str, ...] = ()
    first_byte: float = 0.0
    elapsed: float = 0.0
    warning: str = ""


class _ReceivedEntry(msgspec.Struct, tag_field="type", tag="fact", gc=False):
    exchange: str
    n: Literal[0]
    at: float
    fact: _Received


class _AttemptEntry(msgspec.Struct, tag_field="type", tag="fact", gc=False):
    exchange: str
    n: Literal[1]
    fact: _Attempt


class _FramesEntry(msgspec.Struct, tag_field="type", tag="frames", gc=False):
    exchange: str
    n: Literal[2]
    data: list[memoryview]


class _FinishedEntry(msgspec.Struct, tag_field="type", tag="fact", gc=False):
    exchange: str
    n: int
    fact: _Finished


class WholeExchange(msgspec.Struct, array_like=True, gc=False):
    """The entries of the record as far as they are needed, `words`, and `data`, which is all of it as it was written.
    What came is a view of `data`: copies of all streams of a batch would be megabytes that are out of every cache when
    they are read."""

    body: BodyEntry
    received: _ReceivedEntry
    attempt: _AttemptEntry
    frames: _FramesEntry
    finished: _FinishedEntry
    words: str = ""
    data: memoryview = memoryview(b"")

    @property
    def tag(self) -> str:
        """The tag that the client gave its request."""
        received = self.received.fact
        if bytes(received.headers).lower().find(_TAG) >= 0:  # `in` would try to take it for a number first
            return tag_of(received.session, _HEADERS.decode(received.headers))
        return tag_of(received.session, ()) if "#" in received.session else ""

    def entries(self) -> "tuple[bytes | memoryview, ...]":
        """The entries, as they were written, in one piece or two."""
        if not self.words:
            return (self.data,)
        return b"\x95", self.data[1 : -len(_ENCODER.encode(self.words))]

    def without_body(self) -> bytes:
        """The entries behind the body, as they were written."""
        return b"\x94" + b"".join(_RAW.decode(self.data)[1:5])


RecordedEntry: TypeAlias = KeptEntry | WholeExchange
"""What a sink is given."""
_TAG = TAG_HEADER.encode()
_WHOLE = msgspec.msgpack.Decoder(WholeExchange)
_ARRAYS = tuple(bytes((0x90 + count,)) for count in range(7))
"""How arrays of so many items begin in msgpack."""
_FIVE, _SIX = 0x95, 0x96
_RAW = msgspec.msgpack.Decoder(list[msgspec.Raw])
_HEADERS = msgspec.msgpack.Decoder(list[tuple[str, str]])
_ENTRIES = msgspec.msgpack.Decoder(list[KeptEntry | str])
_ENCODER = msgspec.msgpack.Encoder()


def decode_entries(data: memoryview) -> list[KeptEntry]:
    """The entries of a record. Raises a `DecodeError` where it is none."""
    entries = _ENTRIES.decode(data)
    if entries and type(entries[-1]) is str:
        entries.pop()
    return entries  # type: ignore[return-value]


def decode_record(data: memoryview) -> Sequence[RecordedEntry]:
    """The entries of a record, or the whole exchange that they are. Raises a `DecodeError` where it is none."""
    if data and _FIVE <= data[0] <= _SIX:
        try:
            whole = _WHOLE.decode(data)
        except msgspec.ValidationError:
            return decode_entries(data)
        received, attempt, frames = whole.received, whole.attempt, whole.frames
        if (
            received.exchange == attempt.exchange == frames.exchange == whole.finished.exchange
            and whole.body.sha256 == received.fact.sha256 == attempt.fact.sha256
            and whole.finished.n == 2 + len(frames.data)
        ):
            whole.data = data
            return (whole,)
    return decode_entries(data)


def unfold(batch: Iterable[RecordedEntry]) -> list[KeptEntry]:
    """The same with the entries of whole exchanges one by one."""
    entries: list[KeptEntry] = []
    for entry in batch:
        if type(entry) is WholeExchange:
            entries += decode_entries(entry.data)
        else:
            entries.append(entry)  # type: ignore[arg-type]
    return entries


# --- writing ---

_FLOAT = struct.Struct(">d")
# Placeholders for what differs, which are cut out again. No header and no path that a client sends can hold them.
_NAME = "\x04" * 24
_SHA256 = "\x01" * 64
_MOMENT = -1.2345678901234567e-300
_BODY = b"\x02\x03"
_VARIABLE = 8
"""How many values differ from one request to the next: the hash three times, id and time twice, and the body."""


class RecordBeginning:
    """How the records of requests begin that differ in their body alone: the body, its arrival, and the attempt with
    it. All else of these entries is encoded once, which takes a third of the time."""

    __slots__ = ("_pieces",)

    def __init__(self, near: str, received: Received, attempt: AttemptStarted) -> None:
        """`near` is that of `BodyEntry`. Raises a ValueError where a client has sent one of the placeholders."""
        entries = (
            BodyEntry(_SHA256, _BODY, near),
            FactEntry(_NAME, 0, _MOMENT, replace(received, sha256=_SHA256)),
            FactEntry(_NAME, 1, _MOMENT, replace(attempt, sha256=_SHA256)),
        )
        values = [_SHA256.encode(), _ENCODER.encode(_BODY), _ENCODER.encode(_NAME), _FLOAT.pack(_MOMENT)]
        parts = re.split(b"|".join(re.escape(each) for each in values), b"".join(map(_ENCODER.encode, entries)))
        if len(parts) != _VARIABLE + 1:
            raise ValueError("the request holds a placeholder")
        self._pieces = tuple(parts)

    def encode(self, exchange: str, sha256: str, body: bytes, at: float) -> tuple[bytes, ...]:
        """These three entries, with what differs, in pieces: a copy of a large body would be one too many."""
        a, b, c, d, e, f, g, h, i = self._pieces
        name, digest, moment = _ENCODER.encode(exchange), sha256.encode(), _FLOAT.pack(at)
        return a, digest, b, _size_of(body), body, c, name, d, moment, e, digest, f, name, g, moment, h, digest, i


def _size_of(data: bytes) -> bytes:
    """What stands before these bytes in msgpack."""
    size = len(data)
    if size < 1 << 8:
        return b"\xc4%c" % size
    return (b"\xc5" + size.to_bytes(2, "big")) if size < 1 << 16 else (b"\xc6" + size.to_bytes(4, "big"))


def encode_ending(frames: FramesEntry, finished: FactEntry) -> tuple[bytes, bytes]:
    """The entries behind the beginning."""
    return _ENCODER.encode(frames), _ENCODER.encode(finished)


def join_entries(count: int, *pieces: bytes, words: str = "") -> bytes:
    """So many entries, whose pieces these are, as those of one record. `words` are those of the reply, if it was read."""
    if words:
        return b"".join((_ARRAYS[count + 1], *pieces, _ENCODER.encode(words)))
    return b"".join((_ARRAYS[count], *pieces))
