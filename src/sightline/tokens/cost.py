"""What an exchange cost, where the prices are known."""

from collections.abc import Iterable
from dataclasses import dataclass

from sightline.catalog.facts import LongPrices, Prices
from sightline.model.usage import Usage

_MILLION = 1_000_000
_LARGEST = 10**12
_AN_HOUR = 2.0
"""So many times the input's price a token costs that the cache keeps for an hour, where no table says it. Anthropic,
the only one that tells these tokens apart, has the same for all of its models."""


@dataclass(frozen=True, slots=True)
class Cost:
    """US dollars; `is_bound` where a price is not known and the dearest was taken for it."""

    dollars: float
    is_bound: bool = False


def cost_of(usage: Usage, prices: Prices | None) -> Cost | None:
    """What it cost, or None where a count or a price that it takes is not known.

    Cached and cache-written tokens are parts of the input and have prices of their own; cached ones without one cost no
    more than the rest of the input. A long prompt is charged at its own prices, as far as it has some.
    """
    if prices is None or not usage.input_tokens or usage.output_tokens is None:
        return None  # a prompt of 0 tokens is one that was not counted
    long = prices.long if prices.long is not None and usage.input_tokens > prices.long.above else None
    fresh, said = _price(prices, long, "input"), _price(prices, long, "output")
    if fresh is None or said is None:
        return None
    cached, written = usage.cached_tokens or 0, usage.cache_write_tokens or 0
    for_an_hour = min(usage.cache_write_1h_tokens or 0, written)
    counts = (usage.input_tokens, usage.output_tokens, cached, written, for_an_hour)
    if min(counts) < 0 or max(counts) > _LARGEST:  # nobody can mean that
        return None
    reading, writing = _price(prices, long, "cached"), _price(prices, long, "cache_write")
    keeping = _price(prices, long, "cache_write_1h")
    parts = (
        (max(0, usage.input_tokens - cached - written), fresh),
        (cached, fresh if reading is None else reading),
        (written - for_an_hour, fresh if writing is None else writing),
        (for_an_hour, fresh * _AN_HOUR if keeping is None else keeping),
        (usage.output_tokens, said),
    )
    is_bound = (reading is None and cached > 0) or (keeping is None and for_an_hour > 0)
    return Cost(sum(count * price for count, price in parts) / _MILLION, is_bound=is_bound)


def total_cost(costs: Iterable[float | None]) -> float | None:
    """What all of it cost together: None where one of them is not known, since a sum of the others would be too low.

    Nothing at all costs nothing.
    """
    total = 0.0
    for cost in costs:
        if cost is None:
            return None
        total += cost
    return total


def _price(prices: Prices, long: LongPrices | None, name: str) -> float | None:
    own: float | None = None if long is None else getattr(long, name)
    usual: float | None = getattr(prices, name)
    return usual if own is None else own
