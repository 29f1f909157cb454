"""Grading a case: every grader in turn, and what they say together."""

from collections.abc import Generator, Sequence

from sightline.evals.graders.combining import combined
from sightline.evals.graders.ready import graded, ready
from sightline.evals.graders.registry import GRADERS
from sightline.evals.graders.steps import Answer, Step
from sightline.evals.graders.subject import Grading, Subject
from sightline.evals.observation import Observation
from sightline.evals.place import Problem
from sightline.evals.score import CaseScore, Score
from sightline.evals.suite import GraderSpec

WITHOUT = GraderSpec(type="llm-grader", name="llm-grader")
"""The grader of a case that says what it wants and names none."""


def check_graders(specs: Sequence[GraderSpec], path: str = "assertions") -> tuple[Problem, ...]:
    """Everything that is wrong with these graders, before anything is run. They stand in a list at the path."""
    return tuple(
        problem for index, spec in enumerate(specs) for problem in ready(spec, f"{path}[{index}]", GRADERS).problems
    )


def grade(
    specs: Sequence[GraderSpec], observation: Observation, grading: Grading
) -> Generator[Step, Answer, CaseScore]:
    """What a case is worth. An answer that did not come about is not graded, and nothing is asked for it."""
    if observation.error:
        return CaseScore(verdict="not_graded", reason=f"there is no answer: {observation.error}")
    subject = Subject(observation, grading)
    scores: list[Score] = []
    for index, spec in enumerate(specs or _without(grading)):
        scores += [(yield from graded(ready(spec, f"assertions[{index}]", GRADERS), subject))]
    return combined(scores, grading.threshold)


def _without(grading: Grading) -> tuple[GraderSpec, ...]:
    wants = bool(grading.expected) or grading.expected_value is not None
    return (WITHOUT,) if wants or (grading.criteria.strip() and not grading.is_turn) else ()
