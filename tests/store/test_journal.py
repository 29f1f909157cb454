import errno
import os
import tempfile
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.errors import Code, Fault
from sightline.model.exchange import ExchangeFailed, FrameArrived
from sightline.store import journal as journal_module
from sightline.store.entries import BodyEntry, Entry, FactEntry, join_frames
from sightline.store.journal import (
    RECORD_HEAD,
    SEGMENT_SIZE,
    JournalWriter,
    SegmentState,
    TornTail,
    encode_entries,
    frame_record,
    is_imported,
    mark_imported,
    pending,
    put_aside,
    records,
    remove_spares,
    segments,
    slots_in,
    state_of,
)
from sightline.store.whole import unfold
from tests.store.traffic import chat_body, received, whole


def append(journal: JournalWriter, number: int, size: int = 1) -> None:
    journal.append(encode_entries(received(f"x_{number}", chat_body(str(number) * size))))


def written_to(folder: Path) -> list[str]:
    """The exchanges in all segments."""
    found: list[str] = []
    for _, path in segments(folder):
        state = state_of(path)
        assert state is not None
        for record in records(path, state.imported, state.end):
            assert not isinstance(record, TornTail)
            found += [entry.exchange for entry in record[0] if isinstance(entry, FactEntry)]
    return found


def test_a_record_is_in_its_file_without_a_system_call_after_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, journal: JournalWriter
) -> None:
    append(journal, 0)
    monkeypatch.setattr(journal_module, "os", None)
    for number in range(1, 9):
        append(journal, number)
    monkeypatch.undo()
    assert written_to(tmp_path) == [f"x_{number}" for number in range(9)]


@pytest.mark.parametrize("most", [None, 5000])
def test_a_large_record_is_written_by_a_system_call_whether_or_not_that_takes_all_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int | None, journal: JournalWriter
) -> None:
    sizes: list[int] = []

    def write_some(file: int, pieces: tuple[bytes, ...], at: int) -> int:
        data = b"".join(pieces)
        sizes.append(len(data))
        return os.pwrite(file, data[:most], at)

    monkeypatch.setattr(journal_module, "write_at", write_some)
    append(journal, 0)
    append(journal, 1, size=100_000)
    append(journal, 2)
    assert len(sizes) == 1
    assert written_to(tmp_path) == ["x_0", "x_1", "x_2"]


def test_a_large_record_that_cannot_be_written_is_a_fault_and_the_next_one_takes_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> int:
        raise OSError(errno.EIO, "broken")

    journal = JournalWriter(tmp_path)
    append(journal, 0)
    monkeypatch.setattr(journal_module, "write_at", fail)
    with pytest.raises(Fault):
        append(journal, 1, size=100_000)
    monkeypatch.undo()
    append(journal, 2, size=100_000)
    assert written_to(tmp_path) == ["x_0", "x_2"]
    journal.close()


def test_a_process_that_records_nothing_leaves_no_files(tmp_path: Path) -> None:
    JournalWriter(tmp_path / "journal").close()
    assert list((tmp_path / "journal").iterdir()) == []


def test_two_processes_have_slots_of_their_own(tmp_path: Path) -> None:
    first, second = JournalWriter(tmp_path), JournalWriter(tmp_path)
    append(first, 1)
    append(second, 2)
    assert slots_in(tmp_path) == {1, 2}
    assert written_to(tmp_path) == ["x_1", "x_2"]
    first.close()
    second.close()


def test_a_slot_that_is_locked_or_removed_meanwhile_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[str] = []

    def cleaned_up(_file: int) -> bool:
        looks.append("")
        if len(looks) == 2:
            (tmp_path / "002.lock").unlink()
        return len(looks) > 1

    monkeypatch.setattr(journal_module, "lock", cleaned_up)
    journal = JournalWriter(tmp_path)
    append(journal, 1)
    ((slot, _),) = segments(tmp_path)
    assert (slot, len(looks)) == (3, 3)
    journal.close()


