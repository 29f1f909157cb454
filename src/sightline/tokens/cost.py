"""What an exchange cost, and what its cache saved, by the usage that the provider reported and the model's prices."""

from dataclasses import dataclass

import msgspec

from sightline.catalog.facts import LongPrices, Prices
from sightline.model.reply import Usage

_THOUSAND, _MILLION = 1_000, 1_000_000
_LARGEST = 10**12
_HOUR_WRITE_FACTOR = 2.0
"""The price of a token that is cached for an hour, as a multiple of the input price, if no table has it. Anthropic, the
only provider that reports these tokens separately, has the same factor for all of its models."""


@dataclass(frozen=True, slots=True)
class Cost:
    """US dollars; `is_bound` if a price is unknown and the highest possible one was used."""

    dollars: float
    is_bound: bool = False


def cost_of(usage: Usage, prices: Prices | None) -> Cost | None:
    """The cost, or None if a count or a price that it needs is unknown.

    The cost that the provider itself reports takes precedence. Cached and cache-written tokens are parts of the input
    and have prices of their own; cached ones without a price cost no more than the rest of the input. A long prompt is
    charged at its own prices, if it has any. The tier and the region multiply the price of tokens; calls of the
    provider's own tools are added.
    """
    if usage.cost is not None:
        return Cost(usage.cost)
    if prices is None or not usage.input_tokens or usage.output_tokens is None:
        return None  # a prompt of 0 tokens was not counted
    long = prices.long if prices.long is not None and usage.input_tokens > prices.long.above else None
    fresh, output = _price(prices, long, "input"), _price(prices, long, "output")
    if fresh is None or (output is None and usage.output_tokens):
        return None  # embeddings have no output, and no price for it
    output = output or 0.0
    cached, written = usage.cached_tokens or 0, usage.cache_write_tokens or 0
    for_an_hour = min(usage.cache_write_1h_tokens or 0, written)
    counts = (usage.input_tokens, usage.output_tokens, cached, written, for_an_hour)
    if min(counts) < 0 or max(counts) > _LARGEST:  # absurd counts have no cost
        return None
    cached_price, write_price = _price(prices, long, "cached"), _price(prices, long, "cache_write")
    hour_price = _price(prices, long, "cache_write_1h")
    share, extra = _share(usage, prices), _special_tokens(usage, prices, fresh, output)
    tools = [prices.tools.get(name) for name, count in usage.server_tools.items() if count > 0]
    if share is None or extra is None or None in tools:
        return None
    calls = sum(count * prices.tools[name] for name, count in usage.server_tools.items() if count > 0) / _THOUSAND
    parts = (
        (max(0, usage.input_tokens - cached - written), fresh),
        (cached, fresh if cached_price is None else cached_price),
        (written - for_an_hour, fresh if write_price is None else write_price),
        (for_an_hour, fresh * _HOUR_WRITE_FACTOR if hour_price is None else hour_price),
        (usage.output_tokens, output),
    )
    is_bound = (cached_price is None and cached > 0) or (hour_price is None and for_an_hour > 0)
    tokens = (sum(count * price for count, price in parts) + extra) * share / _MILLION
    return Cost(tokens + calls, is_bound=is_bound)


def savings_of(usage: Usage, prices: Prices | None) -> float | None:
    """How much more the tokens from the cache would have cost without it; None if unknown."""
    if not usage.cached_tokens:
        return None
    counted = msgspec.structs.replace(usage, cost=None)
    paid, fresh = cost_of(counted, prices), cost_of(msgspec.structs.replace(counted, cached_tokens=0), prices)
    return None if paid is None or fresh is None else fresh.dollars - paid.dollars


def _share(usage: Usage, prices: Prices) -> float | None:
    """The factor of the tier and the region; None if unknown. A region that is known from the address and not from the
    reply costs more only for models whose prices say so."""
    tier = prices.tiers.get(usage.tier) if usage.tier else 1.0
    region = prices.regions.get(usage.region) if usage.region else prices.regions.get(prices.region, 1.0)
    return None if tier is None or region is None else tier * region


def _special_tokens(usage: Usage, prices: Prices, fresh: float, output: float) -> float | None:
    """How much more audio and images cost than text; None if there are some whose price is unknown."""
    extra = 0.0
    for count, price, usual in (
        (usage.audio_input_tokens, prices.audio_input, fresh),
        (usage.audio_output_tokens, prices.audio_output, output),
        (usage.image_output_tokens, prices.image_output, output),
    ):
        if count:
            if price is None:
                return None
            extra += count * (price - usual)
    return extra


def _price(prices: Prices, long: LongPrices | None, name: str) -> float | None:
    own: float | None = None if long is None else getattr(long, name)
    usual: float | None = getattr(prices, name)
    return usual if own is None else own
