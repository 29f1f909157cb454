"""The record in PostgreSQL, for teams and for several replicas of the gateway that share it.

Each replica has a data folder with its own journal. What it records is safe there at once and reaches the database a
little later, also when that was away for a while. Everything can be read from every replica.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import TypeVar

from sightline.errors import Code, Fault
from sightline.filters.expression import Expression
from sightline.store.delta import Codec
from sightline.store.entries import Entry, FactEntry
from sightline.store.folding import PriceList
from sightline.store.journal import EntryJournal
from sightline.store.postgres_bodies import body_of
from sightline.store.postgres_connection import (
    TROUBLE,
    PostgresAddress,
    PostgresConnection,
    PostgresPool,
    address_of,
    connect,
    failure,
    pool,
)
from sightline.store.postgres_logbook import PostgresLogbook
from sightline.store.postgres_migrations import index_texts, load_migrations, migrate
from sightline.store.postgres_reading import entries_of, facts_of, newest, oldest
from sightline.store.postgres_retention import prune
from sightline.store.postgres_sink import PostgresSink
from sightline.store.segments import Torn
from sightline.store.store import Pruned
from sightline.store.summary import Summary
from sightline.store.writer import RecordWriter

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
