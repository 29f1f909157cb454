import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.evals.core.graders.finding import GraderFinding
from sightline.evals.core.graders.rubric import Criterion, Misread, Range, read_checklist, read_free, read_points
from sightline.evals.core.result import Check
from sightline.wire.jsontext import encode

TWO = (Criterion("a", "is right", weight=3.0, floor=1.0), Criterion("b", "is short"))
POINTS = (
    Criterion("a", "is right", floor=0.5, ranges=(Range(0, 4, "bad"), Range(6, 10, "good"))),
    Criterion("b", weight=3.0),
)


def test_a_free_judgement_is_a_score_with_what_was_looked_at() -> None:
    found = read_free(
        '{"reasoning": "so", "assertions": [{"text": "a", "passed": true, "evidence": "e"}], "score": 0.7}'
    )
    assert isinstance(found, GraderFinding)
    assert (found.score, found.checks, found.reason) == (0.7, (Check("a", True, "e"),), "so")


@pytest.mark.parametrize(
    "text",
    ['{"score": 1}', '\ufeff {"score": 1}\n', '```json\n{"score": 1}\n```', '```\n{"score": 1}```', '{"score": 1.0}'],
)
def test_one_object_is_read_with_or_without_a_fence(text: str) -> None:
    found = read_free(text)
    assert isinstance(found, GraderFinding)
    assert found.score == 1.0


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "not JSON: expecting value at line 1, column 1"),
        ('The score is {"score": 1}', "not JSON: expecting value at line 1, column 1"),
        ('{"score": 0} {"score": 1}', "not JSON: extra data at line 1, column 14"),
        ('{"score": 0, "score": 1}', "the key 'score' stands in it twice"),
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
    assert read_free(text) == Misread(why)


def checks(*said: object) -> str:
    return encode({"checks": list(said), "overall_reasoning": "all in all"}).decode()


def test_criteria_that_are_met_weigh_and_one_that_must_be_met_decides() -> None:
    short, right = {"id": "b", "satisfied": True, "reasoning": "r"}, {"id": "a", "satisfied": False}
    found = read_checklist(checks(short, right), TWO)
    assert isinstance(found, GraderFinding)
    assert (found.score, found.passed, found.reason) == (0.25, False, "all in all")
    assert found.checks == (Check("[a] is right", False), Check("[b] is short", True, "r"))
    other = read_checklist(checks({"id": "b", "satisfied": False}, {"id": "a", "satisfied": True}), TWO)
    assert isinstance(other, GraderFinding)
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
def test_all_criteria_that_were_asked_for_have_to_be_there_once(said: list[object], why: str) -> None:
    assert read_checklist(checks(*said), TWO) == Misread(why)


def test_a_list_of_criteria_has_to_be_there() -> None:
    assert read_checklist("{}", TWO) == Misread('"checks" must be a list')
    assert read_points("?", TWO) == Misread("not JSON: expecting value at line 1, column 1")


def test_points_are_tenths_and_weigh() -> None:
    found = read_points(checks({"id": "a", "score": 6}, {"id": "b", "score": 8.0}), POINTS)
    assert isinstance(found, GraderFinding)
    assert found.score == pytest.approx((0.6 + 3 * 0.8) / 4)
    assert (found.passed, found.details) == (None, {"raw_scores": {"a": 6, "b": 8}})
    assert [(check.text, check.passed) for check in found.checks] == [
        ("[a] is right: 6/10 (good)", False),
        ("[b] b: 8/10", True),
    ]


def test_too_few_points_where_some_are_needed_decide() -> None:
    found = read_points(checks({"id": "a", "score": 4}, {"id": "b", "score": 10}), POINTS)
    assert isinstance(found, GraderFinding)
    assert (found.passed, found.checks[0].passed) == (False, False)


@pytest.mark.parametrize("score", [5, 11, -1, 6.5, True, "7", None])
def test_points_have_to_be_in_one_of_the_ranges(score: object) -> None:
    found = read_points(checks({"id": "a", "score": score}, {"id": "b", "score": 1}), POINTS)
    assert isinstance(found, Misread)
    assert found.why.startswith("\"score\" of 'a' must be one of its points, not ")


@given(st.text() | st.from_regex(r'\{"score": -?[0-9.]{1,4}\}', fullmatch=True))
def test_whatever_is_said_the_score_is_from_0_to_1_or_there_is_none(text: str) -> None:
    found = read_free(text)
    assert isinstance(found, Misread) or (found.score is not None and 0 <= found.score <= 1)
