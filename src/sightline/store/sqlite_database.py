"""The file of an SQLite record: opening it, migrating it, its errors as faults, and the bodies in it."""

import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from operator import itemgetter
from pathlib import Path
from typing import Any

import msgspec

from sightline.errors import Code, Fault
from sightline.model.exchange import Fact
from sightline.store.entries import (
    CANDIDATES,
    BodyEntry,
    Codec,
    EncodedBody,
    FactEntry,
    KeptEntry,
    Recent,
    join_frames,
    may_share,
    unpack_frames,
)
from sightline.store.sqlite_blocks import RecordBlockWriter
from sightline.store.sqlite_words import carry_words
from sightline.store.store import Migration, load_migrations

FILE_NAME = "record.sqlite3"
MOST_VALUES = 500
"""How many values one query may have."""
_BLOCKS, _PIECES = 4, 5
"""The migrations that moved words into blocks and facts into a run for each exchange, and that moved facts into blocks
of several exchanges."""
_SECURE_DELETE_APP_ID = 0x53474C54
"""The application id of a file in which deleted rows have always been overwritten, or since it was rewritten; earlier
versions did not ensure that."""
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_SETTINGS = (
    "PRAGMA synchronous = NORMAL",
    "PRAGMA temp_store = MEMORY",
    "PRAGMA cache_size = -1000",
    "PRAGMA secure_delete = ON",
    "PRAGMA journal_size_limit = 16777216",
)


def open_database(folder: Path, *, is_forced: bool = False) -> sqlite3.Connection:
    """Open the record of a data folder, created if there is none and migrated to this version. With `is_forced`,
    commits are forced to the disk, so that they survive a crash of the machine."""
    path = folder / FILE_NAME
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        # SQLite would make it readable for others, and gives its WAL files the same permissions.
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    except OSError as error:
        hint = "Name another folder with --data."
        raise Fault(Code.CONFIG, f"{path}: {error.strerror}", hint=hint) from None
    try:
        connection = connect_database(path)
        try:
            _migrate(connection, load_migrations("sqlite"))
            if is_forced:
                connection.execute("PRAGMA synchronous = FULL")
        except BaseException:
            connection.close()
            raise
    except sqlite3.Error as error:
        raise _opening_fault(path, error) from None
    return connection


def connect_database(path: Path) -> sqlite3.Connection:
    """A connection to a record, which may move between threads."""
    connection = sqlite3.connect(
        path, timeout=10.0, isolation_level=None, check_same_thread=False, cached_statements=256
    )
    try:
        # It has an effect only before anything is in the file.
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        connection.execute("PRAGMA journal_mode = WAL").fetchall()
        for setting in _SETTINGS:
            connection.execute(setting)
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def erase_remains(connection: sqlite3.Connection) -> None:
    """Leave nothing of deleted data in the file and its WAL: unused pages are truncated, and the WAL is emptied. A
    record of an earlier version is rewritten once, because deleted rows left traces in other pages. Raises a Fault if
    another process reads for so long that the WAL cannot be emptied."""
    with asking():
        (mark,) = connection.execute("PRAGMA application_id").fetchone()
        if mark != _SECURE_DELETE_APP_ID:
            connection.execute("PRAGMA temp_store = FILE")  # it may be larger than memory
            connection.execute("VACUUM")
            connection.execute(f"PRAGMA application_id = {_SECURE_DELETE_APP_ID}")
    if not shrink(connection):
        hint = "Do the same again: it is removed from the record, but not yet from its log file."
        raise Fault(Code.CONFIG, "another process is reading the record", hint=hint)


def shrink(connection: sqlite3.Connection) -> bool:
    """Return unused pages to the disk; returns False if another process reads, so that the WAL cannot be emptied."""
    with asking():
        # It frees one page per step and returns no rows, so only a script runs it to its end.
        connection.executescript("PRAGMA incremental_vacuum")
        (is_busy, _, _) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    return not is_busy


