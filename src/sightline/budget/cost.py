"""What an exchange cost, where the prices are known."""

from sightline.catalog.facts import LongPrices, Prices
from sightline.model.usage import Usage

_MILLION = 1_000_000


def cost_of(usage: Usage, prices: Prices | None) -> float | None:
    """US dollars, or None where a count or a price that it takes is not known.

    Cached and cache-written tokens are parts of the input and have prices of their own; without one they cost what the
    rest of the input costs. A long prompt is charged at its own prices, as far as it has some.
    """
    if prices is None or usage.input_tokens is None or usage.output_tokens is None:
        return None
    long = prices.long if prices.long is not None and usage.input_tokens > prices.long.above else None
    fresh, said = _price(prices, long, "input"), _price(prices, long, "output")
    if fresh is None or said is None:
        return None
    cached, written = usage.cached_tokens or 0, usage.cache_write_tokens or 0
    parts = (
        (max(0, usage.input_tokens - cached - written), fresh),
        (cached, _price(prices, long, "cached")),
        (written, _price(prices, long, "cache_write")),
        (usage.output_tokens, said),
    )
    return sum(count * (fresh if price is None else price) for count, price in parts) / _MILLION


def _price(prices: Prices, long: LongPrices | None, name: str) -> float | None:
    own: float | None = None if long is None else getattr(long, name)
    usual: float | None = getattr(prices, name)
    return usual if own is None else own
