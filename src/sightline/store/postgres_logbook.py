"""Logs in PostgreSQL, beside the record that several replicas share."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, TypeVar

from sightline.store.logbook import Line, Log, overtaken
from sightline.store.postgres_connection import PostgresConnection

T = TypeVar("T")

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
_FORGET = """
WITH gone AS (DELETE FROM sightline.logs WHERE name = $1 RETURNING id)
DELETE FROM sightline.log_lines USING gone WHERE log = gone.id
"""


class QueryRunner(Protocol):
    """Does some work with a connection, and once more where that had ended unnoticed."""

    def __call__(self, work: Callable[[PostgresConnection], Awaitable[T]]) -> Awaitable[T]:
        """Do it."""
        ...


class PostgresLogbook:
    """See `Logbook`."""

    def __init__(self, ask: QueryRunner) -> None:
        self._ask = ask

    async def append(self, log: str, after: int, data: Sequence[bytes], at: float) -> None:
        """Add these lines behind line number `after`, or none if that is not the last one."""
        tries = 0

        async def insert(connection: PostgresConnection) -> None:
            nonlocal tries
            tries += 1
            if not await _insert_lines(connection, log, after, data, at) and not (
                # The connection may have ended between what was asked and the word that it was done.
                tries > 1 and await _are_there(connection, log, after, data, at)
            ):
                raise overtaken(log)

        if data:
            await self._ask(insert)

    async def lines(self, log: str, after: int = 0) -> list[Line]:
        """The lines behind line number `after`, in their order."""
        return await self._ask(lambda connection: _lines(connection, log, after))

    async def logs(self, prefix: str = "") -> list[Log]:
        """The logs whose names begin so, the one that was added to latest first."""
        rows = await self._ask(lambda connection: connection.fetch(_LOGS, prefix))
        return [Log(row["name"], row["lines"], row["began"], row["latest"]) for row in rows]

    async def forget(self, log: str) -> None:
        """Take a log away with all its lines."""
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
