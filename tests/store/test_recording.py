""""""

import asyncio
import os
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest

from sightline.errors import Code, Fault
from sightline.store.entries import Entry, FactEntry
from sightline.store.importer import Importer, note_trouble, open_wake, trouble_of, wake
from sightline.store.journal import JournalWriter, TornTail, encode_entries, frame_record, records, segments, slots_in
from sightline.store.recording import JournaledStore, RecorderProcess
from sightline.store.summary import Unfinished
from sightline.store.whole import decode_entries
from tests.store.traffic import chat_body, received

FULL = Fault(Code.CONFIG, "the disk is full", hint="Free some space.")


class Ledger:
    """A database that notes what it is given, waits when told to, and fails as often as told to."""

    decode = staticmethod(decode_entries)

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.slots: list[int] = []
        self.open: list[Unfinished] = []
        self.chores = 0
        self.failures = 0
        self.unfit: set[str] = set()
        self.spoils = ""
        self.may_go = threading.Event()
        self.may_go.set()
        self.is_closed = False

    @property
    def exchanges(self) -> list[str]:
        return [name for batch in self.batches for name in batch]

    def apply(self, batch: Sequence[Entry], slot: int) -> None:
        self.may_go.wait()
        if self.failures:
            self.failures -= 1
            raise FULL
        names = [entry.exchange for entry in batch if isinstance(entry, FactEntry)]
        if self.unfit.intersection(names):
            raise OverflowError("too large for this column")
        self.batches.append(names)
        self.slots.append(slot)

    def open_exchanges(self, living: Sequence[int]) -> list[Unfinished]:
        if self.spoils == "unfinished":
            raise RuntimeError("a mistake")
        if self.failures:
            raise FULL
        return [] if 1 in living else self.open

    def tidy(self) -> bool:
        if self.spoils == "tidy":
            raise RuntimeError("a mistake")
        if self.spoils == "away":
            raise FULL
        self.chores -= 1
        return self.chores >= 0

    def refresh(self) -> None:
        pass

    def close(self) -> None:
        self.is_closed = True


@pytest.fixture
def ledger() -> Ledger:
    return Ledger()


@pytest.fixture
def importer(tmp_path: Path, ledger: Ledger) -> Iterator[Importer]:
    """The one that brings records into the ledger."""
    with closing(Importer(tmp_path, lambda: ledger, lambda: 0.0)) as made:
        assert made.acquire()
        yield made


class WriteOnlyStore(JournaledStore):
    """A way into a ledger, of which nothing is read."""

    entries = _forget = _search = None  # type: ignore[assignment]


def recording(folder: Path, ledger: Ledger, recorder: RecorderProcess | None = None) -> JournaledStore:
    return WriteOnlyStore(JournalWriter(folder), folder, Importer(folder, lambda: ledger, lambda: 5.0), recorder)


def record(to: JournaledStore | JournalWriter, *numbers: int, size: int = 10) -> None:
    for number in numbers:
        entries = received(f"x_{number:03}", chat_body(str(number) * size))
        if isinstance(to, JournaledStore):
            to.record(entries)
        else:
            to.append(encode_entries(entries))


@asynccontextmanager
async def opened(folder: Path, ledger: Ledger) -> AsyncIterator[JournaledStore]:
    own = recording(folder, ledger)
    await own.open()
    try:
        yield own
    finally:
        ledger.may_go.set()
        await own.close()


def files_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


async def test_what_is_recorded_reaches_the_database_in_order_and_in_batches(tmp_path: Path, ledger: Ledger) -> None:
    async with opened(tmp_path, ledger) as own:
        ledger.chores = 5
        record(own, *range(50))
        await own.settle()
        assert ledger.exchanges == [f"x_{n:03}" for n in range(50)]
        assert len(ledger.batches) < 5
        assert ledger.chores < 0
        record(own, 50)
        await until(lambda: len(ledger.exchanges) == 51)  # also if no one asks for it
    assert ledger.is_closed
    assert files_in(tmp_path) == {"recorder.lock", "scrub.lock"}


async def test_a_failing_database_loses_nothing_and_says_why(tmp_path: Path, ledger: Ledger) -> None:
    async with opened(tmp_path, ledger) as own:
        ledger.failures = 2
        record(own, 1, 2)
        with pytest.raises(Fault, match="the disk is full"):
            await own.settle()
        assert own.trouble is not None
        assert (own.trouble.message, own.trouble.hint) == (FULL.message, FULL.hint)
        await until(lambda: own.trouble is None)  # it tries again by itself
        await own.settle()
        assert ledger.exchanges == ["x_001", "x_002"]


