"""A database with the tables of a record, for tests of one part of it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TypeVar

from sightline.store.postgres_connection import PostgresConnection, address_of, connect, migrate
from sightline.store.postgres_sink import PostgresSink
from sightline.store.store import load_migrations
from tests.postgres_server import database
from tests.store.traffic import NOON, prices

T = TypeVar("T")


@contextmanager
def tables() -> Iterator[str]:
    """The URL of a record that is empty."""
    with database() as url:
        connected(url, lambda connection: migrate(connection, load_migrations("postgres")))
        yield url


@asynccontextmanager
async def connection_to(url: str) -> AsyncIterator[PostgresConnection]:
    connection = await connect(address_of(url))
    try:
        yield connection
    finally:
        await connection.close()


def connected(url: str, work: Callable[[PostgresConnection], Awaitable[T]]) -> T:
    """Do this with a connection."""

    async def run() -> T:
        async with connection_to(url) as connection:
            return await work(connection)

    return asyncio.run(run())


@contextmanager
def sink(url: str, replica: str = "one", now: float = NOON) -> Iterator[PostgresSink]:
    """What a writer of this replica would write to."""
    made = PostgresSink(address_of(url), replica=replica, prices=prices, now=lambda: now)
    try:
        yield made
    finally:
        made.close()
