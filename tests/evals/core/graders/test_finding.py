import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.evals.core.graders.finding import (
    GraderFinding,
    Grading,
    GradingSubject,
    at_once,
    finding_without_score,
    floor_of,
    is_sunk,
    negate,
    of_one,
    reaches,
    score_of,
    share,
)
from sightline.evals.core.result import CaseObservation, Check, Score
from sightline.evals.core.suite import GraderSpec
from tests.grading_stage import driven

PART = st.floats(0, 1)
SPECS = st.builds(
    GraderSpec,
    type=st.just("contains"),
    required=st.none() | st.booleans() | PART,
    min_score=st.none() | PART,
    negate=st.booleans(),
)
FINDINGS = st.builds(
    GraderFinding,
    score=st.none() | PART,
    checks=st.lists(st.builds(Check, st.text(), st.booleans())).map(tuple),
    passed=st.none() | st.booleans(),
)


def plain(**settings: object) -> GraderSpec:
    return GraderSpec(type="contains", **settings)


def test_a_grader_that_asks_for_nothing_is_a_generator_all_the_same() -> None:
    run = at_once(lambda subject: of_one("has words", held=bool(subject.text)))
    finding, steps = driven(run(GradingSubject(CaseObservation(text="x"), Grading())), [])
    assert (finding.score, steps) == (1.0, [])


def test_a_share_is_the_part_of_checks_that_held() -> None:
    assert share([Check("a", True), Check("b", False)]) == 0.5


def test_what_adding_up_fractions_loses_does_not_fail_an_answer() -> None:
    assert sum([1.0, 0.4, 1.0]) / 3 < 0.8
    assert reaches(sum([1.0, 0.4, 1.0]) / 3, 0.8)
    assert not reaches(0.799, 0.8)


@pytest.mark.parametrize(
    ("settings", "floor"),
    [
        ({}, None),
        ({"min_score": 0.5}, None),
        ({"required": 0.7}, 0.7),
        ({"required": 0.7, "min_score": 0.5}, 0.5),
        ({"required": 0.0}, 0.0),
        ({"required": True}, 0.9),
        ({"required": True, "min_score": 0.0}, 0.0),
        ({"required": False}, None),
    ],
)
def test_what_a_case_needs_of_a_grader(settings: dict[str, float], floor: float | None) -> None:
    assert floor_of(plain(**settings), 0.9) == floor


@pytest.mark.parametrize(
    ("settings", "score", "verdict"),
    [
        ({}, 0.8, "pass"),
        ({}, 0.79, "fail"),
        ({"min_score": 0.5}, 0.6, "pass"),
        ({"required": 0.9}, 0.85, "fail"),
        ({"negate": True}, 0.0, "pass"),
        ({"negate": True}, 1.0, "fail"),
        ({"negate": True, "min_score": 0.9}, 0.5, "fail"),
        ({"negate": True, "min_score": 0.9}, 0.05, "pass"),
    ],
)
def test_the_verdict_of_one_grader(settings: dict[str, object], score: float, verdict: str) -> None:
    assert score_of(plain(**settings), GraderFinding(score=score), 0.8).verdict == verdict


def test_a_grader_may_have_its_own_word() -> None:
    assert score_of(plain(), GraderFinding(score=0.9, passed=False), 0.8).verdict == "fail"


def test_what_could_not_be_told_is_neither_zero_nor_a_pass_even_negated() -> None:
    for is_negated in (False, True):
        score = score_of(plain(negate=is_negated, required=0.5), finding_without_score("no judge"), 0.8)
        assert (score.verdict, score.score, score.reason) == ("not_graded", None, "no judge")


def test_a_negated_check_says_so() -> None:
    score = negate(score_of(plain(), of_one("contains x", held=True), 0.8))
    assert score.checks == (Check("not: contains x", False),)
    assert score.score == 0.0


@pytest.mark.parametrize(
    ("score", "sunk"),
    [
        (Score(name="a", type="a", verdict="fail", score=0.4, required=0.5), True),
        (Score(name="a", type="a", verdict="fail", score=0.5, required=0.5), False),
        (Score(name="a", type="a", verdict="fail", score=0.1), False),
        (Score(name="a", type="a", verdict="not_graded", required=0.5), False),
    ],
)
def test_what_is_required_and_not_reached(score: Score, sunk: bool) -> None:
    assert is_sunk(score) is sunk


@given(SPECS, FINDINGS, PART)
def test_a_score_is_from_0_to_1_or_there_is_none(spec: GraderSpec, finding: GraderFinding, threshold: float) -> None:
    score = score_of(spec, finding, threshold)
    assert (score.score is None) is (score.verdict == "not_graded")
    assert score.score is None or 0 <= score.score <= 1


@given(SPECS, FINDINGS, PART)
def test_negating_twice_changes_nothing(spec: GraderSpec, finding: GraderFinding, threshold: float) -> None:
    score = score_of(spec, finding, threshold)
    again = negate(negate(score))
    assert again.score == (score.score if score.score is None else pytest.approx(score.score))
    assert again.verdict == score.verdict
    assert [check.passed for check in again.checks] == [check.passed for check in score.checks]