async def test_what_could_not_be_brought_in_is_there_for_the_next(
    tmp_path: Path, ledger: Ledger, caplog: pytest.LogCaptureFixture
) -> None:
    async with opened(tmp_path, ledger) as own:
        ledger.failures = 1000
        record(own, 1, 2)
        with pytest.raises(Fault):
            await own.settle()
    assert "stays in the journal" in caplog.text
    ledger.failures = 1
    with pytest.raises(Fault, match="the disk is full"):
        await recording(tmp_path, ledger).open()
    ledger.failures = 0
    async with opened(tmp_path, ledger) as own:
        assert ledger.exchanges == ["x_001", "x_002"]
        assert own.trouble is None


async def test_a_slow_database_costs_no_memory_and_no_time(tmp_path: Path, ledger: Ledger) -> None:
    async with opened(tmp_path, ledger) as own:
        ledger.may_go.clear()
        record(own, *range(300), size=30_000)
        assert len(segments(tmp_path)) > 2
        ledger.may_go.set()
        await own.settle()
        assert ledger.exchanges == [f"x_{n:03}" for n in range(300)]
        assert len(ledger.batches) > 2
        assert len(segments(tmp_path)) == 1


async def test_one_process_brings_in_what_all_have_recorded(tmp_path: Path, ledger: Ledger) -> None:
    other = JournalWriter(tmp_path)
    async with opened(tmp_path, ledger) as own:
        record(own, 1)
        record(other, 2)
        await own.settle()
        assert sorted(ledger.exchanges) == ["x_001", "x_002"]
        assert sorted(ledger.slots) == [1, 2]
        assert slots_in(tmp_path) == {1, 2}
    assert slots_in(tmp_path) == {2}
    other.close()


def test_exchanges_of_the_dead_are_ended_once_and_those_of_the_living_are_not(tmp_path: Path, ledger: Ledger) -> None:
    ledger.open = [Unfinished("x_8", 2, "sending"), Unfinished("x_9", 1, "held")]
    other = JournalWriter(tmp_path)
    record(other, 1)
    own = Importer(tmp_path, lambda: ledger, lambda: 5.0)
    assert own.acquire()
    own.end_interrupted()
    assert ledger.batches == [["x_001"]]
    other.close()
    own.end_interrupted()
    assert ledger.batches == [["x_001"], ["x_8", "x_9"]]
    assert slots_in(tmp_path) == set()
    own.end_interrupted()
    assert len(ledger.batches) == 2
    own.close()


async def woken(pipe: int) -> None:
    """Wait until a reader has asked the recorder to hurry."""
    heard = asyncio.Event()
    asyncio.get_running_loop().add_reader(pipe, heard.set)
    await heard.wait()
    asyncio.get_running_loop().remove_reader(pipe)
    os.read(pipe, 1 << 16)


async def until(is_so: Callable[[], bool]) -> None:
    """Wait for what happens on another thread or in another process."""
    async with asyncio.timeout(60):
        while not is_so():  # noqa: ASYNC110 - there is no event to wait for
            await asyncio.sleep(0.01)


async def test_who_cannot_bring_it_in_waits_for_the_one_who_does(tmp_path: Path, ledger: Ledger) -> None:
    busy = Importer(tmp_path, lambda: ledger, lambda: 0.0)

    own = recording(tmp_path, Ledger())
    assert busy.acquire()
    pipe = open_wake(tmp_path)
    await own.open()
    record(own, 1)
    waiting = asyncio.ensure_future(own.settle())
    await woken(pipe)
    assert not waiting.done()
    busy.catch_up()
    await waiting
    assert ledger.exchanges == ["x_001"]
    record(own, 2)
    waiting = asyncio.ensure_future(own.settle())
    await woken(pipe)
    ledger.failures = 1
    with pytest.raises(Fault):
        busy.catch_up()
    with pytest.raises(Fault, match="the disk is full"):
        await waiting
    os.close(pipe)
    await own.close()
    busy.catch_up()
    assert ledger.exchanges == ["x_001", "x_002"]
    busy.close()


def test_an_importer_is_behind_while_many_segments_wait(tmp_path: Path, ledger: Ledger, importer: Importer) -> None:
    journal = JournalWriter(tmp_path, segment_size=1000)
    record(journal, 1)
    importer.catch_up()
    assert not importer.is_behind
    record(journal, *range(2, 60), size=900)
    importer.catch_up()
    assert importer.is_behind
    importer.catch_up()
    assert not importer.is_behind
    journal.close()


async def test_a_closed_record_says_that_it_is_closed(tmp_path: Path, ledger: Ledger) -> None:
    own = recording(tmp_path, ledger)
    await own.open()
    await own.close()
    with pytest.raises(Fault, match="closed"):
        await own.settle()


