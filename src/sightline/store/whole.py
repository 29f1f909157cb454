"""An exchange of which one record of a journal holds everything, as it does of most.

Such a record has the body of the request, its arrival, one attempt, what came, and the end. What the database needs of
it is read by a decoder of its own, which passes over headers and times; the rest goes into a block as it is.
"""

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from sightline.model.header_names import TAG_HEADER, tag_of
from sightline.model.reply import Usage
from sightline.store.entries import BodyEntry, KeptEntry


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
    data: list[bytes]


class _FinishedEntry(msgspec.Struct, tag_field="type", tag="fact", gc=False):
    exchange: str
    n: int
    fact: _Finished


class WholeExchange(NamedTuple):
    """The entries of the record as far as they are needed, and `data`, which is all of them as they were written."""

    body: BodyEntry
    received: _ReceivedEntry
    attempt: _AttemptEntry
    frames: _FramesEntry
    finished: _FinishedEntry
    data: memoryview

    @property
    def tag(self) -> str:
        """The tag that the client gave its request."""
        received = self.received.fact
        if bytes(received.headers).lower().find(_TAG) >= 0:  # `in` would try to take it for a number first
            return tag_of(received.session, _HEADERS.decode(received.headers))
        return tag_of(received.session, ()) if "#" in received.session else ""

    def without_body(self) -> bytes:
        """The entries behind the body, as they were written."""
        return b"\x94" + b"".join(_RAW.decode(self.data)[1:])


RecordedEntry: TypeAlias = KeptEntry | WholeExchange
"""What a sink is given."""
_TAG = TAG_HEADER.encode()
_WHOLE = msgspec.msgpack.Decoder(tuple[BodyEntry, _ReceivedEntry, _AttemptEntry, _FramesEntry, _FinishedEntry])
_FIVE = 0x95
"""How an array of that many items begins in msgpack."""
_RAW = msgspec.msgpack.Decoder(list[msgspec.Raw])
_HEADERS = msgspec.msgpack.Decoder(list[tuple[str, str]])
_ENTRIES = msgspec.msgpack.Decoder(list[KeptEntry])


def decode_entries(data: memoryview) -> list[KeptEntry]:
    """The entries of a record. Raises a `DecodeError` where it is none."""
    return _ENTRIES.decode(data)


def decode_record(data: memoryview) -> Sequence[RecordedEntry]:
    """The entries of a record, or the whole exchange that they are. Raises a `DecodeError` where it is none."""
    if data and data[0] == _FIVE:
        try:
            body, received, attempt, frames, finished = parts = _WHOLE.decode(data)
        except msgspec.ValidationError:
            return _ENTRIES.decode(data)
        name, sha256 = received.exchange, body.sha256
        if (
            name == attempt.exchange == frames.exchange == finished.exchange
            and sha256 == received.fact.sha256 == attempt.fact.sha256
            and finished.n == 2 + len(frames.data)
        ):
            return (WholeExchange(*parts, data),)
    return _ENTRIES.decode(data)


def unfold(batch: Iterable[RecordedEntry]) -> list[KeptEntry]:
    """The same with the entries of whole exchanges one by one."""
    entries: list[KeptEntry] = []
    for entry in batch:
        if type(entry) is WholeExchange:
            entries += decode_entries(entry.data)
        else:
            entries.append(entry)  # type: ignore[arg-type]
    return entries
