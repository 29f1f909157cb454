import sqlite3
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.errors import Fault
from sightline.filters.expression import ContentTerm, Expression, OwnTopic
from sightline.filters.parsing import parse
from sightline.filters.predicate import fold_case, occurs
from sightline.model.exchange import Held
from sightline.store.digest import storable
from sightline.store.entries import BodyEntry, Codec, FactEntry
from sightline.store.search import RecordSearch, WordSearch
from sightline.store.sqlite import TABLES, SqliteReader, answer, forget
from sightline.store.sqlite_blocks import BlockReader, RecordBlockWriter
from sightline.store.sqlite_database import FILE_NAME, SqliteBodies, body_of, body_with_id, open_database
from sightline.store.sqlite_sink import SqliteSink
from sightline.store.sqlite_words import append_words, forget_words
from sightline.store.summary import Summary, Unfinished
from sightline.store.words import searchable
from tests.store.traffic import (
    NOON,
    answered,
    chat_body,
    chat_stream,
    noted,
    prices,
    received,
    responded,
    sha256,
    whole,
)

BODY = chat_body("hi")


def test_a_batch_that_fails_leaves_nothing_and_can_be_brought_in_again(
    connection: sqlite3.Connection, sink: SqliteSink
) -> None:
    connection.execute("ALTER TABLE blocks RENAME TO away")
    with pytest.raises(Fault):
        sink.apply(whole("x_1", BODY, "yes"))
    assert connection.execute("SELECT count(*) FROM exchanges").fetchone() == (0,)
    connection.execute("ALTER TABLE away RENAME TO blocks")
    sink.apply(whole("x_1", BODY, "yes"))
    assert connection.execute("SELECT id, state, next_n FROM exchanges").fetchall() == [("x_1", "finished", 6)]


def test_others_may_go_on_between_the_exchanges_of_a_batch(connection: sqlite3.Connection) -> None:
    ways: list[str] = []
    sink = SqliteSink(connection, prices, lambda: ways.append("given"))
    sink.apply([entry for number in range(20) for entry in whole(f"x_{number}", chat_body(str(number)), "yes")])
    assert len(ways) >= 5, "no one waits for the whole batch"
    assert connection.execute("SELECT count(*) FROM exchanges").fetchone() == (20,)


def test_what_dead_processes_left_open_is_known(sink: SqliteSink) -> None:
    for slot in (1, 2, 3):
        sink.apply(received(f"x_{slot}", BODY), slot)
        sink.apply(whole(f"x_{slot}_done", BODY, "yes"), slot)
    sink.refresh()
    sink.apply(noted("x_2", [Held()], first=1), 2)
    assert sink.open_exchanges([3]) == [Unfinished("x_1", 1, "received"), Unfinished("x_2", 2, "held")]
    assert not sink.tidy()


def test_facts_that_come_in_other_pieces_than_before_are_there_once(
    tmp_path: Path, connection: sqlite3.Connection, sink: SqliteSink
) -> None:
    everything = [*received("x_1", BODY), *answered("x_1", BODY, chat_stream("a", "b", "c"))]
    for cut in range(1, len(everything)):
        sink.apply(everything[:cut])
        SqliteSink(connection, prices).apply(everything[cut - 1 : cut + 1])
    assert connection.execute("SELECT next_n FROM exchanges").fetchall() == [(8,)]
    facts = SqliteReader(tmp_path / FILE_NAME).facts("x_1")
    assert facts == [each for each in everything if isinstance(each, FactEntry)]


def test_a_body_that_comes_before_the_fact_that_names_it_is_the_exchanges(
    tmp_path: Path, connection: sqlite3.Connection, sink: SqliteSink
) -> None:
    body, fact = received("x_1", BODY)
    sink.apply([body])
    sink.apply([fact])
    sink.apply([body, fact])
    assert connection.execute("SELECT exchange, body FROM uses").fetchall() == [(1, 1)]
    assert connection.execute("SELECT title FROM exchanges").fetchall() == [("hi",)]
    assert SqliteReader(tmp_path / FILE_NAME).body("x_1", sha256(BODY)) == BODY


