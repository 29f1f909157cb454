"""The record in PostgreSQL, for teams and for several replicas of the gateway that share it.

Each replica has a data folder with its own journal. What it records is safe there at once and reaches the database a
little later, also when that was away for a while. Everything can be read from every replica.
"""

import asyncio
import os
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TypeVar

from sightline.errors import Code, Fault
from sightline.filters.expression import Expression
from sightline.store.delta import Codec
from sightline.store.entries import Entry, FactEntry
from sightline.store.folding import PriceList
from sightline.store.interruption import OPEN_STATES
from sightline.store.journal import EntryJournal
from sightline.store.postgres_bodies import body_of
from sightline.store.postgres_connection import (
    REFUSAL,
    TROUBLE,
    PostgresAddress,
    PostgresConnection,
    PostgresPool,
    address_of,
    connect,
    failure,
    pool,
)
from sightline.store.postgres_locks import pruning, rebuilding
from sightline.store.postgres_logbook import PostgresLogbook
from sightline.store.postgres_reading import entries_of, facts_of, newest, oldest
from sightline.store.postgres_sink import PostgresSink
from sightline.store.segments import Torn
from sightline.store.store import Pruned
from sightline.store.summary import Summary
from sightline.store.writer import RecordWriter

_AT_ONCE = 64
_VACUUM_SECONDS = 3600.0
_TABLES = ("exchanges", "facts", "frames", "bodies", "uses", "texts", "instructions")
_SIZED = {"facts": "data", "frames": "data", "bodies": "data", "texts": "words"}

_USED = " + ".join(
    f"(SELECT coalesce(sum(octet_length({column})), 0) FROM sightline.{table})" for table, column in _SIZED.items()
)
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
    """Forget what ended before a time of day, and the oldest until the record has at most that many bytes."""
    codec = Codec()
    before = used = await record_size(connection)
    gone = 0
    while older_than is not None and (count := await _forget_some(connection, codec, older_than)):
        gone += count
    while larger_than is not None and (used := await record_size(connection)) > larger_than:
        # Counting takes a look at everything, so that half of what is too much goes before it is counted again.
        total = await connection.fetchval("SELECT count(*) FROM sightline.exchanges")
        wanted, count = int(total * (1 - larger_than / used) / 2) + 1, 0
        while count < wanted and (more := await _forget_some(connection, codec, None, wanted - count)):
            count += more
        gone += count
        if not count:
            break
    if gone:
        # The server uses the room again for what comes next, and gives back what stands free at the end of its files.
        # Two that clean up at once would wait for each other for seconds; what one has in hand, the other leaves.
        tables = ", ".join(f"sightline.{table}" for table in _TABLES)
        await connection.execute(f"VACUUM (ANALYZE, SKIP_LOCKED) {tables}", timeout=_VACUUM_SECONDS)
        used = await record_size(connection)
    return Pruned(gone, max(0, before - used), used)


async def record_size(connection: PostgresConnection) -> int:
    """How much is recorded, without what the server needs to find it again."""
    return int(await connection.fetchval(f"SELECT {_USED}"))


async def _forget_some(
    connection: PostgresConnection, codec: Codec, older_than: float | None, most: int = _AT_ONCE
) -> int:
    """Forget a few of the oldest; the answer is how many."""
    async with pruning(connection):
        rows = await connection.fetch(_OLDEST, list(OPEN_STATES), older_than, min(most, _AT_ONCE))
        ids = [row["id"] for row in rows]
        touched = [row["sha256"] for row in await connection.fetch(_TOUCHED, ids)]
        for table in ("uses", "frames", "facts", "texts", "instructions"):
            await connection.execute(f"DELETE FROM sightline.{table} WHERE exchange = ANY($1::text[])", ids)
        await connection.execute("DELETE FROM sightline.exchanges WHERE id = ANY($1::text[])", ids)
        await _forget_bodies(connection, codec, touched)
    return len(ids)


async def _forget_bodies(connection: PostgresConnection, codec: Codec, touched: list[bytes]) -> None:
    """Forget those of these bodies that no exchange has any more; what was built on them is built anew first."""
    unused = [row["sha256"] for row in await connection.fetch(_UNUSED, touched)]
    heirs: dict[bytes, list[bytes]] = {}
    for row in await connection.fetch(_HEIRS, unused):
        heirs.setdefault(row["base"], []).append(row["sha256"])
    for built in heirs.values():
        await _rebase(connection, codec, built)
    await connection.execute("DELETE FROM sightline.bodies WHERE sha256 = ANY($1::bytea[])", unused)


