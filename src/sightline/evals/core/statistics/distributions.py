"""Quantiles of the normal distribution and of Student's, good to nine digits and more."""

from math import atan, cos, exp, lgamma, log1p, pi, sin, sqrt, tan
from statistics import NormalDist

_NORMAL = NormalDist()
_NEARLY_NORMAL = 2000
"""From so many degrees of freedom on, an expansion around the normal distribution is exact to the last digits."""


def normal_cdf(value: float) -> float:
    """The share of the standard normal distribution below this value."""
    return _NORMAL.cdf(value)


def normal_quantile(probability: float) -> float:
    """The value below which this share of the standard normal distribution lies."""
    return _NORMAL.inv_cdf(probability)


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
    normal = normal_quantile(probability)
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
