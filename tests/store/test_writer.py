import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from sightline.errors import Code, Fault
from sightline.store.entries import Entry, FactEntry
from sightline.store.journal import EntryJournal, records
from sightline.store.summary import Unfinished
from sightline.store.writer import RecordWriter
from tests.store.traffic import chat_body, received

FULL = Fault(Code.CONFIG, "the disk is full", hint="Free some space.")


class Ledger:
    """A database that notes what it is given, waits when told to, and fails as often as told to."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.open: list[Unfinished] = []
        self.chores = 0
        self.failures = 0
        self.unfit: set[str] = set()
        self.spoils = ""
        self.may_go = threading.Event()
        self.may_go.set()
        self.is_closed = False
        self.when_asked: Callable[[], None] = lambda: None

    @property
    def exchanges(self) -> list[str]:
        return [name for batch in self.batches for name in batch]

    def apply(self, batch: Sequence[Entry]) -> None:
        self.may_go.wait()
        self.when_asked()
        if self.failures:
            self.failures -= 1
            raise FULL
        names = [entry.exchange for entry in batch if isinstance(entry, FactEntry)]
        if self.unfit.intersection(names):
            raise OverflowError("too large for this column")
        if names:
            self.batches.append(names)

    def claim_open_exchanges(self, slots: Sequence[int]) -> list[Unfinished]:
        assert slots
        if self.spoils == "unfinished":
            raise RuntimeError("a mistake")
        return self.open

    def tidy(self) -> bool:
        if self.spoils == "tidy":
            raise RuntimeError("a mistake")
        self.chores -= 1
        return self.chores >= 0

    def close(self) -> None:
        self.is_closed = True


@pytest.fixture
def ledger() -> Iterator[Ledger]:
    ledger = Ledger()
    yield ledger
    ledger.may_go.set()


def record(writer: RecordWriter, *numbers: int, size: int = 10) -> None:
    for number in numbers:
        writer.record(received(f"x_{number:03}", chat_body(str(number) * size)))


def test_what_is_recorded_reaches_the_database_in_order_and_in_batches(tmp_path: Path, ledger: Ledger) -> None:
    writer = RecordWriter(EntryJournal(tmp_path), ledger, lambda: 0.0)
    writer.wait_for_replay()
    ledger.may_go.clear()
    record(writer, *range(50))
    ledger.may_go.set()
    writer.settle()
    assert ledger.exchanges == [f"x_{n:03}" for n in range(50)]
    assert len(ledger.batches) < 10
    writer.close()
    assert ledger.is_closed
    assert not list(tmp_path.glob("*.log"))


def test_settling_waits_for_what_can_wait_too(tmp_path: Path, ledger: Ledger) -> None:
    writer = RecordWriter(EntryJournal(tmp_path), ledger, lambda: 0.0)
    writer.settle()
    ledger.chores = 5
    record(writer, 1)
    writer.settle()
    assert ledger.chores < 0
    writer.close()


def test_a_failing_database_loses_nothing_and_says_why(tmp_path: Path, ledger: Ledger) -> None:
    writer = RecordWriter(EntryJournal(tmp_path), ledger, lambda: 0.0)
    writer.wait_for_replay()
    ledger.failures = 2
    record(writer, 1, 2)
    with pytest.raises(Fault, match="the disk is full"):
        writer.settle()
    assert writer.trouble is FULL
    while ledger.failures:
        with pytest.raises(Fault):
            writer.settle()
    writer.settle()
    assert (ledger.exchanges, writer.trouble) == (["x_001", "x_002"], None)
    writer.close()


def test_what_could_not_be_brought_in_is_there_for_the_next(tmp_path: Path, ledger: Ledger) -> None:
    ledger.failures = 1000
    writer = RecordWriter(EntryJournal(tmp_path), ledger, lambda: 0.0)
    record(writer, 1, 2)
    with pytest.raises(Fault):
        writer.wait_for_replay()
    writer.close()
    assert ledger.exchanges == []
    ledger.failures = 0
    again = RecordWriter(EntryJournal(tmp_path), ledger, lambda: 0.0)
    again.wait_for_replay()
    assert ledger.exchanges == ["x_001", "x_002"]
    again.close()


def test_a_slow_database_costs_no_memory(tmp_path: Path, ledger: Ledger) -> None:
    writer = RecordWriter(EntryJournal(tmp_path, segment_size=20_000), ledger, lambda: 0.0, most_in_memory=5_000)
    writer.wait_for_replay()
    ledger.may_go.clear()
    record(writer, *range(100), size=300)
    assert writer._in_memory <= 5_000
    assert len(writer._queue) < 20
    ledger.may_go.set()
    writer.settle()
    record(writer, *range(100, 110))
    writer.settle()
    assert ledger.exchanges == [f"x_{n:03}" for n in range(110)]
    assert len(list(tmp_path.glob("*.log"))) == 1
    writer.close()


def test_what_is_recorded_while_the_journal_is_read_back_comes_behind_it(tmp_path: Path, ledger: Ledger) -> None:
    writer = RecordWriter(EntryJournal(tmp_path), ledger, lambda: 0.0, most_in_memory=0)
    writer.wait_for_replay()
    numbers = iter(range(20))

    def another() -> None:
        if (number := next(numbers, None)) is not None:
            record(writer, number)

    ledger.when_asked = another
    record(writer, 100)
    while len(ledger.exchanges) < 21:
        writer.settle()
    assert ledger.exchanges == ["x_100", *(f"x_{n:03}" for n in range(20))]
    writer.close()


def test_exchanges_of_the_dead_are_ended(tmp_path: Path, ledger: Ledger) -> None:
    ledger.open = [Unfinished("x_1", 2, "sending"), Unfinished("x_2", 1, "held")]
    writer = RecordWriter(EntryJournal(tmp_path), ledger, lambda: 5.0)
    writer.wait_for_replay()
    assert ledger.batches == [["x_1", "x_2"]]
    writer.close()


def test_a_large_journal_is_replayed_in_pieces(tmp_path: Path, ledger: Ledger) -> None:
    ledger.failures = 10
    first = RecordWriter(EntryJournal(tmp_path), ledger, lambda: 0.0)
    for number in range(6):
        first.record(received(f"x_{number}", bytes([number]) * (2 << 20)))
    first.close()
    ledger.failures = 0
    second = RecordWriter(EntryJournal(tmp_path), ledger, lambda: 0.0)
    second.wait_for_replay()
    assert ledger.batches == [["x_0", "x_1"], ["x_2", "x_3"], ["x_4", "x_5"]]
    second.close()


def test_a_closed_writer_says_that_it_is_closed(tmp_path: Path, ledger: Ledger) -> None:
    writer = RecordWriter(EntryJournal(tmp_path), ledger, lambda: 0.0)
    writer.close()
    with pytest.raises(Fault, match="closed"):
        writer.settle()


def test_closing_in_the_middle_of_trouble_ends_and_keeps_the_journal(tmp_path: Path, ledger: Ledger) -> None:
    writer = RecordWriter(EntryJournal(tmp_path), ledger, lambda: 0.0)
    writer.wait_for_replay()
    ledger.failures = 1000
    record(writer, 1)
    with pytest.raises(Fault):
        writer.settle()
    writer.close()
    heir = EntryJournal(tmp_path)
    assert len(list(heir.remaining_records())) == 1
    heir.close(is_drained=False)


def set_aside(folder: Path) -> list[str]:
    """The exchanges whose records were set aside."""
    found = [record for path in sorted(folder.glob("refused-*.journal")) for record in records(path)]
    return [entry.exchange for entries, _ in found for entry in entries if isinstance(entry, FactEntry)]


def test_what_the_database_cannot_take_keeps_back_nothing_else(
    tmp_path: Path, ledger: Ledger, caplog: pytest.LogCaptureFixture
) -> None:
    ledger.unfit = {"x_002", "x_004"}
    writer = RecordWriter(EntryJournal(tmp_path), ledger, lambda: 0.0)
    writer.wait_for_replay()
    ledger.may_go.clear()
    record(writer, 1, 2, 3, 4, 5)
    ledger.may_go.set()
    writer.settle()
    record(writer, 6)
    writer.settle()
    assert (sorted(ledger.exchanges), writer.trouble) == (["x_001", "x_003", "x_005", "x_006"], None)
    writer.close()
    assert set_aside(tmp_path) == ["x_002", "x_004"]
    assert {path.stat().st_mode & 0o777 for path in tmp_path.glob("refused-*")} == {0o600}
    assert not list(tmp_path.glob("*.log"))
    assert "x_002: the database cannot take this; it is in" in caplog.text


def test_what_the_dead_have_left_cannot_keep_back_a_start_either(tmp_path: Path, ledger: Ledger) -> None:
    ledger.failures = 1000
    writer = RecordWriter(EntryJournal(tmp_path), ledger, lambda: 0.0)
    record(writer, 1, 2)
    writer.close()
    ledger.failures = 0
    ledger.unfit = {"x_001", "x_009"}
    ledger.open = [Unfinished("x_008", 1, "sending"), Unfinished("x_009", 1, "sending")]
    again = RecordWriter(EntryJournal(tmp_path), ledger, lambda: 0.0)
    again.wait_for_replay()
    again.close()
    assert ledger.exchanges == ["x_002", "x_008"]
    assert set_aside(tmp_path) == ["x_001", "x_009"]


def test_a_database_that_is_away_meanwhile_is_waited_for(tmp_path: Path, ledger: Ledger) -> None:
    writer = RecordWriter(EntryJournal(tmp_path), ledger, lambda: 0.0)
    writer.wait_for_replay()
    ledger.unfit = {"x_001"}
    ledger.failures = 2
    record(writer, 1, 2)
    while ledger.failures:
        with pytest.raises(Fault):
            writer.settle()
    writer.settle()
    assert (ledger.exchanges, set_aside(tmp_path)) == (["x_002"], ["x_001"])
    writer.close()


@pytest.mark.parametrize("what", ["tidy", "unfinished"])
def test_a_mistake_of_ours_beside_the_entries_does_not_end_the_recording(
    tmp_path: Path, ledger: Ledger, what: str, caplog: pytest.LogCaptureFixture
) -> None:
    ledger.spoils = what
    writer = RecordWriter(EntryJournal(tmp_path), ledger, lambda: 0.0)
    writer.wait_for_replay()
    record(writer, 1)
    writer.settle()
    assert ledger.exchanges == ["x_001"]
    assert "a mistake" in caplog.text
    writer.close()


def test_what_cannot_even_be_set_aside_stays_in_the_journal(tmp_path: Path, ledger: Ledger) -> None:
    (tmp_path / "refused-001.journal").mkdir()
    writer = RecordWriter(EntryJournal(tmp_path), ledger, lambda: 0.0)
    writer.wait_for_replay()
    ledger.unfit = {"x_001"}
    record(writer, 1)
    with pytest.raises(Fault, match="cannot be written"):
        writer.settle()
    writer.close()
    heir = EntryJournal(tmp_path)
    assert len(list(heir.remaining_records())) == 1
    heir.close(is_drained=False)


def test_what_cannot_even_be_written_to_the_journal_is_a_trouble_until_it_can(
    tmp_path: Path, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = EntryJournal(tmp_path)
    writer = RecordWriter(journal, ledger, lambda: 0.0)
    writer.wait_for_replay()
    with monkeypatch.context() as spoilt:
        spoilt.setattr(journal, "_size", -1)  # no file can be cut back to that
        spoilt.setattr(journal, "_file", -1)
        with pytest.raises(Fault, match="cannot be written"):
            record(writer, 1)
    assert writer.unwritten is not None
    record(writer, 2)
    assert writer.unwritten is None
    writer.settle()
    assert ledger.exchanges == ["x_002"]
    writer.close()
