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
    """The interval from `low` to `high`. `level` of all intervals computed in this way contain the true value."""

    low: float
    high: float
    level: float
    method: str

    def holds(self, value: float) -> bool:
        """Whether the value is in the interval, ends included."""
        return self.low <= value <= self.high

    def of_scores(self) -> "Interval":
        """The interval clamped to 0 to 1, the range of scores, which it may exceed if there are few."""
        return msgspec.structs.replace(self, low=max(0.0, self.low), high=min(1.0, self.high))


NORMAL = NormalDist()
_NEARLY_NORMAL = 2000
"""From this many degrees of freedom on, an expansion around the normal distribution is exact to the last digits."""


def t_cdf(value: float, freedom: int) -> float:
    """The cumulative distribution function of Student's t, as the finite sum that integer degrees of freedom allow."""
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
    """The quantile of Student's t for this probability."""
    if probability < 0.5:
        return -t_quantile(1 - probability, freedom)
    if freedom == 1:
        return tan(pi * (probability - 0.5))
    normal = NORMAL.inv_cdf(probability)
    if freedom >= _NEARLY_NORMAL:
        return _cornish_fisher(normal, freedom)
    # The distribution function is concave above its median, and the normal quantile is below the value searched for, so
    # each Newton step approaches it from the same side.
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
    """The indices of the values of each group, in the order in which groups first appear.

    A value without a group is a cluster of its own; without groups, every value is.
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
"""The relative difference below which two numbers are equal except for rounding."""


class Mean(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """`error` is the standard error, None if there is only one value or one group.

    If all values, or the means of all groups, are equal, there is no interval either: then `error` is 0, and says
    nothing about unseen cases.
    """

    value: float
    count: int
    clusters: int
    error: float | None = None
    interval: Interval | None = None


def mean_of(values: Sequence[float], groups: Sequence[str] = ()) -> Mean | None:
    """The mean of values, None if there are none.

    The error is that of the sample, clustered by group if groups are given: the sandwich estimator with the correction
    C/(C-1) for few clusters (CR1, as in inspect_ai; Miller 2024 leaves the correction out, CR0). If every value is a
    cluster of its own, that is s/sqrt(n). The interval is Student's, with one degree of freedom less than there are
    clusters.
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
    """The standard error of the mean, for at least two clusters."""
    squares = fsum(fsum(values[place] - mean for place in cluster) ** 2 for cluster in clusters)
    return sqrt(squares * len(clusters) / (len(clusters) - 1)) / len(values)


def quantile_of(values: Sequence[float], share: float) -> float:
    """The quantile of at least one value, interpolated linearly."""
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


Draw: TypeAlias = Callable[[int, int], Sequence[int]]
"""`draw(below, count)`: `count` integers from 0 up to but not including `below`, uniformly distributed."""

RESAMPLES = 2000
_FEWEST_RESAMPLES = 499
_MOST_DRAWS = 1_000_000


def bootstrap_interval(
    values: Sequence[float], draw: Draw, *, groups: Sequence[str] = (), resamples: int = RESAMPLES
) -> Interval | None:
    """The bootstrap interval of the mean, resampling whole clusters. None if there are fewer than two clusters, if
    their means are all equal, or if `resamples` is 0."""
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
    """How many samples to draw: fewer if each is large, since each is then more informative."""
    return min(resamples, max(_FEWEST_RESAMPLES, _MOST_DRAWS // units))


def resample_means(sums: Sequence[float], sizes: Sequence[int], draw: Draw, resamples: int) -> list[float]:
    """The means of this many resamples, each of as many clusters as there are."""
    clusters = len(sums)
    means = []
    for _ in range(resamples):
        drawn = draw(clusters, clusters)
        means.append(sum(map(sums.__getitem__, drawn)) / sum(map(sizes.__getitem__, drawn)))
    return means


def percentile_interval(means: Sequence[float]) -> Interval:
    """The interval between the outer quantiles of the resampled means."""
    return Interval(quantile_of(means, 1 - UPPER), quantile_of(means, UPPER), LEVEL, "percentile")


def bca_interval(means: Sequence[float], estimate: float, without: Sequence[float]) -> Interval:
    """The percentile interval, corrected for bias and for an error that changes with the mean (BCa, Efron 1987).

    `without` are the means with one cluster left out each. If the resampled means are all on one side of the estimate,
    no correction is possible, and the percentile interval is returned under its own name.
    """
    below = sum(mean < estimate for mean in means) + sum(mean <= estimate for mean in means)
    share = below / (2 * len(means))
    if not 0 < share < 1:
        return percentile_interval(means)
    bias = NORMAL.inv_cdf(share)
    centre = fsum(without) / len(without)
    widest = max(abs(centre - mean) for mean in without)
    # In units of the largest: the powers of very small differences would be 0.
    apart = [(centre - mean) / widest for mean in without] if widest else []
    squares = fsum(each**2 for each in apart)
    acceleration = fsum(each**3 for each in apart) / (6 * squares**1.5) if apart else 0.0
    ends = []
    for probability in (1 - UPPER, UPPER):
        z = bias + NORMAL.inv_cdf(probability)
        ends.append(quantile_of(means, NORMAL.cdf(bias + z / (1 - acceleration * z))))
    return Interval(ends[0], ends[1], LEVEL, "bca")


def wilson_interval(passes: int, count: int) -> Interval:
    """The interval of a proportion, which stays between 0 and 1 and does not collapse if all or none pass."""
    z = NORMAL.inv_cdf(UPPER)
    share, square = passes / count, z * z / count
    centre = (share + square / 2) / (1 + square)
    reach = z / (1 + square) * sqrt(share * (1 - share) / count + square / (4 * count))
    low = 0.0 if passes == 0 else centre - reach
    high = 1.0 if passes == count else centre + reach
    return Interval(low, high, LEVEL, "wilson")


def pass_at_k(passes: int, trials: int, k: int) -> float:
    """The probability that at least one of `k` trials passes, without bias, from `trials` of them (Chen 2021)."""
    return 1 - comb(trials - passes, k) / comb(trials, k)


def pass_hat_k(passes: int, trials: int, k: int) -> float:
    """The probability that all of `k` trials pass (pass^k), without bias, from `trials` of them."""
    return comb(passes, k) / comb(trials, k)
