"""The words of an SQLite record: in lower case, compressed in blocks that a search scans, the newest first.

There is no index. One of trigrams cost 250 µs an exchange to build, more than everything else together. A block costs
5 µs an exchange to write and 2 µs to search, so that 100,000 exchanges take a fifth of a second.
"""

import sqlite3
from bisect import bisect_right
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from itertools import accumulate

import msgspec

from sightline.filters.expression import And, ContentTerm, Expression, Not, Or
from sightline.filters.predicate import fold_case, literals, occurs, plain
from sightline.store.entries import Codec

_BLOCK = 1 << 16
"""Bytes of text in a block, before it is compressed: larger ones compress little better."""
_BLOCKS_KEPT = 8
"""Blocks that are kept while the words of one exchange after the other are read; neighbours share theirs."""
_END = b"\0"
_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(tuple[list[int], bytes])
_INSERT = "INSERT OR REPLACE INTO words (id, first, last, size, data) VALUES (?, ?, ?, ?, ?)"

Said = tuple[int, bytes]
"""The words of a request or a reply, and the row of its exchange."""


def searchable(words: str) -> bytes:
    """The words as they are stored: in lower case, and without the character that separates them."""
    return fold_case(words).replace("\0", "\ufffd").encode("utf-8", "replace")


def append_words(connection: sqlite3.Connection, codec: Codec, said: Sequence[Said]) -> None:
    """Store these words behind all others; the last block is filled up first."""
    if not said:
        return
    latest = connection.execute("SELECT id, size, data FROM words ORDER BY id DESC LIMIT 1").fetchone()
    number, pending = 1, list[Said]()
    if latest is not None:
        number = latest[0] + 1
        if latest[1] < _BLOCK:
            number, pending = latest[0], unpack_words(codec, latest[2])
    size = sum(len(words) for _, words in pending)
    blocks: list[list[Said]] = [pending]
    for each in said:
        if size >= _BLOCK:
            blocks.append([])
            size = 0
        blocks[-1].append(each)
        size += len(each[1])
    connection.executemany(_INSERT, (_row(codec, at, block) for at, block in enumerate(blocks, number)))


def forget_words(connection: sqlite3.Connection, codec: Codec, exchanges: Collection[int]) -> None:
    """Take the words of these exchanges out of their blocks."""
    if not exchanges:
        return
    touched = "SELECT id, data FROM words WHERE first <= ? AND last >= ?"
    for number, data in connection.execute(touched, (max(exchanges), min(exchanges))).fetchall():
        block = unpack_words(codec, data)
        left = [each for each in block if each[0] not in exchanges]
        if not left:
            connection.execute("DELETE FROM words WHERE id = ?", (number,))
        elif len(left) < len(block):
            connection.execute(_INSERT, _row(codec, number, left))


def measure_words(connection: sqlite3.Connection, codec: Codec, exchanges: Collection[int]) -> int:
    """How many compressed bytes are words of these exchanges, by their share of each block."""
    found = 0
    touched = "SELECT data FROM words WHERE first <= ? AND last >= ?"
    for (data,) in connection.execute(touched, (max(exchanges), min(exchanges))).fetchall():
        block = unpack_words(codec, data)
        of_exchanges = sum(len(words) for number, words in block if number in exchanges)
        found += len(data) * of_exchanges // (sum(len(words) for _, words in block) or 1)
    return found


