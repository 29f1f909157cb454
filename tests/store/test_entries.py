import asyncio
import sqlite3
from collections.abc import AsyncIterator, Sequence
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.errors import Code, Fault
from sightline.model.exchange import Budgeted, FrameArrived, Held
from sightline.store.archive import load, read, write_archive
from sightline.store.entries import (
    CANDIDATES,
    DEEPEST,
    LEAST_SIZE,
    BodyEntry,
    Codec,
    Entry,
    FactEntry,
    FramesEntry,
    Recent,
    common_ends,
    fact_of,
    join_frames,
    may_share,
    next_number,
    pack_frames,
    plain_entries,
    raw_bytes,
    raw_reply,
    since,
    unpack_frames,
)
from sightline.store.sqlite import SqliteReader
from sightline.store.sqlite_blocks import RecordBlockWriter
from sightline.store.sqlite_database import FILE_NAME
from sightline.store.sqlite_sink import SqliteSink
from tests.store.traffic import chat_body, noted, sha256, whole


def test_entries_tell_facts_from_bodies_in_any_coding() -> None:
    entries = whole("x_1", chat_body("hi"), "yes")
    for coding in (msgspec.json, msgspec.msgpack):
        assert coding.decode(coding.encode(entries), type=list[Entry]) == entries


NEWER = msgspec.msgpack.encode({"kind": "sung", "melody": "unheard of"})


def test_a_fact_is_what_was_written_down() -> None:
    for fact in (Held("tool_calls"), Budgeted({"stage": "attempt", "AUT": 7, "selection": [{"id": "a"}]})):
        assert fact_of(msgspec.msgpack.encode(fact)) == fact


def test_a_fact_of_a_newer_version_says_so() -> None:
    with pytest.raises(Fault, match="does not understand: Invalid value 'sung'") as caught:
        fact_of(NEWER)
    assert "newer version" in caught.value.hint


def test_an_exchange_that_a_newer_version_has_written_is_listed_and_says_why_it_cannot_be_shown(
    tmp_path: Path, connection: sqlite3.Connection, sink: SqliteSink
) -> None:
    sink.apply(whole("x_1", chat_body("hi"), "yes"))
    sink.apply(whole("x_2", chat_body("ho"), "yes"))
    blocks = RecordBlockWriter(connection, Codec())
    blocks.begin()
    newer = {"type": "fact", "exchange": "x_2", "n": 99, "at": 1.0, "fact": msgspec.Raw(NEWER)}
    connection.execute("UPDATE exchanges SET blocks = ? WHERE seq = 2", (str(blocks.add(2, [newer])),))
    blocks.end()
    sink.refresh()
    with pytest.raises(ValueError, match="sung"):  # it is about this exchange, and keeps back no other
        sink.apply(noted("x_2", [Held()], first=100))
    reading = SqliteReader(tmp_path / FILE_NAME)
    assert len(reading.facts("x_1")) > 1
    with pytest.raises(Fault, match="does not understand"):
        reading.facts("x_2")
    reading.close()


FRAMES = [FrameArrived(b"data: %d\n\n" % n, 0.1 * n) for n in range(200)]
NOTED = [FactEntry("x_1", 3 + n, 100.0 + n, frame) for n, frame in enumerate(FRAMES)]


def test_frames_come_back_with_their_numbers_and_times() -> None:
    codec = Codec()
    data = pack_frames(
        codec, [(entry.n, entry.at, frame.after, frame.data) for entry, frame in zip(NOTED, FRAMES, strict=True)]
    )
    assert unpack_frames(codec, "x_1", data) == NOTED
    assert raw_bytes(codec, data) == b"".join(frame.data for frame in FRAMES)
    assert len(data) < 3000


def test_frames_that_come_one_behind_the_other_are_one_entry_and_come_back_as_they_were() -> None:
    others: list[Entry] = [BodyEntry("00", b"{}"), FactEntry("x_1", 2, 0.5, Held())]
    entries = [*others, *NOTED, FactEntry("x_1", 203, 0.5, Held())]
    kept = join_frames(entries)
    assert kept[2] == FramesEntry(
        "x_1", 3, [each.at for each in NOTED], [each.after for each in FRAMES], [each.data for each in FRAMES]
    )
    assert [*kept[:2], kept[3]] == [*others, entries[-1]]
    assert plain_entries(kept) == entries == plain_entries(join_frames(kept))
    assert raw_reply(entries) == raw_reply(kept) == b"".join(each.data for each in FRAMES)
    assert join_frames(others) == others


