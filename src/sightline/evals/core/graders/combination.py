"""What all graders of a case say together."""

from collections.abc import Sequence

from sightline.evals.core.graders.finding import is_missing, is_sunk, reaches, reasons
from sightline.evals.core.score import CaseScore, Score


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
