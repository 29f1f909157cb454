from pathlib import Path

import pytest

from sightline.errors import Fault
from sightline.store.delta import Codec
from sightline.store.entries import BodyEntry
from sightline.store.sqlite_bodies import SqliteBodies, body_of, body_with_id
from sightline.store.sqlite_database import open_database
from tests.store.traffic import chat_body, sha256

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


def test_what_somebody_else_pruned_is_not_built_on(tmp_path: Path) -> None:
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
