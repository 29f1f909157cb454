"""What an exchange cost, where the prices are known."""

from dataclasses import dataclass

from sightline.catalog.facts import LongPrices, Prices
from sightline.model.usage import Usage

_MILLION = 1_000_000
_LARGEST = 10**12


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
    if prices is None or usage.input_tokens is None or usage.output_tokens is None:
        return None
    long = prices.long if prices.long is not None and usage.input_tokens > prices.long.above else None
    fresh, said = _price(prices, long, "input"), _price(prices, long, "output")
    if fresh is None or said is None:
        return None
    cached, written = usage.cached_tokens or 0, usage.cache_write_tokens or 0
    if max(usage.input_tokens, usage.output_tokens, cached, written) > _LARGEST:  # nobody can mean that
        return None
    known = _price(prices, long, "cached")
    parts = (
        (max(0, usage.input_tokens - cached - written), fresh),
        (cached, fresh if known is None else known),
        (written, _price(prices, long, "cache_write") or fresh),
        (usage.output_tokens, said),
    )
    return Cost(sum(count * price for count, price in parts) / _MILLION, is_bound=known is None and cached > 0)


def _price(prices: Prices, long: LongPrices | None, name: str) -> float | None:
    own: float | None = None if long is None else getattr(long, name)
    usual: float | None = getattr(prices, name)
    return usual if own is None else own
