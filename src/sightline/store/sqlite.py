"""The record of one data folder in SQLite, which needs no server, account or setup: store, logs and retention."""

import asyncio
import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TypeVar

import msgspec

from sightline.filters.expression import Expression
from sightline.store.entries import BodyEntry, Codec, Entry, FactEntry, KeptEntry, plain_entries, too_new
from sightline.store.importer import Fsync, Importer
from sightline.store.journal import JournalWriter
from sightline.store.recording import JournaledStore, RecorderProcess
from sightline.store.search import RecordSearch, Search, SearchTables, record_columns
from sightline.store.sqlite_blocks import BlockReader, block_numbers, forget_pieces, measure_pieces
from sightline.store.sqlite_database import (
    FILE_NAME,
    asking,
    body_of,
    body_with_id,
    changing,
    connect_database,
    erase_remains,
    open_database,
    shrink,
)
from sightline.store.sqlite_sink import SqliteSink
from sightline.store.sqlite_words import forget_words, measure_blocks
from sightline.store.store import Forgotten, Line, Log, Pruned, overtaken
from sightline.store.summary import OPEN_STATES, PriceList, bodies_first, bodies_of

T = TypeVar("T")

_FIRST = "INSERT OR IGNORE INTO logs (name, lines, size, began, latest) VALUES (?1, ?2, ?3, ?4, ?4)"
_NEXT = "UPDATE logs SET lines = lines + ?2, size = size + ?3, latest = ?4 WHERE name = ?1 AND lines = ?5"
_LINES = "SELECT n, at, data FROM log_lines WHERE log = (SELECT id FROM logs WHERE name = ?) AND n > ? ORDER BY n"
_LOGS = "SELECT name, lines, began, latest FROM logs WHERE substr(name, 1, ?) = ? ORDER BY latest DESC, id DESC"


