import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.errors import Code, Fault
from sightline.model.exchange import ExchangeFailed, FrameArrived
from sightline.store.entries import BodyEntry, Entry, FactEntry
from sightline.store.journal import EntryJournal, JournalPosition, Torn, frame_record, records
from tests.store.traffic import chat_body, received, whole


def record(number: int) -> list[Entry]:
    return received(f"x_{number}", chat_body(str(number)))


def append(journal: EntryJournal, number: int) -> JournalPosition:
    return journal.append(frame_record(record(number))[0])


def left(journal: EntryJournal) -> list[str]:
    return [
        entry.exchange for entries in journal.remaining_records() for entry in entries if isinstance(entry, FactEntry)
    ]


def died(journal: EntryJournal) -> None:
    """What the end of a process does: its files are closed, and nothing else happens."""
    journal.close(is_drained=False)


def test_what_a_dead_process_left_is_there_for_the_next(tmp_path: Path) -> None:
    first = EntryJournal(tmp_path)
    for number in range(3):
        append(first, number)
    died(first)
    second = EntryJournal(tmp_path)
    assert (second.slot, left(second)) == (1, ["x_0", "x_1", "x_2"])
    second.forget_left()
    died(second)
    third = EntryJournal(tmp_path)
    assert left(third) == []
    third.forget_left()
    third.close(is_drained=True)
    assert not list(tmp_path.glob("*.log"))


def test_what_is_left_stays_until_it_is_in_the_database(tmp_path: Path) -> None:
    first = EntryJournal(tmp_path)
    append(first, 0)
    died(first)
    for _ in range(2):
        again = EntryJournal(tmp_path)
        assert left(again) == ["x_0"]
        died(again)


def test_a_torn_end_is_reported_and_the_rest_is_kept(tmp_path: Path) -> None:
    first = EntryJournal(tmp_path)
    append(first, 0)
    last = append(first, 1)
    died(first)
    (path,) = tmp_path.glob("*.log")
    os.truncate(path, last.end - 3)
    second = EntryJournal(tmp_path)
    assert left(second) == ["x_0"]
    assert [(torn.path, torn.at) for torn in second.torn] == [(path, last.start)]
    died(second)


def test_two_processes_have_slots_of_their_own_and_leave_each_other_alone(tmp_path: Path) -> None:
    first, second = EntryJournal(tmp_path), EntryJournal(tmp_path)
    append(first, 1)
    append(second, 2)
    assert (first.slot, second.slot, second.slots) == (1, 2, (2,))
    third = EntryJournal(tmp_path)
    assert (third.slot, left(third)) == (3, [])
    died(third)
    died(second)
    heir = EntryJournal(tmp_path)
    assert heir.slots == (2, 3)
    assert left(heir) == ["x_2"]
    heir.forget_left()
    assert heir.slots == (2,)
    died(heir)
    died(first)


def test_segments_end_at_a_size_and_go_once_they_are_committed(tmp_path: Path) -> None:
    journal = EntryJournal(tmp_path, segment_size=400)
    places = [append(journal, number) for number in range(9)]
    assert len(list(tmp_path.glob("*.log"))) == places[-1].segment > 2
    journal.mark_committed(places[4])
    kept = sorted(int(path.stem[4:]) for path in tmp_path.glob("*.log"))
    assert kept == list(range(places[4].segment, places[-1].segment + 1))
    died(journal)
    after = EntryJournal(tmp_path)
    assert set(left(after)) >= {f"x_{number}" for number in range(5, 9)}
    died(after)


def test_records_are_read_back_from_any_place_on(tmp_path: Path) -> None:
    journal = EntryJournal(tmp_path, segment_size=400)
    places = [append(journal, number) for number in range(6)]
    read = list(journal.since(places[2]))
    assert [entries[1].exchange for entries, _ in read] == ["x_2", "x_3", "x_4", "x_5"]
    assert [place for _, place in read] == places[2:]
    assert [journal.ends_at(place) for place in places] == [False] * 5 + [True]
    assert list(journal.since(JournalPosition(places[5].segment, places[5].end, places[5].end))) == []
    died(journal)


