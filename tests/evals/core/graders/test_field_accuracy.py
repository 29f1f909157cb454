from datetime import date

import pytest

from sightline.evals.core.graders.expectation import (
    ABSENT,
    DEFAULT_FORMATS,
    alike,
    day_of,
    describe_json,
    is_format,
    number_of,
    value_at,
)
from sightline.evals.core.graders.finding import Grading
from sightline.model.json import Json
from sightline.wire.jsontext import encode
from tests.grading_stage import seen, spec, told


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (1, 1.0, True),
        (True, 1, False),
        (0, False, False),
        (None, None, True),
        ({"a": [1, {"b": 2}]}, {"a": [1.0, {"b": 2}]}, True),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ({"a": 1}, {"b": 1}, False),
        ([1, 2], [1], False),
        ([True], [1], False),
        ("1", 1, False),
        ({}, [], False),
    ],
)
def test_values_are_alike_as_json_has_it(one: Json, other: Json, same: bool) -> None:
    assert alike(one, other) is same


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("a.b[1].c", 3), ("a.b[0]", None), ("a.b.1.c", 3), ("a.0", "zero"), ("a.b[2]", ABSENT), ("a.b.x", ABSENT),
        ("a.b[1].c.d", ABSENT), ("x", ABSENT),
    ],
)  # fmt: skip
def test_a_path_leads_to_a_value_or_nowhere(path: str, value: object) -> None:
    assert value_at({"a": {"b": [None, {"c": 3}], "0": "zero"}}, path) == value


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "nothing"), ({}, "an object"), ([1], "a list"), ([], "an empty list"), ("x" * 50, f"'{'x' * 40}…'"),
        (" ", "an empty text"), (1.5, "1.5"), (False, "false"),
    ],
)  # fmt: skip
def test_values_in_few_words(value: Json, words: str) -> None:
    assert describe_json(value) == words


@pytest.mark.parametrize(
    ("text", "formats", "day"),
    [
        ("2025-01-15", DEFAULT_FORMATS, date(2025, 1, 15)),
        ("2025-01-15T23:59:59Z", DEFAULT_FORMATS, date(2025, 1, 15)),
        ("2025-01-15T23:59:59.123+02:00", DEFAULT_FORMATS, date(2025, 1, 15)),
        (" 15-JAN-2025 ", DEFAULT_FORMATS, date(2025, 1, 15)),
        ("15-September-2025", DEFAULT_FORMATS, date(2025, 9, 15)),
        ("01/02/2025", DEFAULT_FORMATS, date(2025, 1, 2)),
        ("13/02/2025", DEFAULT_FORMATS, date(2025, 2, 13)),
        ("01/02/2025", ["DD/MM/YYYY"], date(2025, 2, 1)),
        ("1.2.2025", ["D.M.YYYY"], date(2025, 2, 1)),
        ("January 5, 2025", ["MMMM D, YYYY"], date(2025, 1, 5)),
        ("2025-02-01", ["DD/MM/YYYY"], date(2025, 2, 1)),
        ("31/02/2025", DEFAULT_FORMATS, None),
        ("15-Foo-2025", DEFAULT_FORMATS, None),
        ("soon", DEFAULT_FORMATS, None),
    ],
)
def test_a_day_is_read_by_the_first_format_that_it_fits(text: str, formats: list[str], day: date | None) -> None:
    assert day_of(text, formats) == day


@pytest.mark.parametrize(("text", "is_one"), [("DD.MM.YYYY", True), ("MMM YYYY", False), ("DD/DD/MM/YYYY", False)])
def test_a_format_names_a_year_a_month_and_a_day(text: str, is_one: bool) -> None:
    assert is_format(text) is is_one


def compared(field: dict[str, Json], found: Json, expected: Json) -> float | None:
    grading = Grading(expected_value={"v": expected})
    return seen(
        spec("field-accuracy", fields=[{"path": "v", **field}]), encode({"v": found}).decode(), grading
    ).score.score