def test_what_is_brought_in_again_adds_no_body(connection: sqlite3.Connection) -> None:
    for _ in range(2):
        SqliteSink(connection, prices).apply([*whole("x_1", BODY, "yes"), *received("x_2", BODY)])
    assert connection.execute("SELECT count(*) FROM bodies").fetchone() == (0,)
    (packed,) = connection.execute("SELECT data FROM blocks").fetchone()
    assert Codec().unpack(packed).count(BODY) == 2


TURNS = [chat_body(*(f"{n} " + "word " * 300 for n in range(2 * turn + 1))) for turn in range(8)]
ERRANDS = [chat_body(f"title {turn} " + "other " * 1000, temperature=turn) for turn in range(8)]


def kept(body: bytes) -> BodyEntry:
    return BodyEntry(sha256(body), body, "s")


def test_turns_build_on_turns_although_errands_stand_between(connection: sqlite3.Connection) -> None:
    bodies = SqliteBodies(connection, Codec())
    for turn, errand in zip(TURNS, ERRANDS, strict=True):
        bodies.keep([kept(turn)])
        bodies.keep([kept(errand)])
    alone = {name.hex() for (name,) in connection.execute("SELECT sha256 FROM bodies WHERE base IS NULL")}
    assert [turn for turn, body in enumerate(TURNS) if sha256(body) in alone] == [0]
    for body in TURNS + ERRANDS:
        assert body_of(connection, Codec(), sha256(body)) == body
        assert bodies.body(sha256(body)) == body


def test_another_process_builds_on_what_is_stored(connection: sqlite3.Connection) -> None:
    SqliteBodies(connection, Codec()).keep([kept(TURNS[3])])
    SqliteBodies(connection, Codec()).keep([kept(TURNS[4])])
    assert connection.execute("SELECT base, depth FROM bodies ORDER BY id").fetchall() == [(None, 0), (1, 1)]
    assert SqliteBodies(connection, Codec()).body(sha256(TURNS[4])) == TURNS[4]


def test_after_a_rest_bodies_build_on_what_is_stored(connection: sqlite3.Connection, sink: SqliteSink) -> None:
    sink.apply([kept(TURNS[3])])
    sink.rest()
    sink.apply([kept(TURNS[4])])
    assert connection.execute("SELECT base, depth FROM bodies ORDER BY id").fetchall() == [(None, 0), (1, 1)]


def test_nothing_that_was_read_stays_in_memory_after_a_rest(sink: SqliteSink) -> None:
    body = chat_body(*(f"turn {n} {'word ' * 500}" for n in range(9)))
    held = sys.getrefcount(body)
    sink.apply(whole("x_1", body, "yes"))
    assert sys.getrefcount(body) > held, "the next turn of the conversation is compared with it"
    sink.rest()
    assert sys.getrefcount(body) == held


def test_body_pruned_by_another_process_is_not_used_as_a_base(connection: sqlite3.Connection) -> None:
    bodies = SqliteBodies(connection, Codec())
    bodies.keep([kept(TURNS[3])])
    connection.execute("DELETE FROM bodies")
    bodies.begin()
    bodies.keep([kept(TURNS[4])])
    assert body_of(connection, Codec(), sha256(TURNS[4])) == TURNS[4]
    assert bodies.number(sha256(TURNS[3])) is None


def test_a_body_that_is_missing_is_a_fault(connection: sqlite3.Connection) -> None:
    with pytest.raises(Fault, match="missing"):
        body_with_id(connection, Codec(), 7)


def test_an_exchange_without_its_body_has_no_words_and_stops_nothing(
    connection: sqlite3.Connection, sink: SqliteSink
) -> None:
    sink.apply(received("x_1", chat_body("lost"))[1:])
    sink.apply(noted("x_2", [Held()]))
    assert connection.execute("SELECT title, thread FROM exchanges").fetchall() == [("", None)] * 2


