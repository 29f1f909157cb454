from pathlib import Path

import pytest

from sightline.errors import Fault
from sightline.model.exchange import Held
from sightline.store.interruption import Unfinished
from sightline.store.pending_reading import REQUEST
from sightline.store.reply_texts import LONGEST, ReplyText
from sightline.store.sqlite_database import open_database
from sightline.store.sqlite_sink import SqliteSink
from tests.store.traffic import answered, chat_body, chat_stream, noted, prices, received, responded, whole

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
                sink.said.tell(ReplyText(f"x_{number}", f"yes {number}", "no id of this dialect's replies counts"))
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
        sink.said.tell(ReplyText(exchange, own, own))
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
    sink.said.tell(ReplyText("x_1", "yes"))
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
    sink.said.tell(ReplyText("x_1", "no"))
    sink.apply(whole("x_1", BODY, "yes"))
    assert connection.execute("SELECT count(*), max(next_n) FROM exchanges").fetchone() == (1, 6)
    assert connection.execute("SELECT count(*) FROM texts").fetchone() == (0,)
    sink.close()


@pytest.mark.parametrize("body", [chat_body("long " * LONGEST), b""])
def test_a_request_that_is_long_or_not_at_hand_is_read_later(tmp_path: Path, body: bytes) -> None:
    connection = open_database(tmp_path)
    sink = SqliteSink(connection, 1, prices)
    sink.said.tell(ReplyText("x_1", "yes"))
    entries = whole("x_1", body, "yes")
    sink.apply(entries if body else entries[1:])
    assert connection.execute("SELECT todo, title FROM exchanges").fetchone() == (REQUEST, "")
    sink.close()


def test_a_request_that_cannot_be_read_now_is_left_for_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unreadable(*_: object) -> str:
        raise ValueError("a mistake")

    connection = open_database(tmp_path)
    sink = SqliteSink(connection, 1, prices)
    monkeypatch.setattr("sightline.store.sqlite_digests.SqliteDigests._continued", unreadable)
    sink.said.tell(ReplyText("x_1", "yes"))
    sink.apply(whole("x_1", BODY, "yes"))
    assert connection.execute("SELECT id, todo FROM exchanges").fetchall() == [("x_1", REQUEST)]
    monkeypatch.undo()
    while sink.tidy():
        pass
    assert connection.execute("SELECT title FROM exchanges").fetchone() == ("hi",)
    sink.close()
