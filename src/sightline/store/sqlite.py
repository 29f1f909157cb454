"""The record of one data folder in SQLite, which is there without a server, an account or a set-up."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

from sightline.errors import Fault
from sightline.filters.expression import Expression
from sightline.store.entries import Entry, FactEntry
from sightline.store.folding import PriceList
from sightline.store.journal import EntryJournal
from sightline.store.reply_texts import Overhearing, ReplyText
from sightline.store.segments import Torn
from sightline.store.sqlite_database import FILE_NAME, connect_database, open_database
from sightline.store.sqlite_logbook import SqliteLogbook
from sightline.store.sqlite_reading import SqliteReader
from sightline.store.sqlite_retention import prune
from sightline.store.sqlite_sink import SqliteSink
from sightline.store.store import Pruned
from sightline.store.summary import Summary
from sightline.store.writer import RecordWriter

JOURNAL = "journal"


class SqliteStore:
    """See `Store`. `torn` are ends of journals that a crash left unreadable; nobody was told that they were kept."""

    def __init__(self, folder: Path, journal: EntryJournal, writer: RecordWriter, said: Overhearing) -> None:
        self._path = folder / FILE_NAME
        self._journal = journal
        self._writer = writer
        self._said = said
        self._reading = SqliteReader(self._path)
        self._logbook = SqliteLogbook(self._path)

    @property
    def trouble(self) -> Fault | None:
        """Why entries stay in the journal at the moment, or do not even get there."""
        return self._writer.unwritten or self._writer.trouble

    @property
    def torn(self) -> tuple[Torn, ...]:
        """What could not be read of what earlier processes left."""
        return tuple(self._journal.torn)

    @property
    def logbook(self) -> SqliteLogbook:
        """The logs beside the record."""
        return self._logbook

    def record(self, entries: Sequence[Entry]) -> None:
        """Take these entries; once it returns, the end of this process cannot lose them."""
        self._writer.record(entries)

    def hear(self, said: ReplyText) -> None:
        """What the reply of an exchange says whose end is recorded next."""
        self._said.tell(said)

    async def settle(self) -> None:
        """Return once all that was recorded can be read."""
        await asyncio.to_thread(self._writer.settle)

    async def facts(self, exchange: str) -> list[FactEntry]:
        """The facts of an exchange in their order; none if there is no such exchange."""
        return await asyncio.to_thread(self._reading.facts, exchange)

    async def body(self, sha256: str) -> bytes | None:
        """The body with this hash."""
        return await asyncio.to_thread(self._reading.body, sha256)

    async def find(self, wanted: Expression, *, now: float, before: str = "", limit: int = 100) -> list[Summary]:
        """Exchanges that the filter takes, newest first, from behind the exchange `before`."""
        return await asyncio.to_thread(self._reading.find, wanted, now=now, before=before, limit=limit)

    async def prune(self, *, older_than: float | None = None, larger_than: int | None = None) -> Pruned:
        """Forget exchanges from before a time of day, and the oldest until the record has at most that many bytes."""

        def run() -> Pruned:
            connection = connect_database(self._path)
            try:
                return prune(connection, older_than=older_than, larger_than=larger_than)
            finally:
                connection.close()

        return await asyncio.to_thread(run)

    async def export(self, wanted: Expression, *, now: float) -> AsyncIterator[Entry]:
        """All entries of these exchanges, oldest first, each body before the fact that names it."""
        after = ""
        while ids := await asyncio.to_thread(self._reading.oldest, wanted, now=now, after=after):
            for after in ids:
                for entry in await asyncio.to_thread(self._reading.entries, after):
                    yield entry

    async def close(self) -> None:
        """Finish what is under way."""
        self._reading.close()
        await asyncio.to_thread(self._logbook.close)
        await asyncio.to_thread(self._writer.close)


async def open_store(data: Path, *, prices: PriceList, now: Callable[[], float]) -> SqliteStore:
    """The record of a data folder. What earlier processes left behind is in it when this returns."""

    def open_now() -> SqliteStore:
        connection = open_database(data)
        try:
            journal = EntryJournal(data / JOURNAL)
        except Fault:
            connection.close()
            raise
        sink = SqliteSink(connection, journal.slot, prices)
        return SqliteStore(data, journal, RecordWriter(journal, sink, now), sink.said)

    store = await asyncio.to_thread(open_now)
    try:
        await asyncio.to_thread(store._writer.wait_for_replay)
    except BaseException:
        await store.close()
        raise
    return store
