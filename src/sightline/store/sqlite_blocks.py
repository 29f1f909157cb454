"""The recorded entries of an SQLite record, in compressed blocks that several exchanges share.

A row for each piece cost more than the piece itself: a hash in an index, a link, and texts that compress to half on
their own and to a fifth next to similar ones. A row of `exchanges` names the blocks that contain its pieces.
"""

import sqlite3
import struct
from collections.abc import Collection, Iterable, Sequence

import msgspec

from sightline.store.entries import Codec, KeptEntry

_BLOCK = 3 << 16
"""Bytes in a block before compression. Larger blocks compress little better and make reading one exchange slower;
streams fill smaller ones badly. A larger piece gets a block of its own."""
_FILLED = _BLOCK // 2
"""A last block with so many bytes is not filled further. Filling every block takes half as much time again for whole
answers in batches of ten, and a third for streams and large requests; without it, files are up to 6 % larger."""
_ENCODER = msgspec.msgpack.Encoder()
_PIECES = msgspec.msgpack.Decoder(list[msgspec.Raw])
_PIECE = msgspec.msgpack.Decoder(tuple[int, msgspec.Raw])
_ENTRIES = msgspec.msgpack.Decoder(list[KeptEntry])
_PAIR = struct.Struct(">BBQ")
_TWO, _NUMBER = 0x92, 0xCF
"""The first byte of a msgpack array of two items, and of an 8-byte integer."""
_INSERT = "INSERT OR REPLACE INTO blocks VALUES (?, ?, ?)"


class RecordBlockWriter:
    """Appends pieces inside the caller's transaction; a last block that is less than half full is filled first."""

    def __init__(self, connection: sqlite3.Connection, codec: Codec) -> None:
        self._connection = connection
        self._codec = codec
        self._number = self._size = 0
        self._count = 0
        """How many pieces the block has. Their parts are in `_parts`, so that they are copied only once."""
        self._parts: list[bytes | memoryview | msgspec.Raw] = []
        self._rows: list[tuple[int, int, bytes]] = []

    def begin(self) -> None:
        """Begin a transaction."""
        self._number, self._size = 1, 0
        self._parts, self._count, self._rows = [], 0, []
        latest = self._connection.execute("SELECT id, size, data FROM blocks ORDER BY id DESC LIMIT 1").fetchone()
        if latest is not None and latest[1] < _FILLED:
            self._number, self._size = latest[:2]
            self._parts += _PIECES.decode(self._codec.unpack(latest[2]))
            self._count = len(self._parts)
        elif latest is not None:
            self._number = latest[0] + 1

    def add(self, row: int, entries: Sequence[KeptEntry | dict[str, object]]) -> int:
        """Add entries of the exchange in this row; returns the number of the block."""
        return self.add_written(row, b"", _ENCODER.encode(entries))

    def add_written(self, row: int, beginning: bytes, entries: bytes | memoryview) -> int:
        """Add entries that are already encoded, after `beginning`; see `add`."""
        size = _PAIR.size + len(beginning) + len(entries)
        if self._size + size > _BLOCK and self._count:
            self._close()
            self._number += 1
        self._parts += (_PAIR.pack(_TWO, _NUMBER, row), beginning, entries)
        self._count += 1
        self._size += size
        return self._number

    def end(self) -> None:
        """Write what was added."""
        self._close()
        self._connection.executemany(_INSERT, self._rows)
        self._rows = []

    def _close(self) -> None:
        if self._count:
            self._rows.append((self._number, self._size, self._codec.pack(_join(self._count, self._parts))))
        self._parts, self._count, self._size = [], 0, 0


def _join(count: int, parts: Sequence[bytes | memoryview | msgspec.Raw]) -> bytes:
    """A msgpack array of `count` items, made of these parts."""
    return b"".join((b"\xdd", count.to_bytes(4, "big"), *parts))


def block_numbers(column: str) -> list[int]:
    """The blocks that a row names."""
    return [int(number) for number in column.split()]


class BlockReader:
    """Reads pieces. It keeps the block that it read last, because neighbouring exchanges are often read next. A reader
    is for one transaction, as blocks change."""

    def __init__(self, connection: sqlite3.Connection, codec: Codec) -> None:
        self._connection = connection
        self._codec = codec
        self._number = 0
        self._pieces: dict[int, list[msgspec.Raw]] = {}

    def pieces(self, row: int, blocks: str) -> list[KeptEntry]:
        """All stored entries of the exchange in this row, in their order. Raises a `ValidationError` if a fact is of a
        kind that only a newer version knows."""
        found: list[KeptEntry] = []
        for number in block_numbers(blocks):
            if number != self._number:
                self._number, self._pieces = number, _load(self._connection, self._codec, number)
            for piece in self._pieces.get(row, ()):
                found += _ENTRIES.decode(piece)
        return found


def _load(connection: sqlite3.Connection, codec: Codec, number: int) -> dict[int, list[msgspec.Raw]]:
    found: dict[int, list[msgspec.Raw]] = {}
    row = connection.execute("SELECT data FROM blocks WHERE id = ?", (number,)).fetchone()
    for piece in () if row is None else _PIECES.decode(codec.unpack(row[0])):
        exchange, entries = _PIECE.decode(piece)
        found.setdefault(exchange, []).append(entries)
    return found


def forget_pieces(connection: sqlite3.Connection, codec: Codec, rows: Collection[int], blocks: Iterable[int]) -> None:
    """Remove the entries of the exchanges in these rows from these blocks."""
    for number in blocks:
        (data,) = connection.execute("SELECT data FROM blocks WHERE id = ?", (number,)).fetchone()
        left = [piece for piece in _PIECES.decode(codec.unpack(data)) if _PIECE.decode(piece)[0] not in rows]
        if left:
            connection.execute(_INSERT, (number, sum(map(len, left)), codec.pack(_join(len(left), left))))
        else:
            connection.execute("DELETE FROM blocks WHERE id = ?", (number,))


def measure_pieces(connection: sqlite3.Connection, codec: Codec, rows: Collection[int], blocks: Iterable[int]) -> int:
    """How many compressed bytes of these blocks belong to the exchanges in these rows, by their share."""
    found = 0
    for number in blocks:
        (data,) = connection.execute("SELECT data FROM blocks WHERE id = ?", (number,)).fetchone()
        pieces = _PIECES.decode(codec.unpack(data))
        of_rows = sum(len(piece) for piece in pieces if _PIECE.decode(piece)[0] in rows)
        found += len(data) * of_rows // (sum(map(len, pieces)) or 1)
    return found
