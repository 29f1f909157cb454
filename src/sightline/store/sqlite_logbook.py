"""Logs in the file of an SQLite record."""

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from sightline.store.logbook import Line, Log, overtaken
from sightline.store.sqlite_database import asking, changing, connect_database

T = TypeVar("T")

_FIRST = "INSERT OR IGNORE INTO logs (name, lines, size, began, latest) VALUES (?1, ?2, ?3, ?4, ?4)"
_NEXT = "UPDATE logs SET lines = lines + ?2, size = size + ?3, latest = ?4 WHERE name = ?1 AND lines = ?5"


class SqliteLogbook:
    """See `Logbook`. One thread of its own does it all, in the order in which it was asked for."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="logbook")
        self._connection: sqlite3.Connection | None = None

    async def append(self, log: str, after: int, data: Sequence[bytes], at: float) -> None:
        """Add these lines behind line number `after`, or none if that is not the last one."""

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
        """The lines behind line number `after`, in their order."""
        wanted = (
            "SELECT n, at, data FROM log_lines WHERE log = (SELECT id FROM logs WHERE name = ?) AND n > ? ORDER BY n"
        )

        def read(connection: sqlite3.Connection) -> list[Line]:
            return [Line(*row) for row in connection.execute(wanted, (log, after))]

        return await self._do(read)

    async def logs(self, prefix: str = "") -> list[Log]:
        """The logs whose names begin so, the one that was added to latest first."""
        wanted = (
            "SELECT name, lines, began, latest FROM logs WHERE substr(name, 1, ?) = ? ORDER BY latest DESC, id DESC"
        )

        def read(connection: sqlite3.Connection) -> list[Log]:
            return [Log(*row) for row in connection.execute(wanted, (len(prefix), prefix))]

        return await self._do(read)

    async def forget(self, log: str) -> None:
        """Take a log away with all its lines."""

        def forgotten(connection: sqlite3.Connection) -> None:
            with changing(connection):
                connection.execute("DELETE FROM log_lines WHERE log = (SELECT id FROM logs WHERE name = ?)", (log,))
                connection.execute("DELETE FROM logs WHERE name = ?", (log,))

        await self._do(forgotten)

    def close(self) -> None:
        """Finish what is under way, and let the file go."""
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
