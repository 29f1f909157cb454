from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema.validators import Draft202012Validator

from sightline.evals.core.graders.finding import GraderFinding
from sightline.evals.core.graders.grade import GRADERS
from sightline.evals.core.graders.grader import GraderReader
from sightline.evals.core.graders.judge import RubricsConfig
from sightline.evals.core.graders.rubric import (
    FREE,
    Criterion,
    MisreadError,
    PointRange,
    checklist_schema,
    criteria_of,
    points_schema,
    read_checklist,
    read_free,
    read_points,
)
from sightline.evals.core.result import Check
from sightline.model.json import Json, JsonObject
from sightline.wire.jsontext import encode
from tests.grading_stage import spec, told


def point_range(low: int, high: int, outcome: str) -> PointRange:
    return PointRange(score_range=(low, high), outcome=outcome)


BAD = point_range(0, 4, "bad")


def read(*values: Json) -> tuple[Criterion, ...]:
    config = {"criteria": list(values)}
    reader = GraderReader(spec("rubrics", **config), "it", GRADERS)
    found = reader.read(config, RubricsConfig)
    assert found is not None
    criteria = criteria_of(found.criteria, "criteria", reader)
    assert reader.problems == []
    return criteria


def wrong(*values: Json) -> list[tuple[str, str]]:
    found = told(spec("rubrics", criteria=list(values)))
    return [(path.removeprefix("criteria"), message) for path, message in found]


def test_a_sentence_is_a_criterion_that_must_hold() -> None:
    assert read(" is polite ", {"outcome": "is short"}) == (
        Criterion("rubric-1", "is polite", floor=1.0),
        Criterion("rubric-2", "is short", floor=1.0),
    )


def test_a_criterion_says_how_much_it_weighs_and_whether_it_must_hold() -> None:
    (found,) = read({"id": "a", "outcome": "x", "operator": "contradiction", "weight": 2, "required": False})
    assert found == Criterion("a", "x", "contradiction", 2.0)
    assert found.to_json == {"id": "a", "outcome": "x", "weight": 2.0, "operator": "contradiction"}


RANGES: list[Json] = [{"score_range": [0, 4], "outcome": "bad"}, {"score_range": [5, 10], "outcome": "good"}]


@pytest.mark.parametrize("ranges", [RANGES, {"0": "bad", "5": "good"}])
def test_points_are_given_by_ranges_or_by_where_they_begin(ranges: Json) -> None:
    (found,) = read({"id": "a", "score_ranges": ranges})
    assert (found.ranges, found.floor) == ((BAD, point_range(5, 10, "good")), None)
    assert found.to_json["score_ranges"] == RANGES


@pytest.mark.parametrize(
    ("settings", "floor"),
    [({"required": True}, 1.0), ({"min_score": 0.6, "required": True}, 0.6), ({"required_min_score": 7}, 0.7)],
)
def test_the_points_that_a_criterion_must_get(settings: dict[str, Json], floor: float) -> None:
    assert read({"id": "a", "score_ranges": RANGES, **settings})[0].floor == floor


@pytest.mark.parametrize(
    ("values", "problems"),
    [
        ([5], [("[0]", "criteria[0] must be text or a mapping, not 5")]),
        ([" "], [("[0]", "criteria[0] must be text or a mapping, not empty text")]),
        ([{"id": "a"}], [("[0]", 'the criterion lacks the key "outcome"')]),
        (
            [{"outcome": "x", "operator": "corectness"}],
            [("[0].operator", 'operator must be one of "contradiction", "correctness", not "corectness"')],
        ),
        ([{"outcome": "x", "wieght": 1}], [("[0].wieght", 'criteria[0] has no key "wieght"')]),
        (["x", {"id": "rubric-1", "outcome": "y"}], [("[1].id", "there are two criteria 'rubric-1'")]),
        ([{"outcome": "x", "weight": 0}], [("", "no criterion has any weight")]),
        ([{"score_ranges": RANGES[:1] * 2}], [("[0].score_ranges", "two ranges have points in common")]),
        (
            [{"outcome": "x", "score_ranges": [{"score_range": [5], "outcome": "x"}, 5]}],
            [
                (
                    "[0].score_ranges[0].score_range",
                    "score_range must be two whole numbers from 0 to 10, such as [0, 3], not a list",
                ),
                ("[0].score_ranges[1]", "score_ranges[1] must be a mapping, not 5"),
            ],
        ),
        (
            [{"score_ranges": [{"score_range": [5, 4], "outcome": "x"}]}],
            [("[0].score_ranges[0]", "this is no range of points")],
        ),
    ],
)
def test_invalid_criteria_are_reported_with_their_path(values: list[Json], problems: list[tuple[str, str]]) -> None:
    assert wrong(*values) == problems


