import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import TypeAlias

import pytest

from sightline.store.postgres_connection import PostgresConnection
from sightline.store.postgres_locks import pruning, rebuilding, writing
from tests.postgres_server import fetch
from tests.store.postgres_tables import connected, connection_to, tables

Lock: TypeAlias = Callable[[PostgresConnection], AbstractAsyncContextManager[None]]

WAITING = """
SELECT count(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database
WHERE l.locktype = 'advisory' AND NOT l.granted AND d.datname = current_database()
"""


async def until_waiting(connection: PostgresConnection, count: int = 1) -> None:
    while await connection.fetchval(WAITING) < count:
        pass


def test_those_who_write_do_not_wait_for_each_other() -> None:
    async def story(url: str) -> None:
        async with connection_to(url) as one, connection_to(url) as two, writing(one), writing(two):
            assert await one.fetchval(WAITING) == 0

    with tables() as url:
        asyncio.run(story(url))


@pytest.mark.parametrize(("first", "second"), [(writing, pruning), (pruning, writing), (rebuilding, rebuilding)])
def test_who_must_be_alone_waits_and_is_waited_for(first: Lock, second: Lock) -> None:
    order: list[str] = []

    async def later(connection: PostgresConnection) -> None:
        async with second(connection):
            order.append("second")

    async def story(one: PostgresConnection, two: PostgresConnection) -> None:
        async with asyncio.TaskGroup() as group, first(one):
            group.create_task(later(two))
            await until_waiting(one)
            order.append("first")

    async def both(url: str) -> None:
        async with connection_to(url) as one, connection_to(url) as two:
            await story(one, two)

    with tables() as url:
        asyncio.run(both(url))
    assert order == ["first", "second"]


@pytest.mark.parametrize("lock", [writing, pruning, rebuilding])
def test_what_is_begun_and_fails_has_not_happened(lock: Lock) -> None:
    async def failing(connection: PostgresConnection) -> None:
        async with lock(connection):
            await connection.execute("INSERT INTO sightline.instructions VALUES ($1, 'x_1')", b"1")
            raise RuntimeError

    with tables() as url:
        with pytest.raises(RuntimeError):
            connected(url, failing)
        assert fetch(url, "SELECT * FROM sightline.instructions") == []
