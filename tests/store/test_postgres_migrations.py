import asyncio

import pytest

from sightline.errors import Code, Fault
from sightline.store.postgres import PostgresMigration, index_texts, load_migrations, migrate
from sightline.store.postgres_connection import REFUSAL, address_of, connect
from tests.postgres_server import database, execute, fetch, guest
from tests.store.postgres_tables import connected

STEPS = [
    PostgresMigration(1, "CREATE TABLE sightline.cats (name text); INSERT INTO sightline.cats VALUES ('Tom')"),
    PostgresMigration(2, "ALTER TABLE sightline.cats ADD COLUMN lives integer DEFAULT 9"),
]


def version(url: str) -> int:
    return fetch(url, "SELECT number FROM sightline.version")[0]["number"]


def test_the_steps_that_ship_are_numbered_without_a_gap() -> None:
    assert [step.version for step in load_migrations()] == list(range(1, len(load_migrations()) + 1))
    assert load_migrations()


def test_missing_steps_are_taken_once() -> None:
    with database() as url:
        assert connected(url, lambda connection: migrate(connection, STEPS[:1])) == 1
        assert connected(url, lambda connection: migrate(connection, STEPS)) == 1
        assert connected(url, lambda connection: migrate(connection, STEPS)) == 0
        assert [tuple(row) for row in fetch(url, "SELECT * FROM sightline.cats")] == [("Tom", 9)]
        assert version(url) == 2


def test_replicas_that_start_at_once_do_the_work_once() -> None:
    async def start(url: str) -> int:
        connection = await connect(address_of(url))
        try:
            return await migrate(connection, STEPS)
        finally:
            await connection.close()

    async def start_many(url: str) -> list[int]:
        return await asyncio.gather(*(start(url) for _ in range(8)))

    with database() as url:
        assert sorted(asyncio.run(start_many(url))) == [0] * 7 + [2]
        assert len(fetch(url, "SELECT * FROM sightline.cats")) == 1


def test_a_step_that_fails_leaves_everything_as_it_was() -> None:
    with database() as url:
        connected(url, lambda connection: migrate(connection, STEPS[:1]))
        broken = [
            STEPS[0],
            PostgresMigration(2, "DROP TABLE sightline.cats"),
            PostgresMigration(3, "DROP TABLE sightline.dogs"),
        ]
        with pytest.raises(REFUSAL):
            connected(url, lambda connection: migrate(connection, broken))
        assert version(url) == 1
        assert len(fetch(url, "SELECT * FROM sightline.cats")) == 1


def test_tables_of_a_newer_sightline_are_left_alone() -> None:
    with database() as url:
        connected(url, lambda connection: migrate(connection, STEPS))
        with pytest.raises(Fault) as caught:
            connected(url, lambda connection: migrate(connection, STEPS[:1]))
        assert caught.value.code is Code.CONFIG
        assert "made by a newer Sightline" in caught.value.message


def test_once_all_is_there_a_user_who_may_make_nothing_can_start() -> None:
    with database() as url:
        connected(url, lambda connection: migrate(connection, STEPS))
        with guest(url, "USAGE ON SCHEMA sightline", "SELECT ON ALL TABLES IN SCHEMA sightline") as theirs:
            assert connected(theirs, lambda connection: migrate(connection, STEPS)) == 0


TABLE = [PostgresMigration(1, "CREATE TABLE sightline.texts (words text)")]
INDEX = "SELECT indexdef FROM pg_indexes WHERE indexname = 'texts_by_trigram'"


def test_words_are_indexed_once() -> None:
    with database() as url:
        connected(url, lambda connection: migrate(connection, TABLE))
        assert connected(url, index_texts)
        assert connected(url, index_texts)
        assert "gin_trgm_ops" in fetch(url, INDEX)[0]["indexdef"]


def test_an_extension_that_is_there_already_is_used_where_it_is() -> None:
    with database() as url:
        execute(url, 'CREATE SCHEMA "other Place"')
        execute(url, 'CREATE EXTENSION pg_trgm SCHEMA "other Place"')
        connected(url, lambda connection: migrate(connection, TABLE))
        assert connected(url, index_texts)
        assert len(fetch(url, INDEX)) == 1


def test_a_server_that_cannot_index_words_is_used_without() -> None:
    with database() as url:
        connected(url, lambda connection: migrate(connection, TABLE))
        with guest(url, "USAGE ON SCHEMA sightline") as theirs:
            assert not connected(theirs, index_texts)
        assert fetch(url, INDEX) == []