def carry_words(connection: sqlite3.Connection) -> None:
    """Bring the words that an earlier version stored one by one into blocks."""
    codec = Codec()
    rows = connection.execute("SELECT id, words FROM texts ORDER BY id")
    while some := rows.fetchmany(1000):
        append_words(
            connection, codec, [(number // 2, searchable(codec.unpack(data).decode())) for number, data in some]
        )
    connection.execute("DROP TABLE texts")


def _row(codec: Codec, number: int, block: Sequence[Said]) -> tuple[int, int, int, int, bytes]:
    exchanges = [exchange for exchange, _ in block]
    text = _END.join(words for _, words in block)
    return number, min(exchanges), max(exchanges), len(text), codec.pack(_ENCODER.encode((exchanges, text)))


def unpack_words(codec: Codec, data: bytes) -> list[Said]:
    """The words in a block."""
    exchanges, text = _DECODER.decode(codec.unpack(data))
    return list(zip(exchanges, text.split(_END), strict=True))


class WordSearch:
    """Looks for the patterns of a filter. It scans as many blocks as its questions need, inside one transaction."""

    def __init__(self, connection: sqlite3.Connection, wanted: Expression) -> None:
        self._connection = connection
        self._codec = Codec()
        self._wanted = wanted
        self._found: dict[str, set[int]] = {pattern: set() for pattern in _patterns(wanted)}
        self._needles = {
            pattern: [run.encode("utf-8", "surrogatepass") for run in literals(fold_case(pattern))]
            for pattern in self._found
        }
        # Oldest first, each with the highest exchange that it or an older one has words of: a late reply is in a newer
        # block than its request, so that a block may have words of much older exchanges, but never of newer ones.
        rows = connection.execute("SELECT id, last FROM words ORDER BY id").fetchall() if self._found else []
        self._left = list(zip((row[0] for row in rows), accumulate((row[1] for row in rows), max), strict=True))
        self._spans: list[tuple[int, int, int]] | None = None
        self._block = lru_cache(_BLOCKS_KEPT)(self._read_block)

    def says(self, exchange: int, pattern: str) -> bool:
        """Whether a pattern occurs in the words of an exchange. Those of the filter are looked for in whole blocks; any
        other, for which a field from outside asks, in the words of this exchange alone."""
        if pattern not in self._found:
            return any(occurs(pattern, words) for words in self._words_of(exchange))
        self._scan(exchange)
        return exchange in self._found[pattern]

    def _words_of(self, exchange: int) -> list[str]:
        if self._spans is None:
            self._spans = self._connection.execute("SELECT id, first, last FROM words").fetchall()
        blocks = [number for number, first, last in self._spans if first <= exchange <= last]
        return [words.decode() for number in blocks for of, words in self._block(number) if of == exchange]

    def _read_block(self, number: int) -> list[Said]:
        (data,) = self._connection.execute("SELECT data FROM words WHERE id = ?", (number,)).fetchone()
        return unpack_words(self._codec, data)

    def candidates(self, exchanges: Sequence[int]) -> Sequence[int]:
        """Those of these exchanges that the filter may take as far as words decide."""
        if not self._found or not exchanges:
            return exchanges
        self._scan(min(exchanges))
        most = self._most(self._wanted)
        return exchanges if most is None else [exchange for exchange in exchanges if exchange in most]

    def _most(self, expression: Expression) -> set[int] | None:
        """The exchanges that the expression takes at most, of those that were scanned; None for all."""
        match expression:
            case ContentTerm(pattern=pattern):
                return self._found[pattern]
            case And(parts=parts):
                known = [each for each in map(self._most, parts) if each is not None]
                return set.intersection(*known) if known else None
            case Or(parts=parts):
                each = [self._most(part) for part in parts]
                return None if None in each else set().union(*(one for one in each if one is not None))
            case _:
                return None

    def _scan(self, exchange: int) -> None:
        """Scan every block that may have words of this exchange or a newer one."""
        while self._left and self._left[-1][1] >= exchange:
            (data,) = self._connection.execute("SELECT data FROM words WHERE id = ?", self._left.pop()[:1]).fetchone()
            exchanges, text = _DECODER.decode(self._codec.unpack(data))
            for pattern, needles in self._needles.items():
                # Most blocks end here. `in` is a search of a few µs in 64 KB.
                if all(needle in text for needle in needles):
                    self._found[pattern].update(_occurrences(pattern, needles, exchanges, text))


def _occurrences(pattern: str, needles: Sequence[bytes], exchanges: Sequence[int], text: bytes) -> Iterable[int]:
    """The exchanges of a block in whose words the pattern occurs."""
    pieces = text.split(_END)
    if plain(pattern) is None or not needles or _END in needles[0]:
        return [each for each, words in zip(exchanges, pieces, strict=True) if occurs(pattern, words.decode())]
    starts = list(accumulate((len(piece) + 1 for piece in pieces), initial=0))
    found, at = list[int](), text.find(needles[0])
    while at >= 0:
        index = bisect_right(starts, at)
        found.append(exchanges[index - 1])
        at = text.find(needles[0], starts[index])
    return found


def _patterns(expression: Expression) -> set[str]:
    match expression:
        case ContentTerm(pattern=pattern):
            return {pattern}
        case And(parts=parts) | Or(parts=parts):
            return set().union(*map(_patterns, parts))
        case Not(part=part):
            return _patterns(part)
        case _:
            return set()
