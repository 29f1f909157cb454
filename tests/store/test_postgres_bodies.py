import asyncio

import pytest

from sightline.store.delta import DEEPEST, Codec
from sightline.store.entries import BodyEntry
from sightline.store.postgres_bodies import PostgresBodies, body_of
from tests.postgres_server import execute, fetch
from tests.store.postgres_tables import connection_to, tables
from tests.store.traffic import chat_body, sha256

TURNS = [f"{turn} " + "".join(sha256(f"{turn} {line}".encode()) for line in range(20)) for turn in range(100)]
HISTORY = [chat_body(*TURNS[: turn + 1]) for turn in range(100)]


def kept(body: bytes, near: str = "s") -> BodyEntry:
    return BodyEntry(sha256(body), body, near)


def test_a_growing_history_takes_little_more_than_its_end() -> None:
    async def story(url: str) -> None:
        async with connection_to(url) as connection:
            bodies = PostgresBodies(Codec())
            for start in range(0, 100, 7):
                await bodies.keep(connection, [kept(body) for body in HISTORY[start : start + 7]])
            for body in HISTORY:
                assert await body_of(connection, Codec(), sha256(body)) == body

    with tables() as url:
        asyncio.run(story(url))
        (row,) = fetch(url, "SELECT sum(octet_length(data)) AS size, max(depth) AS depth FROM sightline.bodies")
    assert row["size"] < sum(map(len, HISTORY)) / 15
    assert row["depth"] <= DEEPEST


def test_after_a_start_bodies_build_on_what_is_stored() -> None:
    async def story(url: str) -> None:
        async with connection_to(url) as connection:
            await PostgresBodies(Codec()).keep(connection, [kept(HISTORY[50])])
            later = PostgresBodies(Codec())
            assert await later.body(connection, sha256(HISTORY[50])) == HISTORY[50]
            await later.keep(connection, [kept(HISTORY[51])])
            assert await later.body(connection, sha256(HISTORY[51])) == HISTORY[51]

    with tables() as url:
        asyncio.run(story(url))
        assert [row["depth"] for row in fetch(url, "SELECT depth FROM sightline.bodies ORDER BY number")] == [0, 1]


def test_nothing_is_built_on_what_another_replica_has_pruned() -> None:
    async def story(url: str) -> None:
        async with connection_to(url) as connection:
            bodies = PostgresBodies(Codec())
            await bodies.keep(connection, [kept(HISTORY[50])])
            await asyncio.to_thread(execute, url, "DELETE FROM sightline.bodies")
            await bodies.keep(connection, [kept(HISTORY[51])])
            assert await body_of(connection, Codec(), sha256(HISTORY[51])) == HISTORY[51]

    with tables() as url:
        asyncio.run(story(url))


def test_replicas_that_store_the_same_bodies_at_once_both_can() -> None:
    async def write(url: str, order: list[bytes]) -> None:
        async with connection_to(url) as connection:
            bodies = PostgresBodies(Codec())
            for start in range(0, len(order), 10):
                async with connection.transaction():
                    await bodies.keep(connection, [kept(body) for body in order[start : start + 10]])

    async def story(url: str) -> None:
        await asyncio.gather(write(url, HISTORY), write(url, HISTORY[::-1]), write(url, HISTORY))
        async with connection_to(url) as connection:
            for body in HISTORY:
                assert await body_of(connection, Codec(), sha256(body)) == body

    with tables() as url:
        asyncio.run(story(url))
        assert fetch(url, "SELECT count(*) AS count FROM sightline.bodies")[0]["count"] == len(HISTORY)


@pytest.mark.parametrize("near", ["", "a\0b"])
def test_any_name_of_what_is_alike_will_do(near: str) -> None:
    async def story(url: str) -> None:
        async with connection_to(url) as connection:
            for _ in range(2):
                await PostgresBodies(Codec()).keep(connection, [kept(HISTORY[1], near), kept(HISTORY[2], near)])
            assert await body_of(connection, Codec(), sha256(HISTORY[2])) == HISTORY[2]

    with tables() as url:
        asyncio.run(story(url))