class SqliteLogbook:
    """See `Logbook`. All calls run on one thread, in their order."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="logbook")
        self._connection: sqlite3.Connection | None = None

    async def append(self, log: str, after: int, data: Sequence[bytes], at: float) -> None:
        def insert(connection: sqlite3.Connection) -> None:
            with changing(connection):
                size = sum(map(len, data))
                known = (log, len(data), size, at)
                done = connection.execute(_NEXT, (*known, after)) if after else connection.execute(_FIRST, known)
                if not done.rowcount:
                    raise overtaken(log)
                (number,) = connection.execute("SELECT id FROM logs WHERE name = ?", (log,)).fetchone()
                rows = ((number, n, at, line) for n, line in enumerate(data, after + 1))
                connection.executemany("INSERT INTO log_lines VALUES (?, ?, ?, ?)", rows)

        if data:
            await self._do(insert)

    async def lines(self, log: str, after: int = 0) -> list[Line]:
        return await self._do(lambda connection: [Line(*row) for row in connection.execute(_LINES, (log, after))])

    async def logs(self, prefix: str = "") -> list[Log]:
        named = (len(prefix), prefix)
        return await self._do(lambda connection: [Log(*row) for row in connection.execute(_LOGS, named)])

    async def rewrite(self, log: str, lines: Mapping[int, bytes]) -> None:
        def write(connection: sqlite3.Connection) -> None:
            with changing(connection):
                row = connection.execute("SELECT id FROM logs WHERE name = ?", (log,)).fetchone()
                for n, data in lines.items() if row is not None else ():
                    connection.execute("UPDATE log_lines SET data = ? WHERE log = ? AND n = ?", (data, row[0], n))
                if row is not None:
                    size = "(SELECT coalesce(sum(length(data)), 0) FROM log_lines WHERE log = ?1)"
                    connection.execute(f"UPDATE logs SET size = {size} WHERE id = ?1", row)

        if lines:
            await self._do(write)

    async def forget(self, log: str) -> None:
        def forgotten(connection: sqlite3.Connection) -> None:
            with changing(connection):
                connection.execute("DELETE FROM log_lines WHERE log = (SELECT id FROM logs WHERE name = ?)", (log,))
                connection.execute("DELETE FROM logs WHERE name = ?", (log,))

        await self._do(forgotten)

    def close(self) -> None:
        """Finish the calls in progress, and close the file."""
        self._thread.shutdown()
        if self._connection is not None:
            self._connection.close()

    async def _do(self, work: Callable[[sqlite3.Connection], T]) -> T:
        def run() -> T:
            with asking():
                if self._connection is None:
                    self._connection = connect_database(self._path)
                return work(self._connection)

        return await asyncio.get_running_loop().run_in_executor(self._thread, run)


_COLUMNS = record_columns("exchanges", "json_each(e.tools)")
TABLES: SearchTables[int] = SearchTables(
    _COLUMNS, "exchanges", "words", "seq", "IN (SELECT value FROM json_each({}))", lambda names: json.dumps(list(names))
)


class SqliteReader:
    """Reads the record on any thread, several at once, with its own connections: a reader never waits for the
    writer."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._free: SimpleQueue[sqlite3.Connection] = SimpleQueue()
        self._is_closed = False

    def facts(self, exchange: str) -> list[FactEntry]:
        """The facts of an exchange in their order."""
        with self._snapshot() as connection:
            pieces = plain_entries(_pieces(connection, Codec(), exchange))
            return [entry for entry in pieces if type(entry) is FactEntry]

    def body(self, exchange: str, sha256: str) -> bytes | None:
        """The body of an exchange with this hash; None if there is none."""
        codec = Codec()
        with self._snapshot() as connection:
            if (body := body_of(connection, codec, sha256)) is not None:
                return body
            pieces = _pieces(connection, codec, exchange)
        return next((each.data for each in pieces if type(each) is BodyEntry and each.sha256 == sha256), None)

    def search(self, search: Search[T]) -> T:
        """Run a search and return its result."""
        with self._snapshot() as connection:
            return answer(connection, search)

    def entries(self, exchange: str) -> list[Entry]:
        """All entries of one exchange, each body before the fact that names it."""
        codec = Codec()
        with self._snapshot() as connection:
            pieces = _pieces(connection, codec, exchange)
            facts = [entry for entry in plain_entries(pieces) if type(entry) is FactEntry]
            bodies = {each.sha256: each for each in pieces if type(each) is BodyEntry}
            for name in {name for entry in facts for name in bodies_of(entry.fact)} - bodies.keys():
                if (body := body_of(connection, codec, name)) is not None:
                    bodies[name] = BodyEntry(name, body, _near(connection, name))
        return bodies_first(facts, bodies)

    def close(self) -> None:
        """Close the file as soon as the reads in progress have ended."""
        self._is_closed = True
        while not self._free.empty():
            self._free.get().close()

    @contextmanager
    def _snapshot(self) -> Iterator[sqlite3.Connection]:
        """A connection in a transaction, so that all its queries see the same state of the record."""
        with asking():
            try:
                connection = self._free.get_nowait()
            except Empty:
                connection = connect_database(self._path)
            try:
                connection.execute("BEGIN")
                try:
                    yield connection
                finally:
                    connection.execute("COMMIT")
            finally:
                if self._is_closed:
                    connection.close()
                else:
                    self._free.put(connection)


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
    """Run the queries of a search and return its result."""
    try:
        question = next(search)
        while True:
            question = search.send(connection.execute(question.statement, question.parameters).fetchall())
    except StopIteration as end:
        found: T = end.value
        return found


_AT_ONCE = 64
_SAFETY_FACTOR = 0.7
_ENDED = f"state NOT IN ({', '.join(repr(state) for state in OPEN_STATES)})"