def test_a_large_segment_is_emptied_once_all_of_it_is_committed(tmp_path: Path) -> None:
    journal = EntryJournal(tmp_path)
    large = journal.append(frame_record(received("x_1", os.urandom(2 << 20)))[0])
    (path,) = tmp_path.glob("*.log")
    journal.mark_committed(JournalPosition(large.segment, 0, large.end - 1))
    assert path.stat().st_size == large.end
    journal.mark_committed(large)
    assert path.stat().st_size == 0
    assert append(journal, 2).start == 0
    died(journal)


def test_a_journal_that_another_program_changed_says_so(tmp_path: Path) -> None:
    journal = EntryJournal(tmp_path)
    place = append(journal, 0)
    (path,) = tmp_path.glob("*.log")
    path.write_bytes(b"?" * place.end)
    with pytest.raises(Fault, match="changed by another program"):
        list(journal.since(place))
    died(journal)


def test_a_folder_that_is_none_is_a_clear_fault(tmp_path: Path) -> None:
    (tmp_path / "journal").write_text("a file")
    with pytest.raises(Fault) as caught:
        EntryJournal(tmp_path / "journal")
    assert caught.value.code is Code.CONFIG
    assert "--data" in caught.value.hint


def test_the_files_are_the_owners_alone(tmp_path: Path) -> None:
    journal = EntryJournal(tmp_path / "journal")
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "journal").iterdir()} == {0o600}
    assert (tmp_path / "journal").stat().st_mode & 0o777 == 0o700
    died(journal)


ENTRIES: list[list[Entry]] = [
    whole("x_1", chat_body("hi"), "yes"),
    [FactEntry("x_2", 0, 1.5, FrameArrived(b"\xff" * 500, 0.1))],
    [BodyEntry("00", b"")],
]
FILE = b"".join(frame_record(entries)[0] for entries in ENTRIES)


def written(folder: Path, data: bytes) -> Path:
    path = folder / "001-00000001.log"
    path.write_bytes(data)
    return path


def test_records_come_back_with_the_place_behind_them(tmp_path: Path) -> None:
    read = list(records(written(tmp_path, FILE)))
    assert [record[0] for record in read] == ENTRIES
    assert read[-1][1] == len(FILE)
    middle = read[0][1]
    assert [record[0] for record in records(tmp_path / "001-00000001.log", middle, read[1][1])] == ENTRIES[1:2]


@given(st.integers(0, len(FILE) - 1))
def test_a_torn_end_costs_the_last_record_and_is_reported(cut: int) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = written(Path(folder), FILE[:cut])
        read = list(records(path))
    torn = [record for record in read if isinstance(record, Torn)]
    whole_records = [record[0] for record in read if not isinstance(record, Torn)]
    assert whole_records == ENTRIES[: len(whole_records)]
    assert len(read) == len(whole_records) + len(torn)
    assert sum(record.size for record in torn) == cut - sum(len(frame_record(e)[0]) for e in whole_records)


@pytest.mark.parametrize("at", [0, 3, 5, 20, len(FILE) - 1])
def test_a_changed_byte_is_no_record(tmp_path: Path, at: int) -> None:
    damaged = bytearray(FILE)
    damaged[at] ^= 0x55
    read = list(records(written(tmp_path, bytes(damaged))))
    assert isinstance(read[-1], Torn)


def test_what_is_whole_but_no_list_of_entries_is_torn(tmp_path: Path) -> None:
    import zlib

    from sightline.store.journal import HEAD

    data = b"\xa3odd"
    path = written(tmp_path, HEAD.pack(len(data), zlib.crc32(data)) + data)
    assert list(records(path)) == [Torn(path, 0, 12)]


def test_what_utf_8_cannot_carry_is_replaced() -> None:
    fact = ExchangeFailed("network", "a\ud800b", headers=(("x", "\udfff"),))
    _, (entry, kept) = frame_record([FactEntry("x_1", 0, 0.0, fact), BodyEntry("00", b"\xff")])
    assert entry.fact == ExchangeFailed("network", "a?b", headers=(("x", "?"),))
    assert kept == BodyEntry("00", b"\xff")
