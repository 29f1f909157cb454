import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, suppress
from pathlib import Path
from random import Random
from urllib.parse import quote

import pytest

from sightline.errors import Code, Fault
from sightline.filters.expression import EVERYTHING
from sightline.store.entries import Entry, FactEntry
from sightline.store.postgres import PostgresStore, open_postgres
from sightline.store.store import Store, load_migrations
from tests.postgres_server import PASSWORD, PostgresServer, database, execute, guest, own_server
from tests.store import conformance
from tests.store.conformance import Opening, StoreConformance, ids
from tests.store.postgres_replica import body_of, exchange_id
from tests.store.traffic import NOON, answered, chat_body, chat_stream, prices, received, sha256, whole

ROOT = Path(__file__).parents[2]
GOLDEN = Path(__file__).parent / "golden"


async def open_at(url: str, folder: Path) -> PostgresStore:
    return await open_postgres(url, folder, prices=prices, now=lambda: NOON)


def opened(url: str, folder: Path) -> AbstractAsyncContextManager[Store]:
    return conformance.opened(lambda: open_at(url, folder))


@pytest.fixture
def url() -> Iterator[str]:
    with database() as url:
        yield url


class TestPostgres(StoreConformance):
    @pytest.fixture
    def opening(self, url: str, tmp_path: Path) -> Opening:
        return lambda: open_at(url, tmp_path)


# --- a server that goes away ----------------------------------------------------------------------


def test_what_is_recorded_while_the_server_is_away_is_there_when_it_is_back(tmp_path: Path) -> None:
    async def story(server: PostgresServer, url: str) -> None:
        async with opened(url, tmp_path) as store:
            store.record(whole("x_1", chat_body("before"), "ok"))
            await store.settle()
            await asyncio.to_thread(server.stop)

            store.record(whole("x_2", chat_body("meanwhile"), "ok"))
            with pytest.raises(Fault) as caught:
                await store.settle()
            assert caught.value.code is Code.NETWORK
            assert store.trouble is not None
            with pytest.raises(Fault) as unread:
                await store.facts("x_1")
            told = f"{store.trouble.message} {store.trouble.hint} {unread.value.message} {unread.value.hint}"
            assert PASSWORD not in told
            assert quote(PASSWORD, safe="") not in told

            await asyncio.to_thread(server.start)
            while store.trouble is not None:
                # Each try that fails says so; the first one that does not is the end of it.
                with suppress(Fault):
                    await store.settle()
            assert await ids(store) == ["x_2", "x_1"]

    with own_server() as server, database(server) as url:
        asyncio.run(story(server, url))


async def test_connections_that_the_server_has_ended_are_made_anew_without_a_word(url: str, tmp_path: Path) -> None:
    end_all = (
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )

    async with opened(url, tmp_path) as store:
        store.record(whole("x_1", chat_body("before"), "ok"))
        assert await ids(store) == ["x_1"]
        await asyncio.to_thread(execute, url, end_all)
        store.record(whole("x_2", chat_body("after"), "ok"))
        assert await ids(store) == ["x_2", "x_1"]
        assert store.trouble is None


async def test_what_the_server_says_is_wrong_is_told(url: str, tmp_path: Path) -> None:
    async with opened(url, tmp_path) as store:
        await asyncio.to_thread(execute, url, "ALTER TABLE exchanges RENAME TO elsewhere")
        with pytest.raises(Fault, match=r"relation .* does not exist"):
            await store.find(EVERYTHING, now=NOON)


def test_what_could_not_be_brought_in_is_brought_in_by_the_next_process(tmp_path: Path) -> None:
    async def before(server: PostgresServer, url: str) -> None:
        async with opened(url, tmp_path) as store:
            await asyncio.to_thread(server.stop)
            store.record(whole("x_1", chat_body("hello"), "ok"))

    async def after(url: str) -> None:
        async with opened(url, tmp_path) as store:
            assert await ids(store, "text:hello") == ["x_1"]

    with own_server() as server, database(server) as url:
        asyncio.run(before(server, url))
        assert list((tmp_path / "journal").glob("*.log"))
        with pytest.raises(Fault) as caught:
            asyncio.run(after(url))
        assert caught.value.code is Code.NETWORK
        server.start()
        asyncio.run(after(url))


# --- opening --------------------------------------------------------------------------------------


async def test_a_data_folder_keeps_its_name_among_replicas(url: str, tmp_path: Path) -> None:
    async def open_and_close(folder: Path) -> str:
        async with opened(url, folder):
            return (folder / "replica").read_text()

    first = await open_and_close(tmp_path / "one")
    assert await open_and_close(tmp_path / "one") == first
    assert await open_and_close(tmp_path / "two") != first
    assert sorted(path.name for path in (tmp_path / "one").iterdir()) == ["journal", "replica"]
    assert (tmp_path / "one" / "replica").stat().st_mode & 0o777 == 0o600


async def test_replicas_that_start_at_once_all_start(url: str, tmp_path: Path) -> None:
    stores = await asyncio.gather(*(open_at(url, tmp_path / str(number)) for number in range(6)))
    await asyncio.gather(*(store.close() for store in stores))


def test_a_folder_that_cannot_be_written_to_is_refused(url: str, tmp_path: Path) -> None:
    (tmp_path / "journal").write_text("not a folder")
    with pytest.raises(Fault) as caught:
        asyncio.run(open_at(url, tmp_path))
    assert caught.value.code is Code.CONFIG
    (tmp_path / "journal").unlink()
    (tmp_path / "replica").mkdir()
    with pytest.raises(Fault) as caught:
        asyncio.run(open_at(url, tmp_path))
    assert "replica" in caught.value.message


