"""Results gathered by case: what was measured of each, and what was not and is therefore no number."""

from collections.abc import Iterable, Sequence
from math import fsum, isfinite
from typing import Literal, TypeAlias

import msgspec

from sightline.evals.core.result import CaseResult

Why: TypeAlias = Literal["error", "not_graded", "skipped"]


class Excluded(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A result that no mean counts, and why."""

    case: str
    target: str
    trial: int = 0
    why: Why
    reason: str = ""


class CaseTally(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One case on one target. `scores` are those of the tries that were graded, of which `passes` passed; `untold`
    are tries that should have had a score and have none."""

    case: str
    group: str = ""
    scores: tuple[float, ...] = ()
    passes: int = 0
    untold: int = 0

    @property
    def graded(self) -> int:
        """How many tries have a score."""
        return len(self.scores)

    @property
    def score(self) -> float:
        """The mean over the tries that have one."""
        return fsum(self.scores) / self.graded

    @property
    def rate(self) -> float:
        """The share of graded tries that passed."""
        return self.passes / self.graded

    @property
    def lowest(self) -> float:
        """The mean score, had everything untold failed with 0."""
        return fsum(self.scores) / (self.graded + self.untold)

    @property
    def highest(self) -> float:
        """The mean score, had everything untold passed with 1."""
        return (fsum(self.scores) + self.untold) / (self.graded + self.untold)


class Tally(msgspec.Struct, frozen=True):
    """The cases in the order in which they first appear, and every result that is left out."""

    cases: tuple[CaseTally, ...]
    excluded: tuple[Excluded, ...]

    @property
    def graded(self) -> tuple[CaseTally, ...]:
        """The cases that have a score."""
        return tuple(case for case in self.cases if case.graded)


def tally_results(results: Iterable[CaseResult]) -> Tally:
    """The results of one target by case. Of two results of the same try the later one counts: it was run again."""
    latest = {result.key: result for result in results}
    cases: dict[str, CaseTally] = {}
    excluded: list[Excluded] = []
    for result in latest.values():
        case = cases.get(result.case, CaseTally(case=result.case, group=result.group))
        counted = score_or_reason(result)
        if isinstance(counted, float):
            passes = case.passes + (result.score.verdict == "pass")
            case = msgspec.structs.replace(case, scores=(*case.scores, counted), passes=passes)
        else:
            excluded.append(_exclude(result, counted))
            # A case that was run and that no grader had anything to say about was not meant to have a score.
            is_meant = result.score.verdict != "skip" or result.status in ("execution_error", "skipped")
            case = msgspec.structs.replace(case, untold=case.untold + is_meant)
        cases[result.case] = case
    tallies = tuple(case for case in cases.values() if case.graded or case.untold)
    return Tally(tallies, tuple(excluded))


def score_or_reason(result: CaseResult) -> float | Why:
    """The score of a result that counts, or why it has none."""
    if result.status == "execution_error":
        return "error"
    if result.status == "skipped" or result.score.verdict == "skip":
        return "skipped"
    score = result.score.score
    # A score that is no number would leave no number of any mean that it is in.
    if result.score.verdict == "not_graded" or score is None or not isfinite(score):
        return "not_graded"
    return float(score)


def bounds_of(cases: Sequence[CaseTally]) -> tuple[float, float] | None:
    """The mean of all cases had everything untold failed, and had it passed; None where nothing is untold."""
    if not any(case.untold for case in cases):
        return None
    return fsum(case.lowest for case in cases) / len(cases), fsum(case.highest for case in cases) / len(cases)


def targets_of(results: Iterable[CaseResult]) -> tuple[str, ...]:
    """The targets in the order in which they first appear."""
    return tuple(dict.fromkeys(result.target for result in results))


def _exclude(result: CaseResult, why: Why) -> Excluded:
    reason = result.observation.error if why == "error" else result.score.reason
    return Excluded(case=result.case, target=result.target, trial=result.trial, why=why, reason=reason)