def prune(connection: sqlite3.Connection, *, older_than: float | None, larger_than: int | None) -> Pruned:
    """Remove ended exchanges that were received before a time of day, and the oldest until the record has at most so
    many bytes."""
    codec = Codec()
    before, gone = record_size(connection), 0
    while older_than is not None and (count := _delete_oldest(connection, codec, older_than, _AT_ONCE)):
        gone += count
    while larger_than is not None and (used := record_size(connection)) > larger_than:
        with asking():
            (total,) = connection.execute("SELECT count(*) FROM exchanges").fetchone()
        # Not the whole share, because the oldest exchanges may be the largest.
        wanted, count = max(1, int(total * (used - larger_than) / used * _SAFETY_FACTOR)), 0
        while count < wanted and (more := _delete_oldest(connection, codec, None, min(_AT_ONCE, wanted - count))):
            count += more
        gone += count
        if not count:
            break
    if gone:
        shrink(connection)
    left = record_size(connection)
    return Pruned(gone, max(0, before - left), left)


def record_size(connection: sqlite3.Connection) -> int:
    """How many bytes of the file the record uses. Logs are not counted, because retention does not remove them."""
    with asking():
        (logs,) = connection.execute("SELECT coalesce(sum(size), 0) FROM logs").fetchone()
        (count,), (free,), (size,) = (
            connection.execute(f"PRAGMA {name}").fetchone() for name in ("page_count", "freelist_count", "page_size")
        )
    return max(0, int((count - free) * size - logs))


def _delete_oldest(connection: sqlite3.Connection, codec: Codec, older_than: float | None, most: int) -> int:
    """Remove a few of the oldest exchanges; returns how many."""
    with changing(connection):
        rows = connection.execute(
            f"SELECT seq, blocks FROM exchanges WHERE {_ENDED} AND (?1 IS NULL OR at < ?1) ORDER BY id LIMIT ?2",
            (older_than, most),
        ).fetchall()
        _forget_rows(connection, codec, rows)
    return len(rows)


def _forget_rows(connection: sqlite3.Connection, codec: Codec, rows: Sequence[tuple[int, str]]) -> None:
    """Remove the exchanges in these rows, with the blocks that they name."""
    touched: set[int] = set()
    gone = {seq for seq, _ in rows}
    forget_words(connection, codec, gone)
    forget_pieces(connection, codec, gone, {number for _, blocks in rows for number in block_numbers(blocks)})
    for seq in gone:
        touched |= {body for (body,) in connection.execute("SELECT body FROM uses WHERE exchange = ?", (seq,))}
        for table in ("uses", "instructions"):
            connection.execute(f"DELETE FROM {table} WHERE exchange = ?", (seq,))
        connection.execute("DELETE FROM exchanges WHERE seq = ?", (seq,))
    _forget_bodies(connection, codec, touched)


def _forget_bodies(connection: sqlite3.Connection, codec: Codec, touched: set[int]) -> None:
    """Remove those of these bodies that no exchange uses any more; bodies based on them are rebased first."""
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
    """Store the first of these bodies whole, and base the others on it."""
    wholes = [(heir, body_with_id(connection, codec, heir)) for heir in heirs]
    change = "UPDATE bodies SET base = ?, prefix = ?, suffix = ?, depth = ?, data = ? WHERE id = ?"
    for heir, body in wholes:
        first, base = wholes[0]
        coded = codec.whole(body) if heir == first else codec.against(body, base, "first", 0)
        parent = first if coded.base else None
        connection.execute(change, (parent, coded.prefix, coded.suffix, coded.depth, coded.data, heir))


def forget(connection: sqlite3.Connection, exchanges: Sequence[str], *, is_dry_run: bool) -> Forgotten:
    """Remove these exchanges, except those in progress, and leave no trace of them in the file; a dry run only measures
    them."""
    codec = Codec()
    with asking():
        connection.execute("BEGIN")
        try:
            rows = _find_ended(connection, exchanges)
            found = Forgotten(len(rows), _measure_rows(connection, codec, rows) if rows else 0)
        finally:
            connection.execute("COMMIT")
    if is_dry_run:
        return found
    for at in range(0, len(exchanges), _AT_ONCE):
        with changing(connection):
            _forget_rows(connection, codec, _find_ended(connection, exchanges[at : at + _AT_ONCE]))
    erase_remains(connection)
    return found


