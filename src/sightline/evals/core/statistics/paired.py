"""Two sides on the same cases: the difference, its interval, and exact tests of it."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import compress
from math import ceil, gcd, lcm
from typing import Literal

import msgspec

from sightline.evals.core.statistics.intervals import (
    LEVEL,
    RESAMPLES,
    Draw,
    Interval,
    Mean,
    bootstrap_interval,
    mean_of,
    normal_quantile,
    sums_of,
    upper,
    within_work,
)


def sign_test(wins: int, losses: int) -> float:
    """How likely so uneven a count is, or a more uneven one, if a win and a loss are equally likely; ties say nothing.

    With wins for the cases that only one side passes, and losses for those that only the other does, this is the
    exact test of McNemar.
    """
    count = wins + losses
    ways = tail = 1
    for fewer in range(min(wins, losses)):
        # Each number of ways comes from the one before: thousands of cases would take minutes otherwise.
        ways = ways * (count - fewer) // (fewer + 1)
        tail += ways
    return min(1.0, 2 * tail / (1 << count))


def least_p(units: int) -> float:
    """The smallest probability that a two-sided exact test of so many differing units can come to."""
    return min(1.0, 2.0 ** (1 - units))


FLIPS = 4999
MOST_SUMS = 1_000_000
"""Where more sums have to be followed chance takes over; the verdicts of a thousand cases are within it."""

_STEPS = 10**12
"""Differences that are no simple fractions are counted in these parts of 1, each rounded by half a part at most."""

_LARGEST_DENOMINATOR = 1000
_MOST_PARTS = 10**6
_ROUNDING = 1e-9


class Permutation(msgspec.Struct, frozen=True):
    """`p` of both sides. `monte_carlo`: `count` flips were drawn; `exact`: all of them were counted."""

    p: float
    method: Literal["exact", "monte_carlo"]
    count: int = 0


def permutation_test(
    differences: Sequence[float], draw: Draw, *, groups: Sequence[str] = (), resamples: int = FLIPS
) -> Permutation:
    """If the two sides were alike, each difference could as well have had the other sign. Groups change sign as one.

    All sums that the signs can make are counted as long as they are few, which they are for verdicts and for scores
    in steps; otherwise signs are drawn, and the observed ones count among them.
    """
    parts = _parts(differences)
    steps = [round(difference * (parts or _STEPS)) for difference in differences]
    sums = [round(total) for total in sums_of(steps, groups)[0] if total]
    # A sum that only rounding makes smaller than the observed one is as large as it.
    observed = abs(sum(sums)) - (0 if parts else len(steps))
    if _are_few(sums):
        extreme = sum(ways for total, ways in _count_sums(sums).items() if abs(total) >= observed)
        return Permutation(extreme / 2 ** len(sums), "exact")
    resamples = within_work(resamples, len(sums))
    whole = sum(sums)
    hits = sum(abs(2 * sum(compress(sums, draw(2, len(sums)))) - whole) >= observed for _ in range(resamples))
    return Permutation((hits + 1) / (resamples + 1), "monte_carlo", resamples)


def _parts(differences: Sequence[float]) -> int | None:
    """Into how many parts 1 has to fall for every difference to be a whole number of them, as the shares of tries do;
    None where that takes too many."""
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
    """Whether all sums that signs can make can be counted: each part doubles them, unless they fall together."""
    step = gcd(*sums)
    reach = followed = 0
    for place, part in enumerate(sums):
        reach += abs(part)
        followed += min(2 ** min(place, 64), reach // step + 1)
    return followed <= MOST_SUMS


def _count_sums(sums: Sequence[int]) -> dict[int, int]:
    """Each sum that signs can make, and in how many ways."""
    ways = {0: 1}
    for part in sums:
        more: dict[int, int] = {}
        for total, count in ways.items():
            more[total + part] = more.get(total + part, 0) + count
            more[total - part] = more.get(total - part, 0) + count
        ways = more
    return ways


POWER = 0.8


def smallest_effect(error: float, level: float = LEVEL, power: float = POWER) -> float:
    """The true difference that would be found with this probability, given the standard error (Miller 2024)."""
    return (normal_quantile(upper(level)) + normal_quantile(power)) * error


def cases_needed(effect: float, error: float, count: int, level: float = LEVEL, power: float = POWER) -> int:
    """How many cases, grouped as these, it takes to find such a difference where `count` of them have this error."""
    return ceil(count * (smallest_effect(error, level, power) / effect) ** 2)


NOISE = 1e-9
"""Scores that differ by no more than this are the same number, from two computations."""


class Paired(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """`difference` is the second side less the first. `wins` are the second's. `differing` are the clusters whose
    differences do not cancel out.

    `smallest` is the true difference that these cases would have shown four times out of five; `needed` is how many
    cases it would take for the difference that was seen.
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
    level: float = LEVEL,
    resamples: int = RESAMPLES,
) -> Paired | None:
    """What the pairs say; None where there is no pair. `tolerance` is how far apart two scores may be and tie; it
    touches nothing but the count of wins. Without `resamples` there is no bootstrap interval."""
    apart = [second - first for first, second in zip(before, after, strict=True)]
    differences = [0.0 if abs(each) <= NOISE else each for each in apart]
    mean = mean_of(differences, groups, level)
    if mean is None:
        return None
    wins = sum(each > max(tolerance, NOISE) for each in differences)
    losses = sum(-each > max(tolerance, NOISE) for each in differences)
    smallest = needed = None
    if mean.error:
        smallest = smallest_effect(mean.error, level)
        needed = cases_needed(mean.value, mean.error, mean.count, level) if abs(mean.value) > NOISE else None
    return Paired(
        difference=mean,
        wins=wins,
        losses=losses,
        ties=len(differences) - wins - losses,
        differing=sum(abs(total) > NOISE for total in sums_of(differences, groups)[0]),
        sign_p=sign_test(wins, losses),
        permutation=permutation_test(differences, draw, groups=groups),
        bootstrap=bootstrap_interval(differences, draw, groups=groups, level=level, resamples=resamples),
        smallest=smallest,
        needed=needed,
    )
