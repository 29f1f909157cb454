from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from sightline.errors import Fault
from sightline.store.postgres import PostgresLogbook
from sightline.store.postgres_connection import PostgresConnection
from tests.postgres_server import database
from tests.store.conformance import Opening, opened
from tests.store.logbook_conformance import LogbookConformance
from tests.store.postgres_tables import connection_to
from tests.store.test_postgres import open_at
from tests.store.traffic import NOON

T = TypeVar("T")


@pytest.fixture
def url() -> Iterator[str]:
    with database() as url:
        yield url


class TestPostgresLogbook(LogbookConformance):
    @pytest.fixture
    def opening(self, url: str, tmp_path: Path) -> Opening:
        return lambda: open_at(url, tmp_path / "mine")

    @pytest.fixture
    def place(self, url: str, tmp_path: Path) -> list[str]:
        return [str(tmp_path / "child"), url]


def told_twice(url: str, others: bytes = b"") -> PostgresLogbook:
    """A logbook whose connection ends each time between what was done and the word of it; others may come between."""

    async def ask(work: Callable[[PostgresConnection], Awaitable[T]]) -> T:
        async with connection_to(url) as connection:
            await work(connection)
            if others:
                await connection.execute("UPDATE sightline.log_lines SET data = $1", others)
            return await work(connection)

    return PostgresLogbook(ask)


async def test_lines_whose_word_was_lost_on_the_way_are_there_once(url: str, tmp_path: Path) -> None:
    async with opened(lambda: open_at(url, tmp_path)) as store:
        await told_twice(url).append("chat", 0, [b"1", b"2"], NOON)
        await told_twice(url).append("chat", 2, [b"3"], NOON)
        assert [line.data for line in await store.logbook.lines("chat")] == [b"1", b"2", b"3"]
        with pytest.raises(Fault, match="changed by another process"):
            await told_twice(url, others=b"theirs").append("chat", 3, [b"4"], NOON)
