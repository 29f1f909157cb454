"""Intervals by drawing the same values again and again, for scores that no curve describes."""

from collections.abc import Callable, Sequence
from math import fsum
from typing import Literal, TypeAlias

from sightline.evals.core.statistics.clusters import sums_of
from sightline.evals.core.statistics.distributions import normal_cdf, normal_quantile
from sightline.evals.core.statistics.interval import LEVEL, Interval, upper
from sightline.evals.core.statistics.mean import ROUNDING, quantile_of

Draw: TypeAlias = Callable[[int, int], Sequence[int]]
"""`draw(below, count)`: so many whole numbers from 0 up to, and without, `below`, each as likely as any other."""

Method: TypeAlias = Literal["bca", "percentile"]
RESAMPLES = 2000
_FEWEST_RESAMPLES = 499
_MOST_DRAWS = 1_000_000
_FEWEST_CLUSTERS = 2


def bootstrap_interval(
    values: Sequence[float],
    draw: Draw,
    *,
    groups: Sequence[str] = (),
    level: float = LEVEL,
    method: Method = "bca",
    resamples: int = RESAMPLES,
) -> Interval | None:
    """The interval of the mean, whole clusters being drawn. None where the values leave nothing to draw from, or where
    nothing is to be drawn."""
    sums, sizes = sums_of(values, groups)
    if not resamples or len(sums) < _FEWEST_CLUSTERS or _are_same(sums, sizes):
        return None
    means = resample_means(sums, sizes, draw, within_work(resamples, len(sums)))
    if method == "percentile":
        return percentile_interval(means, level)
    total, count = fsum(sums), sum(sizes)
    without = [(total - part) / (count - size) for part, size in zip(sums, sizes, strict=True)]
    return bca_interval(means, total / count, without, level)


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


def percentile_interval(means: Sequence[float], level: float) -> Interval:
    """What lies between the outer shares of the drawn means."""
    high = upper(level)
    return Interval(quantile_of(means, 1 - high), quantile_of(means, high), level, "percentile")


def bca_interval(means: Sequence[float], estimate: float, without: Sequence[float], level: float) -> Interval:
    """The percentile interval, corrected for bias and for an error that changes with the mean (Efron 1987).

    `without` are the means with one cluster left out each. Where the drawn means lie all on one side of the estimate
    there is no correction to be had, and the percentile interval is returned under its own name.
    """
    below = sum(mean < estimate for mean in means) + sum(mean <= estimate for mean in means)
    share = below / (2 * len(means))
    if not 0 < share < 1:
        return percentile_interval(means, level)
    bias = normal_quantile(share)
    centre = fsum(without) / len(without)
    widest = max(abs(centre - mean) for mean in without)
    # In units of the widest: the powers of very small differences would be 0.
    apart = [(centre - mean) / widest for mean in without] if widest else []
    squares = fsum(each**2 for each in apart)
    acceleration = fsum(each**3 for each in apart) / (6 * squares**1.5) if apart else 0.0
    ends = []
    for probability in (1 - upper(level), upper(level)):
        z = bias + normal_quantile(probability)
        ends.append(quantile_of(means, normal_cdf(bias + z / (1 - acceleration * z))))
    return Interval(ends[0], ends[1], level, "bca")
