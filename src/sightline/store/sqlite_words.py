"""The words of an SQLite record: where their blocks are stored; see `words`."""

import sqlite3
from collections.abc import Collection, Iterator, Sequence

from sightline.store.entries import Codec
from sightline.store.words import FILLED, Said, drop_words, fill_blocks, find_blocks, measure_words, searchable

_INSERT = "INSERT OR REPLACE INTO words (id, first, last, size, data) VALUES (?, ?, ?, ?, ?)"


def append_words(connection: sqlite3.Connection, codec: Codec, said: Sequence[Said[int]]) -> None:
    """Append these words; a last block that is less than half full is filled first."""
    if not said:
        return
    latest = connection.execute("SELECT id, size, data FROM words ORDER BY id DESC LIMIT 1").fetchone()
    number, data = 1, None
    if latest is not None:
        number, data = (latest[0], latest[2]) if latest[1] < FILLED else (latest[0] + 1, None)
    blocks = fill_blocks(codec, data, said)
    connection.executemany(_INSERT, [(at, *block) for at, block in enumerate(blocks, number)])


def forget_words(connection: sqlite3.Connection, codec: Codec, exchanges: Collection[int]) -> None:
    """Remove the words of these exchanges from their blocks."""
    for block in _blocks_of(connection, exchanges):
        emptied, changed = drop_words(codec, [block], exchanges)
        connection.executemany("DELETE FROM words WHERE id = ?", [(number,) for number in emptied])
        connection.executemany(_INSERT, [(number, *left) for number, left in changed])


def measure_blocks(connection: sqlite3.Connection, codec: Codec, exchanges: Collection[int]) -> int:
    """How many compressed bytes are words of these exchanges."""
    return sum(measure_words(codec, data, exchanges) for _, data in _blocks_of(connection, exchanges))


def _blocks_of(connection: sqlite3.Connection, exchanges: Collection[int]) -> Iterator[tuple[int, bytes]]:
    if exchanges:
        near = "SELECT id, first, last FROM words WHERE first <= ? AND last >= ?"
        spans = connection.execute(near, (max(exchanges), min(exchanges))).fetchall()
        for number in find_blocks(spans, exchanges):
            yield connection.execute("SELECT id, data FROM words WHERE id = ?", (number,)).fetchone()


def carry_words(connection: sqlite3.Connection) -> None:
    """Move the words that an earlier version stored one by one into blocks."""
    codec = Codec()
    rows = connection.execute("SELECT id, words FROM texts ORDER BY id")
    while some := rows.fetchmany(1000):
        append_words(
            connection, codec, [(number // 2, searchable(codec.unpack(data).decode())) for number, data in some]
        )
    connection.execute("DROP TABLE texts")
