"""How small a difference the data could have shown."""

from math import ceil

from sightline.evals.core.statistics.distributions import normal_quantile
from sightline.evals.core.statistics.interval import LEVEL, upper

POWER = 0.8


def smallest_effect(error: float, level: float = LEVEL, power: float = POWER) -> float:
    """The true difference that would be found with this probability, given the standard error (Miller 2024)."""
    return (normal_quantile(upper(level)) + normal_quantile(power)) * error


def cases_needed(effect: float, error: float, count: int, level: float = LEVEL, power: float = POWER) -> int:
    """How many cases, grouped as these, it takes to find such a difference where `count` of them have this error."""
    return ceil(count * (smallest_effect(error, level, power) / effect) ** 2)
