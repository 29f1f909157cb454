"""The record in PostgreSQL, for teams and for several replicas of the gateway that share it.

Each replica has a data folder with its own journal. Records are safe there at once and reach the database a little
later, even if the database was unreachable for a while. Everything can be read from every replica.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol, TypeVar

from sightline.errors import Code, Fault
from sightline.filters.expression import Expression
from sightline.filters.sql import POSTGRESQL_FOLDED, dollar
from sightline.platform.files import add_file
from sightline.store.entries import BodyEntry, Codec, Entry, FactEntry, fact_of, unpack_frames
from sightline.store.importer import Fsync, Importer
from sightline.store.journal import JournalWriter
from sightline.store.postgres_connection import (
    TROUBLE,
    PostgresAddress,
    PostgresConnection,
    PostgresPool,
    address_of,
    connect,
    failure,
    migrate,
    pool,
    pruning,
)
from sightline.store.postgres_sink import PostgresSink, body_of
from sightline.store.postgres_words import carry_words, forget_words, measure_blocks
from sightline.store.recording import JournaledStore, RecorderProcess
from sightline.store.search import FoundRow, RecordSearch, Search, SearchQuery, SearchTables, record_columns
from sightline.store.store import Forgotten, Line, Log, Pruned, load_migrations, overtaken
from sightline.store.summary import OPEN_STATES, PriceList, bodies_first, bodies_of

T = TypeVar("T")
U = TypeVar("U")

_FIRST = """
INSERT INTO sightline.logs (name, lines, began, latest) VALUES ($1, $2, $3, $3) ON CONFLICT DO NOTHING RETURNING id
"""
_NEXT = "UPDATE sightline.logs SET lines = lines + $2, latest = $3 WHERE name = $1 AND lines = $4 RETURNING id"
_LINES = """
SELECT n, at, data FROM sightline.log_lines
WHERE log = (SELECT id FROM sightline.logs WHERE name = $1) AND n > $2 ORDER BY n
"""
_LOGS = """
SELECT name, lines, began, latest FROM sightline.logs WHERE starts_with(name, $1) ORDER BY latest DESC, id DESC
"""
_REWRITE = """
UPDATE sightline.log_lines SET data = $3 WHERE log = (SELECT id FROM sightline.logs WHERE name = $1) AND n = $2
"""
_FORGET = """
WITH gone AS (DELETE FROM sightline.logs WHERE name = $1 RETURNING id)
DELETE FROM sightline.log_lines USING gone WHERE log = gone.id
"""


class QueryRunner(Protocol):
    """Runs some work with a connection, and runs it again if the connection turns out to have ended."""

    def __call__(self, work: Callable[[PostgresConnection], Awaitable[T]]) -> Awaitable[T]:
        """Run the work and return its result."""


class PostgresLogbook:
    """See `Logbook`."""

    def __init__(self, ask: QueryRunner) -> None:
        self._ask = ask

    async def append(self, log: str, after: int, data: Sequence[bytes], at: float) -> None:
        tries = 0

        async def insert(connection: PostgresConnection) -> None:
            nonlocal tries
            tries += 1
            if not await _insert_lines(connection, log, after, data, at) and not (
                # The connection may have ended after the server committed and before it confirmed.
                tries > 1 and await _are_there(connection, log, after, data, at)
            ):
                raise overtaken(log)

        if data:
            await self._ask(insert)

    async def lines(self, log: str, after: int = 0) -> list[Line]:
        return await self._ask(lambda connection: _lines(connection, log, after))

    async def logs(self, prefix: str = "") -> list[Log]:
        rows = await self._ask(lambda connection: connection.fetch(_LOGS, prefix))
        return [Log(row["name"], row["lines"], row["began"], row["latest"]) for row in rows]

    async def rewrite(self, log: str, lines: Mapping[int, bytes]) -> None:
        async def write(connection: PostgresConnection) -> None:
            await connection.executemany(_REWRITE, [(log, n, data) for n, data in lines.items()])

        if lines:
            await self._ask(write)

    async def forget(self, log: str) -> None:
        await self._ask(lambda connection: connection.execute(_FORGET, log))


async def _insert_lines(connection: PostgresConnection, log: str, after: int, data: Sequence[bytes], at: float) -> bool:
    async with connection.transaction():
        known = (log, len(data), at)
        number = await (connection.fetchval(_NEXT, *known, after) if after else connection.fetchval(_FIRST, *known))
        if number is not None:
            rows = ((number, n, at, line) for n, line in enumerate(data, after + 1))
            await connection.executemany("INSERT INTO sightline.log_lines VALUES ($1, $2, $3, $4)", rows)
    return number is not None


async def _are_there(connection: PostgresConnection, log: str, after: int, data: Sequence[bytes], at: float) -> bool:
    return await _lines(connection, log, after) == [Line(n, at, line) for n, line in enumerate(data, after + 1)]


async def _lines(connection: PostgresConnection, log: str, after: int) -> list[Line]:
    return [Line(row["n"], row["at"], row["data"]) for row in await connection.fetch(_LINES, log, after)]


_FACTS = "SELECT n, at, data FROM sightline.facts WHERE exchange = $1"
_FRAMES = "SELECT data FROM sightline.frames WHERE exchange = $1"
_NEAR = "SELECT near FROM sightline.bodies WHERE sha256 = $1"
_COLUMNS = replace(
    record_columns("sightline.exchanges", "json_array_elements_text(e.tools::json)"),
    folded=POSTGRESQL_FOLDED,
    placeholder=dollar,
)
TABLES: SearchTables[str] = SearchTables(_COLUMNS, "sightline.exchanges", "sightline.words", "id", "= ANY({})", list)


async def facts_of(connection: PostgresConnection, exchange: str) -> list[FactEntry]:
    """The facts of an exchange in their order."""
    async with connection.transaction(isolation="repeatable_read", readonly=True):
        return await _facts(connection, exchange)


async def answer(connection: PostgresConnection, search: Search[T]) -> T:
    """Run the queries of a search and return its result. The search runs on a thread, because scanning words may take
    long and the event loop serves others. Its most likely next query is fetched in the meantime."""
    kept: tuple[SearchQuery, Sequence[FoundRow]] | None = None
    async with connection.transaction(isolation="repeatable_read", readonly=True):
        asked, found = await asyncio.to_thread(_advance, search, None)
        while asked is not None:
            question, following = asked._replace(following=None), asked.following
            if kept is not None and kept[0] == question:
                rows, kept = kept[1], None
            else:
                rows = await connection.fetch(question.statement, *question.parameters)
            step = asyncio.to_thread(_advance, search, rows)
            if following is None:
                asked, found = await step
            else:
                fetching = connection.fetch(following.statement, *following.parameters)
                (asked, found), ahead = await _finish_both(step, fetching)
                kept = following, ahead
        return found[0]


async def _finish_both(first: Awaitable[T], second: Awaitable[U]) -> tuple[T, U]:
    """The results of both. If one fails, the other is still awaited: a connection in use could not even end its
    transaction."""
    one, other = await asyncio.gather(first, second, return_exceptions=True)
    if isinstance(one, BaseException):
        raise one
    if isinstance(other, BaseException):
        raise other
    return one, other


def _advance(search: Search[T], rows: Sequence[FoundRow] | None) -> tuple[SearchQuery | None, list[T]]:
    """The next query, or None and a list with the result of the search."""
    try:
        return (next(search) if rows is None else search.send(rows)), []
    except StopIteration as end:
        return None, [end.value]


async def entries_of(connection: PostgresConnection, exchange: str) -> list[Entry]:
    """All entries of one exchange, each body before the fact that names it."""
    codec = Codec()
    bodies: dict[str, BodyEntry] = {}
    async with connection.transaction(isolation="repeatable_read", readonly=True):
        facts = await _facts(connection, exchange)
        for name in {name for entry in facts for name in bodies_of(entry.fact)}:
            if (body := await body_of(connection, codec, name)) is not None:
                bodies[name] = BodyEntry(name, body, await connection.fetchval(_NEAR, bytes.fromhex(name)))
    return bodies_first(facts, bodies)


async def _facts(connection: PostgresConnection, exchange: str) -> list[FactEntry]:
    codec = Codec()
    plain = await connection.fetch(_FACTS, exchange)
    entries = [FactEntry(exchange, row["n"], row["at"], fact_of(row["data"])) for row in plain]
    for row in await connection.fetch(_FRAMES, exchange):
        entries += unpack_frames(codec, exchange, row["data"])
    return sorted(entries, key=lambda each: each.n)


_AT_ONCE = 64
_VACUUM_SECONDS = 3600.0
_TABLES = ("exchanges", "facts", "frames", "bodies", "uses", "words", "instructions")
_SIZED = ("facts", "frames", "bodies", "words")

_USED = " + ".join(f"(SELECT coalesce(sum(octet_length(data)), 0) FROM sightline.{table})" for table in _SIZED)
_OLDEST = """
SELECT id FROM sightline.exchanges
WHERE state <> ALL($1::text[]) AND ($2::double precision IS NULL OR at < $2) ORDER BY id LIMIT $3
"""
_TOUCHED = "SELECT DISTINCT sha256 FROM sightline.uses WHERE exchange = ANY($1::text[])"
_UNUSED = """
SELECT sha256 FROM unnest($1::bytea[]) AS touched (sha256)
WHERE NOT EXISTS (SELECT 1 FROM sightline.uses WHERE uses.sha256 = touched.sha256)
"""
_HEIRS = """
SELECT sha256, base FROM sightline.bodies
WHERE base = ANY($1::bytea[]) AND sha256 <> ALL($1::bytea[]) ORDER BY number
"""
_REBASE = """
UPDATE sightline.bodies SET base = $2, prefix = $3, suffix = $4, depth = $5, data = $6 WHERE sha256 = $1
"""


async def prune(connection: PostgresConnection, *, older_than: float | None, larger_than: int | None) -> Pruned:
    """Remove ended exchanges that were received before a time of day, and the oldest until the record has at most so
    many bytes."""
    codec = Codec()
    before = used = await record_size(connection)
    gone = 0
    while older_than is not None and (count := await _delete_oldest(connection, codec, older_than)):
        gone += count
    while larger_than is not None and (used := await record_size(connection)) > larger_than:
        # Measuring the record reads all of it, so half of the excess is removed before it is measured again.
        total = await connection.fetchval("SELECT count(*) FROM sightline.exchanges")
        wanted, count = int(total * (1 - larger_than / used) / 2) + 1, 0
        while count < wanted and (more := await _delete_oldest(connection, codec, None, wanted - count)):
            count += more
        gone += count
        if not count:
            break
    if gone:
        await _vacuum(connection)
        used = await record_size(connection)
    return Pruned(gone, max(0, before - used), used)


async def _vacuum(connection: PostgresConnection) -> None:
    """Let the server reuse the freed space and return what is free at the end of its files."""
    # Two vacuums at once would wait for each other for seconds; each skips the tables that the other has locked.
    tables = ", ".join(f"sightline.{table}" for table in _TABLES)
    await connection.execute(f"VACUUM (ANALYZE, SKIP_LOCKED) {tables}", timeout=_VACUUM_SECONDS)


_FORGETTABLE = "SELECT id FROM sightline.exchanges WHERE id = ANY($1::text[]) AND state <> ALL($2::text[])"
_OF_EXCHANGES = " + ".join(
    f"(SELECT coalesce(sum(octet_length(data)), 0) FROM sightline.{table} WHERE exchange = ANY($1::text[]))"
    for table in ("facts", "frames")
)
_ALONE = f"""
SELECT {_OF_EXCHANGES} + (
    SELECT coalesce(sum(octet_length(data)), 0) FROM sightline.bodies
    WHERE sha256 IN (SELECT sha256 FROM sightline.uses WHERE exchange = ANY($1::text[]))
    AND NOT EXISTS (
        SELECT 1 FROM sightline.uses WHERE uses.sha256 = bodies.sha256 AND uses.exchange <> ALL($1::text[])
    )
)
"""


async def forget(connection: PostgresConnection, exchanges: Sequence[str], *, is_dry_run: bool) -> Forgotten:
    """Remove these exchanges, except those in progress; a dry run only measures them."""
    codec = Codec()
    ids = [row["id"] for row in await connection.fetch(_FORGETTABLE, list(exchanges), list(OPEN_STATES))]
    size = int(await connection.fetchval(_ALONE, ids)) + await measure_blocks(connection, codec, set(ids))
    found = Forgotten(len(ids), size)
    if ids and not is_dry_run:
        for at in range(0, len(ids), _AT_ONCE):
            async with pruning(connection):
                await _forget_rows(connection, codec, ids[at : at + _AT_ONCE])
        await _vacuum(connection)
    return found


async def record_size(connection: PostgresConnection) -> int:
    """The size of the recorded data, without indexes and other overhead of the server."""
    return int(await connection.fetchval(f"SELECT {_USED}"))


async def _delete_oldest(
    connection: PostgresConnection, codec: Codec, older_than: float | None, most: int = _AT_ONCE
) -> int:
    """Remove a few of the oldest exchanges; returns how many."""
    async with pruning(connection):
        rows = await connection.fetch(_OLDEST, list(OPEN_STATES), older_than, min(most, _AT_ONCE))
        await _forget_rows(connection, codec, [row["id"] for row in rows])
    return len(rows)


async def _forget_rows(connection: PostgresConnection, codec: Codec, ids: list[str]) -> None:
    """Remove everything that is recorded of these exchanges."""
    touched = [row["sha256"] for row in await connection.fetch(_TOUCHED, ids)]
    await forget_words(connection, codec, set(ids))
    for table in ("uses", "frames", "facts", "instructions"):
        await connection.execute(f"DELETE FROM sightline.{table} WHERE exchange = ANY($1::text[])", ids)
    await connection.execute("DELETE FROM sightline.exchanges WHERE id = ANY($1::text[])", ids)
    await _forget_bodies(connection, codec, touched)


async def _forget_bodies(connection: PostgresConnection, codec: Codec, touched: list[bytes]) -> None:
    """Remove those of these bodies that no exchange uses any more; bodies based on them are rebased first."""
    unused = [row["sha256"] for row in await connection.fetch(_UNUSED, touched)]
    heirs: dict[bytes, list[bytes]] = {}
    for row in await connection.fetch(_HEIRS, unused):
        heirs.setdefault(row["base"], []).append(row["sha256"])
    for built in heirs.values():
        await _rebase(connection, codec, built)
    await connection.execute("DELETE FROM sightline.bodies WHERE sha256 = ANY($1::bytea[])", unused)


async def _rebase(connection: PostgresConnection, codec: Codec, heirs: list[bytes]) -> None:
    """Store the first of these bodies whole, and base the others on it."""
    first, base = heirs[0], b""
    for heir in heirs:
        body = await body_of(connection, codec, heir.hex()) or b""
        base = base or body
        coded = codec.whole(body) if heir == first else codec.against(body, base, "first", 0)
        parent = first if coded.base else None
        await connection.execute(_REBASE, heir, parent, coded.prefix, coded.suffix, coded.depth, coded.data)


JOURNAL = "journal"
REPLICA = "replica"


class PostgresStore(JournaledStore):
    """See `Store`."""

    def __init__(
        self,
        address: PostgresAddress,
        readers: PostgresPool,
        journal: JournalWriter,
        folder: Path,
        importer: Importer,
        recorder: RecorderProcess | None,
    ) -> None:
        super().__init__(journal, folder, importer, recorder)
        self._address = address
        self._readers = readers
        self.logbook = PostgresLogbook(self._ask)

    async def facts(self, exchange: str) -> list[FactEntry]:
        return await self._ask(lambda connection: facts_of(connection, exchange))

    async def body(self, exchange: str, sha256: str) -> bytes | None:
        return await self._ask(lambda connection: body_of(connection, Codec(), sha256))

    async def _search(self, wanted: Expression, now: float, ask: Callable[[RecordSearch[str]], Search[T]]) -> T:
        return await self._ask(lambda connection: answer(connection, ask(RecordSearch(TABLES, wanted, now))))

    async def prune(self, *, older_than: float | None = None, larger_than: int | None = None) -> Pruned:
        return await self._ask(lambda connection: prune(connection, older_than=older_than, larger_than=larger_than))

    async def _forget(self, exchanges: Sequence[str], *, is_dry_run: bool) -> Forgotten:
        return await self._ask(lambda connection: forget(connection, exchanges, is_dry_run=is_dry_run))

    async def close(self) -> None:
        await super().close()
        await self._readers.close()

    async def entries(self, exchange: str) -> list[Entry]:
        return await self._ask(lambda connection: entries_of(connection, exchange))

    async def _ask(self, work: Callable[[PostgresConnection], Awaitable[T]]) -> T:
        """Run work with a connection of the pool, and run it again if the connection turns out to have ended."""
        had_ended = False

        async def run() -> T:
            nonlocal had_ended
            async with self._readers.acquire() as connection:
                try:
                    return await work(connection)
                finally:
                    had_ended = connection.is_closed()  # cannot be asked once the pool has it back

        try:
            try:
                return await run()
            except TROUBLE:
                if not had_ended:
                    raise
                return await run()
        except TROUBLE as error:
            raise failure(error, self._address) from None


async def open_postgres(
    url: str,
    data: Path,
    *,
    prices: PriceList,
    now: Callable[[], float],
    make_recorder: Callable[[str], RecorderProcess] | None = None,
    fsync: Fsync = "never",
) -> PostgresStore:
    """Open the record at this URL, with the journal of this data folder. When this returns, the records that ended
    processes left in the folder are in the database. `make_recorder` gets the name of this replica."""
    address = address_of(url)
    identity = await _prepare_tables(address)
    folder = data / JOURNAL
    journal = await asyncio.to_thread(JournalWriter, folder, is_forced=fsync == "records")
    replica = await asyncio.to_thread(_replica, data, identity)
    importer = Importer(folder, lambda: PostgresSink(address, replica=replica, prices=prices, now=now), now)
    recorder = make_recorder and make_recorder(replica)
    store = PostgresStore(address, await pool(address), journal, folder, importer, recorder)
    await store.open()
    return store


async def _prepare_tables(address: PostgresAddress) -> str:
    """Bring the tables up to date; returns a name that no replica has."""
    connection = await connect(address)
    try:
        await migrate(connection, load_migrations("postgres"))
        await carry_words(connection)
        return str(await connection.fetchval("SELECT gen_random_uuid()"))
    except TROUBLE as error:
        raise failure(error, address) from None
    finally:
        connection.terminate()


def _replica(data: Path, fresh: str) -> str:
    """The name of the replica with this data folder: the stored one, or `fresh`, which is then stored."""
    path = data / REPLICA
    try:
        return fresh if add_file(path, fresh.encode()) else path.read_text()
    except OSError as error:
        hint = "Name another folder with --data."
        raise Fault(Code.CONFIG, f"{path}: {error.strerror}", hint=hint) from None
