from itertools import pairwise
from random import Random

import pytest

from sightline.errors import Code, Fault
from sightline.model.exchange import AttemptStarted, ExchangeFinished, Held
from sightline.model.usage import Usage
from sightline.store.entries import Entry
from sightline.store.interruption import Unfinished
from sightline.store.postgres_connection import UNFIT, address_of
from sightline.store.postgres_reading import facts_of
from sightline.store.postgres_sink import PostgresSink
from tests.postgres_server import execute, fetch
from tests.store.postgres_tables import connected, sink, tables
from tests.store.traffic import NOON, chat_body, noted, prices, received, whole

ALL = ("exchanges", "facts", "frames", "bodies", "uses", "texts")


def contents(url: str) -> dict[str, list[tuple[object, ...]]]:
    """Every row, without the numbers that the server gives."""
    found = {}
    for table in ALL:
        rows = fetch(url, f"SELECT * FROM sightline.{table}")
        found[table] = sorted(tuple(str(value) for key, value in row.items() if key != "number") for row in rows)
    return found


@pytest.mark.parametrize("seed", range(3))
def test_what_is_brought_in_again_in_other_pieces_changes_nothing(seed: int) -> None:
    records = [whole(f"x_{number}", chat_body(f"{number}"), "a", "b", "c") for number in range(6)]
    cuts = sorted({0, len(records), *(Random(seed).randrange(7) for _ in range(3))})
    with tables() as url, sink(url) as target:
        target.apply([entry for record in records for entry in record])
        before = contents(url)
        for start, stop in pairwise(cuts):
            target.apply([entry for record in records[start:stop] for entry in record])
        target.apply([])
        assert contents(url) == before


def test_a_batch_that_fails_leaves_nothing() -> None:
    entries = whole("x_1", chat_body("hi"), "yes")
    with tables() as url, sink(url) as target:
        execute(url, "ALTER TABLE sightline.uses ADD CONSTRAINT never CHECK (exchange <> 'x_1')")
        with pytest.raises(UNFIT):
            target.apply(entries)
        assert not any(contents(url).values())
        execute(url, "ALTER TABLE sightline.uses DROP CONSTRAINT never")
        target.apply(entries)
        assert [each for each in entries if hasattr(each, "fact")] == connected(
            url, lambda connection: facts_of(connection, "x_1")
        )


def test_numbers_and_names_that_no_column_takes_do_not_stop_the_record() -> None:
    usage = Usage(input_tokens=2**64 - 1, output_tokens=-(2**63))
    end = ExchangeFinished("stop", usage=usage, tools=("a\0b", "c"), warning="x\0y")
    with tables() as url, sink(url) as target:
        target.apply([*received("x_1", chat_body("hi"), client="\0"), *noted("x_1", [end], first=1)])
        (row,) = fetch(
            url, "SELECT input_tokens, output_tokens, tools::json AS tools, message FROM sightline.exchanges"
        )
        assert (row["input_tokens"], row["output_tokens"]) == (2**63 - 1, 1 - 2**63)
        assert row["message"] == "x\ufffdy"
        assert fetch(url, "SELECT 1 FROM sightline.exchanges, json_array_elements_text(tools::json)")


def test_what_dead_processes_of_this_folder_left_open_is_taken_over_and_others_is_not() -> None:
    def begun(exchange: str, *more: object) -> list[Entry]:
        return [*received(exchange, chat_body(exchange)), *noted(exchange, more, first=1)]  # type: ignore[arg-type]

    with tables() as url, sink(url, slot=1) as dead, sink(url, slot=2) as alive, sink(url, "two", slot=1) as elsewhere:
        dead.apply([*begun("x_1"), *begun("x_2", Held()), *begun("x_3", AttemptStarted(1, "acme", ""))])
        dead.apply(whole("x_4", chat_body("done"), "yes"))
        alive.apply(begun("x_5"))
        elsewhere.apply(begun("x_6"))
        with sink(url, slot=3) as later:
            left = [Unfinished("x_1", 1, "received"), Unfinished("x_2", 2, "held"), Unfinished("x_3", 2, "sending")]
            assert later.claim_open_exchanges([3, 1]) == left
            assert dead.claim_open_exchanges([1]) == []
            while later.tidy():
                pass
        assert alive.claim_open_exchanges([2]) == [Unfinished("x_5", 1, "received")]
        rows = fetch(url, "SELECT id FROM sightline.exchanges WHERE todo > 0 ORDER BY id")
        assert [row["id"] for row in rows] == ["x_5", "x_6"]


def test_a_server_that_is_not_there_is_a_fault_and_closing_is_not() -> None:
    nowhere = PostgresSink(
        address_of("postgresql://a:secret@127.0.0.1:1/r"), replica="one", slot=1, prices=prices, now=lambda: NOON
    )
    try:
        with pytest.raises(Fault) as caught:
            nowhere.apply(whole("x_1", chat_body("hi"), "yes"))
        assert caught.value.code is Code.NETWORK
        assert "secret" not in caught.value.message
    finally:
        nowhere.close()
    unused = PostgresSink(address_of("postgresql:///r"), replica="one", slot=1, prices=prices, now=lambda: NOON)
    unused.close()