@contextmanager
def changing(connection: sqlite3.Connection) -> Iterator[None]:
    """A transaction: everything inside happens, or nothing. Raises a Fault if the database reports an error, except for
    errors that the values cause."""
    try:
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
    except (sqlite3.DataError, sqlite3.IntegrityError):
        raise  # caused by the values, so trying again would not help
    except sqlite3.Error as error:
        raise database_fault(error) from None


@contextmanager
def asking() -> Iterator[None]:
    """Raise errors of the database as Faults."""
    try:
        yield
    except sqlite3.Error as error:
        raise database_fault(error) from None


def select_among(connection: sqlite3.Connection, question: str, values: Iterable[object]) -> Iterator[tuple[Any, ...]]:
    """The rows of a query with these values in place of `{}`, queried in portions."""
    wanted = list(values)
    for some in (wanted[at : at + MOST_VALUES] for at in range(0, len(wanted), MOST_VALUES)):
        yield from connection.execute(question.format(",".join("?" * len(some))), some).fetchall()


def database_fault(error: sqlite3.Error) -> Fault:
    """The fault for an error of the database."""
    if _is_damage(error):
        hint = "Start Sightline again: what is damaged is moved aside, and kept."
        return Fault(Code.CONFIG, f"the record is damaged: {error}", hint=hint)
    hint = "Check the space and the rights of the data folder; what is recorded meanwhile is kept in its journal."
    return Fault(Code.CONFIG, f"the record cannot be used: {error}", hint=hint)


def _is_damage(error: sqlite3.Error) -> bool:
    # The upper bytes of a code only add detail.
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGED


def _opening_fault(path: Path, error: sqlite3.Error) -> Fault:
    if not _is_damage(error):
        return database_fault(error)
    aside = _move_aside(path)
    hint = "Start Sightline again for a new record. What can be saved of the old one is in that file."
    return Fault(Code.CONFIG, f"{path} is damaged ({error}) and was moved to {aside.name}", hint=hint)


def _move_aside(path: Path) -> Path:
    """Rename a damaged file and its WAL files, which hold its latest pages, and return its new path."""
    number = 1
    while (aside := path.with_name(f"{path.name}.damaged-{number}")).exists():
        number += 1
    for ending in ("", "-wal", "-shm"):
        part = path.with_name(path.name + ending)
        if part.exists():
            part.rename(aside.with_name(aside.name + ending))
    return aside


def _migrate(connection: sqlite3.Connection, steps: list[Migration]) -> None:
    """Run the missing migrations, all or none."""
    latest = steps[-1].version
    if _version(connection) == latest:
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        at = _version(connection)
        if not at:
            connection.execute(f"PRAGMA application_id = {_SECURE_DELETE_APP_ID}")
        if at > latest:
            message = f"the record was made by a newer Sightline (its version is {at}, and {latest} is known)"
            raise Fault(Code.CONFIG, message, hint="Use that Sightline, or another folder with --data.")
        for step in steps:
            if step.version > at:
                for statement in _statements(step.sql):
                    connection.execute(statement)
        if at < _BLOCKS:
            carry_words(connection)
        if at < _PIECES:
            _carry_facts(connection, at)
        connection.execute(f"PRAGMA user_version = {latest}")
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _version(connection: sqlite3.Connection) -> int:
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return version


def _statements(sql: str) -> Iterator[str]:
    """Split a script into statements, because running it as a script would end the transaction."""
    pending = ""
    for line in sql.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            yield pending
            pending = ""


_RUN = msgspec.msgpack.Decoder(list[tuple[int, float, Fact]])
_RAW_RUN = msgspec.msgpack.Decoder(list[tuple[int, float, msgspec.Raw]])