def set_aside(folder: Path) -> list[str]:
    """The exchanges whose records were set aside, for their owner alone."""
    paths = sorted(folder.glob("refused-*.journal"))
    assert {path.stat().st_mode & 0o777 for path in paths} <= {0o600}
    found = [record for path in paths for record in records(path)]
    return [entry.exchange for entries, _ in found for entry in entries if isinstance(entry, FactEntry)]


async def test_what_the_database_cannot_take_keeps_back_nothing_else(
    tmp_path: Path, ledger: Ledger, caplog: pytest.LogCaptureFixture
) -> None:
    async with opened(tmp_path, ledger) as own:
        ledger.unfit = {"x_002", "x_004"}
        record(own, 1, 2, 3, 4, 5)
        await own.settle()
        record(own, 6)
        await own.settle()
        assert (sorted(ledger.exchanges), own.trouble) == (["x_001", "x_003", "x_005", "x_006"], None)
    assert set_aside(tmp_path) == ["x_002", "x_004"]
    assert "x_002: the database cannot take this; it is in" in caplog.text


def test_a_database_that_is_away_while_records_come_one_by_one_is_waited_for(
    tmp_path: Path, ledger: Ledger, importer: Importer
) -> None:
    ledger.unfit = {"x_001"}
    apply, calls = ledger.apply, list[int]()

    def away(batch: Sequence[Entry], slot: int) -> None:
        calls.append(slot)
        if len(calls) == 2:
            raise FULL
        apply(batch, slot)

    ledger.apply = away  # type: ignore[method-assign]
    other = JournalWriter(tmp_path)
    record(other, 1, 2)
    with pytest.raises(Fault):
        importer.catch_up()
    importer.catch_up()
    assert (ledger.exchanges, set_aside(tmp_path)) == (["x_002"], ["x_001"])
    other.close()


@pytest.mark.parametrize("what", ["tidy", "unfinished"])
async def test_a_mistake_of_ours_beside_the_entries_does_not_end_the_recording(
    tmp_path: Path, ledger: Ledger, what: str, caplog: pytest.LogCaptureFixture
) -> None:
    ledger.spoils = what
    async with opened(tmp_path, ledger) as own:
        record(own, 1)
        await own.settle()
        assert ledger.exchanges == ["x_001"]
    assert "a mistake" in caplog.text


async def test_a_database_that_goes_away_while_it_reads_is_a_fault(tmp_path: Path, ledger: Ledger) -> None:
    async with opened(tmp_path, ledger) as own:
        ledger.spoils = "away"
        record(own, 1)
        with pytest.raises(Fault, match="the disk is full"):
            await own.settle()
        ledger.spoils = ""


async def test_what_cannot_even_be_set_aside_stays_in_the_journal(tmp_path: Path, ledger: Ledger) -> None:
    (tmp_path / "refused-001.journal").mkdir()
    async with opened(tmp_path, ledger) as own:
        ledger.unfit = {"x_001"}
        record(own, 1)
        with pytest.raises(Fault, match="cannot be written"):
            await own.settle()
    assert slots_in(tmp_path) == {1}


