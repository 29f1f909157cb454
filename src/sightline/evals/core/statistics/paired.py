"""Two sides on the same cases: the difference, its interval, exact tests of it, and sentences that explain them to the
user, above all when they are not conclusive."""

from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import compress
from math import ceil, gcd, lcm
from typing import Literal, TypeAlias

import msgspec

from sightline.evals.core.statistics.intervals import (
    LEVEL,
    NORMAL,
    RESAMPLES,
    UPPER,
    Draw,
    Interval,
    Mean,
    bootstrap_interval,
    mean_of,
    sums_of,
    within_work,
)


def sign_test(wins: int, losses: int) -> float:
    """The probability of a count at least as uneven as this, if a win and a loss are equally likely; ties do not count.

    With wins for the cases that only one side passes, and losses for those that only the other does, this is McNemar's
    exact test.
    """
    count = wins + losses
    ways = tail = 1
    for fewer in range(min(wins, losses)):
        # Each number of ways is computed from the previous one: thousands of cases would take minutes otherwise.
        ways = ways * (count - fewer) // (fewer + 1)
        tail += ways
    return min(1.0, 2 * tail / (1 << count))


def least_p(units: int) -> float:
    """The smallest p that a two-sided exact test can reach with this many differing units."""
    return min(1.0, 2.0 ** (1 - units))


FLIPS = 4999
MOST_SUMS = 1_000_000
"""With more sums than this, signs are drawn at random. The verdicts of a thousand cases are within this limit."""

_STEPS = 10**12
"""Differences that are not simple fractions are counted in units of this fraction of 1, rounded to the nearest."""

_LARGEST_DENOMINATOR = 1000
_MOST_PARTS = 10**6
_ROUNDING = 1e-9


class Permutation(msgspec.Struct, frozen=True):
    """`p` is two-sided. `monte_carlo`: `count` sign flips were drawn; `exact`: all were counted."""

    p: float
    method: Literal["exact", "monte_carlo"]
    count: int = 0


def permutation_test(
    differences: Sequence[float], draw: Draw, *, groups: Sequence[str] = (), resamples: int = FLIPS
) -> Permutation:
    """Test the differences by flipping signs: if the two sides were alike, each difference could as well have the other
    sign. The differences of a group flip together.

    All sums that the signs can produce are counted if there are few, as for verdicts and for scores in steps; otherwise
    signs are drawn, and the observed ones are counted among them.
    """
    parts = _common_denominator(differences)
    steps = [round(difference * (parts or _STEPS)) for difference in differences]
    sums = [round(total) for total in sums_of(steps, groups)[0] if total]
    # A sum that is smaller than the observed one only because of rounding counts as equal to it.
    observed = abs(sum(sums)) - (0 if parts else len(steps))
    if _are_few(sums):
        extreme = sum(ways for total, ways in _count_sums(sums).items() if abs(total) >= observed)
        return Permutation(extreme / 2 ** len(sums), "exact")
    resamples = within_work(resamples, len(sums))
    whole = sum(sums)
    hits = sum(abs(2 * sum(compress(sums, draw(2, len(sums)))) - whole) >= observed for _ in range(resamples))
    return Permutation((hits + 1) / (resamples + 1), "monte_carlo", resamples)


def _common_denominator(differences: Sequence[float]) -> int | None:
    """The common denominator of all differences, which are often shares of trials; None if it is too large."""
    parts = 1
    for difference in differences:
        if abs(difference * parts - round(difference * parts)) <= _ROUNDING:
            continue
        near = Fraction(difference).limit_denominator(_LARGEST_DENOMINATOR)
        parts = lcm(parts, near.denominator)
        if parts > _MOST_PARTS or abs(float(near) - difference) > _ROUNDING / _MOST_PARTS:
            return None
    return parts


