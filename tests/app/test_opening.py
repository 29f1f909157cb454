import asyncio
from pathlib import Path

from sightline.app.configuration import configuration
from sightline.app.engine import counter, open_engine
from sightline.errors import Fault


def test_an_engine_opens_and_closes_without_starting_anything(tmp_path: Path) -> None:
    async def open_and_close() -> None:
        async with open_engine(configuration(None), str(tmp_path / "data"), is_recorded=False) as engine:
            assert engine.clock.monotonic() <= engine.clock.monotonic()
            assert engine.unrecorded is None

    asyncio.run(open_and_close())
    assert not (tmp_path / "data").exists()


def test_an_engine_opens_its_record_or_says_why_it_cannot(tmp_path: Path) -> None:
    async def opened(data: Path) -> Fault | None:
        async with open_engine(configuration(None), str(data)) as engine:
            return engine.unrecorded

    assert asyncio.run(opened(tmp_path / "data")) is None
    assert (tmp_path / "data" / "record.sqlite3").exists()
    (tmp_path / "file").write_text("no folder")
    fault = asyncio.run(opened(tmp_path / "file"))
    assert fault is not None
    assert fault.hint


def test_what_estimates_needs_neither_an_engine_nor_a_record(tmp_path: Path) -> None:
    assert counter(str(tmp_path / "data")).memory.trouble == ""
    assert not (tmp_path / "data").exists()