def _carry_facts(connection: sqlite3.Connection, version: int) -> None:
    """Move the facts that an earlier version stored one by one, or in a run for each exchange, into blocks."""
    codec = Codec()
    writer = RecordBlockWriter(connection, codec)
    rows = connection.execute("SELECT seq, id FROM exchanges ORDER BY seq").fetchall()
    for at in range(0, len(rows), 1000):
        writer.begin()
        for row, exchange in rows[at : at + 1000]:
            entries = (_facts_alone if version < _BLOCKS else _facts_in_runs)(connection, codec, row, exchange)
            if entries:
                number = writer.add(row, entries)
                connection.execute("UPDATE exchanges SET blocks = ? WHERE seq = ?", (str(number), row))
        writer.end()
    for table in ("facts", "frames", "runs") if version < _BLOCKS else ("runs",):
        connection.execute(f"DROP TABLE {table}")


_Carried = list[KeptEntry | dict[str, object]]


def _facts_alone(connection: sqlite3.Connection, codec: Codec, row: int, exchange: str) -> _Carried:
    facts = [
        (n, _raw_fact(exchange, n, at, data))
        for n, at, data in connection.execute("SELECT n, at, data FROM facts WHERE exchange = ?", (row,))
    ]
    frames: list[tuple[int, KeptEntry | dict[str, object]]] = [
        (entry.n, entry)
        for (data,) in connection.execute("SELECT data FROM frames WHERE exchange = ?", (row,))
        for entry in join_frames(unpack_frames(codec, exchange, data))
        if not isinstance(entry, BodyEntry)
    ]
    return [entry for _, entry in sorted([*facts, *frames], key=itemgetter(0))]


def _facts_in_runs(connection: sqlite3.Connection, codec: Codec, row: int, exchange: str) -> _Carried:
    entries: _Carried = []
    whole = "SELECT data FROM runs WHERE id BETWEEN ? AND ? ORDER BY id"
    for (packed,) in connection.execute(whole, (row << 24, (row + 1 << 24) - 1)):
        data = codec.unpack(packed)
        try:
            entries += join_frames([FactEntry(exchange, n, at, fact) for n, at, fact in _RUN.decode(data)])
        except msgspec.ValidationError:  # a kind of fact that only a newer version knows
            entries += [_raw_fact(exchange, n, at, fact) for n, at, fact in _RAW_RUN.decode(data)]
    return entries


def _raw_fact(exchange: str, n: int, at: float, data: bytes | msgspec.Raw) -> dict[str, object]:
    return {"type": "fact", "exchange": exchange, "n": n, "at": at, "fact": msgspec.Raw(data)}


_CHAIN = """
WITH RECURSIVE chain (base, prefix, suffix, data, step) AS (
    SELECT base, prefix, suffix, data, 0 FROM bodies WHERE {}
    UNION ALL
    SELECT b.base, b.prefix, b.suffix, b.data, step + 1 FROM bodies b JOIN chain ON b.id = chain.base
)
SELECT base, prefix, suffix, data FROM chain ORDER BY step DESC
"""
_KEEP = "INSERT INTO bodies (id, sha256, near, size, base, prefix, suffix, depth, data) VALUES (?,?,?,?,?,?,?,?,?)"
_BY_HASH, _BY_ID = _CHAIN.format("sha256 = ?"), _CHAIN.format("id = ?")


def body_of(connection: sqlite3.Connection, codec: Codec, sha256: str) -> bytes | None:
    """The body with this hash; None if there is none."""
    try:
        name = bytes.fromhex(sha256)
    except ValueError:
        return None
    return _decode_chain(codec, connection.execute(_BY_HASH, (name,)).fetchall())


def body_with_id(connection: sqlite3.Connection, codec: Codec, number: int) -> bytes:
    """The body in this row. Raises a Fault if it is missing."""
    body = _decode_chain(codec, connection.execute(_BY_ID, (number,)).fetchall())
    if body is None:
        raise Fault(Code.CONFIG, f"body {number} is missing in the record", hint="The record is damaged.")
    return body


def _decode_chain(codec: Codec, chain: list[tuple[int | None, int, int, bytes]]) -> bytes | None:
    body: bytes | None = None
    for base, prefix, suffix, data in chain:
        body = codec.restore(EncodedBody("" if base is None else "base", prefix, suffix, data), body or b"")
    return body


