from pathlib import Path

import pytest

from sightline.errors import Fault
from sightline.filters.expression import OwnTopic
from sightline.filters.parsing import parse
from sightline.model.exchange import Held
from sightline.store.digest import LONGEST, REQUEST, ReplyText
from sightline.store.entries import BodyEntry, Codec
from sightline.store.sqlite_database import FILE_NAME, SqliteBodies, body_of, body_with_id, open_database
from sightline.store.sqlite_reading import SqliteReader, _trigrams
from sightline.store.sqlite_sink import SqliteSink, forget_words
from sightline.store.summary import Unfinished
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


def test_a_batch_that_fails_leaves_nothing_and_can_be_brought_in_again(tmp_path: Path) -> None:
    connection = open_database(tmp_path)
    sink = SqliteSink(connection, 1, prices)
    connection.execute("ALTER TABLE frames RENAME TO away")
    with pytest.raises(Fault):
        sink.apply(whole("x_1", BODY, "yes"))
    assert connection.execute("SELECT count(*) FROM exchanges").fetchone() == (0,)
    connection.execute("ALTER TABLE away RENAME TO frames")
    sink.apply(whole("x_1", BODY, "yes"))
    assert connection.execute("SELECT id, state, next_n FROM exchanges").fetchall() == [("x_1", "finished", 6)]
    sink.close()


def test_the_exchanges_of_dead_slots_are_taken_over(tmp_path: Path) -> None:
    connection = open_database(tmp_path)
    for slot in (1, 2, 3):
        sink = SqliteSink(connection, slot, prices)
        sink.apply(received(f"x_{slot}", BODY))
        sink.apply(whole(f"x_{slot}_done", BODY, "yes"))
    SqliteSink(connection, 2, prices).apply(noted("x_2", [Held()], first=1))
    heir = SqliteSink(connection, 1, prices)
    assert heir.claim_open_exchanges([1, 2]) == [Unfinished("x_1", 1, "received"), Unfinished("x_2", 2, "held")]
    while heir.tidy():
        pass
    waiting = connection.execute("SELECT id FROM exchanges WHERE todo > 0 ORDER BY id").fetchall()
    assert waiting == [("x_3",), ("x_3_done",)]
    heir.close()


def test_facts_that_come_in_other_pieces_than_before_are_there_once(tmp_path: Path) -> None:
    connection = open_database(tmp_path)
    sink = SqliteSink(connection, 1, prices)
    everything = [*received("x_1", BODY), *answered("x_1", BODY, chat_stream("a", "b", "c"))]
    for cut in range(1, len(everything)):
        sink.apply(everything[:cut])
        SqliteSink(connection, 1, prices).apply(everything[cut - 1 : cut + 1])
    counted = connection.execute("SELECT (SELECT count(*) FROM facts), next_n FROM exchanges").fetchone()
    assert counted == (3, 8)
    sink.close()


def test_an_exchange_whose_reply_was_overheard_is_read_while_it_is_stored(tmp_path: Path) -> None:
    heard, unheard = tmp_path / "heard", tmp_path / "unheard"
    tables = []
    for folder in (heard, unheard):
        connection = open_database(folder)
        sink = SqliteSink(connection, 1, prices)
        for number, words in enumerate([("hi",), ("hi", "yes 0", "and?"), ("other",)]):
            if folder == heard:
                sink.reply_texts.add(
                    ReplyText(f"x_{number}", f"yes {number}", "no id of this dialect's replies counts")
                )
            sink.apply(whole(f"x_{number}", chat_body(*words, system="Be brief."), f"yes {number}"))
        todo = connection.execute("SELECT count(*) FROM exchanges WHERE todo > 0").fetchone()
        assert todo == ((0,) if folder == heard else (3,))
        while sink.tidy():
            pass
        tables.append(
            [
                connection.execute(f"SELECT * FROM {table} ORDER BY 1").fetchall()
                for table in ("exchanges", "facts", "frames", "uses", "texts", "instructions")
            ]
            + [connection.execute("SELECT rowid FROM search WHERE search MATCH '\"yes\"'").fetchall()]
        )
        sink.close()
    assert tables[0] == tables[1]


def test_a_reply_that_was_overheard_can_be_named_by_its_id(tmp_path: Path) -> None:
    connection = open_database(tmp_path)
    sink = SqliteSink(connection, 1, prices)
    for exchange, previous, own in (("x_1", "", "r_1"), ("x_2", "r_1", "r_2")):
        sink.reply_texts.add(ReplyText(exchange, own, own))
        sink.apply(responded(exchange, previous, own))
    assert connection.execute("SELECT previous, reply_id FROM exchanges ORDER BY seq").fetchall() == [
        ("", "r_1"),
        ("x_1", "r_2"),
    ]
    sink.close()


