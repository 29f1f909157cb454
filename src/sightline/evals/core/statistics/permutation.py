"""The paired permutation test: how often chance alone makes a mean difference as large."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import compress
from math import gcd, lcm
from typing import Literal

import msgspec

from sightline.evals.core.statistics.bootstrap import Draw, within_work
from sightline.evals.core.statistics.clusters import sums_of

RESAMPLES = 4999
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
    differences: Sequence[float], draw: Draw, *, groups: Sequence[str] = (), resamples: int = RESAMPLES
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
