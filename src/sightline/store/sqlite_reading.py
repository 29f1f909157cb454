"""The reading side of an SQLite record: connections of its own, so that a reader never waits for the writer."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

import msgspec

from sightline.filters.expression import Expression, Latest, SetTerm
from sightline.filters.predicate import alone, matches
from sightline.filters.sql import Column, Columns, condition
from sightline.store.entries import BodyEntry, Codec, Entry, FactEntry, KeptEntry, plain_entries, too_new
from sightline.store.sqlite_blocks import BlockReader
from sightline.store.sqlite_database import asking, body_of, connect_database
from sightline.store.sqlite_words import WordSearch
from sightline.store.summary import FIELDS, NAMES, ExchangeSubject, Summary, bodies_of, summary_in

_PAGE = 1000
_MOST_IDS = 10_000
"""How many exchanges are named at once to export them: each question about words scans all of them again."""
_LAST = "\U0010ffff"
"""Behind every id."""


_COLUMNS = Columns(
    fields={
        name: Column("tool.value", "EXISTS (SELECT 1 FROM json_each(e.tools) tool WHERE {})")
        if name == "tool"
        else Column("NULLIF(e.status, 0)" if name == "status" else f"e.{column}")
        for name, column in FIELDS.items()
    },
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
        with self._connection() as connection, _snapshot(connection):
            pieces = plain_entries(_pieces(connection, Codec(), exchange))
            return [entry for entry in pieces if type(entry) is FactEntry]

    def body(self, exchange: str, sha256: str) -> bytes | None:
        """The body of an exchange with this hash."""
        codec = Codec()
        with self._connection() as connection, _snapshot(connection):
            if (body := body_of(connection, codec, sha256)) is not None:
                return body
            pieces = _pieces(connection, codec, exchange)
        return next((each.data for each in pieces if type(each) is BodyEntry and each.sha256 == sha256), None)

    def find(self, wanted: Expression, *, now: float, before: str, limit: int) -> list[Summary]:
        """Exchanges that the filter takes, newest first."""
        with self._connection() as connection, _snapshot(connection):
            query = _Query(connection, wanted, now)
            return [summary_in(row[1:]) for row in query.rows("id < ? ORDER BY id DESC", before or _LAST, limit)]

    def oldest(self, wanted: Expression, *, now: float, after: str) -> list[str]:
        """The ids of some exchanges that the filter takes, oldest first, from behind one."""
        with self._connection() as connection, _snapshot(connection):
            query = _Query(connection, wanted, now)
            return [str(row[1]) for row in query.rows("id > ? ORDER BY id", after, _MOST_IDS)]

    def entries(self, exchange: str) -> list[Entry]:
        """All of one exchange, each body before the fact that names it."""
        codec = Codec()
        entries: list[Entry] = []
        names: set[str] = set()
        with self._connection() as connection, _snapshot(connection):
            pieces = _pieces(connection, codec, exchange)
            small = {each.sha256: each for each in pieces if type(each) is BodyEntry}
            for entry in plain_entries(pieces):
                if type(entry) is not FactEntry:
                    continue
                for name in bodies_of(entry.fact):
                    if name in names:
                        continue
                    names.add(name)
                    if (stored := small.get(name)) is not None:
                        entries.append(stored)
                    elif (body := body_of(connection, codec, name)) is not None:
                        entries.append(BodyEntry(name, body, _near(connection, name)))
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


@contextmanager
def _snapshot(connection: sqlite3.Connection) -> Iterator[None]:
    """All questions inside are about one state of the record."""
    connection.execute("BEGIN")
    try:
        yield
    finally:
        connection.execute("COMMIT")


def _pieces(connection: sqlite3.Connection, codec: Codec, exchange: str) -> list[KeptEntry]:
    row = connection.execute("SELECT seq, blocks FROM exchanges WHERE id = ?", (exchange,)).fetchone()
    if row is None:
        return []
    try:
        return BlockReader(connection, codec).pieces(*row)
    except msgspec.ValidationError as error:
        raise too_new(error) from None


def _near(connection: sqlite3.Connection, sha256: str) -> str:
    row = connection.execute("SELECT near FROM bodies WHERE sha256 = ?", (bytes.fromhex(sha256),)).fetchone()
    return "" if row is None else str(row[0])


_Row = tuple[Any, ...]


class _Query:
    """A filter as questions: what columns decide is asked first, then the words are scanned, then each exchange that is
    left is looked at."""

    def __init__(self, connection: sqlite3.Connection, wanted: Expression, now: float) -> None:
        self._connection = connection
        self._wanted = wanted
        self._now = now
        self._condition = condition(wanted, _COLUMNS, now=now)
        self._search = WordSearch(connection, wanted)

    def rows(self, order: str, place: str, limit: int) -> list[_Row]:
        """The rows of the first exchanges in this order, from behind a place."""
        where, parameters = f"WHERE ({self._condition.sql}) AND e.{order} LIMIT ?", self._condition.parameters
        if self._condition.is_complete:
            return self._connection.execute(f"{_SELECT} {where}", (*parameters, place, limit)).fetchall()
        found: list[_Row] = []
        while len(found) < limit:
            page = self._connection.execute(
                f"SELECT e.seq, e.id FROM exchanges e {where}", (*parameters, place, _PAGE)
            ).fetchall()
            for seq in self._search.candidates([seq for seq, _ in page]):
                row = self._connection.execute(f"{_SELECT} WHERE e.seq = ?", (seq,)).fetchone()
                if self._takes(seq, summary_in(row[1:])):
                    found.append(row)
            if len(page) < _PAGE:
                break
            place = page[-1][1]
        return found[:limit]

    def _takes(self, seq: int, summary: Summary) -> bool:
        """Whether the filter takes this exchange, all things considered."""

        def belongs(term: SetTerm) -> bool:
            if not isinstance(term, Latest):
                return alone(term)
            newer = "SELECT count(*) FROM (SELECT 1 FROM exchanges WHERE id > ? LIMIT ?)"
            return int(self._connection.execute(newer, (summary.id, term.count)).fetchone()[0]) < term.count

        subject = ExchangeSubject(summary, lambda pattern: self._search.says(seq, pattern))
        return matches(self._wanted, subject, now=self._now, belongs=belongs)
