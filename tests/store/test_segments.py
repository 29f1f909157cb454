from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.model.exchange import ExchangeFailed, FrameArrived
from sightline.store.entries import BodyEntry, Entry, FactEntry
from sightline.store.segments import Torn, frame_record, records
from tests.store.traffic import chat_body, whole

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

    from sightline.store.segments import HEAD

    data = b"\xa3odd"
    path = written(tmp_path, HEAD.pack(len(data), zlib.crc32(data)) + data)
    assert list(records(path)) == [Torn(path, 0, 12)]


def test_what_utf_8_cannot_carry_is_replaced() -> None:
    fact = ExchangeFailed("network", "a\ud800b", headers=(("x", "\udfff"),))
    _, (entry, kept) = frame_record([FactEntry("x_1", 0, 0.0, fact), BodyEntry("00", b"\xff")])
    assert entry.fact == ExchangeFailed("network", "a?b", headers=(("x", "?"),))
    assert kept == BodyEntry("00", b"\xff")
