"""Means, rates and their intervals: by Student's distribution, by Wilson's, and by the bootstrap."""

from collections.abc import Callable, Sequence
from math import atan, comb, cos, exp, fsum, lgamma, log1p, pi, sin, sqrt, tan
from statistics import NormalDist
from typing import TypeAlias

import msgspec

LEVEL = 0.95
UPPER = (1 + LEVEL) / 2
"""The probability at the upper end of a two-sided interval of this level."""


class Interval(msgspec.Struct, frozen=True):
    """From `low` to `high`, made such that `level` of all intervals made so hold the true value."""

    low: float
    high: float
    level: float
    method: str

    def holds(self, value: float) -> bool:
        """Whether the value lies in it; its ends do."""
        return self.low <= value <= self.high

    def of_scores(self) -> "Interval":
        """The part of it that a mean of scores can lie in: they are from 0 to 1, however few they are."""
        return msgspec.structs.replace(self, low=max(0.0, self.low), high=min(1.0, self.high))


NORMAL = NormalDist()
_NEARLY_NORMAL = 2000
"""From so many degrees of freedom on, an expansion around the normal distribution is exact to the last digits."""


def t_cdf(value: float, freedom: int) -> float:
    """The share of Student's distribution below this value, as the finite sum that whole degrees of freedom allow."""
    angle = atan(value / sqrt(freedom))
    square = cos(angle) ** 2
    is_odd = freedom % 2
    term = total = 1.0
    for step in range(2 + is_odd, freedom - 1, 2):
        term *= square * (step - 1) / step
        total += term
    if freedom == 1:
        inside = 2 * angle / pi
    elif is_odd:
        inside = 2 / pi * (angle + sin(angle) * cos(angle) * total)
    else:
        inside = sin(angle) * total
    return (1 + inside) / 2


def t_quantile(probability: float, freedom: int) -> float:
    """The value below which this share of Student's distribution lies."""
    if probability < 0.5:
        return -t_quantile(1 - probability, freedom)
    if freedom == 1:
        return tan(pi * (probability - 0.5))
    normal = NORMAL.inv_cdf(probability)
    if freedom >= _NEARLY_NORMAL:
        return _cornish_fisher(normal, freedom)
    # The distribution function is concave above its middle and the normal quantile lies below the one that is looked
    # for, so each step comes nearer from the same side.
    value = normal
    while True:
        step = (probability - t_cdf(value, freedom)) / _t_density(value, freedom)
        value += step
        if step <= 1e-14 * value:
            return value


def _t_density(value: float, freedom: int) -> float:
    scale = lgamma((freedom + 1) / 2) - lgamma(freedom / 2)
    return exp(scale - (freedom + 1) / 2 * log1p(value * value / freedom)) / sqrt(freedom * pi)


def _cornish_fisher(z: float, freedom: int) -> float:
    """Student's quantile as a series in the reciprocal of the degrees of freedom (Fisher and Cornish)."""
    z2 = z * z
    terms = (
        (z2 + 1) / 4,
        ((5 * z2 + 16) * z2 + 3) / 96,
        (((3 * z2 + 19) * z2 + 17) * z2 - 15) / 384,
        ((((79 * z2 + 776) * z2 + 1482) * z2 - 1920) * z2 - 945) / 92160,
    )
    total = 0.0
    for term in reversed(terms):
        total = (total + term) / freedom
    return z * (1 + total)


def clusters_of(groups: Sequence[str], count: int) -> list[list[int]]:
    """The places of the values of each group, in the order in which groups first appear.

    A value without a group stands alone, and without groups every value does.
    """
    gathered: dict[str | int, list[int]] = {}
    for place, group in enumerate(groups or [""] * count):
        gathered.setdefault(group or place, []).append(place)
    return list(gathered.values())


def sums_of(values: Sequence[float], groups: Sequence[str]) -> tuple[list[float], list[int]]:
    """The sum of each cluster, and how many values it has."""
    clusters = clusters_of(groups, len(values))
    return [sum(values[place] for place in cluster) for cluster in clusters], [len(cluster) for cluster in clusters]


ROUNDING = 1e-12
"""How far apart two numbers may be, for their size, that would be the same if computers counted without end."""


