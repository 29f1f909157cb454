"""Law 9: nothing recorded is lost. Processes are killed while they record; what they had acknowledged is there."""

import random
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import IO

import pytest

from sightline.errors import Fault
from sightline.filters.expression import EVERYTHING
from sightline.model.exchange import ExchangeFailed, ExchangeFinished, FrameArrived
from sightline.store.sqlite import SqliteStore, open_store
from tests.store.recording_child import body_of, noise
from tests.store.traffic import NOON, chat_body, prices, sha256, whole

ROOT = Path(__file__).parents[2]


def recording(folder: Path, name: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.store.recording_child", str(folder), name]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE)


def killed_after(process: subprocess.Popen[bytes], lines: int) -> list[str]:
    """Kill a process once it has said so much, and what it had said by then."""
    with process:
        out: IO[bytes] | None = process.stdout
        said = [out.readline() for _ in range(lines)]
        process.kill()
        said += out.readlines()
    return [line.decode().strip() for line in said if line.endswith(b"\n") and line != b"open\n"]


@asynccontextmanager
async def open_settled(folder: Path) -> AsyncIterator[SqliteStore]:
    store = await open_store(folder, prices=prices, now=lambda: NOON + 1e6)
    try:
        await store.settle()
        yield store
    finally:
        await store.close()


async def check(store: SqliteStore, line: str) -> None:
    """What was acknowledged is there, all of it, and what was under way has ended."""
    exchange, how_far = line.split()
    _, name, number = exchange.split("_")
    facts = [noted.fact for noted in await store.facts(exchange)]
    body = body_of(name, int(number))
    assert facts, line
    assert await store.body(exchange, sha256(body)) == body
    if how_far == "finished":
        frames = [fact.data for fact in facts if isinstance(fact, FrameArrived)]
        assert frames == noise(name, int(number))
        assert isinstance(facts[-1], ExchangeFinished)
    elif not isinstance(facts[-1], ExchangeFinished):
        assert isinstance(facts[-1], ExchangeFailed)
        assert facts[-1].code == "interrupted"


@pytest.mark.parametrize("seed", range(3))
async def test_a_killed_process_loses_nothing_that_it_had_acknowledged(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    lines: list[str] = []
    for turn in range(2):
        lines += killed_after(recording(tmp_path, f"{seed}{turn}"), chance.randrange(2, 400))
    assert lines
    async with open_settled(tmp_path) as store:
        for line in lines:
            await check(store, line)
        found = await store.find(EVERYTHING, now=NOON, limit=10_000)
        assert not [summary for summary in found if summary.state not in ("finished", "failed")]


async def test_several_processes_on_one_folder_lose_nothing_when_one_is_killed(tmp_path: Path) -> None:
    processes = [recording(tmp_path, name) for name in "abc"]
    lines = [line for process in processes for line in killed_after(process, 150)]
    assert len(lines) >= 3 * 149
    async with open_settled(tmp_path) as store:
        for line in lines:
            await check(store, line)


async def test_a_reader_sees_what_a_writing_process_has_stored(tmp_path: Path) -> None:
    with recording(tmp_path, "a") as process:
        assert process.stdout.readline() == b"open\n"
        try:
            async with open_settled(tmp_path) as store:
                while not await store.find(EVERYTHING, now=NOON):
                    pass
                (first,) = await store.find(EVERYTHING, now=NOON, before="x_a_000001")
                # It is another's, who is alive, so nobody has ended it.
                assert first.state == "received"
        finally:
            process.kill()
            process.stdout.read()


FULL_DISK = """
import asyncio, resource, sys
from pathlib import Path
from sightline.errors import Fault
from sightline.store.sqlite import open_store
from tests.store.traffic import NOON, prices, received, sha256

async def main(folder, limit):
    store = await open_store(folder, prices=prices, now=lambda: NOON)
    unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, unlimited[1]))
    kept, refused = [], []
    for number in range(60):
        body = b"".join(sha256(b"%d %d" % (number, line)).encode() for line in range(400))
        try:
            store.record(received(f"x_{number:03}", body, session=f"s{number}"))
            kept.append((f"x_{number:03}", body))
        except Fault as fault:
            refused.append(fault)
    troubles = []
    try:
        await store.settle()
    except Fault as fault:
        troubles.append(fault)
    resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
    while True:
        try:
            await store.settle()
            break
        except Fault as fault:
            troubles.append(fault)
    for exchange, body in kept:
        assert [noted.exchange for noted in await store.facts(exchange)] == [exchange]
        assert await store.body(exchange, sha256(body)) == body
    store.record(received("x_later", b"{}"))
    await store.settle()
    assert store.trouble is None
    await store.close()
    print(len(kept), len(refused), len(troubles))
    print(*{f"{fault.message} {fault.hint}" for fault in [*refused, *troubles]}, sep="\\n")

asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
"""


@pytest.mark.parametrize(("limit", "refuses"), [(40_000, True), (1_300_000, False)])
def test_full_disk_is_reported_and_acknowledged_data_is_kept(tmp_path: Path, limit: int, refuses: bool) -> None:
    command = [sys.executable, "-c", FULL_DISK, str(tmp_path), str(limit)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    counts, *words = done.stdout.splitlines()
    kept, refused, troubles = map(int, counts.split())
    assert kept + refused == 60
    assert (refused > 0) is refuses
    assert refused or troubles
    assert all("space" in word for word in words)


async def test_a_damaged_record_is_moved_aside_and_the_journal_goes_into_the_new_one(tmp_path: Path) -> None:
    lines = killed_after(recording(tmp_path, "a"), 40)
    path = tmp_path / "record.sqlite3"
    path.write_bytes(damage := b"this is no database" * 1000)
    (tmp_path / "record.sqlite3-wal").unlink(missing_ok=True)
    left = list((tmp_path / "journal").glob("*.log"))
    with pytest.raises(Fault, match=r"damaged .* moved to record\.sqlite3\.damaged-1") as caught:
        async with open_settled(tmp_path):
            pass
    assert "Start Sightline again" in caught.value.hint
    assert (tmp_path / "record.sqlite3.damaged-1").read_bytes() == damage
    assert list((tmp_path / "journal").glob("*.log")) == left

    assert lines
    async with open_settled(tmp_path) as store:
        store.record(whole("x_new", chat_body("hi"), "yes"))
        await store.settle()
        assert "x_new" in [each.id for each in await store.find(EVERYTHING, now=NOON)]
