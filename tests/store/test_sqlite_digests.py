from pathlib import Path

from sightline.model.exchange import Held
from sightline.store.delta import Codec
from sightline.store.sqlite_database import open_database
from sightline.store.sqlite_digests import forget_words
from sightline.store.sqlite_sink import SqliteSink
from tests.store.traffic import chat_body, noted, prices, received, whole


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