async def test_what_cannot_even_be_written_to_the_journal_is_a_trouble_until_it_can(
    tmp_path: Path, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    async with opened(tmp_path, ledger) as own:
        with monkeypatch.context() as spoilt:
            spoilt.setattr("sightline.store.journal._allocate", full)
            with pytest.raises(Fault, match="cannot be written"):
                record(own, 1)
        assert own.trouble is not None
        record(own, 2)
        assert own.trouble is None
        await own.settle()
        assert ledger.exchanges == ["x_002"]


def test_a_torn_end_of_the_dead_is_reported_and_one_of_the_living_is_a_fault(
    tmp_path: Path, ledger: Ledger, importer: Importer
) -> None:
    other = JournalWriter(tmp_path)
    record(other, 1, 2)
    ((_, path),) = segments(tmp_path)
    data = bytearray(path.read_bytes())
    data[data.index(b"x_002") - 1] = 0xC1  # no value of msgpack begins like this
    path.write_bytes(data)
    with pytest.raises(Fault, match="changed by another program"):
        importer.catch_up()
    assert ledger.exchanges == ["x_001"], "what stands before the damage is brought in"
    other.close()
    for _ in range(2):
        importer.catch_up()
    assert [type(torn) for torn in importer.torn] == [TornTail]
    assert set(ledger.exchanges) == {"x_001"}
    importer.end_interrupted()
    assert slots_in(tmp_path) == set()


def test_what_the_end_of_a_machine_changed_is_found_by_its_checksum(
    tmp_path: Path, ledger: Ledger, importer: Importer
) -> None:
    other = JournalWriter(tmp_path)
    record(other, 1, 2)
    ((_, path),) = segments(tmp_path)
    other.close()
    data = bytearray(path.read_bytes())
    data[data.index(b"x_002")] ^= 1
    path.write_bytes(data)
    importer.catch_up()
    assert ledger.exchanges == ["x_001"]
    assert [type(torn) for torn in importer.torn] == [TornTail]


def test_what_an_earlier_version_left_is_brought_in_unless_it_is_alive(
    tmp_path: Path, ledger: Ledger, importer: Importer
) -> None:
    earlier = JournalWriter(tmp_path)
    record(earlier, 1)
    ((_, path),) = segments(tmp_path)
    path.write_bytes(frame_record(received("x_old", chat_body("hi"))) + frame_record(received("y", b"x" * (1 << 20))))
    importer.end_interrupted()
    assert ledger.exchanges == []
    os.close(earlier._lock)
    importer.end_interrupted()
    assert ledger.exchanges == ["x_old", "y"]
    assert slots_in(tmp_path) == set()


def test_a_trouble_that_cannot_be_written_down_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    note_trouble(tmp_path / "nowhere", FULL)
    assert "the disk is full" in caplog.text
    (tmp_path / "recorder.trouble").write_text("{")
    assert trouble_of(tmp_path) is None


def test_no_one_is_woken_where_no_recorder_runs(tmp_path: Path) -> None:
    wake(tmp_path)
    (tmp_path / "recorder.wake").write_text("in the way")
    pipe = open_wake(tmp_path)
    for _ in range(100_000):
        wake(tmp_path)
    assert os.read(pipe, 10) == b"!" * 10
    os.close(pipe)
    with pytest.raises(Fault, match="cannot be written"):
        open_wake(tmp_path / "nowhere")


RECORDER = """
import sys, time
from pathlib import Path
from sightline.store.importer import Importer
from tests.store.test_recording import Ledger
assert sys.stdin.readline() == "parameters\\n"
mode = Path("mode").read_text()
if mode == "broken":
    sys.exit(3)
importer = Importer(Path.cwd(), Ledger, time.time)
while not importer.acquire():
    time.sleep(0.01)
importer.end_interrupted()
print("ready", flush=True)
if mode == "once":
    sys.exit(4)
while mode == "stuck" or not select.select([0], [], [], 0.01)[0]:
    importer.catch_up()
importer.end_interrupted()
""".replace("import sys,", "import select, sys,")


@pytest.fixture
def recorder_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], RecorderProcess]:
    root = Path(__file__).parents[2]
    monkeypatch.setenv("PYTHONPATH", str(root), prepend=os.pathsep)
    monkeypatch.chdir(tmp_path)

    def make(mode: str) -> RecorderProcess:
        Path("mode").write_text(mode)
        return RecorderProcess([sys.executable, "-c", RECORDER], b"parameters\n")

    return make


async def test_a_recorder_brings_in_what_the_server_records(
    tmp_path: Path, recorder_in: Callable[[str], RecorderProcess]
) -> None:
    dead = JournalWriter(tmp_path)
    record(dead, 1)
    dead.close()
    own = recording(tmp_path, Ledger(), recorder_in("well"))
    await own.open()
    assert slots_in(tmp_path) == set()
    record(own, 2)
    await own.settle()
    assert own.trouble is None
    await own.close()
    assert slots_in(tmp_path) == set()


async def test_a_recorder_that_ends_is_started_again_and_a_broken_one_is_a_trouble(
    tmp_path: Path, recorder_in: Callable[[str], RecorderProcess]
) -> None:
    recorder = recorder_in("broken")
    own = recording(tmp_path, Ledger(), recorder)
    await own.open()
    record(own, 1)
    with pytest.raises(Fault, match=r"the recorder ended \(3\)"):
        await own.settle()
    assert own.trouble is not None
    recorder_in("well")
    await until(lambda: own.trouble is None)
    await own.settle()
    await own.close()
    assert slots_in(tmp_path) == set()


async def test_a_recorder_that_cannot_be_started_or_ended_is_told_and_killed(
    tmp_path: Path, recorder_in: Callable[[str], RecorderProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sightline.store.recording._GRACE", 0.1)

    missing = RecorderProcess([str(tmp_path / "nothing")], b"")
    missing.start()
    await missing.wait_for_first_look()
    assert missing.trouble is not None
    assert "No such file" in missing.trouble.message
    await missing.close()
    stuck = recorder_in("stuck")
    stuck.start()
    await stuck.wait_for_first_look()
    await stuck.close()
