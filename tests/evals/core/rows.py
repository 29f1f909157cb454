"""Results to compute with, made of what a test cares about."""

from collections.abc import Sequence

from sightline.evals.core.result import CaseObservation, CaseResult, CaseScore, Score, Status, Verdict
from sightline.evals.core.run_state import EvalBegan, EvalFact, EvalState


def row(
    case: str,
    score: float | None,
    *,
    target: str = "a",
    trial: int = 0,
    group: str = "",
    verdict: Verdict | None = None,
    status: Status | None = None,
    scores: tuple[Score, ...] = (),
    seen: CaseObservation | None = None,
    reason: str = "",
    cached: bool = False,
    suite: str = "demo",
) -> CaseResult:
    """A result with this score; from 0.5 on it passes, and without one it was not graded."""
    told: Verdict = verdict or ("not_graded" if score is None else "pass" if score >= 0.5 else "fail")
    return CaseResult(
        case=case,
        target=target,
        trial=trial,
        suite=suite,
        group=group,
        status=status or ("ok" if told == "pass" else "quality_failure"),
        score=CaseScore(verdict=told, score=score, scores=scores, reason=reason),
        observation=seen or CaseObservation(text=f"answer of {case}"),
        cached=cached,
        at=1_700_000_000.0,
        seconds=0.25,
    )


def failed(case: str, message: str = "connection reset", *, target: str = "a", trial: int = 0) -> CaseResult:
    """A result without an answer."""
    seen = CaseObservation(error=message, error_code="network")
    return row(case, None, target=target, trial=trial, status="execution_error", seen=seen)


def fold_facts(facts: Sequence[EvalFact]) -> EvalState:
    """How a run with these facts stands."""
    assert isinstance(facts[0], EvalBegan)
    standing = EvalState(facts[0])
    for fact in facts:
        standing.add(fact)
    return standing
