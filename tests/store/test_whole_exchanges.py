"""An exchange that one record holds whole is on record as if each of its facts had come by itself."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from sightline.model.exchange import AttemptStarted, ExchangeFinished, Fact, FrameArrived, Received, ReplyStored
from sightline.model.reply import Usage
from sightline.store.digest import read_reply
from sightline.store.entries import BodyEntry, FactEntry, KeptEntry, join_frames
from sightline.store.importer import Importer
from sightline.store.journal import JournalWriter, encode_entries, records
from sightline.store.sqlite import SqliteReader
from sightline.store.sqlite_database import FILE_NAME, open_database
from sightline.store.sqlite_sink import SqliteSink
from sightline.store.summary import FOLDED, HEAD_COLUMNS, OWN_COLUMNS, SHARED_COLUMNS, WHOLE_VALUES
from sightline.store.whole import RecordBeginning, WholeExchange, decode_record, join_entries, unfold
from tests.store.traffic import NOON, chat_body, chat_stream, noted, prices, sha256, whole

TEXTS = st.text(max_size=12)
COUNTS = st.none() | st.integers(-(2**63), 2**64 - 1)
HEADERS = st.lists(st.tuples(st.sampled_from(["accept", "x-sightline-tag", "X-Sightline-Tag"]), TEXTS), max_size=3).map(
    tuple
)
RECEIVED = st.builds(
    Received,
    st.sampled_from(["openai-chat", "anthropic", "another"]),
    TEXTS,
    st.just(""),
    session=TEXTS | st.just("team#blue"),
    client=TEXTS,
    path=TEXTS,
    is_stream=st.booleans(),
    headers=HEADERS,
    origin=TEXTS,
    transport=TEXTS,
    method=TEXTS,
)
ATTEMPTS = st.builds(
    AttemptStarted,
    st.integers(-1, 3),
    st.sampled_from(["acme", "other"]),
    st.just(""),
    model=st.sampled_from(["large", ""]),
    dialect=st.sampled_from(["openai-chat", "anthropic", ""]),
    url=st.just("https://acme.test/v1"),
)
ENDS = st.builds(
    ExchangeFinished,
    TEXTS,
    COUNTS.map(lambda count: count or 0),
    HEADERS,
    model=st.sampled_from(["large", "", "m"]),
    usage=st.none()
    | st.builds(Usage, input_tokens=COUNTS, output_tokens=COUNTS, cached_tokens=COUNTS, is_estimated=st.booleans()),
    tools=st.lists(TEXTS, max_size=2).map(tuple),
    first_byte=st.floats(0, 9),
    elapsed=st.floats(0, 9),
    warning=TEXTS,
)
FRAMES = st.lists(st.sampled_from([*chat_stream("a", "b"), b'{"choices":[]}', b"\xff"]), min_size=1, max_size=3)
BODIES = st.sampled_from([chat_body("hi"), chat_body("one", "two", "three"), chat_body("long " * 2000), b"\xffno JSON"])


def tables(connection: sqlite3.Connection) -> dict[str, list[tuple[Any, ...]]]:
    names = ("exchanges", "blocks", "words", "bodies", "uses", "instructions")
    return {name: connection.execute(f"SELECT * FROM {name} ORDER BY 1, 2").fetchall() for name in names}


def in_one_record(exchange: str, body: bytes, facts: Sequence[Fact]) -> list[KeptEntry]:
    return join_frames([BodyEntry(sha256(body), body, "near"), *noted(exchange, facts)])


def read_back(entries: Sequence[KeptEntry], words: str = "") -> Sequence[object]:
    """What a sink is given of such a record, in which these words are behind the entries."""
    encoded = encode_entries(entries)[1:]
    return decode_record(memoryview(join_entries(len(entries), encoded, words=words)))


@settings(deadline=None, max_examples=40)
@given(st.lists(st.tuples(RECEIVED, ATTEMPTS, FRAMES, ENDS, BODIES), min_size=1, max_size=3), st.data())
def test_it_is_on_record_as_its_facts_one_by_one(
    tmp_path_factory: pytest.TempPathFactory, drawn: list[Any], data: st.DataObject
) -> None:
    batch: list[KeptEntry] = []
    wholes: list[object] = []
    copies = data.draw(st.sampled_from([1, 17]), "how many there are of each kind")
    for number, (received, attempt, frames, end, body) in enumerate(drawn * copies):
        name = sha256(body)
        facts = [
            msgspec.structs.replace(received, sha256=name),
            msgspec.structs.replace(attempt, sha256=name),
            *[FrameArrived(frame, 0.5) for frame in frames],
            end,
        ]
        record = in_one_record(f"x_{number}", body, facts)
        words = read_reply(attempt.dialect or received.dialect, b"".join(frames))[0]
        is_read = data.draw(st.booleans(), "the gateway has read the reply")
        found = read_back(record, words if is_read else "")
        assert [type(each) for each in found] == [WholeExchange]
        # Half a character cannot be written to a journal.
        batch += unfold(found)  # type: ignore[arg-type]
        wholes += found
    if data.draw(st.booleans(), "something else came of the first one"):
        later = FactEntry("x_0", len(drawn[0][2]) + 3, NOON, ReplyStored("owner", 1))
        batch.append(later)
        wholes.append(later)
    folders = tmp_path_factory.mktemp("plain"), tmp_path_factory.mktemp("whole")
    found_tables = []
    for folder, entries in zip(folders, (batch, wholes), strict=True):
        with closing(open_database(folder)) as connection:
            sink = SqliteSink(connection, prices)
            sink.apply(entries)  # type: ignore[arg-type]
            found_tables.append(tables(connection))
            sink.apply(entries)  # type: ignore[arg-type]
            assert tables(connection) == found_tables[-1], "what is there already changes nothing"
    plain, of_wholes = found_tables
    assert of_wholes == plain


def test_a_row_has_every_column() -> None:
    assert sorted((*HEAD_COLUMNS, *SHARED_COLUMNS, *OWN_COLUMNS, *WHOLE_VALUES)) == sorted(FOLDED)


def exchange_in_a_record(exchange: str, body: bytes = b"{}") -> list[KeptEntry]:
    return join_frames(whole(exchange, body, "yes"))


def test_what_is_not_one_exchange_from_beginning_to_end_is_read_as_entries() -> None:
    usual = exchange_in_a_record("x_1")
    assert [type(each) for each in read_back(usual)] == [WholeExchange]
    other = exchange_in_a_record("x_2", b"[]")
    for at in range(5):
        mixed = [*usual[:at], other[at], *usual[at + 1 :]]
        assert read_back(mixed) == mixed
    moved = [*usual[:4], msgspec.structs.replace(usual[4], n=17)]  # type: ignore[type-var]
    for entries in (moved, usual[:4], [usual[1], usual[0], *usual[2:]]):
        assert read_back(entries) == entries


def test_each_has_the_head_of_its_own_request_however_many_there_are(tmp_path: Path) -> None:
    def entries(number: int) -> list[KeptEntry]:
        body = chat_body(f"number {number}")
        name = sha256(body)
        attempt = AttemptStarted(1, "acme", name, dialect="openai-chat")
        tags = (("x-sightline-tag", f"tag {number % 70}"),)
        facts = [Received("openai-chat", "m", name, headers=tags), attempt, FrameArrived(b"{}", 0.5)]
        return in_one_record(f"x_{number:03}", body, [*facts, ExchangeFinished("stop", 200)])

    with closing(open_database(tmp_path)) as connection:
        SqliteSink(connection, prices).apply([each for n in range(200) for each in read_back(entries(n))])  # type: ignore[misc]
        rows = connection.execute("SELECT id, tag FROM exchanges ORDER BY seq").fetchall()
    assert rows == [(f"x_{number:03}", f"tag {number % 70}") for number in range(200)]


def test_words_behind_the_entries_are_no_entry() -> None:
    usual = exchange_in_a_record("x_1")
    (found,) = read_back(usual, "yes")
    assert isinstance(found, WholeExchange)
    assert (found.words, unfold([found])) == ("yes", usual)
    assert read_back(usual[:4], "yes") == usual[:4]
    assert read_back(usual[3:], "yes") == usual[3:]


def test_one_that_began_in_an_earlier_batch_is_added_to(tmp_path: Path, sink: SqliteSink) -> None:
    usual = exchange_in_a_record("x_1", chat_body("hi"))
    sink.apply(usual[:2])
    sink.apply(read_back(usual))  # type: ignore[arg-type]
    reader = SqliteReader(tmp_path / FILE_NAME)
    assert [entry.n for entry in reader.facts("x_1")] == [*range(6)]


def test_a_whole_one_that_the_database_refuses_is_kept_with_all_its_entries(tmp_path: Path) -> None:
    usual = exchange_in_a_record("x_1", chat_body("hi"))
    writer = JournalWriter(tmp_path)
    writer.append(encode_entries(usual))

    class Refusing(SqliteSink):
        def apply(self, batch: Sequence[object], slot: int = 0) -> None:
            raise OverflowError("too large for this column")

    importer = Importer(tmp_path, lambda: Refusing(open_database(tmp_path), prices), lambda: NOON)
    assert importer.acquire()
    importer.catch_up()
    importer.close()
    writer.close()
    (kept,) = records(tmp_path / "refused-001.journal")
    assert unfold(kept[0]) == usual  # type: ignore[arg-type]


@pytest.mark.parametrize("size", [0, 1, 255, 256, 65_535, 65_536])
def test_a_beginning_that_is_encoded_once_is_what_its_entries_are(size: int) -> None:
    received = Received("openai-chat", "m", "", "s", "story/1", "/v1", headers=(("a", "b"),))
    attempt = AttemptStarted(
        1, "acme", "", model="m", dialect="openai-chat", url="http://a.test", headers=(("c", "d"),)
    )
    body = bytes(range(256)) * (size // 256) + bytes(size % 256)
    digest = sha256(body)
    entries = (
        BodyEntry(digest, body, "near"),
        FactEntry("x_0042", 0, 7.25, replace(received, sha256=digest)),
        FactEntry("x_0042", 1, 7.25, replace(attempt, sha256=digest)),
    )
    encoded = RecordBeginning("near", received, attempt).encode("x_0042", digest, body, 7.25)
    assert join_entries(3, *encoded) == msgspec.msgpack.encode(entries)


def test_a_beginning_without_an_end_in_sight_is_not_encoded_once() -> None:
    """A request that holds what stands for the gaps is recorded in the usual way."""
    attempt = AttemptStarted(1, "acme", "")
    with pytest.raises(ValueError, match="holds a placeholder"):
        RecordBeginning("", Received("openai-chat", "\x01" * 64, ""), attempt)