def test_frames_with_a_body_or_another_exchange_between_them_stay_as_they_are() -> None:
    body, other = BodyEntry("00", b"{}"), FactEntry("x_2", 1, 0.5, FRAMES[0])
    for between in (body, other):
        entries: list[Entry] = [*NOTED[:2], between, *NOTED[2:4]]  # as in an archive of several exchanges
        assert join_frames(entries) == entries


@pytest.mark.parametrize(
    "entries",
    [
        [*NOTED, FactEntry("x_2", 203, 0.5, FrameArrived(b"of another"))],
        [*NOTED, FactEntry("x_1", 300, 0.5, FrameArrived(b"behind a gap"))],
        [*NOTED[:9], FactEntry("x_1", 12, 0.5, Held()), *NOTED[10:]],
    ],
)
def test_frames_that_come_in_any_other_way_stay_as_they_are(entries: list[Entry]) -> None:
    assert join_frames(entries) == entries


def test_facts_from_a_number_on_are_the_rest_of_frames_or_all_or_nothing() -> None:
    (frames,) = join_frames(NOTED)
    fact = FactEntry("x_1", 3, 0.5, Held())
    assert [since(fact, 3), since(fact, 4)] == [fact, None]
    assert [since(frames, 3), since(frames, 203)] == [frames, None]
    assert plain_entries([since(frames, 150)]) == NOTED[147:]
    assert [next_number(fact), next_number(frames)] == [4, 203]


CODEC = Codec()
HISTORY = b'{"messages":[' + b'{"role":"user","content":"words"},' * 400 + b'],"tools":["many"]}'


def slowly(old: bytes, new: bytes) -> tuple[int, int]:
    most = min(len(old), len(new))
    prefix = next((n for n in range(most) if old[n] != new[n]), most)
    most -= prefix
    return prefix, next((n for n in range(most) if old[-1 - n] != new[-1 - n]), most)


@given(st.binary(max_size=40), st.binary(max_size=40), st.binary(max_size=40), st.binary(max_size=40))
def test_what_two_bodies_share_is_what_a_patient_reader_finds(head: bytes, old: bytes, new: bytes, tail: bytes) -> None:
    assert common_ends(head + old + tail, head + new + tail) == slowly(head + old + tail, head + new + tail)


@pytest.mark.parametrize("at", [0, 1, 65_535, 65_536, 65_537, 131_072, 199_999])
def test_single_changed_byte_is_found_at_any_position(at: int) -> None:
    old = bytes(200_000)
    assert common_ends(old, old[:at] + b"x" + old[at + 1 :]) == (at, 199_999 - at)


@given(st.binary(max_size=9000), st.binary(max_size=9000))
def test_a_change_is_undone(base: bytes, body: bytes) -> None:
    for each in (body, base + body, body + base, base):
        coded = CODEC.best(each, [("b", base, 0)])
        assert CODEC.restore(coded, base if coded.base else b"") == each


def test_a_longer_history_is_stored_as_what_is_new() -> None:
    grown = HISTORY.replace(b"],", b'{"role":"user","content":"one more"},],')
    coded = CODEC.best(grown, [("old", HISTORY, 4)])
    assert (coded.base, coded.depth) == ("old", 5)
    assert len(coded.data) < 100


def test_the_base_is_the_one_that_the_body_grew_from() -> None:
    bases = [("side", b'{"messages":[' + b"x" * 9000, 0), ("own", HISTORY, 0), ("older", HISTORY[:5000], 0)]
    assert CODEC.best(HISTORY[:-2] + b"!]}", bases).base == "own"


@pytest.mark.parametrize(
    ("body", "depth"),
    [
        pytest.param(HISTORY, DEEPEST, id="too many steps"),
        pytest.param(b"nothing of it " * 900, 0, id="nothing in common"),
        pytest.param(HISTORY[: LEAST_SIZE - 1], 0, id="too small to matter"),
    ],
)
def test_body_is_stored_whole_if_a_delta_saves_nothing(body: bytes, depth: int) -> None:
    assert CODEC.best(body, [("old", HISTORY, depth)]) == CODEC.whole(body)
    assert CODEC.against(b"nothing of it" * 900, HISTORY, "old", 0).base == ""


def test_bodies_that_begin_or_end_alike_may_share() -> None:
    assert may_share(HISTORY, HISTORY + b"more")
    assert may_share(HISTORY, b"other" + HISTORY)
    assert not may_share(HISTORY, b"x" + HISTORY + b"x")
    assert not may_share(HISTORY, HISTORY[:100])


