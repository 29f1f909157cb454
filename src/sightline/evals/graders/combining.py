"""What all graders of a case say together."""

from collections.abc import Sequence

from sightline.evals.graders.finding import is_sunk, reaches
from sightline.evals.score import CaseScore, Score


def combined(scores: Sequence[Score], threshold: float) -> CaseScore:
    """The weighted mean of those that could tell, held to the threshold.

    One that is required and not reached fails the case with nothing; one that is required and could not tell leaves it
    not graded, unless it has failed anyway. What is not required and could not tell is left out, and that is told.
    """
    graded = [score for score in scores if score.verdict in ("pass", "fail")]
    silent = [score for score in scores if score.verdict == "not_graded"]
    sunk = [score.name for score in graded if is_sunk(score)]
    said = tuple(scores)
    if sunk:
        return CaseScore(verdict="fail", score=0.0, scores=said, reason=f"required and not reached: {', '.join(sunk)}")
    if silent and (not graded or any(score.required is not None for score in silent)):
        return CaseScore(verdict="not_graded", scores=said, reason=_reasons(silent))
    if not graded:
        return CaseScore(verdict="skip", scores=said, reason="there is nothing to grade it by")
    total = sum(score.weight for score in graded)
    if not total:
        return CaseScore(verdict="skip", scores=said, reason="no grader that could tell has any weight")
    mean = sum((score.score or 0.0) * score.weight for score in graded) / total
    mean = min(max(mean, 0.0), 1.0)
    return CaseScore(
        verdict="pass" if reaches(mean, threshold) else "fail",
        score=mean,
        scores=said,
        reason=f"left out: {_reasons(silent)}" if silent else "",
    )


def _reasons(scores: Sequence[Score]) -> str:
    return "; ".join(f"{score.name}: {score.reason}" for score in scores)
