"""What is counted for caps, in a data folder and in PostgreSQL: never more than a cap allows, and over restarts."""

import asyncio
import sqlite3
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from sightline.errors import Fault
from sightline.store import caps
from sightline.store.caps import FILE_NAME, CapCounts, CapFullError, FolderCounts
from sightline.store.postgres import open_postgres
from sightline.store.postgres_caps import PostgresCounts
from sightline.tokens.caps import BucketKey, CapUse, Claim
from tests.postgres_server import database
from tests.store.traffic import NOON, prices

DAY = BucketKey("daily", "tokens", "[]", "2026-09-21")
OTHER = BucketKey("other", "dollars", '["a"]', "")

WHERE = pytest.StashKey[str]()
Opening = Callable[[], Awaitable[CapCounts]]


@pytest.fixture(params=["folder", "postgres"])
def opening(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opening]:
    """Counts that are opened again and again, each time as a process of its own would."""
    request.node.stash[WHERE] = str(tmp_path)
    if request.param == "folder":

        async def open_folder() -> CapCounts:
            return FolderCounts(tmp_path)

        yield open_folder
        return
    with database() as url:
        request.node.stash[WHERE] = url

        async def open_database() -> CapCounts:
            store = await open_postgres(url, tmp_path, prices=prices, now=lambda: NOON)
            await store.close()
            return PostgresCounts(url)

        yield open_database


@pytest.fixture
def where(request: pytest.FixtureRequest, opening: Opening) -> str:
    """The folder or the database of these counts."""
    assert opening
    return request.node.stash[WHERE]


async def test_what_is_reserved_is_settled_by_what_it_took(opening: Opening) -> None:
    counts = await opening()
    assert await counts.reserve([Claim(DAY, 60, 100)]) == [CapUse(DAY, 0, 60)]
    assert await counts.settle(DAY, 60, 25) == CapUse(DAY, 25, 0)
    assert await counts.uses() == [CapUse(DAY, 25, 0)]
    await counts.close()
    again = await opening()
    assert await again.uses() == [CapUse(DAY, 25, 0)]
    await again.close()


async def test_several_claims_are_reserved_together_or_not_at_all(opening: Opening) -> None:
    counts = await opening()
    await counts.reserve([Claim(OTHER, 1, 1), Claim(DAY, 60, 100)])
    with pytest.raises(CapFullError) as caught:
        await counts.reserve([Claim(DAY, 10, 100), Claim(OTHER, 1, 1)])
    assert (caught.value.claim.key, caught.value.use) == (OTHER, CapUse(OTHER, 0, 1))
    assert sorted(await counts.uses(), key=lambda use: use.key) == [CapUse(DAY, 0, 60), CapUse(OTHER, 0, 1)]
    await counts.close()


async def test_a_raised_limit_lets_more_in(opening: Opening) -> None:
    counts = await opening()
    with pytest.raises(CapFullError):
        await counts.reserve([Claim(DAY, 101, 100)])
    assert await counts.raise_limit(DAY, 150) == CapUse(DAY, 0, 0, 150)
    assert await counts.reserve([Claim(DAY, 101, 100)]) == [CapUse(DAY, 0, 101, 150)]
    await counts.close()


async def test_many_who_reserve_at_once_never_exceed_a_cap(opening: Opening) -> None:
    both = [await opening(), await opening()]

    async def reserve(number: int) -> bool:
        try:
            await both[number % 2].reserve([Claim(DAY, 7, 700)])
        except CapFullError:
            return False
        return True

    fitted = await asyncio.gather(*map(reserve, range(1_000)))
    assert sum(fitted) == 100
    assert await both[0].uses() == [CapUse(DAY, 0, 700)]
    for each in both:
        await each.close()


KILLED = """
import asyncio, sys
from pathlib import Path
from sightline.store.caps import FolderCounts
from sightline.store.postgres_caps import PostgresCounts
from sightline.tokens.caps import BucketKey, Claim

async def reserve():
    counts = PostgresCounts(sys.argv[1]) if "://" in sys.argv[1] else FolderCounts(Path(sys.argv[1]))
    await counts.reserve([Claim(BucketKey("daily", "tokens", "[]", "2026-09-21"), 90, 100)])
    print("reserved", flush=True)
    await asyncio.sleep(600)

asyncio.run(reserve())
"""


