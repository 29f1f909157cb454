import asyncio
from pathlib import Path

from sightline.filters.expression import EVERYTHING
from sightline.model.exchange import Received
from sightline.store.entries import Codec
from sightline.store.postgres import open_postgres, prune, record_size
from sightline.store.postgres_sink import body_of
from tests.postgres_server import database, fetch
from tests.store.postgres_tables import connected, connection_to, sink, tables
from tests.store.traffic import NOON, chat_body, prices, sha256, whole

TURNS = [f"{turn} " + "lorem ipsum " * 60 for turn in range(40)]
HISTORY = [chat_body(*TURNS[: 2 * turn + 1]) for turn in range(20)]


def test_what_was_built_on_the_forgotten_is_built_on_each_other() -> None:
    async def check(url: str) -> None:
        async with connection_to(url) as connection:
            before = await record_size(connection)
            pruned = await prune(connection, older_than=NOON + 9.5, larger_than=None)
            assert (pruned.exchanges, pruned.bytes_left) == (10, await record_size(connection))
            assert pruned.bytes_freed == before - pruned.bytes_left
            for body in HISTORY[10:]:
                assert await body_of(connection, Codec(), sha256(body)) == body

    with tables() as url, sink(url) as target:
        for turn, body in enumerate(HISTORY):
            target.apply(whole(f"x_{turn:02}", body, "yes", at=NOON + turn))
        asyncio.run(check(url))
        depths = [row["depth"] for row in fetch(url, "SELECT depth FROM sightline.bodies ORDER BY number")]
        assert len(depths) == 10
        assert depths.count(0) == 1


def test_no_limit_forgets_nothing_and_none_at_all_forgets_everything() -> None:
    with tables() as url, sink(url) as target:
        for turn, body in enumerate(HISTORY):
            target.apply(whole(f"x_{turn:02}", body, "yes", at=NOON + turn))
        while target.tidy():
            pass
        left_alone = connected(url, lambda connection: prune(connection, older_than=None, larger_than=None))
        assert (left_alone.exchanges, left_alone.bytes_freed) == (0, 0)
        emptied = connected(url, lambda connection: prune(connection, older_than=None, larger_than=0))
        assert (emptied.exchanges, emptied.bytes_freed, emptied.bytes_left) == (20, left_alone.bytes_left, 0)
        for table in ("exchanges", "facts", "frames", "bodies", "uses", "words", "instructions"):
            assert fetch(url, f"SELECT * FROM sightline.{table}") == []


def test_pruning_while_replicas_write_leaves_nothing_half(tmp_path: Path) -> None:
    async def story(url: str) -> None:
        one, two = [
            await open_postgres(url, tmp_path / name, prices=prices, now=lambda: NOON) for name in ("one", "two")
        ]
        try:
            for number in range(120):
                # Both send the same bodies again and again, so that what is pruned is just what is needed next.
                body = HISTORY[number % 20]
                one.record(whole(f"x_{number:03}_1", body, "yes", at=NOON + number))
                two.record(whole(f"x_{number:03}_2", body, "yes", at=NOON + number))
                if number % 10 == 9:
                    await one.settle()
                    await asyncio.gather(
                        one.prune(older_than=NOON + number - 3), two.prune(older_than=NOON + number - 5)
                    )
            await asyncio.gather(one.settle(), two.settle())
            found = await one.find(EVERYTHING, now=NOON, limit=500)
            assert found
            for summary in found:
                facts = [noted.fact for noted in await two.facts(summary.id)]
                assert summary.state == "finished"
                assert isinstance(facts[0], Received)
                body = await two.body(summary.id, facts[0].sha256)
                assert body is not None
                assert sha256(body) == facts[0].sha256
        finally:
            await asyncio.gather(one.close(), two.close())

    with database() as url:
        asyncio.run(story(url))