@pytest.mark.parametrize("bounds", [{"1": "bad"}, {"0": "bad", "x": "good"}, {"00": "bad"}, {}, {"0": "a", "11": "b"}])
def test_where_points_begin_has_to_start_at_0(bounds: Json) -> None:
    assert wrong({"outcome": "x", "score_ranges": bounds}) == [
        ("[0].score_ranges", "these are no points from 0 to 10 with words")
    ]


CRITERIA = (Criterion("a"), Criterion("b"))


def objects(schema: Json) -> Iterator[JsonObject]:
    if isinstance(schema, dict):
        if schema.get("type") == "object":
            yield schema
        for inner in schema.values():
            yield from objects(inner)


@pytest.mark.parametrize("schema", [FREE, checklist_schema(CRITERIA), points_schema(CRITERIA)])
def test_strict_targets_take_the_schema(schema: JsonObject) -> None:
    Draft202012Validator.check_schema(schema)
    for each in objects(schema):
        assert each["additionalProperties"] is False
        assert each["required"] == list(each["properties"])


def test_the_criteria_are_named() -> None:
    valid = Draft202012Validator(points_schema(CRITERIA)).is_valid
    good = {"checks": [{"id": "a", "reasoning": "", "score": 10}], "overall_reasoning": ""}
    assert valid(good)
    assert not valid({**good, "checks": [{"id": "z", "reasoning": "", "score": 10}]})


@pytest.mark.parametrize("schema", [FREE, checklist_schema(CRITERIA), points_schema(CRITERIA)])
def test_numbers_have_no_bounds_because_anthropic_refuses_them(schema: JsonObject) -> None:
    assert "minimum" not in str(schema)
    assert "maximum" not in str(schema)


TWO = (Criterion("a", "is right", weight=3.0, floor=1.0), Criterion("b", "is short"))
POINTS = (
    Criterion("a", "is right", floor=0.5, ranges=(BAD, point_range(6, 10, "good"))),
    Criterion("b", weight=3.0),
)


def test_a_free_judgement_is_a_score_with_what_was_looked_at() -> None:
    text = '{"reasoning": "so", "assertions": [{"text": "a", "passed": true, "evidence": "e"}], "score": 0.7}'
    found = read_free(text)
    assert (found.score, found.checks, found.reason) == (0.7, (Check("a", True, "e"),), "so")


@pytest.mark.parametrize(
    "text",
    ['{"score": 1}', '\ufeff {"score": 1}\n', '```json\n{"score": 1}\n```', '```\n{"score": 1}```', '{"score": 1.0}'],
)
def test_one_object_is_read_with_or_without_a_fence(text: str) -> None:
    assert read_free(text).score == 1.0


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "not JSON: expecting value at line 1, column 1"),
        ('The score is {"score": 1}', "not JSON: expecting value at line 1, column 1"),
        ('{"score": 0} {"score": 1}', "not JSON: extra data at line 1, column 14"),
        ('{"score": 0, "score": 1}', "the key 'score' is in it twice"),
        ("[1]", "one JSON object is expected, not a list"),
        ("{}", '"score" must be a number from 0 to 1, not nothing'),
        ('{"score": true}', '"score" must be a number from 0 to 1, not true'),
        ('{"score": "1"}', "\"score\" must be a number from 0 to 1, not '1'"),
        ('{"score": 1.1}', '"score" must be a number from 0 to 1, not 1.1'),
        ('{"score": -0.1}', '"score" must be a number from 0 to 1, not -0.1'),
        ('{"score": NaN}', "not JSON: no usable number: NaN at line 1, column 11"),
        ('{"score": 1, "assertions": [1]}', '"assertions" must be a list of {"text", "passed", "evidence"}'),
    ],
)
def test_anything_else_is_not_understood(text: str, why: str) -> None:
    assert misread(read_free, text) == why