async def reserve_when_free(counts: CapCounts, claim: Claim) -> list[CapUse]:
    """Once the database has noticed that the other process is gone: on a busy machine not at once."""
    async with asyncio.timeout(60):
        while True:
            try:
                return await counts.reserve([claim])
            except CapFullError:
                await asyncio.sleep(0.01)


async def test_what_a_killed_process_had_reserved_is_free_again(opening: Opening, where: str) -> None:
    living = await opening()
    await living.reserve([Claim(OTHER, 1, 1)])
    other = await asyncio.create_subprocess_exec(sys.executable, "-c", KILLED, where, stdout=asyncio.subprocess.PIPE)
    assert other.stdout is not None
    assert await other.stdout.readline() == b"reserved\n"
    with pytest.raises(CapFullError):
        await living.reserve([Claim(DAY, 20, 100)])
    other.kill()
    await other.communicate()
    assert await reserve_when_free(living, Claim(DAY, 20, 100)) == [CapUse(DAY, 0, 20)]
    assert await living.settle(DAY, 20, 5) == CapUse(DAY, 5, 0)
    assert sorted(await living.uses(), key=lambda use: use.key) == [CapUse(DAY, 5, 0), CapUse(OTHER, 0, 1)]
    await living.close()
    again = await opening()
    assert CapUse(OTHER, 0, 0) in await again.uses()
    await again.close()


async def test_what_was_taken_back_is_settled_without_freeing_it_twice(opening: Opening) -> None:
    lost, other = await opening(), await opening()
    await lost.reserve([Claim(DAY, 60, 100)])
    await other.reserve([Claim(DAY, 40, 100)])
    await lost.close()  # for the others it has ended
    assert await other.reserve([Claim(DAY, 30, 100)]) == [CapUse(DAY, 0, 70)]
    assert await lost.settle(DAY, 60, 25) == CapUse(DAY, 25, 70)
    for each in (lost, other):
        await each.close()


def test_counts_that_cannot_be_written_are_a_fault(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_bytes(b"no database at all, " * 100)
    (tmp_path / "file").touch()
    for folder in (tmp_path, tmp_path / "file"):
        for call in (lambda counts: counts.uses(), lambda counts: counts.reserve([Claim(DAY, 1, 1)])):
            with pytest.raises(Fault, match="caps cannot be counted"):
                asyncio.run(call(FolderCounts(folder)))


async def test_reservations_of_an_ended_process_are_freed_after_a_busy_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(caps, "_BUSY_TIMEOUT_S", 0.01)
    lost, other = FolderCounts(tmp_path), FolderCounts(tmp_path)
    await lost.reserve([Claim(DAY, 60, 100)])
    await lost.close()
    busy = sqlite3.connect(tmp_path / FILE_NAME, isolation_level=None)
    busy.execute("BEGIN IMMEDIATE")
    with pytest.raises(Fault, match="caps cannot be counted"):
        await other.uses()
    busy.close()
    assert await other.uses() == [CapUse(DAY, 0, 0)]
    await other.close()


async def test_a_reservation_that_cannot_be_settled_is_freed_when_its_process_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts, other = FolderCounts(tmp_path), FolderCounts(tmp_path)
    await counts.reserve([Claim(DAY, 60, 100)])
    with monkeypatch.context() as broken:
        broken.setattr(caps, "_SETTLE", "UPDATE nothing SET spent = 1")
        with pytest.raises(Fault, match="caps cannot be counted"):
            await counts.settle(DAY, 60, 25)
    assert await other.uses() == [CapUse(DAY, 0, 60)]
    await counts.close()
    assert await other.uses() == [CapUse(DAY, 0, 0)]
    await other.close()


async def test_a_lock_that_cannot_be_taken_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_file: int) -> bool:
        raise OSError(37, "No locks available")

    monkeypatch.setattr(caps, "lock", fail)
    counts = FolderCounts(tmp_path)
    with pytest.raises(Fault, match="No locks available"):
        await counts.reserve([Claim(DAY, 1, 1)])
    await counts.close()
