import asyncio
from pathlib import Path

import pytest

from sightline.errors import Fault
from sightline.filters.expression import EVERYTHING
from sightline.filters.parsing import parse
from sightline.store.reply_texts import ReplyText
from sightline.store.sqlite import JOURNAL, SqliteStore, open_store
from sightline.store.sqlite_database import FILE_NAME
from tests.store.conformance import Opening, StoreConformance
from tests.store.traffic import NOON, chat_body, prices, whole


async def opened(folder: Path) -> SqliteStore:
    return await open_store(folder, prices=prices, now=lambda: NOON)


class TestSqlite(StoreConformance):
    @pytest.fixture
    def opening(self, tmp_path: Path) -> Opening:
        return lambda: opened(tmp_path)


def test_two_stores_on_one_folder_see_each_others_exchanges(tmp_path: Path) -> None:
    async def story() -> None:
        first, second = await asyncio.gather(opened(tmp_path), opened(tmp_path))
        for number, store in enumerate([first, second, first, second]):
            store.record(whole(f"x_{number}", chat_body(str(number)), "yes"))
        await asyncio.gather(first.settle(), second.settle())
        for store in (first, second):
            assert len(await store.find(EVERYTHING, now=NOON)) == 4
        await asyncio.gather(first.close(), second.close())

    asyncio.run(story())


def test_a_torn_journal_is_told(tmp_path: Path) -> None:
    (tmp_path / JOURNAL).mkdir()
    (tmp_path / JOURNAL / "001.lock").touch()
    (tmp_path / JOURNAL / "001-00000001.log").write_bytes(b"torn")

    async def story() -> None:
        store = await opened(tmp_path)
        assert [(torn.at, torn.size) for torn in store.torn] == [(0, 4)]
        assert store.trouble is None
        await store.close()

    asyncio.run(story())


def test_a_store_that_cannot_be_opened_leaves_nothing_open(tmp_path: Path) -> None:
    (tmp_path / JOURNAL).write_text("in the way")
    with pytest.raises(Fault, match="cannot be written"):
        asyncio.run(opened(tmp_path))
    (tmp_path / JOURNAL).unlink()
    (tmp_path / FILE_NAME).write_bytes(b"no database" * 1000)
    with pytest.raises(Fault, match="damaged"):
        asyncio.run(opened(tmp_path))


def test_what_was_overheard_is_found_as_if_it_had_been_read(tmp_path: Path) -> None:
    async def story() -> None:
        store = await opened(tmp_path)
        store.hear(ReplyText("x_1", "Good morning"))
        store.record(whole("x_1", chat_body("hello"), "Good ", "morning"))
        await store.settle()
        for words in ("good morning", "hello"):
            assert [each.id for each in await store.find(parse(f'text:"{words}"'), now=NOON)] == ["x_1"]
        await store.close()

    asyncio.run(story())
