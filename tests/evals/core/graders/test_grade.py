import pytest

from sightline.evals.core.graders.finding import Grading
from sightline.evals.core.graders.grade import check_graders, grade, prepare
from sightline.evals.core.graders.steps import Judge
from sightline.evals.core.result import CaseObservation
from sightline.evals.core.suite import CaseMessage, GraderSpec, SuitePlace
from tests.grading_stage import BROKEN, HERE, case, driven, says, spec

CONTAINS = spec("contains", value="Paris")


def test_a_case_is_graded_by_all_its_graders_in_turn() -> None:
    found = case([CONTAINS, spec("llm-grader", weight=3.0)], "Paris", answers=[says({"score": 0.6})])
    assert (found.verdict, found.score) == ("fail", pytest.approx(0.7))
    assert [score.name for score in found.scores] == ["contains-Paris", "llm-grader"]


def test_an_answer_that_did_not_come_about_is_not_graded_and_nothing_is_asked() -> None:
    observation = CaseObservation(error="429 for an hour", error_code="rate_limited")
    score, steps = driven(grade(prepare([CONTAINS, spec("llm-grader")]), observation, Grading()), [])
    assert (score.verdict, score.score, steps) == ("not_graded", None, [])
    assert score.reason == "there is no answer: 429 for an hour"


def test_a_grader_that_could_not_run_leaves_the_case_not_graded_unless_it_has_no_weight() -> None:
    for judge in (spec("llm-grader"), spec("llm-grader", required=True), spec("llm-grader", weight=0.0, required=0.0)):
        assert case([CONTAINS, judge], "Paris", answers=[BROKEN]).verdict == "not_graded"
    assert case([CONTAINS, spec("llm-grader", weight=0.0)], "Paris", answers=[BROKEN]).verdict == "pass"


def test_graders_are_read_once_and_used_for_every_trial() -> None:
    graders = prepare([CONTAINS])
    for text, verdict in (("Paris", "pass"), ("Rome", "fail"), ("Paris", "pass")):
        score, _ = driven(grade(graders, CaseObservation(text=text), Grading()), [])
        assert score.verdict == verdict


def test_the_threshold_is_that_of_the_case() -> None:
    half = [CONTAINS, spec("contains", value="Rome")]
    assert case(half, "Paris").verdict == "fail"
    assert case(half, "Paris", Grading(threshold=0.5)).verdict == "pass"


@pytest.mark.parametrize(
    ("grading", "is_judged"),
    [
        (Grading(criteria="be right"), True),
        (Grading(criteria="be right", is_turn=True), False),
        (Grading(expected_value="four", is_turn=True), True),
        (Grading(expected=(CaseMessage(role="assistant"),)), True),
        (Grading(), False),
    ],
)
def test_a_case_without_graders_is_judged_by_what_it_wants(grading: Grading, is_judged: bool) -> None:
    score, steps = driven(grade([], CaseObservation(text="4"), grading), [says({"score": 1})] if is_judged else [])
    assert [type(step) for step in steps] == ([Judge] if is_judged else [])
    assert score.verdict == ("pass" if is_judged else "skip")


def test_everything_that_is_wrong_is_told_before_anything_is_run() -> None:
    wrong = [CONTAINS, GraderSpec(type="contains", config={"valeu": "x"}, place=SuitePlace("suite.yaml", 9, 3))]
    assert [
        (str(each.place), each.path, each.message, each.suggestion)
        for each in check_graders(wrong, "tests[0].assertions")
    ] == [
        (
            "suite.yaml:9:3",
            "tests[0].assertions[1].valeu",
            'the grader contains has no key "valeu"',
            'Did you mean "value"?',
        ),
        (
            "suite.yaml:9:3",
            "tests[0].assertions[1]",
            'the grader contains lacks the key "value"',
            "Give the text to look for, in quotes.",
        ),
    ]
    assert check_graders([CONTAINS]) == ()
    assert HERE.line == 7