async def _rebase(connection: PostgresConnection, codec: Codec, heirs: list[bytes]) -> None:
    """The first of these bodies stands alone from now on, and the others build on it."""
    first, base = heirs[0], b""
    for heir in heirs:
        body = await body_of(connection, codec, heir.hex()) or b""
        base = base or body
        coded = codec.whole(body) if heir == first else codec.against(body, base, "first", 0)
        parent = first if coded.base else None
        await connection.execute(_REBASE, heir, parent, coded.prefix, coded.suffix, coded.depth, coded.data)


# It may have been there before, in another place.
_TRIGRAMS = """
SELECT quote_ident(n.nspname) FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
WHERE e.extname = 'pg_trgm'
"""
_NAME = re.compile(r"(\d{3})_\w+\.sql")


@dataclass(frozen=True, slots=True)
class PostgresMigration:
    """Step number `version`."""

    version: int
    sql: str


def load_migrations() -> list[PostgresMigration]:
    """All steps, first to last."""
    folder = files("sightline.store") / "migrations" / "postgres"
    numbered = [(name, each) for each in folder.iterdir() if (name := _NAME.fullmatch(each.name))]
    return sorted(
        (PostgresMigration(int(name[1]), each.read_text("utf-8")) for name, each in numbered),
        key=lambda step: step.version,
    )


async def migrate(connection: PostgresConnection, steps: list[PostgresMigration]) -> int:
    """Take the steps that are missing; the answer is how many those were."""
    async with rebuilding(connection):
        at = await _version(connection)
        if at > steps[-1].version:
            message = f"the store was made by a newer Sightline (its version is {at}, and {steps[-1].version} is known)"
            raise Fault(Code.CONFIG, message, hint="Use that Sightline, or another database.")
        missing = [step for step in steps if step.version > at]
        for step in missing:
            await connection.execute(step.sql)
        if missing:
            await connection.execute("UPDATE sightline.version SET number = $1", missing[-1].version)
    return len(missing)


async def _version(connection: PostgresConnection) -> int:
    """The step that was taken last; 0, and a place to note it, where there is nothing yet."""
    # Asked for first, because making what exists takes a right that the user may lack once all is there.
    if await connection.fetchval("SELECT to_regclass('sightline.version')") is None:
        if await connection.fetchval("SELECT to_regnamespace('sightline')") is None:
            await connection.execute("CREATE SCHEMA sightline")
        await connection.execute("CREATE TABLE sightline.version (number integer NOT NULL)")
        await connection.execute("INSERT INTO sightline.version VALUES (0)")
    number: int = await connection.fetchval("SELECT number FROM sightline.version")
    return number


async def index_texts(connection: PostgresConnection) -> bool:
    """Make the search for words fast where the server can; whether it can. Without that, it reads them all."""
    async with rebuilding(connection):
        if await connection.fetchval("SELECT to_regclass('sightline.texts_by_trigram')") is not None:
            return True
        try:
            async with connection.transaction():
                await connection.execute("CREATE EXTENSION IF NOT EXISTS pg_trgm SCHEMA sightline")
                words = f'lower(words COLLATE "C") {await connection.fetchval(_TRIGRAMS)}.gin_trgm_ops'
                await connection.execute(f"CREATE INDEX texts_by_trigram ON sightline.texts USING gin ({words})")
        except REFUSAL:
            return False
    return True


T = TypeVar("T")

JOURNAL = "journal"
REPLICA = "replica"


