"""How often something passes: shares with their intervals, and what several tries of a case say."""

from collections.abc import Sequence
from math import comb, sqrt

from sightline.errors import Code, Fault
from sightline.evals.core.statistics.distributions import normal_quantile
from sightline.evals.core.statistics.interval import LEVEL, Interval, upper


def wilson_interval(passes: int, count: int, level: float = LEVEL) -> Interval:
    """The interval of a share, which stays between 0 and 1 and does not collapse where all or none pass."""
    z = normal_quantile(upper(level))
    share, square = passes / count, z * z / count
    centre = (share + square / 2) / (1 + square)
    reach = z / (1 + square) * sqrt(share * (1 - share) / count + square / (4 * count))
    low = 0.0 if passes == 0 else centre - reach
    high = 1.0 if passes == count else centre + reach
    return Interval(low, high, level, "wilson")


def pass_at_k(passes: int, trials: int, k: int) -> float:
    """How likely at least one of `k` tries passes, without bias from `trials` of them (Chen 2021)."""
    _check(trials, k)
    return 1 - comb(trials - passes, k) / comb(trials, k)


def pass_hat_k(passes: int, trials: int, k: int) -> float:
    """How likely all of `k` tries pass (pass^k), without bias from `trials` of them."""
    _check(trials, k)
    return comb(passes, k) / comb(trials, k)


def usable_ks(trials: Sequence[int]) -> tuple[int, ...]:
    """The numbers of tries that every case can speak for, at most its own."""
    return tuple(range(1, min(trials, default=0) + 1))


def _check(trials: int, k: int) -> None:
    if not 1 <= k <= trials:
        raise Fault(
            Code.USAGE,
            f"nothing can be said of {k} tries from {trials}",
            hint="Run each case at least that often (--trials), or ask for fewer tries.",
        )