def test_a_reply_that_was_overheard_after_its_request_was_stored_is_not_read_again(tmp_path: Path) -> None:
    connection = open_database(tmp_path)
    sink = SqliteSink(connection, 1, prices)
    sink.apply(received("x_1", BODY))
    sink.reply_texts.add(ReplyText("x_1", "yes"))
    sink.apply(answered("x_1", BODY, chat_stream("no")))
    assert connection.execute("SELECT todo FROM exchanges").fetchone() == (REQUEST,)
    while sink.tidy():
        pass
    found = "SELECT rowid FROM search WHERE search MATCH '\"yes\"'"
    assert connection.execute(found).fetchall() == [(3,)]
    assert connection.execute("SELECT title FROM exchanges").fetchone() == ("hi",)
    sink.close()


def test_what_was_overheard_of_an_exchange_that_is_there_changes_nothing(tmp_path: Path) -> None:
    connection = open_database(tmp_path)
    SqliteSink(connection, 1, prices).apply(whole("x_1", BODY, "yes"))
    sink = SqliteSink(connection, 1, prices)
    sink.reply_texts.add(ReplyText("x_1", "no"))
    sink.apply(whole("x_1", BODY, "yes"))
    assert connection.execute("SELECT count(*), max(next_n) FROM exchanges").fetchone() == (1, 6)
    assert connection.execute("SELECT count(*) FROM texts").fetchone() == (0,)
    sink.close()


@pytest.mark.parametrize("body", [chat_body("long " * LONGEST), b""])
def test_a_request_that_is_long_or_not_at_hand_is_read_later(tmp_path: Path, body: bytes) -> None:
    connection = open_database(tmp_path)
    sink = SqliteSink(connection, 1, prices)
    sink.reply_texts.add(ReplyText("x_1", "yes"))
    entries = whole("x_1", body, "yes")
    sink.apply(entries if body else entries[1:])
    assert connection.execute("SELECT todo, title FROM exchanges").fetchone() == (REQUEST, "")
    sink.close()


def test_a_request_that_cannot_be_read_now_is_left_for_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unreadable(*_: object) -> str:
        raise ValueError("a mistake")

    connection = open_database(tmp_path)
    sink = SqliteSink(connection, 1, prices)
    monkeypatch.setattr("sightline.store.sqlite_sink.SqliteDigests._find_predecessor", unreadable)
    sink.reply_texts.add(ReplyText("x_1", "yes"))
    sink.apply(whole("x_1", BODY, "yes"))
    assert connection.execute("SELECT id, todo FROM exchanges").fetchall() == [("x_1", REQUEST)]
    monkeypatch.undo()
    while sink.tidy():
        pass
    assert connection.execute("SELECT title FROM exchanges").fetchone() == ("hi",)
    sink.close()


TURNS = [chat_body(*(f"{n} " + "word " * 300 for n in range(2 * turn + 1))) for turn in range(8)]
ERRANDS = [chat_body(f"title {turn} " + "other " * 1000, temperature=turn) for turn in range(8)]


def kept(body: bytes) -> BodyEntry:
    return BodyEntry(sha256(body), body, "s")


def test_turns_build_on_turns_although_errands_stand_between(tmp_path: Path) -> None:
    connection = open_database(tmp_path)
    bodies = SqliteBodies(connection, Codec())
    for turn, errand in zip(TURNS, ERRANDS, strict=True):
        bodies.keep(kept(turn))
        bodies.keep(kept(errand))
    alone = {name.hex() for (name,) in connection.execute("SELECT sha256 FROM bodies WHERE base IS NULL")}
    assert [turn for turn, body in enumerate(TURNS) if sha256(body) in alone] == [0]
    for body in TURNS + ERRANDS:
        assert body_of(connection, Codec(), sha256(body)) == body
        assert bodies.body(sha256(body)) == body
    connection.close()


def test_another_process_builds_on_what_is_stored(tmp_path: Path) -> None:
    connection = open_database(tmp_path)
    SqliteBodies(connection, Codec()).keep(kept(TURNS[3]))
    SqliteBodies(connection, Codec()).keep(kept(TURNS[4]))
    assert connection.execute("SELECT base, depth FROM bodies ORDER BY id").fetchall() == [(None, 0), (1, 1)]
    assert SqliteBodies(connection, Codec()).body(sha256(TURNS[4])) == TURNS[4]
    connection.close()


def test_body_pruned_by_another_process_is_not_used_as_a_base(tmp_path: Path) -> None:
    connection = open_database(tmp_path)
    bodies = SqliteBodies(connection, Codec())
    bodies.keep(kept(TURNS[3]))
    connection.execute("DELETE FROM bodies")
    bodies.begin()
    bodies.keep(kept(TURNS[4]))
    assert body_of(connection, Codec(), sha256(TURNS[4])) == TURNS[4]
    assert bodies.number(sha256(TURNS[3])) is None
    connection.close()


