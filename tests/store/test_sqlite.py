import asyncio
import sqlite3
from pathlib import Path

import pytest
import zstandard

from sightline.errors import Code, Fault
from sightline.filters.expression import EVERYTHING
from sightline.filters.parsing import parse
from sightline.store.entries import Codec
from sightline.store.sqlite import JOURNAL, SqliteLogbook, SqliteReader, SqliteStore, open_store, prune, record_size
from sightline.store.sqlite_database import FILE_NAME, asking, body_of, changing, open_database
from sightline.store.sqlite_sink import SqliteSink
from sightline.store.store import load_migrations, overtaken
from tests.store.conformance import Opening, StoreConformance
from tests.store.golden_record import FOLDER, bodies
from tests.store.logbook_conformance import LogbookConformance
from tests.store.traffic import NOON, answered, chat_body, chat_stream, prices, received, sha256, whole


async def opened(folder: Path) -> SqliteStore:
    return await open_store(folder, prices=prices, now=lambda: NOON)


class TestSqlite(StoreConformance):
    @pytest.fixture
    def opening(self, tmp_path: Path) -> Opening:
        return lambda: opened(tmp_path)


async def test_two_stores_on_one_folder_see_each_others_exchanges(tmp_path: Path) -> None:
    first, second = await asyncio.gather(opened(tmp_path), opened(tmp_path))
    for number, store in enumerate([first, second, first, second]):
        store.record(whole(f"x_{number}", chat_body(str(number)), "yes"))
    await asyncio.gather(first.settle(), second.settle())
    for store in (first, second):
        assert len(await store.find(EVERYTHING, now=NOON)) == 4
    await asyncio.gather(first.close(), second.close())


async def test_torn_journal_is_reported(tmp_path: Path) -> None:
    (tmp_path / JOURNAL).mkdir()
    (tmp_path / JOURNAL / "001.lock").touch()
    (tmp_path / JOURNAL / "001-00000001.log").write_bytes(b"torn")

    store = await opened(tmp_path)
    assert [(torn.at, torn.size) for torn in store.torn] == [(0, 4)]
    assert store.trouble is None
    await store.close()


def test_a_store_that_cannot_be_opened_leaves_nothing_open(tmp_path: Path) -> None:
    (tmp_path / JOURNAL).write_text("in the way")
    with pytest.raises(Fault, match="cannot be written"):
        asyncio.run(opened(tmp_path))
    (tmp_path / JOURNAL).unlink()
    (tmp_path / FILE_NAME).write_bytes(b"no database" * 1000)
    with pytest.raises(Fault, match="damaged"):
        asyncio.run(opened(tmp_path))


class TestSqliteLogbook(LogbookConformance):
    @pytest.fixture
    def opening(self, tmp_path: Path) -> Opening:
        return lambda: opened(tmp_path)

    @pytest.fixture
    def place(self, tmp_path: Path) -> list[str]:
        return [str(tmp_path)]


async def test_database_error_is_reported_and_rolled_back(tmp_path: Path) -> None:
    store = await opened(tmp_path)
    await store.logbook.append("chat", 0, [b"1"], NOON)
    other = sqlite3.connect(tmp_path / FILE_NAME, isolation_level=None)
    other.execute("DROP TABLE log_lines")
    with pytest.raises(Fault, match="cannot be used") as caught:
        await store.logbook.append("chat", 1, [b"2"], NOON)
    assert caught.value.code is Code.CONFIG
    assert other.execute("SELECT lines FROM logs").fetchall() == [(1,)]
    other.close()
    await store.close()


def test_unused_logbook_is_closed_without_creating_a_file(tmp_path: Path) -> None:
    SqliteLogbook(tmp_path / FILE_NAME).close()
    assert list(tmp_path.iterdir()) == []


def test_the_file_shrinks(tmp_path: Path, connection: sqlite3.Connection, sink: SqliteSink) -> None:
    for number in range(300):
        noise = "".join(sha256(f"{number} {line}".encode()) for line in range(40))
        sink.apply(whole(f"x_{number:03}", chat_body(noise), "yes", at=NOON + number))
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    before = (tmp_path / FILE_NAME).stat().st_size
    pruned = prune(connection, older_than=NOON + 250, larger_than=None)
    assert pruned.exchanges == 250
    assert pruned.bytes_left == record_size(connection)
    assert (tmp_path / FILE_NAME).stat().st_size < before / 2


