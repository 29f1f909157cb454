"""Grading a case: every grader in turn, and what they say together."""

from collections.abc import Generator, Sequence

from sightline.evals.core.graders.finding import is_missing, is_sunk, reaches, reasons
from sightline.evals.core.graders.grader import Grader, prepare_grader, run_grader
from sightline.evals.core.graders.registry import GRADERS
from sightline.evals.core.graders.steps import Answer, Step
from sightline.evals.core.graders.subject import Grading, GradingSubject
from sightline.evals.core.observation import CaseObservation
from sightline.evals.core.place import SuiteProblem
from sightline.evals.core.score import CaseScore, Score
from sightline.evals.core.suite import GraderSpec


def combine_scores(scores: Sequence[Score], threshold: float) -> CaseScore:
    """The weighted mean of the scores, held to the threshold.

    A grader that could not run leaves the case not graded, whatever the others found: nothing is known of what it would
    have found. Only one without weight that is not required is left out, and that is told. One that is required and not
    reached fails the case with 0.
    """
    said = tuple(scores)
    graded = [score for score in scores if score.verdict in ("pass", "fail")]
    sunk = [score.name for score in graded if is_sunk(score)]
    unreached = f"required and not reached: {', '.join(sunk)}" if sunk else ""
    missing = [score for score in scores if is_missing(score, score.weight)]
    if missing:
        why = "; ".join(filter(None, (reasons(missing), unreached)))
        return CaseScore(verdict="not_graded", scores=said, reason=why)
    if sunk:
        return CaseScore(verdict="fail", score=0.0, scores=said, reason=unreached)
    silent = [score for score in scores if score.verdict == "not_graded"]
    left_out = f"left out: {reasons(silent)}" if silent else ""
    total = sum(score.weight for score in graded)
    if not total:
        why = "no grader has any weight" if said else "there is nothing to grade it by"
        return CaseScore(verdict="skip", scores=said, reason="; ".join(filter(None, (why, left_out))))
    mean = sum((score.score or 0.0) * score.weight for score in graded) / total
    mean = min(max(mean, 0.0), 1.0)
    return CaseScore(verdict="pass" if reaches(mean, threshold) else "fail", score=mean, scores=said, reason=left_out)


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