def test_a_body_that_is_missing_is_a_fault(tmp_path: Path) -> None:
    connection = open_database(tmp_path)
    with pytest.raises(Fault, match="missing"):
        body_with_id(connection, Codec(), 7)
    connection.close()


def test_reading_is_done_piece_by_piece_and_only_once(tmp_path: Path) -> None:
    connection = open_database(tmp_path)
    sink = SqliteSink(connection, 1, prices)
    for number in range(100):
        sink.apply(whole(f"x_{number}", chat_body(f"word{number}", system="Be brief."), "yes"))
    pieces = 0
    while sink.tidy():
        pieces += 1
    assert pieces > 1
    assert connection.execute("SELECT count(*) FROM texts").fetchone() == (200,)
    briefs = connection.execute("SELECT rowid FROM search WHERE search MATCH '\"rie\"'").fetchall()
    assert briefs == [(2,)]
    connection.execute("UPDATE exchanges SET todo = 3")
    while sink.tidy():
        pass
    assert connection.execute("SELECT count(*) FROM texts").fetchone() == (200,)
    sink.close()


def test_an_exchange_without_its_body_has_no_words_and_stops_nothing(tmp_path: Path) -> None:
    connection = open_database(tmp_path)
    sink = SqliteSink(connection, 1, prices)
    sink.apply(received("x_1", chat_body("lost"))[1:])
    sink.apply(noted("x_2", [Held()]))
    connection.execute("UPDATE exchanges SET todo = 3")
    while sink.tidy():
        pass
    assert connection.execute("SELECT title, thread FROM exchanges").fetchall() == [("", None)] * 2
    sink.close()


def test_forgotten_words_are_out_of_the_index(tmp_path: Path) -> None:
    connection = open_database(tmp_path)
    sink = SqliteSink(connection, 1, prices)
    sink.apply(whole("x_1", chat_body("needle", system="Be brief."), "haystack"))
    while sink.tidy():
        pass
    forget_words(connection, Codec(), 1)
    for three in ("eed", "hay", "rie"):
        assert connection.execute(f"SELECT rowid FROM search WHERE search MATCH '\"{three}\"'").fetchall() == []
    assert connection.execute("SELECT count(*) FROM instructions").fetchone() == (0,)
    sink.close()


@pytest.fixture
def reading(tmp_path: Path) -> SqliteReader:
    sink = SqliteSink(open_database(tmp_path), 1, prices)
    for number in range(450):
        sink.apply(whole(f"x_{number:03}", chat_body(f"{'rare' if number % 100 == 0 else 'often'} é{number}"), "yes"))
    while sink.tidy():
        pass
    sink.close()
    return SqliteReader(tmp_path / FILE_NAME)


def test_a_filter_that_the_database_cannot_decide_goes_through_all_pages(reading: SqliteReader) -> None:
    found = reading.find(parse("text:é40"), now=NOON, before="", limit=500)
    assert [each.id for each in found] == ["x_409", "x_408", "x_407", "x_406", "x_405", "x_404", "x_403", "x_402",
                                           "x_401", "x_400", "x_040"]  # fmt: skip
    assert [each.id for each in reading.find(parse("text:é40"), now=NOON, before="x_404", limit=2)] == [
        "x_403",
        "x_402",
    ]
    after, oldest = "", list[str]()
    while ids := reading.oldest(parse("text:é44"), now=NOON, after=after):
        oldest += ids
        after = ids[-1]
    assert oldest == ["x_044", *(f"x_{n}" for n in range(440, 450))]
    assert reading.oldest(parse("text:é449"), now=NOON, after="x_449") == []
    reading.close()


def test_latest_counts_the_whole_list_also_beside_words(reading: SqliteReader) -> None:
    assert [e.id for e in reading.find(parse("latest:60 text:rare"), now=NOON, before="", limit=9)] == ["x_400"]
    assert [e.id for e in reading.find(parse("!latest:60 text:rare"), now=NOON, before="", limit=2)] == [
        "x_300",
        "x_200",
    ]
    reading.close()


def test_a_term_about_a_chat_is_refused(reading: SqliteReader) -> None:
    with pytest.raises(Fault, match="place in a list"):
        reading.find(OwnTopic(), now=NOON, before="", limit=1)
    reading.close()


def test_a_record_that_is_no_database_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / "odd").write_bytes(b"no database" * 100)
    with pytest.raises(Fault, match="damaged"):
        SqliteReader(tmp_path / "odd").facts("x_1")


@pytest.mark.parametrize(
    ("pattern", "query"),
    [
        ("ab", None),
        ("abc", '"abc"'),
        ("abcd", '"abc" AND "bcd"'),
        ("ab*cde", '"cde"'),
        ("abéde", None),
        ('a"b', '"a""b"'),
    ],
)
def test_index_is_queried_by_trigrams(pattern: str, query: str | None) -> None:
    assert _trigrams(pattern) == query
