"""The reading side of an SQLite record: connections of its own, so that a reader never waits for the writer."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, SimpleQueue

from sightline.filters.expression import EVERYTHING, Expression, Latest, SetTerm
from sightline.filters.predicate import alone, literals, matches
from sightline.filters.sql import Column, Columns, TextSearch, condition
from sightline.store.entries import BodyEntry, Codec, Entry, FactEntry, fact_of, unpack_frames
from sightline.store.sqlite_database import asking, body_of, connect_database
from sightline.store.summary import FIELDS, NAMES, ExchangeSubject, Summary, bodies_of, summary_in

_PAGE = 200
_MOST_TRIGRAMS = 48


def _trigrams(pattern: str) -> str | None:
    """A query for the index: every run of three ASCII letters that what is looked for must hold. Other alphabets are
    left to the predicate, because SQLite and Python fold their case differently."""
    runs = [
        run for literal in literals(pattern) for run in "".join(c if c.isascii() else "\0" for c in literal).split("\0")
    ]
    found = dict.fromkeys(run[at : at + 3] for run in runs for at in range(len(run) - 2))
    quoted = ['"{}"'.format(three.replace('"', '""')) for three in list(found)[:_MOST_TRIGRAMS]]
    return " AND ".join(quoted) or None


_COLUMNS = Columns(
    fields={
        name: Column("tool.value", "EXISTS (SELECT 1 FROM json_each(e.tools) tool WHERE {})")
        if name == "tool"
        else Column("NULLIF(e.status, 0)" if name == "status" else f"e.{column}")
        for name, column in FIELDS.items()
    },
    text=TextSearch("e.seq IN (SELECT rowid / 2 FROM search WHERE search MATCH {})", _trigrams),
    latest="e.id IN (SELECT id FROM exchanges ORDER BY id DESC LIMIT {})",
)
_SELECT = f"SELECT e.seq, {', '.join(f'e.{name}' for name in NAMES)} FROM exchanges e"


class SqliteReader:
    """Answers questions about the record, on any thread, several at once."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._free: SimpleQueue[sqlite3.Connection] = SimpleQueue()
        self._is_closed = False

    def facts(self, exchange: str) -> list[FactEntry]:
        """The facts of an exchange in their order."""
        with self._connection() as connection:
            return _facts(connection, Codec(), exchange)

    def body(self, sha256: str) -> bytes | None:
        """The body with this hash."""
        with self._connection() as connection:
            return body_of(connection, Codec(), sha256)

    def find(self, wanted: Expression, *, now: float, before: str, limit: int) -> list[Summary]:
        """Exchanges that the filter takes, newest first."""
        query = condition(wanted, _COLUMNS, now=now)
        found: list[Summary] = []
        with self._connection() as connection:
            while len(found) < limit:
                size = limit - len(found) if query.is_complete else _PAGE
                rows = connection.execute(
                    f"{_SELECT} WHERE ({query.sql}) AND (? = '' OR e.id < ?) ORDER BY e.id DESC LIMIT ?",
                    (*query.parameters, before, before, size),
                ).fetchall()
                for seq, *row in rows:
                    summary = summary_in(row)
                    if query.is_complete or _holds(connection, wanted, seq, summary, now):
                        found.append(summary)
                if len(rows) < size:
                    break
                before = rows[-1][1]
        return found[:limit]

    def oldest(self, wanted: Expression, *, now: float, after: str) -> list[str]:
        """The ids of some exchanges that the filter takes, oldest first, from behind one."""
        query = condition(wanted, _COLUMNS, now=now)
        with self._connection() as connection:
            while True:
                rows = connection.execute(
                    f"{_SELECT} WHERE ({query.sql}) AND e.id > ? ORDER BY e.id LIMIT ?",
                    (*query.parameters, after, _PAGE),
                ).fetchall()
                found = [
                    str(row[0])
                    for seq, *row in rows
                    if query.is_complete or _holds(connection, wanted, seq, summary_in(row), now)
                ]
                if found or len(rows) < _PAGE:
                    return found
                after = rows[-1][1]

    def entries(self, exchange: str) -> list[Entry]:
        """All of one exchange, each body before the fact that names it."""
        codec = Codec()
        entries: list[Entry] = []
        names: set[str] = set()
        with self._connection() as connection:
            for entry in _facts(connection, codec, exchange):
                for name in bodies_of(entry.fact):
                    if name not in names and (body := body_of(connection, codec, name)) is not None:
                        entries.append(BodyEntry(name, body, _near(connection, name)))
                    names.add(name)
                entries.append(entry)
        return entries

    def close(self) -> None:
        """Let the file go, as soon as questions under way are answered."""
        self._is_closed = True
        while not self._free.empty():
            self._free.get().close()

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        with asking():
            try:
                connection = self._free.get_nowait()
            except Empty:
                connection = connect_database(self._path)
            try:
                yield connection
            finally:
                if self._is_closed:
                    connection.close()
                else:
                    self._free.put(connection)


def _facts(connection: sqlite3.Connection, codec: Codec, exchange: str) -> list[FactEntry]:
    connection.execute("BEGIN")
    try:
        row = connection.execute("SELECT seq FROM exchanges WHERE id = ?", (exchange,)).fetchone()
        if row is None:
            return []
        plain = connection.execute("SELECT n, at, data FROM facts WHERE exchange = ?", row)
        entries = [FactEntry(exchange, n, at, fact_of(data)) for n, at, data in plain]
        for (data,) in connection.execute("SELECT data FROM frames WHERE exchange = ?", row):
            entries += unpack_frames(codec, exchange, data)
    finally:
        connection.execute("COMMIT")
    return sorted(entries, key=lambda each: each.n)


def _near(connection: sqlite3.Connection, sha256: str) -> str:
    row = connection.execute("SELECT near FROM bodies WHERE sha256 = ?", (bytes.fromhex(sha256),)).fetchone()
    return "" if row is None else str(row[0])


def _holds(connection: sqlite3.Connection, wanted: Expression, seq: int, summary: Summary, now: float) -> bool:
    """Whether the filter takes this exchange, all things considered."""

    def words() -> list[str]:
        codec = Codec()
        rows = connection.execute("SELECT words FROM texts WHERE id IN (?, ?)", (2 * seq, 2 * seq + 1))
        return [codec.unpack(packed).decode() for (packed,) in rows]

    def belongs(term: SetTerm) -> bool:
        if not isinstance(term, Latest):
            return alone(term)
        newer = "SELECT count(*) FROM (SELECT 1 FROM exchanges WHERE id > ? LIMIT ?)"
        return int(connection.execute(newer, (summary.id, term.count)).fetchone()[0]) < term.count

    return wanted == EVERYTHING or matches(wanted, ExchangeSubject(summary, words), now=now, belongs=belongs)