def test_segments_end_at_a_size_and_a_large_record_has_one_of_its_own(tmp_path: Path) -> None:
    journal = JournalWriter(tmp_path, segment_size=1000)
    for number in range(5):
        append(journal, number)
    append(journal, 5, size=3000)
    append(journal, 6)
    states = [state for _, path in segments(tmp_path) if (state := state_of(path)) is not None]
    assert len(states) > 3
    assert [state.is_sealed for state in states] == [True] * (len(states) - 1) + [False]
    assert written_to(tmp_path) == [f"x_{number}" for number in range(7)]
    journal.close()
    ended = [state_of(path) for _, path in segments(tmp_path)]
    assert all(state is not None and state.is_sealed for state in ended)


def test_who_waits_sees_how_far_others_are(tmp_path: Path) -> None:
    journal = JournalWriter(tmp_path, segment_size=1000)
    for number in range(5):
        append(journal, number)
    wanted = pending(tmp_path)
    assert len(wanted) == len(segments(tmp_path))
    append(journal, 6)
    for path, end in wanted.items():
        assert not is_imported(wanted)
        mark_imported(path, end)
    assert is_imported(wanted)
    (later,) = pending(tmp_path).items()
    later[0].unlink()
    assert is_imported(dict([later]))
    journal.close()


def test_a_segment_that_is_in_the_database_is_used_again_without_what_it_held(
    tmp_path: Path, journal: JournalWriter
) -> None:
    append(journal, 0)
    append(journal, 1, size=SEGMENT_SIZE)  # has a segment of its own
    append(journal, 2)
    (_, small), (_, large), (_, latest) = segments(tmp_path)
    put_aside(small)
    put_aside(large)
    put_aside(large)
    spare = tmp_path / "spare-0"
    assert {path.name for path in tmp_path.iterdir()} == {"001.lock", latest.name, "spare-0", "scrub.lock"}
    assert spare.read_bytes() == bytes(SEGMENT_SIZE)
    number = spare.stat().st_ino
    append(journal, 3, size=SEGMENT_SIZE // 2)
    append(journal, 4, size=SEGMENT_SIZE // 2)
    assert [path.stat().st_ino for _, path in segments(tmp_path)][1:2] == [number]
    assert written_to(tmp_path) == ["x_2", "x_3", "x_4"]


def test_only_a_few_segments_are_kept_to_be_used_again(tmp_path: Path) -> None:
    for number in range(20):
        path = tmp_path / f"001-{number:08}.log"
        path.write_bytes(b"x" * SEGMENT_SIZE)
        put_aside(path)
    assert {path.name for path in tmp_path.iterdir()} == {"scrub.lock", *(f"spare-{number}" for number in range(16))}
    (tmp_path / "spare.draft").write_bytes(b"of one that was killed")
    remove_spares(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["scrub.lock"]


def test_a_spare_of_another_size_is_made_one_of_this(tmp_path: Path) -> None:
    (tmp_path / "spare-2").write_bytes(b"x" * 5000)
    journal = JournalWriter(tmp_path)
    append(journal, 0)
    ((_, path),) = segments(tmp_path)
    assert path.stat().st_size == SEGMENT_SIZE
    assert written_to(tmp_path) == ["x_0"]
    journal.close()


def test_a_forced_journal_is_on_the_disk(tmp_path: Path) -> None:
    journal = JournalWriter(tmp_path, is_forced=True)
    append(journal, 1)
    assert written_to(tmp_path) == ["x_1"]
    journal.close()


@pytest.mark.parametrize("has_fallocate", [True, False])
def test_a_disk_with_little_room_has_small_segments_and_a_full_one_is_a_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, has_fallocate: bool
) -> None:
    room = [100_000]

    class Disk:
        def __getattr__(self, name: str) -> object:
            if name == "posix_fallocate" and not has_fallocate:
                raise AttributeError(name)
            return getattr(os, name)

        def write(self, file: int, data: bytes) -> int:
            return os.write(file, data[: room[0]])

    def allocate(file: int, at: int, size: int) -> None:
        if size > room[0]:
            raise OSError(28, "No space left on device")
        os.posix_fallocate(file, at, size)

    disk = Disk()
    if has_fallocate:
        disk.posix_fallocate = allocate  # type: ignore[attr-defined]
    monkeypatch.setattr(journal_module, "os", disk)
    journal = JournalWriter(tmp_path)
    append(journal, 1)
    ((_, path),) = segments(tmp_path)
    assert path.stat().st_size == 1 << 16
    room[0] = 0
    with pytest.raises(Fault, match="No space left"):
        append(journal, 2, size=1 << 16)
    append(journal, 3)
    room[0] = 10 << 20
    append(journal, 4, size=1 << 16)
    assert written_to(tmp_path) == ["x_1", "x_3", "x_4"]
    journal.close()


def test_a_folder_that_is_none_is_a_clear_fault(tmp_path: Path) -> None:
    (tmp_path / "journal").write_text("a file")
    with pytest.raises(Fault) as caught:
        JournalWriter(tmp_path / "journal")
    assert caught.value.code is Code.CONFIG
    assert "--data" in caught.value.hint


def test_the_files_are_the_owners_alone(tmp_path: Path) -> None:
    journal = JournalWriter(tmp_path / "journal")
    append(journal, 1)
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "journal").iterdir()} == {0o600}
    assert (tmp_path / "journal").stat().st_mode & 0o777 == 0o700
    journal.close()


