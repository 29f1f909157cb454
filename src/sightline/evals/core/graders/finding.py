"""What a grader found, and the score that it becomes by the common settings: negation, floors, weight."""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import msgspec

from sightline.evals.core.graders.steps import Answer, Step
from sightline.evals.core.graders.subject import GradingSubject
from sightline.evals.core.score import Check, Score, Verdict
from sightline.evals.core.suite import GraderSpec
from sightline.model.json import JsonObject
from sightline.model.usage import Usage

_NOT = "not: "
_ROUNDING = 1e-9
_OPPOSITE: dict[Verdict, Verdict] = {"pass": "fail", "fail": "pass", "skip": "skip", "not_graded": "not_graded"}


@dataclass(frozen=True, slots=True)
class GradingCost:
    """What grading took: of judges, and in all. None is not known."""

    usage: Usage | None = None
    cost: float | None = None
    seconds: float | None = None
    exchanges: tuple[str, ...] = ()


UNSPENT = GradingCost()


@dataclass(frozen=True, slots=True, kw_only=True)
class GraderFinding:
    """A score from 0 to 1, or None with the `reason` why there is none.

    `passed` is the grader's own word where it is not the score that decides.
    """

    score: float | None = None
    checks: tuple[Check, ...] = ()
    reason: str = ""
    passed: bool | None = None
    scores: tuple[Score, ...] = ()
    details: JsonObject = field(default_factory=dict)
    spent: GradingCost = UNSPENT


Asking: TypeAlias = Generator[Step, Answer, GraderFinding]
Run: TypeAlias = Callable[[GradingSubject], Asking]
"""A grader whose configuration has been read."""


def at_once(look: Callable[[GradingSubject], GraderFinding]) -> Run:
    """A grader that asks for nothing."""

    def run(subject: GradingSubject) -> Asking:
        yield from ()
        return look(subject)

    return run


def finding_without_score(reason: str, spent: GradingCost = UNSPENT) -> GraderFinding:
    """That it could not be told, and why."""
    return GraderFinding(reason=reason, spent=spent)


def of_one(text: str, *, held: bool, evidence: str = "") -> GraderFinding:
    """All or nothing by one check."""
    return GraderFinding(score=float(held), checks=(Check(text, held, evidence),))


def share(checks: Sequence[Check]) -> float:
    """The part of the checks that held, of at least one."""
    return sum(check.passed for check in checks) / len(checks)


def reaches(score: float, floor: float) -> bool:
    """Whether a score is at least a floor; what adding up fractions loses does not count."""
    return score >= floor - _ROUNDING


def floor_of(spec: GraderSpec, threshold: float) -> float | None:
    """The score that the case needs of this grader, None where it needs none."""
    if spec.required is None or spec.required is False:
        return None
    if spec.min_score is not None:
        return spec.min_score
    return threshold if spec.required is True else spec.required


def score_of(spec: GraderSpec, finding: GraderFinding, threshold: float) -> Score:
    """The score of a finding. Negation turns what the grader found round, and then a floor is held to the result."""
    floor = floor_of(spec, threshold)
    own = spec.min_score if spec.min_score is not None else floor
    score = Score(
        name=spec.name or spec.type,
        type=spec.type,
        verdict=_verdict(finding, threshold if own is None or spec.negate else own),
        score=finding.score,
        weight=spec.weight,
        required=floor,
        checks=finding.checks,
        reason=finding.reason,
        scores=finding.scores,
        usage=finding.spent.usage,
        cost=finding.spent.cost,
        seconds=finding.spent.seconds,
        exchanges=finding.spent.exchanges,
        details=finding.details,
    )
    if not spec.negate:
        return score
    score = negate(score)
    if own is not None and score.score is not None and not reaches(score.score, own):
        return msgspec.structs.replace(score, verdict="fail")
    return score


def is_sunk(score: Score) -> bool:
    """Whether a score is required and not reached."""
    return score.required is not None and score.score is not None and not reaches(score.score, score.required)


def is_missing(score: Score, weight: float) -> bool:
    """Whether a verdict is impossible without this score: it has weight or is required, and could not be given."""
    return score.verdict == "not_graded" and (weight > 0 or score.required is not None)


def reasons(scores: Sequence[Score]) -> str:
    """Why each of these could not grade."""
    return "; ".join(f"{score.name}: {score.reason}" for score in scores)


def negate(score: Score) -> Score:
    """The opposite: what passed fails, and what could not be told still cannot. Twice is as it was."""
    return msgspec.structs.replace(
        score,
        verdict=_OPPOSITE[score.verdict],
        score=None if score.score is None else 1.0 - score.score,
        checks=tuple(Check(_opposite(check.text), not check.passed, check.evidence) for check in score.checks),
    )


def _opposite(text: str) -> str:
    return text.removeprefix(_NOT) if text.startswith(_NOT) else f"{_NOT}{text}"


def _verdict(finding: GraderFinding, floor: float) -> Verdict:
    if finding.score is None:
        return "not_graded"
    passed = reaches(finding.score, floor) if finding.passed is None else finding.passed
    return "pass" if passed else "fail"