def test_what_is_forgotten_is_in_no_block_and_those_beside_it_stay(
    tmp_path: Path, connection: sqlite3.Connection, sink: SqliteSink
) -> None:
    bodies = [chat_body(f"asked {number}") for number in range(6)]
    for number, body in enumerate(bodies):
        sink.apply(received(f"x_{number}", body, at=NOON + number))
    for number, body in enumerate(bodies):
        sink.apply(answered(f"x_{number}", body, chat_stream(f"said {number}"), at=NOON + number))
    assert connection.execute("SELECT DISTINCT blocks FROM exchanges").fetchall() == [("1",)]
    assert prune(connection, older_than=NOON + 3, larger_than=None).exchanges == 3
    ((packed,),) = connection.execute("SELECT data FROM blocks").fetchall()
    block = Codec().unpack(packed)
    assert [number for number in range(6) if b"asked %d" % number in block] == [3, 4, 5]
    assert [number for number in range(6) if b"said %d" % number in block] == [3, 4, 5]
    reading = SqliteReader(tmp_path / FILE_NAME)
    assert [len(reading.facts(f"x_{number}")) for number in range(6)] == [0, 0, 0, 6, 6, 6]
    assert [reading.body(f"x_{number}", sha256(body)) for number, body in enumerate(bodies)] == [None] * 3 + bodies[3:]
    reading.close()


def test_a_piece_that_is_larger_than_a_block_has_one_of_its_own(
    connection: sqlite3.Connection, sink: SqliteSink
) -> None:
    sink.apply([*whole("x_0", chat_body("a"), "yes"), *whole("x_1", chat_body("b"), "long " * 40_000)])
    sink.apply(whole("x_2", chat_body("c"), "yes"))
    rows = connection.execute("SELECT id, blocks FROM exchanges ORDER BY id").fetchall()
    assert rows == [("x_0", "1"), ("x_1", "2"), ("x_2", "3")]
    assert prune(connection, older_than=NOON + 100, larger_than=None).exchanges == 3
    assert connection.execute("SELECT count(*) FROM blocks").fetchone() == (0,)


def test_bodies_that_branch_off_a_forgotten_one_build_on_each_other(
    connection: sqlite3.Connection, sink: SqliteSink
) -> None:
    base = [f"{n} " + "word " * 500 for n in range(5)]
    trunk = chat_body(*base)
    branches = [chat_body(*base, f"branch {n} " + "else " * 30) for n in range(4)]
    sink.apply(whole("x_0", trunk, "yes"))
    for number, body in enumerate(branches, 1):
        connection.execute("UPDATE bodies SET near = 'away' WHERE base IS NOT NULL")
        SqliteSink(connection, prices).apply(whole(f"x_{number}", body, "yes", at=NOON + 100))
    assert connection.execute("SELECT count(*) FROM bodies WHERE base = 1").fetchone() == (4,)
    assert prune(connection, older_than=NOON + 1, larger_than=None).exchanges == 1
    assert body_of(connection, Codec(), sha256(trunk)) is None
    assert [body_of(connection, Codec(), sha256(body)) for body in branches] == branches
    assert connection.execute("SELECT count(*) FROM bodies WHERE base IS NULL").fetchone() == (1,)


def test_a_body_that_no_fact_names_yet_is_left_alone(connection: sqlite3.Connection, sink: SqliteSink) -> None:
    body = chat_body("soon")
    sink.apply(received("x_1", body)[:1])
    sink.apply(whole("x_0", chat_body("old"), "yes"))
    assert prune(connection, older_than=NOON + 100, larger_than=0).exchanges == 1
    assert body_of(connection, Codec(), sha256(body)) == body


GOLDEN = sorted(FOLDER.glob("*.sqlite3.zst"))