@pytest.mark.parametrize(
    ("field", "found", "expected", "score"),
    [
        ({"match": "exact"}, {"a": [1]}, {"a": [1.0]}, 1.0),
        ({"match": "exact"}, "1", 1, 0.0),
        ({}, True, 1, 0.0),
        ({"match": "numeric_tolerance", "tolerance": 0.5}, 10.5, 10, 1.0),
        ({"match": "numeric_tolerance", "tolerance": 0.5}, 10.6, 10, 0.0),
        ({"match": "numeric_tolerance"}, "10 USD", 10, 1.0),
        ({"match": "numeric_tolerance", "tolerance": 0.1, "relative": True}, 109, 100, 1.0),
        ({"match": "numeric_tolerance", "tolerance": 0.1, "relative": True}, 111, 100, 0.0),
        ({"match": "numeric_tolerance", "tolerance": 0.1, "relative": True}, 0.1, 0, 1.0),
        ({"match": "numeric_tolerance", "tolerance": 5}, "ten", 10, 0.0),
        ({"match": "numeric_tolerance", "tolerance": 5}, 10, "ten", 0.0),
        ({"match": "date"}, "15-JAN-2025", "2025-01-15", 1.0),
        ({"match": "date"}, "2025-01-16", "2025-01-15", 0.0),
        ({"match": "date", "formats": ["DD/MM/YYYY"]}, "01/02/2025", "2025-02-01", 1.0),
        ({"match": "date"}, "soon", "2025-01-15", 0.0),
        ({"match": "date"}, "2025-01-15", "soon", 0.0),
    ],
)
def test_how_a_field_is_compared(field: dict[str, Json], found: Json, expected: Json, score: float) -> None:
    assert compared(field, found, expected) == score


FIELDS: list[Json] = [
    {"path": "total", "match": "exact", "weight": 3},
    {"path": "lines[1].amount", "match": "exact"},
    {"path": "note", "match": "exact", "required": False},
    {"path": "unheard", "match": "exact", "weight": 100},
]
EXPECTED = Grading(expected_value={"total": 5, "lines": [{}, {"amount": 2}], "note": "hi"})


def test_fields_weigh_and_those_that_cannot_be_compared_are_left_out() -> None:
    score = seen(spec("field_accuracy", fields=FIELDS), '{"total": 5, "lines": [{}]}', EXPECTED).score
    assert score.score == 0.75
    assert [(check.text, check.passed, check.evidence) for check in score.checks] == [
        ("total", True, ""),
        ("lines[1].amount", False, "missing"),
    ]
    assert score.details == {"not_compared": ["note", "unheard"]}


def test_all_or_nothing() -> None:
    grader = spec("field-accuracy", fields=FIELDS, aggregation="all_or_nothing")
    assert seen(grader, '{"total": 5, "lines": [{}]}', EXPECTED).score.score == 0.0
    assert seen(grader, '{"total": 5, "lines": [0, {"amount": 2}], "note": "hi"}', EXPECTED).score.score == 1.0


@pytest.mark.parametrize("answer", ['```json\n{"total": 5}\n```', 'It is {"total": 5}, I think.'])
def test_json_is_found_in_words_around_it(answer: str) -> None:
    assert seen(spec("field-accuracy", fields=FIELDS[:1]), answer, EXPECTED).score.score == 1.0


def test_an_answer_that_is_no_json_has_no_field_right() -> None:
    score = seen(spec("field-accuracy", fields=FIELDS[:1]), "five", EXPECTED).score
    assert (score.score, score.checks[0].evidence) == (0.0, "the answer is no JSON")


@pytest.mark.parametrize(
    ("fields", "grading", "reason"),
    [
        (FIELDS, Grading(), "the case expects no structured value to compare with"),
        (FIELDS[3:], EXPECTED, "the case expects none of these fields"),
        ([{"path": "total", "weight": 0}], EXPECTED, "the fields that could be compared have no weight"),
    ],
)
def test_where_there_is_nothing_to_compare_it_is_not_graded(fields: Json, grading: Grading, reason: str) -> None:
    score = seen(spec("field-accuracy", fields=fields), '{"total": 5}', grading).score
    assert (score.verdict, score.reason) == ("not_graded", reason)


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (5, 5.0), ("1e3", 1000.0), (" -2.5kg", -2.5), (".5", 0.5), ("1,234", None), ("x", None), (True, None),
        (None, None), (10**400, None), ("1e999", None),
    ],
)  # fmt: skip
def test_what_is_a_number(value: Json, number: float | None) -> None:
    assert number_of(value) == number


def test_invalid_fields_are_reported_with_their_path() -> None:
    fields: list[Json] = [5, {"match": "exat"}, {"path": "..", "match": "date", "formats": ["DD.MM"], "tolerence": 1}]
    assert told(spec("field-accuracy", fields=fields, aggregation="sum")) == [
        ("fields[0]", "fields[0] must be a mapping, not 5"),
        ("fields[1].match", 'match must be one of "date", "exact", "numeric_tolerance", not "exat"'),
        ("fields[1]", 'fields[1] lacks the key "path"'),
        ("fields[2].tolerence", 'fields[2] has no key "tolerence"'),
        ("aggregation", 'aggregation must be one of "all_or_nothing", "weighted_average", not "sum"'),
    ]
    wrong: Json = {"path": "..", "formats": ["DD.MM"]}
    assert told(spec("field-accuracy", fields=[wrong])) == [
        ("fields[0].path", "'..' names no field"),
        ("fields[0].formats", "'DD.MM' is no format"),
    ]
    ((path, _),) = told(spec("field-accuracy", fields=[]))
    assert path == "fields"