def test_what_an_earlier_version_left_for_later_is_read_when_the_record_is_opened(tmp_path: Path) -> None:
    tables = []
    for folder in (tmp_path / "now", tmp_path / "later"):
        connection = open_database(folder)
        sink = SqliteSink(connection, prices)
        for number, words in enumerate([("hi",), ("hi", "yes 0", "and?"), ("other",)]):
            sink.apply(whole(f"x_{number}", chat_body(*words, system="Be brief."), f"yes {number}"))
        if folder.name == "later":
            connection.execute("UPDATE exchanges SET todo = 3, title = '', thread = NULL, previous = ''")
            connection.execute("DELETE FROM words")
            connection.execute("DELETE FROM instructions")
            sink = SqliteSink(connection, prices)
        read = ("exchanges", "blocks", "uses", "instructions", "words")
        tables.append([connection.execute(f"SELECT * FROM {table} ORDER BY 1").fetchall() for table in read])
        sink.close()
    assert tables[0] == tables[1]
    assert [row[0] for row in tables[0][-1]] == [1]


def test_what_cannot_be_read_is_on_record_without_its_words(
    monkeypatch: pytest.MonkeyPatch, connection: sqlite3.Connection, sink: SqliteSink
) -> None:
    def unreadable(*_: object) -> str:
        raise ValueError("a mistake")

    monkeypatch.setattr("sightline.store.sqlite_digest.DigestReader.read", unreadable)
    sink.apply(whole("x_1", BODY, "yes"))
    assert connection.execute("SELECT id, title, next_n FROM exchanges").fetchall() == [("x_1", "", 6)]


def test_a_reply_that_came_in_several_batches_is_read_whole(tmp_path: Path, sink: SqliteSink) -> None:
    entries = whole("x_1", BODY, "knock ", "knock")
    sink.apply(entries[:4])
    sink.apply(entries[4:])
    assert [e.id for e in find_in(tmp_path, "text:'knock knock'")] == ["x_1"]


@pytest.mark.parametrize("is_own", [False, True], ids=["another connection", "the same connection"])
def test_words_that_were_forgotten_are_searched_in_the_next_exchange_that_has_them(
    tmp_path: Path, is_own: bool, connection: sqlite3.Connection, sink: SqliteSink
) -> None:
    examples = ("an example", "its answer", "question")
    for number in range(3):
        sink.apply(whole(f"x_{number}", chat_body(*examples, system="Be brief.", seed=number), "yes"))
        assert [e.id for e in find_in(tmp_path, "text:brief text:example")] == [f"x_{number and 1}"]
        if not number:
            other = connection if is_own else open_database(tmp_path)
            forget(other, ["x_0"], is_dry_run=False)


def test_requests_of_one_batch_are_linked_to_each_other_and_to_those_before(
    connection: sqlite3.Connection, sink: SqliteSink
) -> None:
    turns = [chat_body(*(f"{n} said" for n in range(2 * turn + 1))) for turn in range(9)]
    sink.apply(whole("x_0", turns[0], "yes"))
    batch = [whole(f"x_{n}", turns[n], "yes") for n in (1, 2, 3)]
    other, late = whole("x_4", turns[3], "yes", session="other"), whole("x_5", turns[8], "yes")
    sink.apply([entry for entries in (*batch, other, late) for entry in entries])
    sink.apply([*responded("x_6", "", "resp_1"), *responded("x_7", "resp_1", "resp_2")])
    sink.apply([*responded("x_8", "resp_4", "resp_3"), *responded("x_9", "", "resp_4")])
    sink.apply(responded("y_0", "resp_2", "resp_5"))
    found = dict(connection.execute("SELECT id, previous FROM exchanges"))
    assert found == {
        "x_0": "", "x_1": "x_0", "x_2": "x_1", "x_3": "x_2", "x_4": "", "x_5": "x_3",
        "x_6": "", "x_7": "x_6", "x_8": "", "x_9": "", "y_0": "x_7",
    }  # fmt: skip


