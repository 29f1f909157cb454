from pathlib import Path

import pytest

from sightline.errors import Fault
from sightline.model.exchange import Held
from sightline.store.interruption import Unfinished
from sightline.store.sqlite_database import opened
from sightline.store.sqlite_sink import SqliteSink
from tests.store.traffic import answered, chat_body, chat_stream, noted, prices, received, whole

BODY = chat_body("hi")


def test_a_batch_that_fails_leaves_nothing_and_can_be_brought_in_again(tmp_path: Path) -> None:
    connection = opened(tmp_path)
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
    connection = opened(tmp_path)
    for slot in (1, 2, 3):
        sink = SqliteSink(connection, slot, prices)
        sink.apply(received(f"x_{slot}", BODY))
        sink.apply(whole(f"x_{slot}_done", BODY, "yes"))
    SqliteSink(connection, 2, prices).apply(noted("x_2", [Held()], first=1))
    heir = SqliteSink(connection, 1, prices)
    assert heir.unfinished([1, 2]) == [Unfinished("x_1", 1, "received"), Unfinished("x_2", 2, "held")]
    while heir.tidy():
        pass
    waiting = connection.execute("SELECT id FROM exchanges WHERE todo > 0 ORDER BY id").fetchall()
    assert waiting == [("x_3",), ("x_3_done",)]
    heir.close()


def test_facts_that_come_in_other_pieces_than_before_are_there_once(tmp_path: Path) -> None:
    connection = opened(tmp_path)
    sink = SqliteSink(connection, 1, prices)
    everything = [*received("x_1", BODY), *answered("x_1", BODY, chat_stream("a", "b", "c"))]
    for cut in range(1, len(everything)):
        sink.apply(everything[:cut])
        SqliteSink(connection, 1, prices).apply(everything[cut - 1 : cut + 1])
    counted = connection.execute("SELECT (SELECT count(*) FROM facts), next_n FROM exchanges").fetchone()
    assert counted == (3, 8)
    sink.close()
