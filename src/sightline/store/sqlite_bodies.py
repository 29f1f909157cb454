"""The bodies in an SQLite record: stored as changes of each other, read back whole."""

import sqlite3
from collections.abc import Iterator

from sightline.errors import Code, Fault
from sightline.store.delta import LEAST_SIZE, Codec, Coded, may_share
from sightline.store.entries import BodyEntry
from sightline.store.recent_bodies import CANDIDATES, Recent

_CHAIN = """
WITH RECURSIVE chain (base, prefix, suffix, data, step) AS (
    SELECT base, prefix, suffix, data, 0 FROM bodies WHERE {}
    UNION ALL
    SELECT b.base, b.prefix, b.suffix, b.data, step + 1 FROM bodies b JOIN chain ON b.id = chain.base
)
SELECT base, prefix, suffix, data FROM chain ORDER BY step DESC
"""
_KEEP = (
    "INSERT INTO bodies (sha256, near, size, base, prefix, suffix, depth, data) VALUES (?,?,?,?,?,?,?,?)"
    " ON CONFLICT (sha256) DO NOTHING"
)
_BY_HASH, _BY_ID = _CHAIN.format("sha256 = ?"), _CHAIN.format("id = ?")


def body_of(connection: sqlite3.Connection, codec: Codec, sha256: str) -> bytes | None:
    """The body with this hash."""
    try:
        name = bytes.fromhex(sha256)
    except ValueError:
        return None
    return _decode_chain(codec, connection.execute(_BY_HASH, (name,)).fetchall())


def body_with_id(connection: sqlite3.Connection, codec: Codec, number: int) -> bytes:
    """The body in this row."""
    body = _decode_chain(codec, connection.execute(_BY_ID, (number,)).fetchall())
    if body is None:
        raise Fault(Code.CONFIG, f"body {number} is missing in the record", hint="The record is damaged.")
    return body


def _decode_chain(codec: Codec, chain: list[tuple[int | None, int, int, bytes]]) -> bytes | None:
    body: bytes | None = None
    for base, prefix, suffix, data in chain:
        body = codec.restore(Coded("" if base is None else "base", prefix, suffix, data), body or b"")
    return body


class SqliteBodies:
    """Puts bodies into the record; inside somebody else's transaction, on one thread."""

    def __init__(self, connection: sqlite3.Connection, codec: Codec) -> None:
        self._connection = connection
        self._codec = codec
        self._recent = Recent()
        self._rows: dict[bytes, tuple[int, int]] = {}
        """What is known of rows in this transaction; others may prune them between two."""

    def begin(self) -> None:
        """Another transaction begins."""
        self._rows.clear()

    def keep(self, kept: BodyEntry) -> None:
        """Store it, if it is not there."""
        name = bytes.fromhex(kept.sha256)
        # Most bodies are new, and a short one is compressed as quickly as it is looked for.
        if (len(kept.data) < LEAST_SIZE and name not in self._rows) or self._row(name) is None:
            coded = self._codec.best(kept.data, self._bases(kept))
            base = self._row(bytes.fromhex(coded.base)) if coded.base else None
            cursor = self._connection.execute(
                _KEEP,
                (
                    name, kept.near, len(kept.data), base and base[0],
                    coded.prefix, coded.suffix, coded.depth, coded.data,
                ),
            )  # fmt: skip
            if cursor.rowcount:
                self._rows[name] = cursor.lastrowid or 0, coded.depth
        self._recent.note(kept.sha256, kept.near, kept.data)

    def number(self, sha256: str) -> int | None:
        """The row of a body."""
        row = self._row(bytes.fromhex(sha256))
        return row and row[0]

    def recent(self, sha256: str) -> bytes | None:
        """The body with this hash, if it was stored a moment ago."""
        return self._recent.body(sha256)

    def body(self, sha256: str) -> bytes | None:
        """The body with this hash."""
        return self._recent.body(sha256) or body_of(self._connection, self._codec, sha256)

    def _bases(self, kept: BodyEntry) -> Iterator[tuple[str, bytes, int]]:
        """What this body may build on. Somebody else may have pruned what was here a moment ago."""
        if not kept.near:
            return
        for sha256, body in self._recent.near(kept.near) or self._latest_bodies(kept.near):
            if may_share(body, kept.data) and (row := self._row(bytes.fromhex(sha256))) is not None:
                yield sha256, body, row[1]

    def _latest_bodies(self, near: str) -> list[tuple[str, bytes]]:
        latest = "SELECT id, sha256 FROM bodies WHERE near = ? ORDER BY id DESC LIMIT ?"
        rows = self._connection.execute(latest, (near, CANDIDATES)).fetchall()
        return [(name.hex(), body_with_id(self._connection, self._codec, number)) for number, name in rows]

    def _row(self, name: bytes) -> tuple[int, int] | None:
        row = self._rows.get(name)
        if row is None:
            row = self._connection.execute("SELECT id, depth FROM bodies WHERE sha256 = ?", (name,)).fetchone()
            if row is not None:
                self._rows[name] = row
        return row