def test_user_without_create_privilege_gets_a_grant_hint(url: str, tmp_path: Path) -> None:
    with guest(url) as theirs:
        with pytest.raises(Fault) as caught:
            asyncio.run(open_at(theirs, tmp_path))
        assert caught.value.code is Code.PERMISSION
        assert "GRANT" in caught.value.hint


def test_no_secret_of_the_url_is_in_the_data_folder(url: str, tmp_path: Path) -> None:
    async def story() -> None:
        async with opened(url, tmp_path) as store:
            store.record(received("x_1", chat_body("hi")))
            assert PASSWORD not in repr(vars(store)) + str(store)

    asyncio.run(story())
    secrets = (PASSWORD.encode(), quote(PASSWORD, safe="").encode())
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert files
    assert not [path for path in files for secret in secrets if secret in path.read_bytes()]


# --- replicas -------------------------------------------------------------------------------------


def replica(url: str, folder: Path, name: str, first: int, count: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.store.postgres_replica", url, str(folder), name, str(first), str(count)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def promised(process: subprocess.Popen[str]) -> list[tuple[str, int]]:
    """What a replica said it has recorded, to its end; a last line that was cut short promises nothing."""
    assert process.stdout is not None
    with process:
        lines = process.stdout.read().split("\n")[:-1]
    return [(what, int(number)) for what, number in (line.split() for line in lines)]


async def test_what_two_replicas_record_at_once_is_there_once(url: str, tmp_path: Path) -> None:
    count = 150
    processes = [replica(url, tmp_path / name, name, 0, count) for name in ("one", "two")]
    assert [len(promised(process)) for process in processes] == [2 * count, 2 * count]
    assert [process.returncode for process in processes] == [0, 0]

    async with opened(url, tmp_path / "reader") as store:
        expected = [exchange_id(name, number) for number in range(count) for name in ("one", "two")]
        assert await ids(store, limit=1000) == sorted(expected, reverse=True)
        for name in ("one", "two"):
            for number in range(0, count, 7):
                exchange, body = exchange_id(name, number), body_of(name, number)
                assert await store.facts(exchange) == answered_facts(exchange, body, number)
                assert await store.body(exchange, sha256(body)) == body
        found = {exchange_id("two", number) for number in (7, *range(70, 80))}
        assert set(await ids(store, "text:'two asks 7'")) == found


def answered_facts(exchange: str, body: bytes, number: int) -> list[Entry]:
    told = [*received(exchange, body), *answered(exchange, body, chat_stream("Yes, ", str(number)))]
    return [entry for entry in told if isinstance(entry, FactEntry)]


@pytest.mark.parametrize("seed", range(4))
async def test_a_replica_that_is_killed_loses_nothing_that_it_promised(url: str, tmp_path: Path, seed: int) -> None:
    lines_before_the_end = Random(seed).randrange(1, 200)
    other = replica(url, tmp_path / "other", "other", 0, 60)
    victim = replica(url, tmp_path / "victim", "victim", 0, 100_000)
    assert victim.stdout is not None
    heard = [victim.stdout.readline() for _ in range(lines_before_the_end)]
    victim.kill()
    said = [*((what, int(number)) for what, number in (line.split() for line in heard)), *promised(victim)]
    assert promised(other)[-1] == ("finished", 59)

    async with opened(url, tmp_path / "victim") as again:
        await again.settle()
        finished = {number for what, number in said if what == "finished"}
        for number in {number for _, number in said}:
            exchange, body = exchange_id("victim", number), body_of("victim", number)
            facts = await again.facts(exchange)
            whole_story = answered_facts(exchange, body, number)
            if number in finished or facts == whole_story:
                assert facts == whole_story
            else:
                assert facts[:1] == whole_story[:1]
                assert [each.fact.code for each in facts[1:]] == ["interrupted"]
            assert await again.body(exchange, sha256(body)) == body
        assert len(await ids(again, "id:*_other", limit=500)) == 60
        assert await ids(again, "state:received") == []


# --- records of earlier versions ------------------------------------------------------------------


@pytest.mark.parametrize("golden", sorted(GOLDEN.glob("postgres_*.sql")), ids=lambda path: path.stem)
def test_a_record_of_an_earlier_version_is_brought_up_to_date(golden: Path, url: str, tmp_path: Path) -> None:
    execute(url, golden.read_text())

    async def story() -> None:
        async with opened(url, tmp_path) as store:
            assert await ids(store) == ["x_3", "x_2", "x_1"]
            assert await ids(store, "text:'dad joke'") == ["x_1"]
            assert await ids(store, "text:grüße & cost>0") == ["x_2"]
            assert await ids(store, "fault:rate_limited") == ["x_3"]
            first = await store.facts("x_1")
            body = chat_body("tell a Dad Joke", system="Be brief.")
            assert first == [entry for entry in whole("x_1", body, "Knock ", "knock") if isinstance(entry, FactEntry)]
            assert await store.body("x_1", sha256(body)) == body
            said = ("tell a Dad Joke", "Knock knock", "Who is there?", "Grüße", "Und?")
            store.record(whole("x_4", chat_body(*said, system="Be brief."), "ok", at=NOON + 20))
            assert await ids(store) == ["x_4", "x_3", "x_2", "x_1"]
            (latest,) = await store.find(EVERYTHING, now=NOON, limit=1)
            assert latest.previous == "x_2"
            lines = [line.data for line in await store.logbook.lines("chat")]
            # There were no logs before.
            assert lines == ([b'{"a":1}', b'{"b":2}'] if golden.stem >= "postgres_003" else [])

    asyncio.run(story())


def test_there_is_a_record_of_this_version_to_try() -> None:
    golden = GOLDEN / f"postgres_{load_migrations('postgres')[-1].version:03}.sql"
    assert golden.is_file(), f"make {golden.name} with `python -m tests.store.golden_record`, and commit it"