def misread(read: Callable[..., GraderFinding], *given: object) -> str:
    """Why an answer is not understood."""
    with pytest.raises(MisreadError) as caught:
        read(*given)
    return str(caught.value)


def checks(*said: object) -> str:
    return encode({"checks": list(said), "overall_reasoning": "all in all"}).decode()


def test_criteria_that_are_met_weigh_and_one_that_must_be_met_decides() -> None:
    short, right = {"id": "b", "satisfied": True, "reasoning": "r"}, {"id": "a", "satisfied": False}
    found = read_checklist(checks(short, right), TWO)
    assert (found.score, found.passed, found.reason) == (0.25, False, "all in all")
    assert found.checks == (Check("[a] is right", False), Check("[b] is short", True, "r"))
    other = read_checklist(checks({"id": "b", "satisfied": False}, {"id": "a", "satisfied": True}), TWO)
    assert (other.score, other.passed) == (0.75, None)


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ([{"id": "a", "satisfied": True}], '"checks" has nothing on b'),
        ([{"id": "a"}, {"id": "a"}], "\"checks\" has 'a' twice"),
        ([{"id": "z"}], "\"checks\" has 'z' which was not asked for"),
        ([5], 'each of "checks" must be an object with an "id"'),
        ([{"id": 5}], 'each of "checks" must be an object with an "id"'),
        (
            [{"id": "a", "satisfied": "yes"}, {"id": "b", "satisfied": True}],
            "\"satisfied\" of 'a' must be true or false, not 'yes'",
        ),
    ],
)
def test_every_requested_criterion_must_be_answered_exactly_once(said: list[object], why: str) -> None:
    assert misread(read_checklist, checks(*said), TWO) == why


def test_a_list_of_criteria_has_to_be_there() -> None:
    assert misread(read_checklist, "{}", TWO) == '"checks" must be a list'
    assert misread(read_points, "?", TWO) == "not JSON: expecting value at line 1, column 1"


def test_points_are_tenths_and_weigh() -> None:
    found = read_points(checks({"id": "a", "score": 6}, {"id": "b", "score": 8.0}), POINTS)
    assert found.score == pytest.approx((0.6 + 3 * 0.8) / 4)
    assert (found.passed, found.details) == (None, {"raw_scores": {"a": 6, "b": 8}})
    assert [(check.text, check.passed) for check in found.checks] == [
        ("[a] is right: 6/10 (good)", False),
        ("[b] b: 8/10", True),
    ]


def test_too_few_points_where_some_are_needed_decide() -> None:
    found = read_points(checks({"id": "a", "score": 4}, {"id": "b", "score": 10}), POINTS)
    assert (found.passed, found.checks[0].passed) == (False, False)


@pytest.mark.parametrize("score", [5, 11, -1, 6.5, True, "7", None])
def test_points_have_to_be_in_one_of_the_ranges(score: object) -> None:
    why = misread(read_points, checks({"id": "a", "score": score}, {"id": "b", "score": 1}), POINTS)
    assert why.startswith("\"score\" of 'a' must be one of its points, not ")


@given(st.text() | st.from_regex(r'\{"score": -?[0-9.]{1,4}\}', fullmatch=True))
def test_score_is_from_0_to_1_or_missing_for_any_reply(text: str) -> None:
    with suppress(MisreadError):
        score = read_free(text).score
        assert score is not None
        assert 0 <= score <= 1
