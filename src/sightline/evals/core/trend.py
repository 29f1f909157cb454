"""A suite over several runs: each run's numbers, and what changed on the cases that it shares with the run before."""

from collections.abc import Sequence

import msgspec

from sightline.evals.core.comparison import RunComparison, compare
from sightline.evals.core.result import CaseResult
from sightline.evals.core.statistics.bootstrap import Draw
from sightline.evals.core.statistics.interval import LEVEL
from sightline.evals.core.summary import TargetSummary, summarize
from sightline.evals.core.tally import targets_of


class TrendRun(msgspec.Struct, frozen=True):
    """A run's results; `at` is when it began."""

    id: str
    at: float
    results: tuple[CaseResult, ...]


class Point(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One run on one target. `change` is against the last run before it that had this target."""

    run: str
    at: float
    summary: TargetSummary
    change: RunComparison | None = None


class Trend(msgspec.Struct, frozen=True):
    """The runs of one target, oldest first."""

    target: str
    points: tuple[Point, ...]


def trends(runs: Sequence[TrendRun], draw: Draw, level: float = LEVEL) -> tuple[Trend, ...]:
    """The trends of all targets. A suite that grew is compared on the cases that both runs have, so that a new hard
    case does not look like a loss."""
    ordered = sorted(runs, key=lambda run: (run.at, run.id))
    targets = targets_of(result for run in ordered for result in run.results)
    return tuple(Trend(target, _points(ordered, target, draw, level)) for target in targets)


def _points(runs: Sequence[TrendRun], target: str, draw: Draw, level: float) -> tuple[Point, ...]:
    points: list[Point] = []
    before: TrendRun | None = None
    for run in runs:
        own = [result for result in run.results if result.target == target]
        if not own:
            continue
        change = None
        if before is not None:
            sides = (target, target)
            names = (before.id, run.id)
            change = compare(before.results, own, draw, targets=sides, names=names, level=level, resamples=0)
        points.append(Point(run=run.id, at=run.at, summary=summarize(own, draw, level, resamples=0)[0], change=change))
        before = run
    return tuple(points)
