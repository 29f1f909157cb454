import msgspec

from sightline.filters.fields import FIELDS as KNOWN
from sightline.filters.fields import SUMS
from sightline.store.columns import FIELDS, FOLDED, NAMES, ExchangeSubject, row_of, storable, summary_in
from sightline.store.summary import Summary

FULL = Summary(
    id="x_1", at=1.0, state="finished", dialect="anthropic", provider="acme", model="m", session="s", client="c",
    path="/p", status=200, finish="stop", fault="", message="odd", is_stream=True, input_tokens=1, output_tokens=2,
    cached_tokens=3, cost=0.5, losses=4, attempts=5, tools=("Bash", "Read"), first_byte=0.1, elapsed=0.2, origin="x_0",
    previous="x_00", is_side=True, title="hi",
)  # fmt: skip


def test_the_columns_are_the_fields_of_a_summary() -> None:
    assert sorted(NAMES) == sorted(field.name for field in msgspec.structs.fields(Summary))


def test_a_row_is_a_summary_again() -> None:
    row = ["x_1", *row_of(FULL), "x_00", 1, "hi"]
    assert summary_in(row) == FULL


def test_texts_hold_no_character_that_a_database_ends_them_at() -> None:
    row = row_of(msgspec.structs.replace(FULL, message="a\0b", tools=("x\0",)))
    assert row[FOLDED.index("message")] == storable("a\0b") == "a\ufffdb"
    assert storable("plain") == "plain"


def test_a_filter_gets_every_field_that_it_may_ask_for() -> None:
    subject = ExchangeSubject(FULL, lambda: ["Hello there", "bye"])
    derived = {*SUMS, "ok", "error", "text", "age", "date", "latest"}
    of_chats = {"topic", "stars", "flag", "attachments", "context"}
    assert {field.name for field in KNOWN} - derived - of_chats == set(FIELDS) - {"at"}
    assert subject.value("tool") == ("Bash", "Read")
    assert (subject.value("time"), subject.value("first"), subject.value("side")) == (0.2, 0.1, True)
    assert subject.value("stars") is None


def test_a_status_that_has_not_come_is_none() -> None:
    assert ExchangeSubject(FULL, list).value("status") == 200
    assert ExchangeSubject(Summary(id="x", at=0.0), list).value("status") is None


def test_words_of_either_side_are_said() -> None:
    subject = ExchangeSubject(FULL, lambda: ["Hello there", "bye"])
    assert subject.says("HELLO")
    assert subject.says("bye")
    assert not subject.says("therebye")
