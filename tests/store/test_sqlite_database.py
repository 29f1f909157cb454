import asyncio
import sqlite3
from pathlib import Path

import pytest
import zstandard

from sightline.errors import Code, Fault
from sightline.filters.parsing import parse
from sightline.store.sqlite import open_store
from sightline.store.sqlite_database import FILE_NAME, asking, changing, migrations, open_database
from tests.store.golden_record import FOLDER, bodies
from tests.store.traffic import NOON, prices, sha256

GOLDEN = sorted(FOLDER.glob("*.sqlite3.zst"))


def test_migrations_are_numbered_without_a_gap_and_the_last_has_its_golden_record() -> None:
    versions = [step.version for step in migrations()]
    assert versions == list(range(1, len(versions) + 1))
    assert GOLDEN[-1].name == f"{versions[-1]:03}.sqlite3.zst"


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
        for body in bodies():
            assert await store.body(sha256(body)) == body
        assert [each.id for each in await store.find(parse("text:'turn 18'"), now=NOON)] == ["x_9"]
        assert len(await store.facts("x_3")) == 6
        lines = [line.data for line in await store.logbook.lines("chat")]
        # There were no logs before.
        assert lines == ([b'{"a":1}', b'{"b":2}'] if golden.name >= "003" else [])
        assert (await store.prune(older_than=NOON + 5)).exchanges == 5
        await store.close()

    asyncio.run(story())


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


def test_a_change_is_whole_or_nothing(tmp_path: Path) -> None:
    connection = open_database(tmp_path)

    def change(statement: str) -> None:
        with changing(connection):
            connection.execute("INSERT INTO texts VALUES (1, x'00')")
            connection.execute(statement)

    with pytest.raises(Fault, match="no such table"):
        change("INSERT INTO nowhere VALUES (1)")
    with pytest.raises(TypeError):
        change(None)  # type: ignore[arg-type]
    assert connection.execute("SELECT count(*) FROM texts").fetchone() == (0,)
    with pytest.raises(Fault), asking():
        raise sqlite3.OperationalError("odd")
    connection.close()
