"""Results grouped by case, and the numbers of a run for each target."""

from collections.abc import Iterable, Sequence
from math import fsum, isfinite
from typing import Literal, TypeAlias

import msgspec

from sightline.evals.core.result import CaseResult, Score, latest_of
from sightline.evals.core.statistics.intervals import (
    RESAMPLES,
    Draw,
    Interval,
    Mean,
    bootstrap_interval,
    mean_of,
    pass_at_k,
    pass_hat_k,
    quantile_of,
    wilson_interval,
)
from sightline.evals.core.statistics.paired import (
    describe_estimates,
    describe_excluded,
    describe_mean,
    describe_unknown_costs,
)
from sightline.model.reply import Usage

Why: TypeAlias = Literal["error", "not_graded", "skipped"]


class Excluded(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A result that is not counted in any mean, and why."""

    case: str
    target: str
    trial: int = 0
    why: Why
    reason: str = ""


class CaseTally(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One case on one target. `scores` are those of the graded trials, of which `passes` passed; `untold` counts trials
    that should have a score and have none."""

    case: str
    group: str = ""
    scores: tuple[float, ...] = ()
    passes: int = 0
    untold: int = 0

    @property
    def graded(self) -> int:
        """How many trials have a score."""
        return len(self.scores)

    @property
    def score(self) -> float:
        """The mean score of the graded trials."""
        return fsum(self.scores) / self.graded

    @property
    def rate(self) -> float:
        """The share of graded trials that passed."""
        return self.passes / self.graded

    @property
    def lowest(self) -> float:
        """The mean score if all trials without a score had failed with 0."""
        return fsum(self.scores) / (self.graded + self.untold)

    @property
    def highest(self) -> float:
        """The mean score if all trials without a score had passed with 1."""
        return (fsum(self.scores) + self.untold) / (self.graded + self.untold)


class Tally(msgspec.Struct, frozen=True):
    """The cases in the order in which they first appear, and every result that is left out."""

    cases: tuple[CaseTally, ...]
    excluded: tuple[Excluded, ...]

    @property
    def graded(self) -> tuple[CaseTally, ...]:
        return tuple(case for case in self.cases if case.graded)


def tally_results(results: Iterable[CaseResult]) -> Tally:
    """The results of one target by case. Of two results of the same trial the later counts: it was run again."""
    cases: dict[tuple[str, str], CaseTally] = {}
    excluded: list[Excluded] = []
    for result in latest_of(results):
        case = cases.get(result.suite_case, CaseTally(case=result.case, group=result.group))
        counted = score_or_reason(result)
        if isinstance(counted, float):
            passes = case.passes + (result.score.verdict == "pass")
            case = msgspec.structs.replace(case, scores=(*case.scores, counted), passes=passes)
        else:
            excluded.append(_exclude(result, counted))
            # A case that was run, and to which no grader applied, was not meant to have a score.
            is_meant = result.score.verdict != "skip" or result.status in ("execution_error", "skipped")
            case = msgspec.structs.replace(case, untold=case.untold + is_meant)
        cases[result.suite_case] = case
    tallies = tuple(case for case in cases.values() if case.graded or case.untold)
    return Tally(tallies, tuple(excluded))


def score_or_reason(result: CaseResult) -> float | Why:
    """The score of a result that counts, or the reason why it has none."""
    if result.status == "execution_error":
        return "error"
    if result.status == "skipped" or result.score.verdict == "skip":
        return "skipped"
    score = result.score.score
    # One score that is not a number would make every mean with it not a number.
    if result.score.verdict == "not_graded" or score is None or not isfinite(score):
        return "not_graded"
    return float(score)


def bounds_of(cases: Sequence[CaseTally]) -> tuple[float, float] | None:
    """The mean of all cases if every missing score were 0, and if it were 1; None if no score is missing."""
    if not any(case.untold for case in cases):
        return None
    return fsum(case.lowest for case in cases) / len(cases), fsum(case.highest for case in cases) / len(cases)


def targets_of(results: Iterable[CaseResult]) -> tuple[str, ...]:
    """The targets in the order in which they first appear."""
    return tuple(dict.fromkeys(result.target for result in results))


def _exclude(result: CaseResult, why: Why) -> Excluded:
    reason = result.observation.error if why == "error" else result.score.reason
    return Excluded(case=result.case, target=result.target, trial=result.trial, why=why, reason=reason)


class Amount(msgspec.Struct, frozen=True):
    """A sum. `known` counts the parts with an amount, `unknown` those without one, which is not 0: with one of them
    there is no `total`, and `at_least` is the sum of the known parts."""

    total: float | None
    known: int
    unknown: int
    at_least: float

    def __add__(self, other: "Amount") -> "Amount":
        total = None if self.total is None or other.total is None else self.total + other.total
        return Amount(total, self.known + other.known, self.unknown + other.unknown, self.at_least + other.at_least)


class Seconds(msgspec.Struct, frozen=True):
    """How long answers took, without those from the cache."""

    mean: float
    median: float
    p95: float
    total: float


class Tries(msgspec.Struct, frozen=True):
    """The probabilities that at least one of `k` trials passes (pass@k) and that all do (pass^k), as means over
    cases."""

    k: int
    any: Mean
    all: Mean


class GraderSummary(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One grader over all cases. `not_graded` counts how often it should have graded and could not."""

    name: str
    type: str
    mean: Mean | None
    graded: int
    passes: int
    not_graded: int = 0


class TargetSummary(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """All results of one target. Means are over cases, each being the mean of its trials, and clustered by group.

    `bounds` are the mean score if everything that is left out had failed, and if it had passed. The interval of the
    pass rate is Wilson's if every case was tried once and has no group, and Student's otherwise. `cost` is what was
    spent on answers, cached ones being free, `grading_cost` what was spent on judges.
    """

    target: str
    cases: int
    results: int
    cached: int = 0
    passed: int = 0
    failed: int = 0
    pass_rate: float | None = None
    pass_interval: Interval | None = None
    score: Mean | None = None
    score_bootstrap: Interval | None = None
    tries: tuple[Tries, ...] = ()
    bounds: tuple[float, float] | None = None
    excluded: tuple[Excluded, ...] = ()
    input_tokens: Amount
    output_tokens: Amount
    cost: Amount
    grading_cost: Amount
    seconds: Seconds | None = None
    graders: tuple[GraderSummary, ...] = ()
    said: tuple[str, ...] = ()

    def count_excluded(self, why: Why) -> int:
        return sum(each.why == why for each in self.excluded)


def summarize(results: Sequence[CaseResult], draw: Draw, resamples: int = RESAMPLES) -> tuple[TargetSummary, ...]:
    """The summaries of all targets, in order of appearance. If `resamples` is 0, there is no bootstrap interval."""
    latest = latest_of(results)
    return tuple(
        _of_target(target, [each for each in latest if each.target == target], draw, resamples)
        for target in targets_of(latest)
    )


def _of_target(target: str, results: list[CaseResult], draw: Draw, resamples: int) -> TargetSummary:
    tally = tally_results(results)
    graded = tally.graded
    groups = [case.group for case in graded]
    scores = [case.score for case in graded]
    mean = mean_of(scores, groups)
    rates = mean_of([case.rate for case in graded], groups)
    bounds = bounds_of(tally.cases)
    bootstrap = bootstrap_interval(scores, draw, groups=groups, resamples=resamples)
    ran = [result for result in results if result.status != "skipped"]
    fresh = [result for result in ran if not result.cached]
    usages = [result.observation.usage or Usage() for result in ran if was_sent(result)]
    cost = amount_of(result.observation.cost for result in fresh if was_sent(result))
    grading = amount_of(cost for each in ran for cost in judging_costs(each))
    excluded = describe_excluded([each.why for each in tally.excluded], bounds, "the mean score")
    return TargetSummary(
        target=target,
        cases=len({result.suite_case for result in results}),
        results=len(results),
        cached=len(ran) - len(fresh),
        passed=sum(case.passes for case in graded),
        failed=sum(case.graded - case.passes for case in graded),
        pass_rate=None if rates is None else rates.value,
        pass_interval=None if rates is None else _pass_interval(rates, graded),
        score=mean,
        score_bootstrap=bootstrap,
        tries=_tries(graded, groups),
        bounds=bounds,
        excluded=tally.excluded,
        input_tokens=amount_of(usage.input_tokens for usage in usages),
        output_tokens=amount_of(usage.output_tokens for usage in usages),
        cost=cost,
        grading_cost=grading,
        seconds=_seconds([each.observation.seconds for each in fresh if each.observation.seconds is not None]),
        graders=_by_grader(results),
        said=tuple(
            sentence
            for sentence in (
                describe_mean(mean),
                excluded,
                describe_unknown_costs(cost.unknown, cost.known, "answer"),
                describe_estimates(sum(usage.is_estimated for usage in usages), len(usages)),
                describe_unknown_costs(grading.unknown, grading.known, "judgement"),
            )
            if sentence
        ),
    )


def _pass_interval(rates: Mean, graded: Sequence[CaseTally]) -> Interval | None:
    is_plain = rates.clusters == rates.count and all(case.graded == 1 for case in graded)
    if is_plain or (rates.interval is None and rates.value in (0, 1)):
        return wilson_interval(round(rates.value * rates.clusters), rates.clusters)
    return rates.interval


def _tries(graded: Sequence[CaseTally], groups: Sequence[str]) -> tuple[Tries, ...]:
    """pass@k and pass^k for every k from 2, since one trial gives the pass rate, up to the fewest trials of a case."""
    found: list[Tries] = []
    for k in range(2, min((case.graded for case in graded), default=0) + 1):
        one = mean_of([pass_at_k(case.passes, case.graded, k) for case in graded], groups)
        every = mean_of([pass_hat_k(case.passes, case.graded, k) for case in graded], groups)
        assert one is not None
        assert every is not None  # there are cases
        found.append(Tries(k, one, every))
    return tuple(found)


def amount_of(values: Iterable[float | None]) -> Amount:
    """The sum of the values, as far as they are known."""
    all_values = list(values)
    known = [value for value in all_values if value is not None]
    unknown, at_least = len(all_values) - len(known), fsum(known)
    return Amount(None if unknown else at_least, len(known), unknown, at_least)


def costs_of(result: CaseResult) -> tuple[float | None, ...]:
    """The costs of a result: of its answer, unless that is from the cache, and of each judge. None: not known."""
    answers = () if result.cached or result.status == "skipped" else (result.observation.cost,)
    return (*answers, *judging_costs(result))


def judging_costs(result: CaseResult) -> tuple[float | None, ...]:
    """The cost of each grader that called a model. A composite grader reports only its own cost."""
    return tuple(score.cost for score in _judges(_graders(result)))


def was_sent(result: CaseResult) -> bool:
    """Whether there can be tokens and a cost: False for a case that failed before anything was sent, which is known to
    have cost nothing. If a machine was lost, it is unknown what it sent, so its case counts."""
    seen = result.observation
    return not (seen.error and seen.requests == 0 and seen.cost == 0)


def _seconds(values: Sequence[float]) -> Seconds | None:
    if not values:
        return None
    return Seconds(fsum(values) / len(values), quantile_of(values, 0.5), quantile_of(values, 0.95), fsum(values))


def _graders(result: CaseResult) -> tuple[Score, ...]:
    """The scores of the graders of the case and of its turns."""
    return (*result.score.scores, *(score for turn in result.score.turns for score in turn.scores))


def _judges(scores: Iterable[Score]) -> Iterable[Score]:
    """The scores of graders that called a model, including those inside other graders."""
    for score in scores:
        if score.exchanges or score.usage is not None or score.cost is not None:
            yield score
        yield from _judges(score.scores)


def _by_grader(results: Sequence[CaseResult]) -> tuple[GraderSummary, ...]:
    by_grader: dict[tuple[str, str], list[tuple[CaseResult, Score]]] = {}
    for result in results:
        for score in _graders(result):
            by_grader.setdefault((score.name, score.type), []).append((result, score))
    return tuple(_summarize_grader(name, kind, scores) for (name, kind), scores in by_grader.items())


def _summarize_grader(name: str, kind: str, scores: Sequence[tuple[CaseResult, Score]]) -> GraderSummary:
    graded = [(result, score.score) for result, score in scores if score.verdict in ("pass", "fail")]
    by_case: dict[tuple[str, str], list[float]] = {}
    groups: dict[tuple[str, str], str] = {}
    for result, value in graded:
        if value is not None:
            by_case.setdefault(result.suite_case, []).append(value)
            groups[result.suite_case] = result.group
    means = [fsum(values) / len(values) for values in by_case.values()]
    return GraderSummary(
        name=name,
        type=kind,
        mean=mean_of(means, [groups[case] for case in by_case]),
        graded=len(graded),
        passes=sum(score.verdict == "pass" for _, score in scores),
        not_graded=sum(score.verdict == "not_graded" for _, score in scores),
    )
