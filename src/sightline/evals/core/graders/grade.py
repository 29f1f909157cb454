"""Grading a case: every grader in turn, and what they say together."""

from collections.abc import Generator, Sequence

from sightline.evals.core.graders.combining import combined
from sightline.evals.core.graders.ready import Ready, graded, ready
from sightline.evals.core.graders.registry import GRADERS
from sightline.evals.core.graders.steps import Answer, Step
from sightline.evals.core.graders.subject import Grading, Subject
from sightline.evals.core.observation import Observation
from sightline.evals.core.place import Problem
from sightline.evals.core.score import CaseScore, Score
from sightline.evals.core.suite import GraderSpec

WITHOUT = GraderSpec(type="llm-grader", name="llm-grader")
"""The grader of a case that says what it wants and names none."""


_JUDGE = (ready(WITHOUT, "assertions[0]", GRADERS),)


def check_graders(specs: Sequence[GraderSpec], path: str = "assertions") -> tuple[Problem, ...]:
    """Everything that is wrong with these graders, before anything is run. They are in a list at the path."""
    return tuple(problem for each in prepare(specs, path) for problem in each.problems)


def prepare(specs: Sequence[GraderSpec], path: str = "assertions") -> tuple[Ready, ...]:
    """These graders with their configuration read, to be used for every trial."""
    return tuple(ready(spec, f"{path}[{index}]", GRADERS) for index, spec in enumerate(specs))


def grade(graders: Sequence[Ready], observation: Observation, grading: Grading) -> Generator[Step, Answer, CaseScore]:
    """What a case is worth. An answer that did not come about is not graded, and nothing is asked for it.

    A case that says what is wanted of it and has no graders is judged by that.
    """
    if observation.error:
        return CaseScore(verdict="not_graded", reason=f"there is no answer: {observation.error}")
    subject = Subject(observation, grading)
    scores: list[Score] = []
    for grader in graders or _without(grading):
        scores += [(yield from graded(grader, subject))]
    return combined(scores, grading.threshold)


def _without(grading: Grading) -> tuple[Ready, ...]:
    wants = bool(grading.expected) or grading.expected_value is not None
    return _JUDGE if wants or (grading.criteria.strip() and not grading.is_turn) else ()
