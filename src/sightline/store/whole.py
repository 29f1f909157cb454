"""Whole exchanges: those that one record of the journal contains completely, as is usual.

Such a record consists of the request's body, its arrival, one attempt, the response and the end. A separate decoder
reads only what the database needs and skips headers and times; the bytes go into a block unchanged. After the entries
there may be a text: the words of the reply, if the gateway has read them, so that the recorder need not.
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

_TAG = TAG_HEADER.encode()
_HEADERS = msgspec.msgpack.Decoder(list[tuple[str, str]])


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


class RequestHead:
    """What is recorded of a request apart from its body, hash and time. It is the same for most requests of a client.
    `columns` caches what `row_of_whole` derives from it."""

    __slots__ = ("attempt", "columns", "received", "reply_dialect", "tag")

    def __init__(self, received: _Received, attempt: _Attempt) -> None:
        self.received = received
        self.attempt = attempt
        self.reply_dialect = attempt.dialect or received.dialect
        headers = _HEADERS.decode(received.headers) if _TAG in bytes(received.headers).lower() else ()
        self.tag = tag_of(received.session, headers)
        """The tag that the client set on its request."""
        self.columns: tuple[str | int, ...] = ()


_NO_HEAD = RequestHead(_Received("", "", ""), _Attempt(0, "", ""))


class _ReceivedEntry(msgspec.Struct, tag_field="type", tag="fact", gc=False):
    exchange: str
    n: Literal[0]
    at: float
    fact: msgspec.Raw


class _AttemptEntry(msgspec.Struct, tag_field="type", tag="fact", gc=False):
    exchange: str
    n: Literal[1]
    fact: msgspec.Raw


class _FramesEntry(msgspec.Struct, tag_field="type", tag="frames", gc=False):
    exchange: str
    n: Literal[2]
    data: list[memoryview]


class _FinishedEntry(msgspec.Struct, tag_field="type", tag="fact", gc=False):
    exchange: str
    n: int
    fact: _Finished


class WholeExchange(msgspec.Struct, array_like=True, gc=False):
    """The needed parts of the record's entries, the `words`, and `data`, the record as it was written. `head` is
    decoded from the facts of `received` and `attempt`. The response is a view of `data`: copies of all streams of a
    batch would be megabytes that have left every CPU cache when they are read."""

    body: BodyEntry
    received: _ReceivedEntry
    attempt: _AttemptEntry
    frames: _FramesEntry
    finished: _FinishedEntry
    words: str = ""
    data: memoryview = memoryview(b"")
    head: RequestHead = _NO_HEAD

    def entries(self) -> "tuple[bytes, memoryview]":
        """The entries as they were written, in two pieces."""
        if not self.words:
            return b"", self.data
        return b"\x95", self.data[1 : -len(_ENCODER.encode(self.words))]

    def without_body(self) -> bytes:
        """The entries after the body, as they were written."""
        return b"\x94" + b"".join(_RAW.decode(self.data)[1:5])


RecordedEntry: TypeAlias = KeptEntry | WholeExchange
"""What a sink receives."""
_WHOLE = msgspec.msgpack.Decoder(WholeExchange)
_RECEIVED, _ATTEMPT = msgspec.msgpack.Decoder(_Received), msgspec.msgpack.Decoder(_Attempt)
_ARRAYS = tuple(bytes((0x90 + count,)) for count in range(7))
"""The first byte of a msgpack array, by its number of items."""
_FIVE, _SIX = 0x95, 0x96
_RAW = msgspec.msgpack.Decoder(list[msgspec.Raw])
_ENTRIES = msgspec.msgpack.Decoder(list[KeptEntry | str])
_ENCODER = msgspec.msgpack.Encoder()


def decode_entries(data: memoryview) -> list[KeptEntry]:
    """Decode the entries of a record. Raises a `DecodeError` if it is malformed."""
    entries = _ENTRIES.decode(data)
    if entries and type(entries[-1]) is str:
        entries.pop()
    return entries  # type: ignore[return-value]


def decode_record(data: memoryview) -> Sequence[RecordedEntry]:
    """Decode a record as a whole exchange, or else as entries. Raises a `DecodeError` if it is malformed."""
    if data and _FIVE <= data[0] <= _SIX:
        try:
            whole = _WHOLE.decode(data)
            head = _find_head(whole.received.fact, whole.attempt.fact, whole.body.sha256)
        except msgspec.ValidationError:
            return decode_entries(data)
        frames, finished = whole.frames, whole.finished
        if (
            head is not None
            and whole.received.exchange == whole.attempt.exchange == frames.exchange == finished.exchange
            and finished.n == 2 + len(frames.data)
        ):
            whole.data, whole.head = data, head
            return (whole,)
    return decode_entries(data)


_HASH, _HASH_SIZE = b"\xa6sha256\xd9@", 64
"""The bytes before the hash of a body in a fact. They are not UTF-8, so no text of a fact can contain them."""
_MOST_HEADS = 64
_heads: dict[tuple[bytes, ...], RequestHead] = {}
"""The most recent heads. A row that shares the texts of an earlier one costs three microseconds less."""

_latest: tuple[tuple[bytes, ...], RequestHead] = (), _NO_HEAD
"""The key and the head of the last record."""


def _find_head(received: msgspec.Raw, attempt: msgspec.Raw, sha256: str) -> RequestHead | None:
    """The head of these facts; None if they name another body. Raises a `ValidationError` for facts of other kinds."""
    global _latest
    arrival, sending = bytes(received), bytes(attempt)  # a cached head must not keep the whole segment alive
    before, _, behind = arrival.partition(_HASH)
    begun, _, rest = sending.partition(_HASH)
    if not behind[:_HASH_SIZE] == rest[:_HASH_SIZE] == sha256.encode():
        return None
    key = before, behind[_HASH_SIZE:], begun, rest[_HASH_SIZE:]
    if _latest[0] == key:  # hashing the key takes ten times as long
        return _latest[1]
    head = _heads.get(key)
    if head is None:
        if len(_heads) >= _MOST_HEADS:
            _heads.clear()
        head = _heads[key] = RequestHead(_RECEIVED.decode(arrival), _ATTEMPT.decode(sending))
    _latest = key, head
    return head


def unfold(batch: Iterable[RecordedEntry]) -> list[KeptEntry]:
    """Replace whole exchanges by their entries."""
    entries: list[KeptEntry] = []
    for entry in batch:
        if type(entry) is WholeExchange:
            entries += decode_entries(entry.data)
        else:
            entries.append(entry)  # type: ignore[arg-type]
    return entries


# --- writing ---

_FLOAT = struct.Struct(">d")
# Placeholders for the values that differ; they are cut out again. No header or path of a client can contain them.
_NAME = "\x04" * 24
_SHA256 = "\x01" * 64
_MOMENT = -1.2345678901234567e-300
_BODY = b"\x02\x03"
_VARIABLE = 8
"""How many values differ between requests: the hash three times, the id and the time twice, and the body."""


class RecordBeginning:
    """The first three entries of the records of requests that differ only in their body: the body, its arrival and the
    attempt. Everything that is the same is encoded once, so that a record takes a third of the time."""

    __slots__ = ("_pieces",)

    def __init__(self, near: str, received: Received, attempt: AttemptStarted) -> None:
        """`near` is that of `BodyEntry`. Raises a ValueError if the client has sent one of the placeholders."""
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
        """The three entries with these values, in pieces, so that a large body is not copied."""
        a, b, c, d, e, f, g, h, i = self._pieces
        name, digest, moment = _ENCODER.encode(exchange), sha256.encode(), _FLOAT.pack(at)
        return a, digest, b, _size_of(body), body, c, name, d, moment, e, digest, f, name, g, moment, h, digest, i


def _size_of(data: bytes) -> bytes:
    """The msgpack header of these bytes."""
    size = len(data)
    if size < 1 << 8:
        return b"\xc4%c" % size
    return (b"\xc5" + size.to_bytes(2, "big")) if size < 1 << 16 else (b"\xc6" + size.to_bytes(4, "big"))


def encode_ending(frames: FramesEntry, finished: FactEntry) -> tuple[bytes, bytes]:
    """Encode the entries after the beginning."""
    return _ENCODER.encode(frames), _ENCODER.encode(finished)


def join_entries(count: int, *pieces: bytes, words: str = "") -> bytes:
    """Join the pieces of this many entries into one record. `words` are those of a reply that the gateway has read."""
    if words:
        return b"".join((_ARRAYS[count + 1], *pieces, _ENCODER.encode(words)))
    return b"".join((_ARRAYS[count], *pieces))
