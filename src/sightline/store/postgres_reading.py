"""The reading side of a PostgreSQL record: questions about exchanges, each about one state of the record."""

import asyncio
from collections.abc import Awaitable, Sequence
from typing import TypeVar

from sightline.filters.expression import Expression
from sightline.filters.sql import POSTGRESQL_FOLDED, Column, Columns, dollar
from sightline.store.entries import BodyEntry, Codec, Entry, FactEntry, fact_of, unpack_frames
from sightline.store.postgres_connection import PostgresConnection
from sightline.store.postgres_sink import body_of
from sightline.store.search import FoundRow, RecordSearch, Search, SearchQuery, SearchTables
from sightline.store.summary import FIELDS, Summary, SummedExchanges, bodies_of

T = TypeVar("T")
U = TypeVar("U")

_FACTS = "SELECT n, at, data FROM sightline.facts WHERE exchange = $1"
_FRAMES = "SELECT data FROM sightline.frames WHERE exchange = $1"
_NEAR = "SELECT near FROM sightline.bodies WHERE sha256 = $1"
_COLUMNS = Columns(
    fields={
        name: Column("tool.value", "EXISTS (SELECT 1 FROM json_array_elements_text(e.tools::json) tool WHERE {})")
        if name == "tool"
        else Column("NULLIF(e.status, 0)" if name == "status" else f"e.{column}")
        for name, column in FIELDS.items()
    },
    latest="e.id IN (SELECT id FROM sightline.exchanges ORDER BY id DESC LIMIT {})",
    folded=POSTGRESQL_FOLDED,
    placeholder=dollar,
)
_TABLES: SearchTables[str] = SearchTables(_COLUMNS, "sightline.exchanges", "sightline.words", "id", "= ANY({})", list)


async def facts_of(connection: PostgresConnection, exchange: str) -> list[FactEntry]:
    """The facts of an exchange in their order."""
    async with connection.transaction(isolation="repeatable_read", readonly=True):
        return await _facts(connection, exchange)


async def newest(
    connection: PostgresConnection, wanted: Expression, *, now: float, before: str, limit: int
) -> list[Summary]:
    """Exchanges that the filter takes, newest first."""
    return await _ask(connection, RecordSearch(_TABLES, wanted, now).newest(before, limit))


async def sums(
    connection: PostgresConnection, wanted: Expression, by: Sequence[str], *, now: float
) -> list[SummedExchanges] | None:
    """The sums of all exchanges that the filter takes; see `Store`."""
    return await _ask(connection, RecordSearch(_TABLES, wanted, now).sums(by))


async def oldest(connection: PostgresConnection, wanted: Expression, *, now: float, after: str) -> list[str]:
    """The ids of some exchanges that the filter takes, oldest first, from behind one."""
    return await _ask(connection, RecordSearch(_TABLES, wanted, now).oldest(after))


async def _ask(connection: PostgresConnection, search: Search[T]) -> T:
    """Answer the questions of a search; returns what it found. It works on a thread: scanning words may take long, and
    here others are served. What it is likely to ask next is fetched meanwhile, and kept until it does."""
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
    """What both return. Where one fails, the other is waited for all the same: a connection in use could not even end
    its transaction."""
    one, other = await asyncio.gather(first, second, return_exceptions=True)
    if isinstance(one, BaseException):
        raise one
    if isinstance(other, BaseException):
        raise other
    return one, other


def _advance(search: Search[T], rows: Sequence[FoundRow] | None) -> tuple[SearchQuery | None, list[T]]:
    """The next question; with none, what was found."""
    try:
        return (next(search) if rows is None else search.send(rows)), []
    except StopIteration as end:
        return None, [end.value]


async def entries_of(connection: PostgresConnection, exchange: str) -> list[Entry]:
    """All of one exchange, each body before the fact that names it."""
    codec = Codec()
    entries: list[Entry] = []
    names: set[str] = set()
    async with connection.transaction(isolation="repeatable_read", readonly=True):
        for entry in await _facts(connection, exchange):
            for name in bodies_of(entry.fact):
                if name not in names and (body := await body_of(connection, codec, name)) is not None:
                    entries.append(BodyEntry(name, body, await connection.fetchval(_NEAR, bytes.fromhex(name))))
                names.add(name)
            entries.append(entry)
    return entries


async def _facts(connection: PostgresConnection, exchange: str) -> list[FactEntry]:
    codec = Codec()
    plain = await connection.fetch(_FACTS, exchange)
    entries = [FactEntry(exchange, row["n"], row["at"], fact_of(row["data"])) for row in plain]
    for row in await connection.fetch(_FRAMES, exchange):
        entries += unpack_frames(codec, exchange, row["data"])
    return sorted(entries, key=lambda each: each.n)
