"""Forgetting: exchanges that are too old or too many, the bodies that nobody needs any more, and the room they took."""

import sqlite3

from sightline.store.delta import Codec
from sightline.store.interruption import OPEN_STATES
from sightline.store.sqlite_bodies import body_with_id
from sightline.store.sqlite_database import asking, changing
from sightline.store.sqlite_digests import forget_words
from sightline.store.store import Pruned

_AT_ONCE = 64
_CAREFUL = 0.7
_ENDED = f"state NOT IN ({', '.join(repr(state) for state in OPEN_STATES)})"


def prune(connection: sqlite3.Connection, *, older_than: float | None, larger_than: int | None) -> Pruned:
    """Forget what ended before a time of day, and the oldest until the record has at most that many bytes."""
    codec = Codec()
    before, gone = record_size(connection), 0
    while older_than is not None and (count := _forget_some(connection, codec, older_than, _AT_ONCE)):
        gone += count
    if gone:
        _merge(connection)
    while larger_than is not None and (used := record_size(connection)) > larger_than:
        count = _forget_share(connection, codec, (used - larger_than) / used)
        gone += count
        if not count:
            break
    if gone:
        _shrink(connection)
    left = record_size(connection)
    return Pruned(gone, max(0, before - left), left)


def record_size(connection: sqlite3.Connection) -> int:
    """How much of the file holds something of the record; logs stay, so that they are not counted."""
    with asking():
        (logs,) = connection.execute("SELECT coalesce(sum(size), 0) FROM logs").fetchone()
        (count,), (free,), (size,) = (
            connection.execute(f"PRAGMA {name}").fetchone() for name in ("page_count", "freelist_count", "page_size")
        )
    return max(0, int((count - free) * size - logs))


def _forget_share(connection: sqlite3.Connection, codec: Codec, share: float) -> int:
    """Forget most of this share of the exchanges; less than all, because the oldest may be the largest."""
    with asking():
        (total,) = connection.execute("SELECT count(*) FROM exchanges").fetchone()
    wanted = max(1, int(total * share * _CAREFUL))
    gone = 0
    while gone < wanted and (count := _forget_some(connection, codec, None, min(_AT_ONCE, wanted - gone))):
        gone += count
    # The index of words keeps what is gone until its parts are merged, and only then can be measured.
    _merge(connection)
    return gone


def _forget_some(connection: sqlite3.Connection, codec: Codec, older_than: float | None, most: int) -> int:
    """Forget a few of the oldest; the answer is how many."""
    with changing(connection):
        rows = connection.execute(
            f"SELECT seq FROM exchanges WHERE {_ENDED} AND (?1 IS NULL OR at < ?1) ORDER BY id LIMIT ?2",
            (older_than, most),
        ).fetchall()
        touched: set[int] = set()
        for (seq,) in rows:
            touched |= {body for (body,) in connection.execute("SELECT body FROM uses WHERE exchange = ?", (seq,))}
            forget_words(connection, codec, seq)
            for table in ("uses", "frames", "facts"):
                connection.execute(f"DELETE FROM {table} WHERE exchange = ?", (seq,))
            connection.execute("DELETE FROM exchanges WHERE seq = ?", (seq,))
        _forget_bodies(connection, codec, touched)
    return len(rows)


def _forget_bodies(connection: sqlite3.Connection, codec: Codec, touched: set[int]) -> None:
    """Forget those of these bodies that no exchange has any more; what was built on them is built anew first."""
    unused = {
        number
        for number in touched
        if connection.execute("SELECT 1 FROM uses WHERE body = ? LIMIT 1", (number,)).fetchone() is None
    }
    for number in sorted(unused):
        heirs = connection.execute("SELECT id FROM bodies WHERE base = ? ORDER BY id", (number,)).fetchall()
        _rebase(connection, codec, [heir for (heir,) in heirs if heir not in unused])
    for number in unused:
        connection.execute("DELETE FROM bodies WHERE id = ?", (number,))


def _rebase(connection: sqlite3.Connection, codec: Codec, heirs: list[int]) -> None:
    """The first of these bodies stands alone from now on, and the others build on it."""
    wholes = [(heir, body_with_id(connection, codec, heir)) for heir in heirs]
    change = "UPDATE bodies SET base = ?, prefix = ?, suffix = ?, depth = ?, data = ? WHERE id = ?"
    for heir, body in wholes:
        first, base = wholes[0]
        coded = codec.whole(body) if heir == first else codec.against(body, base, "first", 0)
        parent = first if coded.base else None
        connection.execute(change, (parent, coded.prefix, coded.suffix, coded.depth, coded.data, heir))


def _merge(connection: sqlite3.Connection) -> None:
    with asking():
        connection.execute("INSERT INTO search (search) VALUES ('optimize')")


def _shrink(connection: sqlite3.Connection) -> None:
    """Give the room back to the disk."""
    with asking():
        # It gives back one page a step and has no rows to fetch, so that only a script takes it to its end.
        connection.executescript("PRAGMA incremental_vacuum")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