def _are_few(sums: Sequence[int]) -> bool:
    """Whether all sums that the signs can produce can be counted: each value doubles them, unless they coincide."""
    step = gcd(*sums)
    reach = followed = 0
    for place, part in enumerate(sums):
        reach += abs(part)
        followed += min(2 ** min(place, 64), reach // step + 1)
    return followed <= MOST_SUMS


def _count_sums(sums: Sequence[int]) -> dict[int, int]:
    """Each sum that the signs can produce, and in how many ways."""
    ways = {0: 1}
    for part in sums:
        more: dict[int, int] = {}
        for total, count in ways.items():
            more[total + part] = more.get(total + part, 0) + count
            more[total - part] = more.get(total - part, 0) + count
        ways = more
    return ways


POWER = 0.8


def smallest_effect(error: float) -> float:
    """The true difference that would be found with the probability `POWER`, given the standard error (Miller 2024)."""
    return (NORMAL.inv_cdf(UPPER) + NORMAL.inv_cdf(POWER)) * error


def cases_needed(effect: float, error: float, count: int) -> int:
    """How many cases, grouped like these, it takes to find such a difference if `count` of them have this error."""
    return ceil(count * (smallest_effect(error) / effect) ** 2)


NOISE = 1e-9
"""Scores that differ by no more than this are the same number, computed in two ways."""


class Paired(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """`difference` is the second side minus the first. `wins` are those of the second. `differing` are the clusters
    whose differences do not cancel out.

    `smallest` is the true difference that these cases would have shown four times out of five; `needed` is how many
    cases the observed difference would take.
    """

    difference: Mean
    wins: int
    losses: int
    ties: int
    differing: int
    sign_p: float
    permutation: Permutation
    bootstrap: Interval | None = None
    smallest: float | None = None
    needed: int | None = None


def compare_pairs(
    before: Sequence[float],
    after: Sequence[float],
    draw: Draw,
    *,
    groups: Sequence[str] = (),
    tolerance: float = 0.0,
    resamples: int = RESAMPLES,
) -> Paired | None:
    """Compare the pairs; None if there are none. Two scores tie if they differ by at most `tolerance`, which affects
    only the count of wins, losses and ties. If `resamples` is 0, there is no bootstrap interval."""
    apart = [second - first for first, second in zip(before, after, strict=True)]
    differences = [0.0 if abs(each) <= NOISE else each for each in apart]
    mean = mean_of(differences, groups)
    if mean is None:
        return None
    wins = sum(each > max(tolerance, NOISE) for each in differences)
    losses = sum(-each > max(tolerance, NOISE) for each in differences)
    smallest = needed = None
    if mean.error:
        smallest = smallest_effect(mean.error)
        needed = cases_needed(mean.value, mean.error, mean.count) if abs(mean.value) > NOISE else None
    return Paired(
        difference=mean,
        wins=wins,
        losses=losses,
        ties=len(differences) - wins - losses,
        differing=sum(abs(total) > NOISE for total in sums_of(differences, groups)[0]),
        sign_p=sign_test(wins, losses),
        permutation=permutation_test(differences, draw, groups=groups),
        bootstrap=bootstrap_interval(differences, draw, groups=groups, resamples=resamples),
        smallest=smallest,
        needed=needed,
    )


Finding: TypeAlias = Literal["better", "worse", "cannot_tell", "nothing"]
"""The second side compared with the first; `nothing`: there are no pairs."""


def number(value: float) -> str:
    """A number for a sentence: three decimals, without trailing zeros."""
    text = f"{value:.3f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def pluralize(count: int, noun: str) -> str:
    """`1 case`, `2 cases`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def describe_interval(interval: Interval) -> str:
    return f"{interval.level * 100:g} % interval {number(interval.low)} to {number(interval.high)}"


def describe_mean(mean: Mean | None) -> str:
    """A sentence with a mean score and its uncertainty."""
    if mean is None:
        return "No case has a score."
    many = pluralize(mean.count, "case")
    if mean.clusters < mean.count:
        many += f" in {pluralize(mean.clusters, 'group')}"
    if mean.interval is not None and mean.error is not None:
        spread = f"± {number(mean.error)} ({describe_interval(mean.interval.of_scores())})"
        return f"Mean score {number(mean.value)} {spread}, {many}."
    if mean.clusters == 1:
        return f"Mean score {number(mean.value)}, {many}: too few to say how far off it may be."
    if mean.clusters < mean.count:
        return f"Every group scores {number(mean.value)} on average, {many}: that says nothing about other groups."
    return f"Every case scores {number(mean.value)}, {many}: scores that do not differ say nothing about other cases."


def describe_unknown_costs(unknown: int, known: int, noun: str) -> str:
    """How many costs are unknown; empty if none is."""
    return f"What {unknown} of {pluralize(unknown + known, noun)} cost is not known." if unknown else ""


def describe_estimates(estimated: int, answers: int) -> str:
    """For how many answers the provider did not report token counts; empty if for none."""
    counted = f"{estimated} of {pluralize(answers, 'answer')}"
    return f"The provider did not count {counted}: tokens and cost are an estimate there." if estimated else ""


def describe_excluded(
    reasons: Iterable[Literal["error", "not_graded", "skipped"]], bounds: tuple[float, float] | None, what: str
) -> str:
    """What is left out of a number, and how far it could change that number; empty if nothing is left out."""
    excluded = list(reasons)
    if not excluded:
        return ""
    words = {"error": "ended in an error", "not_graded": "could not be graded", "skipped": "skipped"}
    listed = ", ".join(f"{excluded.count(why)} {text}" for why, text in words.items() if why in excluded)
    text = f"{pluralize(len(excluded), 'result')} left out, and not counted as 0: {listed}."
    if bounds is not None:
        low, high = bounds
        text += f" Had all of them failed, {what} would be {number(low)}; had all passed, {number(high)}."
    return text


def finding_of(paired: Paired | None) -> Finding:
    """What can be concluded about the second side: a difference only if the interval and the exact test agree."""
    if paired is None:
        return "nothing"
    interval, difference = paired.difference.interval, paired.difference.value
    if paired.permutation.p > 1 - LEVEL or abs(difference) <= NOISE or (interval is not None and interval.holds(0.0)):
        return "cannot_tell"
    return "better" if difference > 0 else "worse"


def describe_difference(paired: Paired | None, first: str, second: str, ends: tuple[float, float]) -> str:
    """Which of two sides is better, or why that is unknown. `ends` are the lowest and highest score of a case."""
    if paired is None:
        return f"{first} and {second} have no graded case in common: nothing can be compared."
    difference = paired.difference
    many = pluralize(difference.count, "case")
    if paired.wins == paired.losses == 0 and paired.differing == 0:
        return f"{first} and {second} score the same on each of {many}{_describe_ceiling(ends)}."
    if abs(difference.value) <= NOISE:
        text = f"{second} and {first} score the same on average of {many}"
    else:
        more = "higher" if difference.value > 0 else "lower"
        text = f"{second} scores {number(abs(difference.value))} {more} than {first} on {many}"
    if difference.interval is not None:
        text += f" ({describe_interval(difference.interval)})"
    text += ", p < 0.001" if paired.permutation.p < 0.001 else f", p = {number(paired.permutation.p)}"
    finding = finding_of(paired)
    if finding != "cannot_tell":
        return f"{text}: {second} is {finding}."
    return f"{text}: the data cannot tell them apart.{_explain_inconclusive(paired)}"


def _explain_inconclusive(paired: Paired) -> str:
    difference = paired.difference
    if difference.interval is None or paired.smallest is None or least_p(paired.differing) > 1 - LEVEL:
        few = pluralize(paired.differing, "case" if difference.clusters == difference.count else "group")
        return f" Only {few} differ{'s' if paired.differing == 1 else ''}, too few for any test to tell."
    if not difference.interval.holds(0.0):
        return " The interval leaves 0 out, but the exact test does not agree."
    if paired.permutation.p <= 1 - LEVEL:
        return " The exact test finds a difference, but the interval holds 0."
    text = " The interval holds 0."
    text += f" A true difference below {number(paired.smallest)} would often be missed with so many cases"
    return text + (f"; about {paired.needed} would be needed for the one seen." if paired.needed else ".")


def _describe_ceiling(ends: tuple[float, float]) -> str:
    lowest, highest = ends
    if lowest == highest == 1:
        return ", the highest score there is: these cases are too easy to tell them apart"
    if lowest == highest == 0:
        return ", the lowest score there is: these cases are too hard to tell them apart"
    return ": the data cannot tell them apart"
