"""Grading a case: every grader in turn, and what they say together."""

from collections.abc import Generator, Sequence

from sightline.evals.core.graders.combination import combine_scores
from sightline.evals.core.graders.grader import Grader, prepare_grader, run_grader
from sightline.evals.core.graders.registry import GRADERS
from sightline.evals.core.graders.steps import Answer, Step
from sightline.evals.core.graders.subject import Grading, GradingSubject
from sightline.evals.core.observation import CaseObservation
from sightline.evals.core.place import SuiteProblem
from sightline.evals.core.score import CaseScore, Score
from sightline.evals.core.suite import GraderSpec

WITHOUT = GraderSpec(type="llm-grader", name="llm-grader")
"""The grader of a case that says what it wants and names none."""


_JUDGE = (prepare_grader(WITHOUT, "assertions[0]", GRADERS),)


def check_graders(specs: Sequence[GraderSpec], path: str = "assertions") -> tuple[SuiteProblem, ...]:
    """Everything that is wrong with these graders, before anything is run. They are in a list at the path."""
    return tuple(problem for each in prepare(specs, path) for problem in each.problems)


def prepare(specs: Sequence[GraderSpec], path: str = "assertions") -> tuple[Grader, ...]:
    """These graders with their configuration read, to be used for every trial."""
    return tuple(prepare_grader(spec, f"{path}[{index}]", GRADERS) for index, spec in enumerate(specs))


def grade(
    graders: Sequence[Grader], observation: CaseObservation, grading: Grading
) -> Generator[Step, Answer, CaseScore]:
    """What a case is worth. An answer that did not come about is not graded, and nothing is asked for it.

    A case that says what is wanted of it and has no graders is judged by that.
    """
    if observation.error:
        return CaseScore(verdict="not_graded", reason=f"there is no answer: {observation.error}")
    subject = GradingSubject(observation, grading)
    scores: list[Score] = []
    for grader in graders or _without(grading):
        scores += [(yield from run_grader(grader, subject))]
    return combine_scores(scores, grading.threshold)


def _without(grading: Grading) -> tuple[Grader, ...]:
    wants = bool(grading.expected) or grading.expected_value is not None
    return _JUDGE if wants or (grading.criteria.strip() and not grading.is_turn) else ()
