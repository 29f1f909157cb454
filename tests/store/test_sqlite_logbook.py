import asyncio
import sqlite3
from pathlib import Path

import pytest

from sightline.errors import Code, Fault
from sightline.store.sqlite import SqliteLogbook
from sightline.store.sqlite_database import FILE_NAME
from tests.store.conformance import Opening
from tests.store.logbook_conformance import LogbookConformance
from tests.store.test_sqlite import opened
from tests.store.traffic import NOON


class TestSqliteLogbook(LogbookConformance):
    @pytest.fixture
    def opening(self, tmp_path: Path) -> Opening:
        return lambda: opened(tmp_path)

    @pytest.fixture
    def place(self, tmp_path: Path) -> list[str]:
        return [str(tmp_path)]


def test_what_the_database_refuses_is_told_and_leaves_nothing_half_done(tmp_path: Path) -> None:
    async def story() -> None:
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

    asyncio.run(story())


def test_a_logbook_that_nobody_used_is_closed_without_a_file(tmp_path: Path) -> None:
    SqliteLogbook(tmp_path / FILE_NAME).close()
    assert list(tmp_path.iterdir()) == []