def test_migrations_are_numbered_without_a_gap_and_the_last_has_its_golden_record() -> None:
    versions = [step.version for step in load_migrations("sqlite")]
    assert versions == list(range(1, len(versions) + 1))
    newest = f"{versions[-1]:03}.sqlite3.zst"
    assert GOLDEN[-1].name == newest, f"make {newest} with `python -m tests.store.golden_record`, and commit it"


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda path: path.name)
def test_a_record_of_an_earlier_version_opens_with_all_that_is_in_it(tmp_path: Path, golden: Path) -> None:
    (tmp_path / FILE_NAME).write_bytes(zstandard.ZstdDecompressor().decompress(golden.read_bytes()))

    async def story() -> None:
        store = await open_store(tmp_path, prices=prices, now=lambda: NOON)
        await store.settle()
        found = await store.find(parse("session:s"), now=NOON)
        assert [each.id for each in found] == ["x_open", *(f"x_{turn}" for turn in range(9, -1, -1))]
        assert (found[0].state, found[0].fault) == ("failed", "interrupted")
        assert [each.previous for each in found[1:]] == [*(f"x_{turn}" for turn in range(8, -1, -1)), ""]
        for turn, body in enumerate(bodies()):
            assert await store.body(f"x_{turn}", sha256(body)) == body
        assert [each.id for each in await store.find(parse("text:'turn 18'"), now=NOON)] == ["x_9"]
        assert len(await store.facts("x_3")) == 6
        lines = [line.data for line in await store.logbook.lines("chat")]
        # There were no logs before.
        assert lines == ([b'{"a":1}', b'{"b":2}'] if golden.name >= "003" else [])
        assert (await store.prune(older_than=NOON + 5)).exchanges == 5
        await store.close()

    asyncio.run(story())


def test_a_new_exchange_costs_no_table_of_its_own(connection: sqlite3.Connection) -> None:
    names = [row[1] for row in connection.execute("PRAGMA table_info(exchanges)")]
    steps = connection.execute(f"EXPLAIN INSERT INTO exchanges VALUES ({','.join('?' * len(names))})", names).fetchall()
    assert "OpenEphemeral" not in [step[1] for step in steps]


def test_a_new_record_is_the_owners_alone_and_in_wal_mode(tmp_path: Path) -> None:
    connection = open_database(tmp_path / "data")
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert connection.execute("PRAGMA auto_vacuum").fetchone() == (2,)
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "data").iterdir()} == {0o600}
    connection.close()


def test_a_record_of_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    connection = open_database(tmp_path)
    connection.execute("PRAGMA user_version = 999")
    connection.close()
    with pytest.raises(Fault, match="newer Sightline"):
        open_database(tmp_path)
    assert (tmp_path / FILE_NAME).exists()


@pytest.mark.parametrize("start", [0, 16, 100])
def test_a_damaged_file_is_moved_aside_and_never_over_another(tmp_path: Path, start: int) -> None:
    for number in (1, 2):
        open_database(tmp_path).close()
        path = tmp_path / FILE_NAME
        whole = path.read_bytes()
        path.write_bytes(damaged := whole[:start] + b"\xa5" * 4000 + whole[start + 4000 :])
        with pytest.raises(Fault, match=rf"damaged-{number}") as caught:
            open_database(tmp_path)
        assert caught.value.code is Code.CONFIG
        assert (tmp_path / f"{FILE_NAME}.damaged-{number}").read_bytes() == damaged
    open_database(tmp_path).close()


def test_a_folder_that_is_none_is_a_clear_fault(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Fault, match="file"):
        open_database(tmp_path / "file")


def test_a_change_is_whole_or_nothing(connection: sqlite3.Connection) -> None:
    def change(statement: str) -> None:
        with changing(connection):
            connection.execute("INSERT INTO words VALUES (1, 1, 1, 1, x'00')")
            connection.execute(statement)

    with pytest.raises(Fault, match="no such table"):
        change("INSERT INTO nowhere VALUES (1)")
    with pytest.raises(TypeError):
        change(None)  # type: ignore[arg-type]
    assert connection.execute("SELECT count(*) FROM words").fetchone() == (0,)
    with pytest.raises(Fault), asking():
        raise sqlite3.OperationalError("odd")


def test_concurrent_change_is_reported_with_log_and_hint() -> None:
    fault = overtaken("run:r_1")
    assert (fault.code, fault.status) == (Code.USAGE, 409)
    assert "'run:r_1' was changed by another process" in fault.message
    assert "Read" in fault.hint