def find_in(folder: Path, wanted: str) -> list[Summary]:
    reading = SqliteReader(folder / FILE_NAME)
    try:
        return find(reading, parse(wanted))
    finally:
        reading.close()


def small_blocks(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    for place in ("words.BLOCK", "sqlite_words.FILLED"):
        monkeypatch.setattr(f"sightline.store.{place}", size)


def candidates(connection: sqlite3.Connection, wanted: Expression, exchanges: Sequence[int]) -> list[int]:
    search = WordSearch(TABLES, wanted)
    answer(connection, search.scan(min(exchanges)))
    found = search.candidates()
    return [each for each in exchanges if found is None or each in found]


SAID = ["a needle", "Grüße", "NEEDLE in\nhay", "", "σς Σ", "100%", "a*b", "İK", "needles", "日本語", "a", "é\0é"]


@pytest.mark.parametrize(
    "pattern",
    ["needle", "n?edle", "a*e", "grüsse", "GRÜSSE", "grü", "ς", "", "*", "?", "%", "a\\*b", "İ", "k", "本", "\0"],
)
@pytest.mark.parametrize("size", [1, 30, 1 << 16])
def test_a_search_finds_what_the_pattern_means(
    monkeypatch: pytest.MonkeyPatch, pattern: str, size: int, connection: sqlite3.Connection
) -> None:
    small_blocks(monkeypatch, size)
    codec = Codec()
    for seq, text in enumerate(SAID):
        append_words(connection, codec, [(seq, searchable(words)) for words in (text, text[::-1]) if words])
    meant = [n for n, text in enumerate(SAID) if text and any(occurs(pattern, storable(t)) for t in (text, text[::-1]))]
    assert candidates(connection, ContentTerm(pattern), range(len(SAID))) == meant


@given(st.text(st.characters() | st.sampled_from("aÄäΣςσİK–“\0")))
def test_words_are_stored_in_lower_case(words: str) -> None:
    assert searchable(words) == fold_case(words).replace("\0", "\ufffd").encode("utf-8", "replace")


def test_a_last_block_is_filled_up_until_it_is_half_full(connection: sqlite3.Connection) -> None:
    writer = RecordBlockWriter(connection, Codec())
    numbers: list[int] = []
    for row in range(1, 6):  # three quarters of a half each
        writer.begin()
        numbers.append(writer.add(row, [BodyEntry("00", bytes(72 << 10))]))
        writer.end()
    assert numbers == [1, 1, 2, 2, 3]
    reader = BlockReader(connection, Codec())
    assert [len(reader.pieces(row, str(number))) for row, number in enumerate(numbers, 1)] == [1] * 5


def test_words_narrow_what_is_looked_at_only_where_every_choice_needs_them(connection: sqlite3.Connection) -> None:
    codec = Codec()
    append_words(connection, codec, [(1, b"one two"), (2, b"two"), (3, b"three")])
    for wanted, left in {
        "text:one text:two": [1],
        "text:one | text:three": [1, 3],
        "text:two session:s": [1, 2],
        "text:one | session:s": [1, 2, 3],
        "!text:two": [1, 2, 3],
        "session:s stream": [1, 2, 3],
    }.items():
        assert candidates(connection, parse(wanted), [1, 2, 3]) == left, wanted


def test_forgotten_words_are_in_no_block(monkeypatch: pytest.MonkeyPatch, connection: sqlite3.Connection) -> None:
    small_blocks(monkeypatch, 20)
    codec = Codec()
    append_words(connection, codec, [(seq, f"needle {seq}".encode()) for seq in range(1, 10)])
    append_words(connection, codec, [(2, b"a late reply")])
    forget_words(connection, codec, set())
    forget_words(connection, codec, {1, 2, 3})
    assert candidates(connection, ContentTerm("e"), range(1, 10)) == [4, 5, 6, 7, 8, 9]
    forget_words(connection, codec, set(range(10)))
    assert connection.execute("SELECT count(*) FROM words").fetchone() == (0,)


def find(reading: SqliteReader, wanted: Expression, *, before: str = "", limit: int = 500) -> list[Summary]:
    return reading.search(RecordSearch(TABLES, wanted, NOON).newest(before, limit))


def oldest(reading: SqliteReader, wanted: Expression, after: str) -> list[str]:
    return reading.search(RecordSearch(TABLES, wanted, NOON).oldest(after))


@pytest.fixture
def reading(tmp_path: Path) -> SqliteReader:
    sink = SqliteSink(open_database(tmp_path), prices)
    for number in range(450):
        sink.apply(whole(f"x_{number:03}", chat_body(f"{'rare' if number % 100 == 0 else 'often'} é{number}"), "yes"))
    sink.close()
    return SqliteReader(tmp_path / FILE_NAME)


def test_a_filter_that_the_database_cannot_decide_goes_through_all_pages(
    reading: SqliteReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sightline.store.search._PAGE", 100)
    monkeypatch.setattr("sightline.store.search._ROWS", 4)
    monkeypatch.setattr("sightline.store.search._MOST_IDS", 3)
    found = find(reading, parse("text:é40"))
    assert [each.id for each in found] == ["x_409", "x_408", "x_407", "x_406", "x_405", "x_404", "x_403", "x_402",
                                           "x_401", "x_400", "x_040"]  # fmt: skip
    assert [each.id for each in find(reading, parse("text:é40"), before="x_404", limit=2)] == ["x_403", "x_402"]
    after, walked = "", list[str]()
    while ids := oldest(reading, parse("text:é44"), after):
        walked += ids
        after = ids[-1]
    assert walked == ["x_044", *(f"x_{n}" for n in range(440, 450))]
    assert oldest(reading, parse("text:é449"), "x_449") == []
    reading.close()


@pytest.mark.parametrize("few", [1, 8, 1000])
def test_pages_are_in_the_order_of_ids_also_where_exchanges_came_in_another_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, few: int, sink: SqliteSink
) -> None:
    small_blocks(monkeypatch, 300)
    for name, value in {"_PAGE": 7, "_MOST_PAGE": 20, "_ROWS": 3, "_BLOCKS": 1, "_FEW": few}.items():
        monkeypatch.setattr(f"sightline.store.search.{name}", value)
    order = [n * 37 % 100 for n in range(100)]
    for n in order:
        said = f"{'rare' if n % 9 == 0 else 'often'} {n}"
        sink.apply(whole(f"x_{n:03}", chat_body(said), "yes", session="ab"[n % 2]))
    reading = SqliteReader(tmp_path / FILE_NAME)
    for wanted, expected in {
        "text:rare": [f"x_{n:03}" for n in range(0, 100, 9)],
        "text:often": [f"x_{n:03}" for n in range(100) if n % 9],
        "text:often session:a": [f"x_{n:03}" for n in range(0, 100, 2) if n % 9],
        "text:rare session:b": [f"x_{n:03}" for n in range(9, 100, 18)],
        "text:nowhere": [],
    }.items():
        assert oldest(reading, parse(wanted), "") == expected
        found = find(reading, parse(wanted))
        assert [each.id for each in found] == expected[::-1]
    reading.close()


def test_latest_counts_the_whole_list_also_beside_words(reading: SqliteReader) -> None:
    assert [e.id for e in find(reading, parse("latest:60 text:rare"), limit=9)] == ["x_400"]
    assert [e.id for e in find(reading, parse("!latest:60 text:rare"), limit=2)] == ["x_300", "x_200"]
    reading.close()


def test_a_term_about_a_chat_is_refused(reading: SqliteReader) -> None:
    with pytest.raises(Fault, match="place in a list"):
        find(reading, OwnTopic(), limit=1)
    reading.close()


def test_a_record_that_is_no_database_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / "odd").write_bytes(b"no database" * 100)
    with pytest.raises(Fault, match="damaged"):
        SqliteReader(tmp_path / "odd").facts("x_1")