class PostgresStore:
    """See `Store`. `torn` are ends of journals that a crash left unreadable; nobody was told that they were kept."""

    def __init__(
        self, address: PostgresAddress, readers: PostgresPool, journal: EntryJournal, writer: RecordWriter
    ) -> None:
        self._address = address
        self._readers = readers
        self._journal = journal
        self._writer = writer
        self._logbook = PostgresLogbook(self._ask)

    @property
    def trouble(self) -> Fault | None:
        """Why entries stay in the journal at the moment, or do not even get there."""
        return self._writer.unwritten or self._writer.trouble

    @property
    def torn(self) -> tuple[Torn, ...]:
        """What could not be read of what earlier processes left."""
        return tuple(self._journal.torn)

    @property
    def logbook(self) -> PostgresLogbook:
        """The logs beside the record."""
        return self._logbook

    def record(self, entries: Sequence[Entry]) -> None:
        """Take these entries; once it returns, the end of this process cannot lose them."""
        self._writer.record(entries)

    async def settle(self) -> None:
        """Return once all that was recorded here can be read."""
        await asyncio.to_thread(self._writer.settle)

    async def facts(self, exchange: str) -> list[FactEntry]:
        """The facts of an exchange in their order; none if there is no such exchange."""
        return await self._ask(lambda connection: facts_of(connection, exchange))

    async def body(self, sha256: str) -> bytes | None:
        """The body with this hash."""
        return await self._ask(lambda connection: body_of(connection, Codec(), sha256))

    async def find(self, wanted: Expression, *, now: float, before: str = "", limit: int = 100) -> list[Summary]:
        """Exchanges that the filter takes, newest first, from behind the exchange `before`."""
        return await self._ask(lambda connection: newest(connection, wanted, now=now, before=before, limit=limit))

    async def prune(self, *, older_than: float | None = None, larger_than: int | None = None) -> Pruned:
        """Forget exchanges from before a time of day, and the oldest until the record has at most that many bytes."""
        return await self._ask(lambda connection: prune(connection, older_than=older_than, larger_than=larger_than))

    async def export(self, wanted: Expression, *, now: float) -> AsyncIterator[Entry]:
        """All entries of these exchanges, oldest first, each body before the fact that names it."""
        after = ""
        while ids := await self._ids(wanted, now, after):
            for after in ids:
                for entry in await self._entries(after):
                    yield entry

    async def close(self) -> None:
        """Finish what is under way."""
        await asyncio.to_thread(self._writer.close)
        await self._readers.close()

    async def wait_for_replay(self) -> None:
        """Return once what earlier processes of this data folder left is in the database."""
        await asyncio.to_thread(self._writer.wait_for_replay)

    async def _ids(self, wanted: Expression, now: float, after: str) -> list[str]:
        return await self._ask(lambda connection: oldest(connection, wanted, now=now, after=after))

    async def _entries(self, exchange: str) -> list[Entry]:
        return await self._ask(lambda connection: entries_of(connection, exchange))

    async def _ask(self, work: Callable[[PostgresConnection], Awaitable[T]]) -> T:
        """Ask the server; once more where the connection was one that had ended unnoticed."""
        used: list[PostgresConnection] = []

        async def run() -> T:
            async with self._readers.acquire() as connection:
                used.append(connection)
                return await work(connection)

        try:
            try:
                return await run()
            except TROUBLE:
                if not used or not used[-1].is_closed():
                    raise
                return await run()
        except TROUBLE as error:
            raise failure(error, self._address) from None


async def open_postgres(url: str, data: Path, *, prices: PriceList, now: Callable[[], float]) -> PostgresStore:
    """The record behind this URL, with the journal of this data folder. What earlier processes of it left behind is in
    the database when this returns."""
    address = address_of(url)
    identity = await _prepare_tables(address)

    def open_writer() -> tuple[EntryJournal, RecordWriter]:
        journal = EntryJournal(data / JOURNAL)
        try:
            replica = _replica(data, identity)
        except Fault:
            journal.close(is_drained=False)
            raise
        sink = PostgresSink(address, replica=replica, slot=journal.slot, prices=prices, now=now)
        return journal, RecordWriter(journal, sink, now)

    readers = await pool(address)
    try:
        journal, writer = await asyncio.to_thread(open_writer)
    except BaseException:
        await readers.close()
        raise
    store = PostgresStore(address, readers, journal, writer)
    try:
        await store.wait_for_replay()
    except BaseException:
        await store.close()
        raise
    return store


async def _prepare_tables(address: PostgresAddress) -> str:
    """Bring the tables up to date; the answer is a name that no replica has."""
    connection = await connect(address)
    try:
        await migrate(connection, load_migrations())
        await index_texts(connection)
        return str(await connection.fetchval("SELECT gen_random_uuid()"))
    except TROUBLE as error:
        raise failure(error, address) from None
    finally:
        connection.terminate()


def _replica(data: Path, fresh: str) -> str:
    """The name of this data folder among those of all replicas: the one that it has, else this one."""
    path = data / REPLICA
    try:
        draft = path.with_name(f"{REPLICA}-{fresh}")
        draft.touch(mode=0o600)
        draft.write_text(fresh)
        try:
            os.link(draft, path)
        except FileExistsError:
            return path.read_text()
        finally:
            draft.unlink()
    except OSError as error:
        hint = "Name another folder with --data."
        raise Fault(Code.CONFIG, f"{path}: {error.strerror}", hint=hint) from None
    return fresh
