"""Comparisons of two sets of results on the same cases, pair by pair, and trends over several runs of a suite."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from math import fsum
from typing import Literal

import msgspec

from sightline.catalog.problem import nearest, quote_word
from sightline.errors import Code, Fault
from sightline.evals.core.result import CaseResult, latest_of
from sightline.evals.core.statistics.intervals import LEVEL, RESAMPLES, Draw
from sightline.evals.core.statistics.paired import (
    NOISE,
    Finding,
    Paired,
    compare_pairs,
    describe_difference,
    describe_excluded,
    finding_of,
)
from sightline.evals.core.summary import CaseTally, Excluded, Tally, TargetSummary, summarize, tally_results, targets_of


class GraderPair(msgspec.Struct, frozen=True):
    """One grader's scores on both sides, each the mean over the trials; None if it gave none."""

    name: str
    before: float | None
    after: float | None


class CasePair(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One case on both sides. `is_same_request` and `is_same_answer` say whether all trials agree; None: unknown."""

    case: str
    group: str = ""
    before: CaseTally
    after: CaseTally
    difference: float
    outcome: Literal["win", "loss", "tie"]
    flip: Literal["", "now_passes", "now_fails"] = ""
    graders: tuple[GraderPair, ...] = ()
    is_same_request: bool | None = None
    is_same_answer: bool = False


class RunComparison(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """`after` compared with `before`. `only_before` and `only_after` are cases that the other side does not have at
    all, `unpaired` those that one side could not grade; `excluded` are all results that no number counts.

    `verdicts` compares how often cases pass, and its `sign_p` is McNemar's exact test if each was tried once. `bounds`
    are the mean difference if everything without a score had gone against `after`, and if it had gone in its favour.
    `gain` is Hake's: the share of the missing points that was gained.
    """

    before: str
    after: str
    targets: tuple[str, str]
    level: float
    finding: Finding
    scores: Paired | None = None
    verdicts: Paired | None = None
    before_mean: float | None = None
    after_mean: float | None = None
    gain: float | None = None
    pairs: tuple[CasePair, ...] = ()
    only_before: tuple[str, ...] = ()
    only_after: tuple[str, ...] = ()
    unpaired: tuple[str, ...] = ()
    excluded: tuple[Excluded, ...] = ()
    bounds: tuple[float, float] | None = None
    said: tuple[str, ...] = ()


def compare(
    before: Sequence[CaseResult],
    after: Sequence[CaseResult],
    draw: Draw,
    *,
    targets: tuple[str, str],
    names: tuple[str, str],
    tolerance: float = 0.0,
    resamples: int = RESAMPLES,
) -> RunComparison:
    """Compare a target of one run with a target of another, or of the same run. Cases are matched by their ids, and
    where a side has several suites with the same id, by their suites too. The trials of a case are averaged. `names`
    are for the sentences."""
    first_side, second_side = _of_target(before, targets[0]), _of_target(after, targets[1])
    # Other cases are matched by their ids alone, because a suite may have been renamed.
    repeated = _duplicate_ids(first_side) | _duplicate_ids(second_side)
    sides = _name_with_suites(first_side, repeated), _name_with_suites(second_side, repeated)
    tallies = tally_results(sides[0]), tally_results(sides[1])
    pairs = tuple(_pairs(sides, tallies, tolerance))
    groups = [pair.group for pair in pairs]
    first, second = [pair.before.score for pair in pairs], [pair.after.score for pair in pairs]
    scores = compare_pairs(first, second, draw, groups=groups, tolerance=tolerance, resamples=resamples)
    rates = [pair.before.rate for pair in pairs], [pair.after.rate for pair in pairs]
    excluded = (*tallies[0].excluded, *tallies[1].excluded)
    had = [{result.case: None for result in side} for side in sides]
    bounds = _bounds(tallies)
    ends = (min((*first, *second), default=0.0), max((*first, *second), default=0.0))
    only = [tuple(case for case in had[0] if case not in had[1]), tuple(case for case in had[1] if case not in had[0])]
    sentences = (
        describe_difference(scores, *names, ends),
        _describe_missing(only[0], names[0]),
        _describe_missing(only[1], names[1]),
        _describe_excluded(excluded, bounds, names),
    )
    known = {pair.case for pair in pairs}
    return RunComparison(
        before=names[0],
        after=names[1],
        targets=targets,
        level=LEVEL,
        finding=finding_of(scores),
        scores=scores,
        verdicts=compare_pairs(*rates, draw, groups=groups, resamples=0),
        before_mean=fsum(first) / len(first) if pairs else None,
        after_mean=fsum(second) / len(second) if pairs else None,
        gain=_gain(first, second),
        pairs=pairs,
        only_before=only[0],
        only_after=only[1],
        unpaired=tuple(case for case in had[0] if case in had[1] and case not in known),
        excluded=excluded,
        bounds=bounds,
        said=tuple(sentence for sentence in sentences if sentence),
    )


def choose_target(results: Sequence[CaseResult], wanted: str, side: str, option: str) -> str:
    """The target to compare on one side: the one that `option` names, or the only one. Raises a `Fault` if there are
    several, or no results."""
    targets = targets_of(results)
    if wanted or len(targets) == 1:
        return wanted or targets[0]
    if not targets:
        hint = "Run the suite first, or wait for some."
        raise Fault(Code.USAGE, f"{side} has no results yet", hint=hint, status=409)
    message = f"{side} has several targets: {', '.join(targets)}"
    raise Fault(Code.USAGE, message, hint=f"Say which with {option}.", status=400)


def _of_target(results: Sequence[CaseResult], target: str) -> list[CaseResult]:
    found = [result for result in latest_of(results) if result.target == target]
    if not found:
        raise Fault(
            Code.USAGE,
            f"the run has no target {quote_word(target)}",
            hint=nearest(target, targets_of(results), "It has"),
        )
    return found


def name_with_suite(result: CaseResult) -> str:
    """The name of a case whose id is in several suites."""
    return f"{result.suite}: {result.case}"


def _duplicate_ids(results: Sequence[CaseResult]) -> set[str]:
    """The ids that cases of several suites have."""
    ids = Counter(case for _, case in {result.suite_case for result in results})
    return {case for case, count in ids.items() if count > 1}


def _name_with_suites(results: Sequence[CaseResult], ids: set[str]) -> list[CaseResult]:
    """The results; those of cases with these ids have the suite in the name of the case."""
    return [
        msgspec.structs.replace(result, case=name_with_suite(result)) if result.case in ids else result
        for result in results
    ]


def _pairs(
    sides: tuple[Sequence[CaseResult], Sequence[CaseResult]], tallies: tuple[Tally, Tally], tolerance: float
) -> Iterable[CasePair]:
    later = {case.case: case for case in tallies[1].graded}
    results = [_by_case(side) for side in sides]
    for first in tallies[0].graded:
        second = later.get(first.case)
        if second is not None:
            yield _pair(first, second, (results[0][first.case], results[1][first.case]), max(tolerance, NOISE))


def _pair(
    first: CaseTally, second: CaseTally, results: tuple[list[CaseResult], list[CaseResult]], tolerance: float
) -> CasePair:
    difference = second.score - first.score
    requests = [{result.observation.request_sha256 for result in side} for side in results]
    answers = [{result.observation.text for result in side} for side in results]
    is_same_request = None if "" in requests[0] | requests[1] else requests[0] == requests[1]
    return CasePair(
        case=first.case,
        group=second.group or first.group,
        before=first,
        after=second,
        difference=difference,
        outcome="tie" if abs(difference) <= tolerance else "win" if difference > 0 else "loss",
        flip=_flip(first, second),
        graders=_graders(results),
        is_same_request=is_same_request,
        is_same_answer=answers[0] == answers[1],
    )


def _flip(first: CaseTally, second: CaseTally) -> Literal["", "now_passes", "now_fails"]:
    """Whether a case that always failed now always passes, or the other way round. A trial without a score could have
    gone either way."""
    if first.untold or second.untold:
        return ""
    if first.passes == 0 and second.passes == second.graded:
        return "now_passes"
    return "now_fails" if first.passes == first.graded and second.passes == 0 else ""


def _graders(results: tuple[list[CaseResult], list[CaseResult]]) -> tuple[GraderPair, ...]:
    given: dict[str, tuple[list[float], list[float]]] = {}
    for place, side in enumerate(results):
        for result in side:
            for score in result.score.scores:
                values = given.setdefault(score.name, ([], []))[place]
                if score.score is not None and score.verdict in ("pass", "fail"):
                    values.append(score.score)
    return tuple(GraderPair(name, _mean(one), _mean(other)) for name, (one, other) in given.items())


def _mean(values: Sequence[float]) -> float | None:
    return fsum(values) / len(values) if values else None


def _by_case(results: Sequence[CaseResult]) -> dict[str, list[CaseResult]]:
    gathered: dict[str, list[CaseResult]] = {}
    for result in results:
        gathered.setdefault(result.case, []).append(result)
    return gathered


def _bounds(tallies: tuple[Tally, Tally]) -> tuple[float, float] | None:
    """The bounds over the cases that both sides have, including those that one of them could not grade."""
    later = {case.case: case for case in tallies[1].cases}
    both = [(case, later[case.case]) for case in tallies[0].cases if case.case in later]
    if not any(first.untold or second.untold for first, second in both):
        return None
    low = fsum(second.lowest - first.highest for first, second in both) / len(both)
    return low, fsum(second.highest - first.lowest for first, second in both) / len(both)


def _gain(first: Sequence[float], second: Sequence[float]) -> float | None:
    missing = fsum(1 - score for score in first)
    return (fsum(second) - fsum(first)) / missing if missing > NOISE else None


def _describe_missing(cases: Sequence[str], has: str) -> str:
    if not cases:
        return ""
    return f"Only {has} has {', '.join(cases[:5])}{', …' if len(cases) > 5 else ''}: not compared."


def _describe_excluded(excluded: Sequence[Excluded], bounds: tuple[float, float] | None, names: tuple[str, str]) -> str:
    text = describe_excluded([each.why for each in excluded], None, "")
    if bounds is None:
        return text
    low, high = bounds
    # Both bounds are worst cases: everything without a score goes against one side, then against the other.
    return f"{text} Had all of it gone against {names[1]}, the difference would be {low:+.3f}; for it, {high:+.3f}."


class TrendRun(msgspec.Struct, frozen=True):
    """A run's results; `at` is when it began."""

    id: str
    at: float
    results: tuple[CaseResult, ...]


class Point(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One run on one target. `change` is the comparison with the previous run that had this target."""

    target: str
    run: str
    at: float
    summary: TargetSummary
    change: RunComparison | None = None


def trend_points(runs: Sequence[TrendRun], draw: Draw) -> Iterator[Point]:
    """The runs on each of their targets, oldest first. A suite that grew is compared on the cases that both runs have,
    so that a new hard case does not look like a regression."""
    before: dict[str, TrendRun] = {}
    for run in sorted(runs, key=lambda run: (run.at, run.id)):
        for summary in summarize(run.results, draw, resamples=0):
            target, change = summary.target, None
            if target in before:
                last = before[target]
                names, targets = (last.id, run.id), (target, target)
                change = compare(last.results, run.results, draw, targets=targets, names=names, resamples=0)
            before[target] = run
            yield Point(target=target, run=run.id, at=run.at, summary=summary, change=change)
