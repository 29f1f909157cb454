"""Two sides on the same cases: the difference, its interval, and exact tests of it."""

from collections.abc import Sequence
from math import ceil

import msgspec

from sightline.evals.core.statistics.bootstrap import RESAMPLES, Draw, bootstrap_interval
from sightline.evals.core.statistics.clusters import sums_of
from sightline.evals.core.statistics.distributions import normal_quantile
from sightline.evals.core.statistics.interval import LEVEL, Interval, upper
from sightline.evals.core.statistics.mean import Mean, mean_of
from sightline.evals.core.statistics.permutation import Permutation, permutation_test
from sightline.evals.core.statistics.sign_test import sign_test

POWER = 0.8


def smallest_effect(error: float, level: float = LEVEL, power: float = POWER) -> float:
    """The true difference that would be found with this probability, given the standard error (Miller 2024)."""
    return (normal_quantile(upper(level)) + normal_quantile(power)) * error


def cases_needed(effect: float, error: float, count: int, level: float = LEVEL, power: float = POWER) -> int:
    """How many cases, grouped as these, it takes to find such a difference where `count` of them have this error."""
    return ceil(count * (smallest_effect(error, level, power) / effect) ** 2)


NOISE = 1e-9
"""Scores that differ by no more than this are the same number, told by two computations."""


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