class Mean(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """`error` is the standard error, None where one value or one group is all there is.

    There is no interval either where all values, or the means of all groups, are the same: then `error` is 0, and says
    nothing about what was not seen.
    """

    value: float
    count: int
    clusters: int
    error: float | None = None
    interval: Interval | None = None


def mean_of(values: Sequence[float], groups: Sequence[str] = ()) -> Mean | None:
    """The mean of values, None where there are none.

    The error is that of the sample, clustered by group where groups are given: the sandwich estimator with the
    correction C/(C-1) for few clusters (CR1, as inspect_ai has it; Miller 2024 leaves the correction out, CR0). With
    every value in a cluster of its own that is s/sqrt(n). The interval is Student's, with one degree of freedom less
    than there are clusters.
    """
    if not values:
        return None
    count = len(values)
    mean = fsum(values) / count
    clusters = clusters_of(groups, count)
    if len(clusters) == 1:
        return Mean(value=mean, count=count, clusters=1)
    error = cluster_error(values, clusters, mean)
    if error <= ROUNDING * max(map(abs, values)):
        return Mean(value=mean, count=count, clusters=len(clusters), error=0.0)
    reach = t_quantile(UPPER, len(clusters) - 1) * error
    interval = Interval(mean - reach, mean + reach, LEVEL, "t")
    return Mean(value=mean, count=count, clusters=len(clusters), error=error, interval=interval)


def cluster_error(values: Sequence[float], clusters: Sequence[Sequence[int]], mean: float) -> float:
    """The standard error of the mean, with at least two clusters."""
    squares = fsum(fsum(values[place] - mean for place in cluster) ** 2 for cluster in clusters)
    return sqrt(squares * len(clusters) / (len(clusters) - 1)) / len(values)


def quantile_of(values: Sequence[float], share: float) -> float:
    """The value below which this share of at least one value lies, between two of them in proportion."""
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


Draw: TypeAlias = Callable[[int, int], Sequence[int]]
"""`draw(below, count)`: so many whole numbers from 0 up to, and without, `below`, each as likely as any other."""

RESAMPLES = 2000
_FEWEST_RESAMPLES = 499
_MOST_DRAWS = 1_000_000


def bootstrap_interval(
    values: Sequence[float], draw: Draw, *, groups: Sequence[str] = (), resamples: int = RESAMPLES
) -> Interval | None:
    """The interval of the mean, whole clusters being drawn. None where the values leave nothing to draw from, or where
    nothing is to be drawn."""
    sums, sizes = sums_of(values, groups)
    if not resamples or len(sums) < 2 or _are_same(sums, sizes):
        return None
    means = resample_means(sums, sizes, draw, within_work(resamples, len(sums)))
    total, count = fsum(sums), sum(sizes)
    without = [(total - part) / (count - size) for part, size in zip(sums, sizes, strict=True)]
    return bca_interval(means, total / count, without)


def _are_same(sums: Sequence[float], sizes: Sequence[int]) -> bool:
    means = [part / size for part, size in zip(sums, sizes, strict=True)]
    return max(means) - min(means) <= ROUNDING * max(map(abs, means))


def within_work(resamples: int, units: int) -> int:
    """How many samples are drawn: fewer where each is large, for then each says more."""
    return min(resamples, max(_FEWEST_RESAMPLES, _MOST_DRAWS // units))


def resample_means(sums: Sequence[float], sizes: Sequence[int], draw: Draw, resamples: int) -> list[float]:
    """The means of so many samples, each of as many clusters as there are."""
    clusters = len(sums)
    means = []
    for _ in range(resamples):
        drawn = draw(clusters, clusters)
        means.append(sum(map(sums.__getitem__, drawn)) / sum(map(sizes.__getitem__, drawn)))
    return means


def percentile_interval(means: Sequence[float]) -> Interval:
    """What lies between the outer shares of the drawn means."""
    return Interval(quantile_of(means, 1 - UPPER), quantile_of(means, UPPER), LEVEL, "percentile")


def bca_interval(means: Sequence[float], estimate: float, without: Sequence[float]) -> Interval:
    """The percentile interval, corrected for bias and for an error that changes with the mean (Efron 1987).

    `without` are the means with one cluster left out each. Where the drawn means lie all on one side of the estimate
    there is no correction to be had, and the percentile interval is returned under its own name.
    """
    below = sum(mean < estimate for mean in means) + sum(mean <= estimate for mean in means)
    share = below / (2 * len(means))
    if not 0 < share < 1:
        return percentile_interval(means)
    bias = NORMAL.inv_cdf(share)
    centre = fsum(without) / len(without)
    widest = max(abs(centre - mean) for mean in without)
    # In units of the widest: the powers of very small differences would be 0.
    apart = [(centre - mean) / widest for mean in without] if widest else []
    squares = fsum(each**2 for each in apart)
    acceleration = fsum(each**3 for each in apart) / (6 * squares**1.5) if apart else 0.0
    ends = []
    for probability in (1 - UPPER, UPPER):
        z = bias + NORMAL.inv_cdf(probability)
        ends.append(quantile_of(means, NORMAL.cdf(bias + z / (1 - acceleration * z))))
    return Interval(ends[0], ends[1], LEVEL, "bca")


def wilson_interval(passes: int, count: int) -> Interval:
    """The interval of a share, which stays between 0 and 1 and does not collapse where all or none pass."""
    z = NORMAL.inv_cdf(UPPER)
    share, square = passes / count, z * z / count
    centre = (share + square / 2) / (1 + square)
    reach = z / (1 + square) * sqrt(share * (1 - share) / count + square / (4 * count))
    low = 0.0 if passes == 0 else centre - reach
    high = 1.0 if passes == count else centre + reach
    return Interval(low, high, LEVEL, "wilson")


def pass_at_k(passes: int, trials: int, k: int) -> float:
    """How likely at least one of `k` tries passes, without bias from `trials` of them (Chen 2021)."""
    return 1 - comb(trials - passes, k) / comb(trials, k)


def pass_hat_k(passes: int, trials: int, k: int) -> float:
    """How likely all of `k` tries pass (pass^k), without bias from `trials` of them."""
    return comb(passes, k) / comb(trials, k)
