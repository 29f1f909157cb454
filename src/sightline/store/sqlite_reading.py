"""The reading side of an SQLite record: connections of its own, so that a reader never waits for the writer."""

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TypeVar

import msgspec

from sightline.filters.expression import Expression
from sightline.filters.sql import Column, Columns
from sightline.store.entries import BodyEntry, Codec, Entry, FactEntry, KeptEntry, plain_entries, too_new
from sightline.store.search import RecordSearch, Search, SearchTables
from sightline.store.sqlite_blocks import BlockReader
from sightline.store.sqlite_database import asking, body_of, connect_database
from sightline.store.summary import FIELDS, Summary, SummedExchanges, bodies_of

T = TypeVar("T")

_COLUMNS = Columns(
    fields={
        name: Column("tool.value", "EXISTS (SELECT 1 FROM json_each(e.tools) tool WHERE {})")
        if name == "tool"
        else Column("NULLIF(e.status, 0)" if name == "status" else f"e.{column}")
        for name, column in FIELDS.items()
    },
    latest="e.id IN (SELECT id FROM exchanges ORDER BY id DESC LIMIT {})",
)
TABLES: SearchTables[int] = SearchTables(
    _COLUMNS, "exchanges", "words", "seq", "IN (SELECT value FROM json_each({}))", lambda names: json.dumps(list(names))
)


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
            return answer(connection, RecordSearch(TABLES, wanted, now).newest(before, limit))

    def sums(self, wanted: Expression, by: Sequence[str], *, now: float) -> list[SummedExchanges] | None:
        """The sums of all exchanges that the filter takes; see `Store`."""
        with self._connection() as connection, _snapshot(connection):
            return answer(connection, RecordSearch(TABLES, wanted, now).sums(by))

    def oldest(self, wanted: Expression, *, now: float, after: str) -> list[str]:
        """The ids of some exchanges that the filter takes, oldest first, from behind one."""
        with self._connection() as connection, _snapshot(connection):
            return answer(connection, RecordSearch(TABLES, wanted, now).oldest(after))

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


def answer(connection: sqlite3.Connection, search: Search[T]) -> T:
    """Answer the questions of a search; returns what it found."""
    try:
        question = next(search)
        while True:
            question = search.send(connection.execute(question.statement, question.parameters).fetchall())
    except StopIteration as end:
        found: T = end.value
        return found