def _find_ended(connection: sqlite3.Connection, exchanges: Sequence[str]) -> list[tuple[int, str]]:
    ended = f"SELECT seq, blocks FROM exchanges WHERE id IN (SELECT value FROM json_each(?)) AND {_ENDED}"
    return connection.execute(ended, (json.dumps(list(exchanges)),)).fetchall()


_ALONE = """
WITH chosen AS MATERIALIZED (SELECT value AS seq FROM json_each(?))
SELECT coalesce(sum(length(data)), 0) FROM bodies
WHERE id IN (SELECT body FROM uses WHERE exchange IN (SELECT seq FROM chosen))
AND NOT EXISTS (SELECT 1 FROM uses WHERE uses.body = bodies.id AND uses.exchange NOT IN (SELECT seq FROM chosen))
"""


def _measure_rows(connection: sqlite3.Connection, codec: Codec, rows: Sequence[tuple[int, str]]) -> int:
    """How many bytes of the record belong only to these exchanges."""
    chosen = {seq for seq, _ in rows}
    (bodies,) = connection.execute(_ALONE, (json.dumps([*chosen]),)).fetchone()
    blocks = {number for _, named in rows for number in block_numbers(named)}
    return int(bodies) + measure_pieces(connection, codec, chosen, blocks) + measure_blocks(connection, codec, chosen)


JOURNAL = "journal"


class SqliteStore(JournaledStore):
    """See `Store`."""

    def __init__(
        self, data: Path, *, prices: PriceList, now: Callable[[], float], recorder: RecorderProcess | None, fsync: Fsync
    ) -> None:
        # Created or migrated here, so that the caller gets its errors.
        open_database(data).close()
        folder = data / JOURNAL
        journal = JournalWriter(folder, is_forced=fsync == "records")
        importer = Importer(folder, lambda: SqliteSink(open_database(data, is_forced=fsync != "never"), prices), now)
        super().__init__(journal, folder, importer, recorder)
        self._path = data / FILE_NAME
        self._reading = SqliteReader(self._path)
        self.logbook = SqliteLogbook(self._path)

    async def facts(self, exchange: str) -> list[FactEntry]:
        return await asyncio.to_thread(self._reading.facts, exchange)

    async def body(self, exchange: str, sha256: str) -> bytes | None:
        return await asyncio.to_thread(self._reading.body, exchange, sha256)

    async def _search(self, wanted: Expression, now: float, ask: Callable[[RecordSearch[int]], Search[T]]) -> T:
        return await asyncio.to_thread(self._reading.search, ask(RecordSearch(TABLES, wanted, now)))

    async def prune(self, *, older_than: float | None = None, larger_than: int | None = None) -> Pruned:
        return await self._do(lambda connection: prune(connection, older_than=older_than, larger_than=larger_than))

    async def _forget(self, exchanges: Sequence[str], *, is_dry_run: bool) -> Forgotten:
        return await self._do(lambda connection: forget(connection, exchanges, is_dry_run=is_dry_run))

    async def _do(self, work: Callable[[sqlite3.Connection], T]) -> T:
        def run() -> T:
            with closing(connect_database(self._path)) as connection:
                return work(connection)

        return await asyncio.to_thread(run)

    async def entries(self, exchange: str) -> list[Entry]:
        return await asyncio.to_thread(self._reading.entries, exchange)

    async def close(self) -> None:
        self._reading.close()
        await asyncio.to_thread(self.logbook.close)
        await super().close()


async def open_store(
    data: Path,
    *,
    prices: PriceList,
    now: Callable[[], float],
    recorder: RecorderProcess | None = None,
    fsync: Fsync = "never",
) -> SqliteStore:
    """Open the record of a data folder. When this returns, the records that ended processes left are in it. With a
    `recorder`, that process does the importing."""
    store = await asyncio.to_thread(SqliteStore, data, prices=prices, now=now, recorder=recorder, fsync=fsync)
    await store.open()
    return store
