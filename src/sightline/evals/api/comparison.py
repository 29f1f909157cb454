"""Two runs side by side, and a suite over its runs, as the page draws them."""

from collections.abc import Mapping, Sequence

from sightline.errors import Code, Fault
from sightline.evals.api.figures import within
from sightline.evals.api.shapes import (
    ComparedCase,
    ComparedSide,
    CompareShown,
    Distributions,
    Ends,
    PassShown,
    TrendPoint,
)
from sightline.evals.core.comparison import RunComparison, compare
from sightline.evals.core.result import CaseResult
from sightline.evals.core.statistics.intervals import Draw
from sightline.evals.core.statistics.paired import Paired
from sightline.evals.core.summary import TrendRun, trends
from sightline.evals.core.tally import targets_of
from sightline.evals.service.evaluation import RunSnapshot


def compare_runs(first: RunSnapshot, second: RunSnapshot, targets: tuple[str, str], draw: Draw) -> CompareShown:
    """The second run against the first. A target that is not named has to be the only one."""
    sides = first.standing.results, second.standing.results
    chosen = (_target(first.run, sides[0], targets[0], "a"), _target(second.run, sides[1], targets[1], "b"))
    names = chosen if chosen[0] != chosen[1] else ("A", "B")
    comparison = compare(*sides, draw, targets=chosen, names=names)
    scores = comparison.scores
    difference = None if scores is None else scores.difference
    interval = None if difference is None else difference.interval
    bounds = comparison.bounds
    return CompareShown(
        a=_side(first, chosen[0]),
        b=_side(second, chosen[1]),
        level=comparison.level,
        finding=comparison.finding,
        said=comparison.said,
        mean_a=comparison.before_mean,
        mean_b=comparison.after_mean,
        difference=None if difference is None else difference.value,
        stderr=None if difference is None else difference.error,
        low=None if interval is None else interval.low,
        high=None if interval is None else interval.high,
        p=None if scores is None else scores.permutation.p,
        test="" if scores is None else _test(scores),
        sign_p=None if scores is None else scores.sign_p,
        bootstrap=None
        if scores is None or scores.bootstrap is None
        else Ends(scores.bootstrap.low, scores.bootstrap.high),
        wins=0 if scores is None else scores.wins,
        losses=0 if scores is None else scores.losses,
        ties=0 if scores is None else scores.ties,
        pairs=len(comparison.pairs),
        groups=0 if difference is None else difference.clusters,
        gain=comparison.gain,
        smallest=None if scores is None else scores.smallest,
        needed=None if scores is None else scores.needed,
        bounds=None if bounds is None else Ends(*bounds),
        passing=_passing(comparison.verdicts),
        cases=_cases(comparison, *(_exchanges(*each) for each in zip(sides, chosen, strict=True))),
        distributions=Distributions(
            tuple(pair.before.score for pair in comparison.pairs), tuple(pair.after.score for pair in comparison.pairs)
        ),
        only_a=comparison.only_before,
        only_b=comparison.only_after,
        unpaired=comparison.unpaired,
        excluded=comparison.excluded,
    )


def trend_of(runs: Sequence[RunSnapshot], draw: Draw) -> list[TrendPoint]:
    """All points, the oldest first."""
    told = [TrendRun(each.run, each.standing.began.at, each.standing.results) for each in runs]
    points: list[TrendPoint] = []
    for trend in trends(told, draw):
        for point in trend.points:
            mean = point.summary.score
            low, high = within(None if mean is None else mean.interval)
            points.append(
                TrendPoint(
                    run=point.run,
                    at=point.at,
                    target=trend.target,
                    mean=None if mean is None else mean.value,
                    low=low,
                    high=high,
                    pass_rate=point.summary.pass_rate,
                    results=point.summary.results,
                    finding=None if point.change is None else point.change.finding,
                    change="" if point.change is None else point.change.said[0],
                )
            )
    return sorted(points, key=lambda point: (point.at, point.run))


def _target(run: str, results: Sequence[CaseResult], wanted: str, side: str) -> str:
    known = targets_of(results)
    if wanted:
        return wanted
    if len(known) == 1:
        return known[0]
    if not known:
        message = f"the run {run} has no results yet"
        raise Fault(Code.USAGE, message, hint="Wait for some, or compare another.", status=409)
    message = f"the run {run} has several targets: {', '.join(known)}"
    raise Fault(Code.USAGE, message, hint=f"Say which with target_{side}.", status=400)


def _side(shown: RunSnapshot, target: str) -> ComparedSide:
    began = shown.standing.began
    return ComparedSide(run=shown.run, name=began.suite.name, target=target, at=began.at)


def _test(scores: Paired) -> str:
    test = scores.permutation
    drawn = f", {test.count} drawn" if test.method == "monte_carlo" else ", exact"
    return f"paired permutation test{drawn}"


def _passing(verdicts: Paired | None) -> PassShown | None:
    if verdicts is None:
        return None
    interval = verdicts.difference.interval
    return PassShown(
        difference=verdicts.difference.value,
        low=None if interval is None else interval.low,
        high=None if interval is None else interval.high,
        p=verdicts.sign_p,
        wins=verdicts.wins,
        losses=verdicts.losses,
    )


def _exchanges(results: Sequence[CaseResult], target: str) -> dict[str, str]:
    """The last exchange of each case's first try, to be looked at."""
    own = (result for result in reversed(results) if result.target == target and result.observation.exchanges)
    return {result.case: result.observation.exchanges[-1] for result in own}


def _cases(comparison: RunComparison, first: Mapping[str, str], second: Mapping[str, str]) -> tuple[ComparedCase, ...]:
    return tuple(
        ComparedCase(
            case=pair.case,
            group=pair.group,
            a=pair.before.score,
            b=pair.after.score,
            difference=pair.difference,
            outcome=pair.outcome,
            flip=pair.flip,
            is_same_request=pair.is_same_request,
            is_same_answer=pair.is_same_answer,
            exchange_a=first.get(pair.case, ""),
            exchange_b=second.get(pair.case, ""),
            graders=pair.graders,
        )
        for pair in comparison.pairs
    )
