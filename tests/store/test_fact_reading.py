"""Facts read by a version that may not know them."""

from pathlib import Path

import msgspec
import pytest

from sightline.errors import Fault
from sightline.model.exchange import Budgeted, Held
from sightline.store.fact_reading import fact_of
from sightline.store.sqlite_database import FILE_NAME, open_database
from sightline.store.sqlite_reading import SqliteReader
from sightline.store.sqlite_sink import SqliteSink
from tests.store.traffic import chat_body, prices, whole

NEWER = msgspec.msgpack.encode({"kind": "sung", "melody": "unheard of"})


def test_a_fact_is_what_was_written_down() -> None:
    for fact in (Held("tool_calls"), Budgeted({"stage": "attempt", "AUT": 7, "selection": [{"id": "a"}]})):
        assert fact_of(msgspec.msgpack.encode(fact)) == fact


def test_a_fact_of_a_newer_version_says_so() -> None:
    with pytest.raises(Fault, match="does not understand: Invalid value 'sung'") as caught:
        fact_of(NEWER)
    assert "newer version" in caught.value.hint


def test_an_exchange_that_a_newer_version_has_written_is_listed_and_says_why_it_cannot_be_shown(tmp_path: Path) -> None:
    connection = open_database(tmp_path)
    sink = SqliteSink(connection, 1, prices)
    sink.apply(whole("x_1", chat_body("hi"), "yes"))
    sink.apply(whole("x_2", chat_body("ho"), "yes"))
    row = "SELECT seq FROM exchanges WHERE id = 'x_2'"
    connection.execute(f"INSERT INTO facts VALUES (({row}), 99, 1.0, ?)", (NEWER,))
    sink.close()
    reading = SqliteReader(tmp_path / FILE_NAME)
    assert len(reading.facts("x_1")) > 1
    with pytest.raises(Fault, match="does not understand"):
        reading.facts("x_2")
    reading.close()
