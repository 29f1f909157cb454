"""A mean, how far it may be off, and the interval that follows."""

from collections.abc import Sequence
from math import fsum, sqrt

import msgspec

from sightline.evals.core.statistics.clusters import clusters_of
from sightline.evals.core.statistics.distributions import t_quantile
from sightline.evals.core.statistics.interval import LEVEL, Interval, upper

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


def mean_of(values: Sequence[float], groups: Sequence[str] = (), level: float = LEVEL) -> Mean | None:
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
    reach = t_quantile(upper(level), len(clusters) - 1) * error
    interval = Interval(mean - reach, mean + reach, level, "t")
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