def test_a_chain_is_read_step_by_step() -> None:
    bodies = [HISTORY + b"." * n for n in range(DEEPEST + 4)]
    coded = [CODEC.whole(bodies[0])]
    for before, body in pairwise(bodies):
        coded.append(CODEC.best(body, [(sha256(before), before, coded[-1].depth)]))
    read = b""
    for step, body in zip(coded, bodies, strict=True):
        read = CODEC.restore(step, read)
        assert read == body
    assert max(step.depth for step in coded) == DEEPEST
    assert coded[DEEPEST + 1].base == ""


def test_the_last_bodies_of_a_kind_come_newest_first() -> None:
    recent = Recent()
    for name in "abc":
        recent.note(name, "s", name.encode())
    recent.note("a", "s", b"a")
    recent.note("z", "", b"z")
    assert recent.near("s") == [("a", b"a"), ("c", b"c"), ("b", b"b")]
    assert recent.near("other") == recent.near("") == []
    assert recent.body("z") == b"z"


def test_only_a_few_of_a_kind_are_candidates() -> None:
    recent = Recent()
    for number in range(CANDIDATES + 3):
        recent.note(str(number), "s", b".")
    assert [name for name, _ in recent.near("s")] == [str(n) for n in range(CANDIDATES + 2, 2, -1)]


def test_what_does_not_fit_is_forgotten_oldest_first() -> None:
    recent = Recent(most_bytes=10)
    for name in "abcd":
        recent.note(name, name, name.encode() * 4)
    assert [recent.body(name) for name in "abcd"] == [None, None, b"cccc", b"dddd"]
    assert recent.near("a") == []
    recent.note("large", "s", b"x" * 100)
    assert recent.near("s") == [("large", b"x" * 100)]


def test_what_is_stored_no_more_is_no_candidate() -> None:
    recent = Recent()
    recent.note("a", "s", b"a")
    recent.forget("a")
    recent.forget("a")
    assert recent.near("s") == []


ENTRIES = [*whole("x_1", chat_body("hi"), "yes"), *whole("x_2", b"\xff\x00 no JSON", "no")]


def lines(entries: Sequence[Entry] = ENTRIES) -> list[bytes]:
    async def all_of_them() -> AsyncIterator[Entry]:
        for entry in entries:
            yield entry

    async def collected() -> list[bytes]:
        return [line async for line in write_archive(all_of_them())]

    return asyncio.run(collected())


class Shelf:
    """A store that only takes."""

    def __init__(self) -> None:
        self.records: list[list[Entry]] = []

    def record(self, entries: Sequence[Entry]) -> None:
        self.records.append(list(entries))


def test_an_archive_is_lines_of_json_that_are_read_back() -> None:
    made = lines()
    assert made[0] == b'{"sightline":"record","version":1}\n'
    assert len(made) == len(ENTRIES) + 1
    assert list(read([*made, b"\n"])) == ENTRIES


def test_a_body_is_recorded_together_with_the_fact_behind_it() -> None:
    shelf = Shelf()
    many = [entry for n in range(300) for entry in whole(f"x_{n}", chat_body(str(n)), "yes")]
    assert load(shelf, lines(many)) == len(many)  # type: ignore[arg-type]
    assert [entry for record in shelf.records for entry in record] == many
    assert len(shelf.records) > 1
    assert not [record for record in shelf.records if isinstance(record[-1], BodyEntry)]


def test_large_bodies_go_in_small_batches() -> None:
    shelf = Shelf()
    load(shelf, lines([entry for n in range(4) for entry in whole(f"x_{n}", bytes([n]) * (3 << 20))]))  # type: ignore[arg-type]
    assert len(shelf.records) == 3


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([], "the archive is empty"),
        ([b"\n"], "the archive is empty"),
        ([b"{}\n"], "line 1 of the archive"),
        ([b'{"sightline":"record","version":2}'], "version 2"),
        ([b'{"sightline":"chat","version":1}'], "'chat'"),
        ([*lines()[:2], b"{half"], "line 3 of the archive"),
    ],
)
def test_what_is_no_archive_is_refused_with_its_line(content: list[bytes], message: str) -> None:
    with pytest.raises(Fault, match=message) as caught:
        list(read(content))
    assert caught.value.code is Code.USAGE
    assert caught.value.hint
