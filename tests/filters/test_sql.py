import json
import sqlite3
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sightline.filters.expression import (
    ContentTerm,
    Expression,
    FlagTerm,
    Latest,
    NumberTerm,
    TextTerm,
    both,
    either,
    negate,
)
from sightline.filters.parsing import parse
from sightline.filters.predicate import Known, Value, matches
from sightline.filters.sql import POSTGRESQL_FOLDED, Column, Columns, Condition, condition, dollar
from tests.filters.expressions import CHAT_TERMS, COUNTS, MARKS, NAMES, NOW, SINGLE_TERMS, SUBJECTS, joined

STORED = ["at", "state", *NAMES, *(name for name in COUNTS if name != "tokens"), *MARKS]
FIELDS = {name: Column(f'"{name}"') for name in STORED} | {
    "tool": Column("value", within="EXISTS (SELECT 1 FROM json_each(tool) WHERE {})")
}
WHOLE = Columns(FIELDS, latest="number > (SELECT count(*) FROM things) - {}")
PARTLY = Columns({"model": FIELDS["model"], "tool": FIELDS["tool"], "input": FIELDS["input"], "at": FIELDS["at"]})


def column(value: Value) -> object:
    return json.dumps(value) if isinstance(value, tuple) else value


def found(told: Condition, subjects: Iterable[Known]) -> set[int]:
    """The numbers, from 1, of the things that a real database finds."""
    database = sqlite3.connect(":memory:")
    try:
        names = ", ".join(f'"{name}"' for name in STORED)
        database.execute(f"CREATE TABLE things (number INTEGER, {names})")
        for number, subject in enumerate(subjects, 1):
            row = [number, *(column(subject.value(name)) for name in STORED)]
            database.execute(f"INSERT INTO things VALUES ({', '.join('?' * len(row))})", row)
        rows = database.execute(f"SELECT number FROM things WHERE {told.sql}", told.parameters)
        return {number for (number,) in rows}
    finally:
        database.close()


def wanted(expression: Expression, subjects: list[Known]) -> set[int]:
    total = len(subjects)

    def holds(number: int, subject: Known) -> bool:
        def belongs(term: object) -> bool:
            return isinstance(term, Latest) and number > total - term.count

        return matches(expression, subject, now=NOW, belongs=belongs)

    return {number for number, subject in enumerate(subjects, 1) if holds(number, subject)}


LATEST = st.builds(Latest, st.integers(0, 5))


@settings(max_examples=300)
@given(joined(SINGLE_TERMS | LATEST), st.lists(SUBJECTS, max_size=5))
def test_the_database_finds_at_least_what_the_predicate_takes(expression: Expression, subjects: list[Known]) -> None:
    told = condition(expression, WHOLE, now=NOW)
    rows, taken = found(told, subjects), wanted(expression, subjects)
    assert rows >= taken
    if told.is_complete:
        assert rows == taken


@settings(max_examples=200)
@given(joined(SINGLE_TERMS | CHAT_TERMS), st.lists(SUBJECTS, max_size=5))
def test_it_never_finds_too_little_with_few_columns(expression: Expression, subjects: list[Known]) -> None:
    told = condition(expression, PARTLY, now=NOW)
    rows, taken = found(told, subjects), wanted(expression, subjects)
    assert rows >= taken
    if told.is_complete:
        assert rows == taken


def sql(text: str, columns: Columns = WHOLE) -> Condition:
    return condition(parse(text), columns, now=NOW)


@pytest.mark.parametrize(
    "text",
    ["", "model:claude-* & tokens>50k & !status:ok", "tool:Bash", "age<7d & cost>0.10", "!stream", "r20"],
)
def test_what_the_issue_names_is_decided_by_the_database(text: str) -> None:
    assert sql(text).is_complete


def test_values_are_parameters() -> None:
    told = sql("model:x'y & session:'; DROP TABLE things'")
    assert "DROP" not in told.sql
    assert told.parameters == ("x'y", "; drop table things")


def test_star_and_empty_value_work_alike_for_single_and_multiple_values() -> None:
    things = [Known(), Known({"fault": "", "tool": ()}), Known({"fault": "quota", "tool": ("Bash",)})]
    assert found(sql("fault:* & tool:*"), things) == {3}
    assert found(sql("fault:'' & tool:''"), things) == {1, 2}


def test_signs_of_like_are_escaped() -> None:
    assert sql("model:50%_*").parameters == ("50!%!_%",)


@pytest.mark.parametrize(
    "term",
    [
        TextTerm("model", "ärger*"), TextTerm("session", "b"), TextTerm("model", "a\0b"),
        TextTerm("model", "a\ud800"), TextTerm("model", "a" * 2001), NumberTerm("tokens", ">", 1),
        NumberTerm("cost", ">", 1), FlagTerm("side"), ContentTerm("words"), Latest(3),
    ],
)  # fmt: skip
def test_what_it_cannot_decide_is_left_open_on_the_safe_side(term: Expression) -> None:
    assert not condition(term, PARTLY, now=NOW).is_complete
    told = condition(negate(term), PARTLY, now=NOW)
    assert not told.is_complete
    assert found(told, [Known()]) == {1}


def test_half_of_an_alternative_is_no_condition() -> None:
    told = condition(either(TextTerm("model", "a"), TextTerm("session", "b")), PARTLY, now=NOW)
    assert found(told, [Known({"model": "x"})]) == {1}
    told = condition(both(TextTerm("model", "a"), TextTerm("session", "b")), PARTLY, now=NOW)
    assert found(told, [Known({"model": "x"}), Known({"model": "A"})]) == {2}


def test_placeholders_are_numbered_for_postgresql() -> None:
    columns = Columns({**FIELDS, "tool": FIELDS["tool"]}, folded=POSTGRESQL_FOLDED, placeholder=dollar)
    told = condition(parse("model:a & (cost>1 | !session:b*)"), columns, now=NOW)
    assert told.sql == (
        '(("model" IS NOT NULL AND lower("model" COLLATE "C") = CAST($1 AS TEXT)) AND '
        '((("cost" IS NOT NULL) AND "cost" > CAST($2 AS DOUBLE PRECISION)) OR '
        '(NOT ("session" IS NOT NULL AND lower("session" COLLATE "C") LIKE CAST($3 AS TEXT) ESCAPE \'!\'))))'
    )
    assert told.parameters == ("a", 1.0, "b%")
