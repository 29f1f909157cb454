import pytest

from sightline.evals.core.graders.finding import Grading, GradingSubject
from sightline.evals.core.graders.grade import GRADERS
from sightline.evals.core.graders.grader import prepare_grader, run_grader
from sightline.evals.core.result import CaseObservation
from sightline.evals.core.suite import GraderSpec
from tests.grading_stage import driven, problems, spec


@pytest.mark.parametrize(
    ("kind", "suggestion"),
    [
        ("contians", 'Did you mean "contains"?'),
        ("llm-judge", 'Did you mean "llm-grader"?'),
        ("code_judge", 'Did you mean "code-grader"?'),
    ],
)
def test_a_type_that_is_not_known_is_told_with_the_nearest(kind: str, suggestion: str) -> None:
    (problem,) = problems(spec(kind))
    assert (problem.path, problem.suggestion) == ("assertions[0].type", suggestion)


def test_a_grader_that_cannot_be_run_has_not_graded() -> None:
    for wrong in (spec("contians"), spec("contains")):
        score, _ = driven(
            run_grader(prepare_grader(wrong, "assertions[0]", GRADERS), GradingSubject(CaseObservation(), Grading())),
            [],
        )
        assert score.verdict == "not_graded"
        assert score.reason.startswith("it cannot be run: assertions[0]")


def test_a_grader_without_a_name_is_named_for_what_it_looks_for() -> None:
    assert (
        prepare_grader(GraderSpec(type="contains", name="contains", config={"value": "x"}), "", GRADERS).spec.name
        == "contains-x"
    )
    assert (
        prepare_grader(GraderSpec(type="contains", name="mine", config={"value": "x"}), "", GRADERS).spec.name == "mine"
    )
