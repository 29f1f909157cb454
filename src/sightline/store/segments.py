"""The files of a journal: records one behind the other, each with its length and a checksum.

A process that dies leaves at most its last record torn. Everything before it is whole, and what is torn was never
acknowledged.
"""

import struct
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from sightline.model.json import Json
from sightline.store.entries import Entry

HEAD = struct.Struct("<II")
_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(list[Entry])


class JournalPosition(NamedTuple):
    """Where a record of this process stands: the number of its segment, its first byte and the one behind it."""

    segment: int
    start: int
    end: int


class Torn(NamedTuple):
    """The end of a segment that is no record: which file, from which byte on, how many."""

    path: Path
    at: int
    size: int


def frame_record(entries: Sequence[Entry]) -> tuple[bytearray, Sequence[Entry]]:
    """One record, and the entries as it holds them."""
    record = bytearray(HEAD.size)
    try:
        _ENCODER.encode_into(entries, record, HEAD.size)
    except UnicodeEncodeError:
        # A lone surrogate is legal in JSON and comes through in names and messages; UTF-8 cannot carry it.
        entries = msgspec.convert(_encodable(msgspec.to_builtins(entries, builtin_types=(bytes,))), list[Entry])
        _ENCODER.encode_into(entries, record, HEAD.size)
    HEAD.pack_into(record, 0, len(record) - HEAD.size, zlib.crc32(memoryview(record)[HEAD.size :]))
    return record, entries


def records(path: Path, start: int = 0, stop: int | None = None) -> Iterator[tuple[list[Entry], int] | Torn]:
    """The records of a file from one byte to another, each with the place behind it; a torn end comes last."""
    with path.open("rb") as file:
        size = file.seek(0, 2) if stop is None else stop
        at = file.seek(start)
        while at < size:
            head = file.read(HEAD.size)
            length, checksum = HEAD.unpack(head) if len(head) == HEAD.size else (size, 0)
            # A torn head may name any length; what is not there is not read.
            data = file.read(length) if at + HEAD.size + length <= size else b""
            entries = _entries(data) if len(data) == length and zlib.crc32(data) == checksum else None
            if entries is None:
                yield Torn(path, at, size - at)
                return
            at += HEAD.size + length
            yield entries, at


def _entries(data: bytes) -> list[Entry] | None:
    try:
        return _DECODER.decode(data)
    except msgspec.DecodeError:
        return None


def _encodable(value: Json | bytes) -> Json | bytes:
    match value:
        case str():
            return value.encode("utf-8", "replace").decode("utf-8")
        case list() | tuple():
            return [_encodable(item) for item in value]  # type: ignore[misc]
        case dict():
            return {_encodable(key): _encodable(item) for key, item in value.items()}  # type: ignore[misc]
        case _:
            return value