def test_a_segment_that_is_being_made_has_no_records_and_an_earlier_versions_has_no_head(tmp_path: Path) -> None:
    (tmp_path / "new").write_bytes(bytes(1000))
    (tmp_path / "old").write_bytes(FILE)
    assert state_of(tmp_path / "new") == SegmentState(0, 0, is_sealed=False)
    assert state_of(tmp_path / "old") == SegmentState(len(FILE), 0, is_sealed=False, has_head=False)
    assert state_of(tmp_path / "gone") is None


ENTRIES: list[list[Entry]] = [
    whole("x_1", chat_body("hi"), "yes"),
    [FactEntry("x_2", 0, 1.5, FrameArrived(b"\xff" * 500, 0.1))],
    [BodyEntry("00", b"")],
]
KEPT = [join_frames(entries) for entries in ENTRIES]
FILE = b"".join(frame_record(entries) for entries in KEPT)


def written(folder: Path, data: bytes) -> Path:
    path = folder / "001-00000001.log"
    path.write_bytes(data)
    return path


def test_records_come_back_with_the_place_behind_them(tmp_path: Path) -> None:
    read = list(records(written(tmp_path, FILE)))
    assert [unfold(record[0]) for record in read] == KEPT
    assert read[-1][1] == len(FILE)
    middle = read[0][1]
    assert [record[0] for record in records(tmp_path / "001-00000001.log", middle, read[1][1])] == KEPT[1:2]


@given(st.integers(0, len(FILE) - 1))
def test_a_torn_end_costs_the_last_record_and_is_reported(cut: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = written(Path(folder), FILE[:cut])
        read = list(records(path))
    torn = [record for record in read if isinstance(record, TornTail)]
    whole_records = [unfold(record[0]) for record in read if not isinstance(record, TornTail)]
    assert whole_records == KEPT[: len(whole_records)]
    assert len(read) == len(whole_records) + len(torn)
    assert sum(record.size for record in torn) == cut - sum(len(frame_record(e)) for e in whole_records)


@pytest.mark.parametrize("at", [0, 3, 5, 20, len(FILE) - 1])
def test_a_changed_byte_is_no_record(tmp_path: Path, at: int) -> None:
    damaged = bytearray(FILE)
    damaged[at] ^= 0x55
    read = list(records(written(tmp_path, bytes(damaged))))
    assert isinstance(read[-1], TornTail)


def test_what_is_whole_but_no_list_of_entries_is_torn(tmp_path: Path) -> None:
    data = b"\xa3odd"
    path = written(tmp_path, RECORD_HEAD.pack(len(data), zlib.crc32(data)) + data)
    assert list(records(path)) == [TornTail(path, 0, 12)]


def test_what_utf_8_cannot_carry_is_replaced(tmp_path: Path) -> None:
    fact = ExchangeFailed("network", "a\ud800b", headers=(("x", "\udfff"),))
    path = written(tmp_path, frame_record([FactEntry("x_1", 0, 0.0, fact), BodyEntry("00", b"\xff")]))
    ((entries, _),) = records(path)
    assert entries[0].fact == ExchangeFailed("network", "a?b", headers=(("x", "?"),))
    assert entries[1] == BodyEntry("00", b"\xff")