class SqliteBodies:
    """Stores bodies, inside the caller's transaction, on one thread."""

    def __init__(self, connection: sqlite3.Connection, codec: Codec) -> None:
        self._connection = connection
        self._codec = codec
        self._recent = Recent()
        self._rows: dict[bytes, tuple[int, int]] = {}
        """The known rows, with id and depth, in this transaction; other processes may prune between two."""
        self._beginnings: dict[str, tuple[bytes, int]] = {}

    def begin(self) -> None:
        """Begin a transaction."""
        self._rows.clear()
        self._beginnings.clear()

    def keep(self, bodies: Sequence[BodyEntry]) -> None:
        """Store the bodies that the record does not have."""
        if not bodies:
            return
        names = [bytes.fromhex(each.sha256) for each in bodies]
        found = select_among(self._connection, "SELECT sha256, id, depth FROM bodies WHERE sha256 IN ({})", names)
        self._rows.update((name, (number, depth)) for name, number, depth in found)
        (latest,) = self._connection.execute("SELECT max(id) FROM bodies").fetchone()
        latest = latest or 0
        rows: list[tuple[int, bytes, str, int, int | None, int, int, int, bytes]] = []
        for kept, name in zip(bodies, names, strict=True):
            if name not in self._rows:
                coded = self._codec.best(kept.data, self._bases(kept))
                base = self._row(bytes.fromhex(coded.base)) if coded.base else None
                if (known := self._recent.body(coded.base)) is not None:
                    self._beginnings[kept.sha256] = known, coded.prefix
                latest += 1
                rows.append(
                    (
                        latest, name, kept.near, len(kept.data), base and base[0],
                        coded.prefix, coded.suffix, coded.depth, coded.data,
                    )
                )  # fmt: skip
                self._rows[name] = latest, coded.depth
            self._recent.note(kept.sha256, kept.near, kept.data)
        self._connection.executemany(_KEEP, rows)

    def number(self, sha256: str) -> int | None:
        """The row id of a body; None if it is not stored."""
        row = self._row(bytes.fromhex(sha256))
        return row and row[0]

    def beginning(self, sha256: str) -> tuple[bytes, int] | None:
        """The body that this body of the transaction was based on, and how many leading bytes both share; None if there
        is none."""
        return self._beginnings.get(sha256)

    def forget_recent(self) -> None:
        """Keep no body in memory; the next one of a session is compared with those in the file."""
        self._recent = Recent()
        self._beginnings.clear()

    def body(self, sha256: str) -> bytes | None:
        """The body with this hash; None if there is none."""
        return self._recent.body(sha256) or body_of(self._connection, self._codec, sha256)

    def _bases(self, kept: BodyEntry) -> Iterator[tuple[str, bytes, int]]:
        """The bodies that this one may be based on. Another process may have pruned a body in the meantime."""
        if not kept.near:
            return
        for sha256, body in self._recent.near(kept.near) or self._latest_bodies(kept.near):
            if may_share(body, kept.data) and (row := self._row(bytes.fromhex(sha256))) is not None:
                yield sha256, body, row[1]

    def _latest_bodies(self, near: str) -> Iterator[tuple[str, bytes]]:
        """The latest bodies of a session, each read when it is needed: usually the first is enough."""
        latest = "SELECT id, sha256 FROM bodies WHERE near = ? ORDER BY id DESC LIMIT ?"
        for number, name in self._connection.execute(latest, (near, CANDIDATES)).fetchall():
            yield name.hex(), body_with_id(self._connection, self._codec, number)

    def _row(self, name: bytes) -> tuple[int, int] | None:
        row = self._rows.get(name)
        if row is None:
            row = self._connection.execute("SELECT id, depth FROM bodies WHERE sha256 = ?", (name,)).fetchone()
            if row is not None:
                self._rows[name] = row
        return row
