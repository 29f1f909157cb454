"""An estimated number of tokens with a band that contains the true number, and the cost of an exchange."""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from math import ceil, floor
from typing import TypeVar

import msgspec

from sightline.catalog.facts import LongPrices, Prices
from sightline.model.reply import Usage


class Estimate(msgspec.Struct, frozen=True, gc=False):
    """`low <= tokens <= high`; exact if all three are equal. `how` is what it is based on, in a word or two."""

    tokens: int
    low: int
    high: int
    how: str = ""

    @property
    def is_exact(self) -> bool:
        """Whether nothing was guessed."""
        return self.low == self.high

    def __add__(self, other: "Estimate") -> "Estimate":
        if other is NOTHING:
            return self
        how = self.how if self.how == other.how or not other.how else other.how if not self.how else "mixed"
        return Estimate(self.tokens + other.tokens, self.low + other.low, self.high + other.high, how)


NOTHING = Estimate(0, 0, 0)


def exactly(tokens: int, how: str = "") -> Estimate:
    """An exact number."""
    return Estimate(tokens, tokens, tokens, how)


def between(low: float, tokens: float, high: float, how: str = "") -> Estimate:
    """A number with its band, rounded outwards and never below zero."""
    likely = max(0, round(tokens))
    return Estimate(likely, min(likely, max(0, floor(low))), max(likely, ceil(high)), how)


def sum_estimates(estimates: Iterable[Estimate]) -> Estimate:
    """The sum of many estimates, in one pass: every keystroke adds up a whole history."""
    tokens = low = high = 0
    reasons: dict[str, None] = {}
    for estimate in estimates:
        tokens += estimate.tokens
        low += estimate.low
        high += estimate.high
        reasons[estimate.how] = None
    reasons.pop("", None)
    return Estimate(tokens, low, high, next(iter(reasons), "") if len(reasons) < 2 else "mixed")


_Name = TypeVar("_Name", bound=Hashable)


def share_out(total: int, pieces: Mapping[_Name, int]) -> dict[_Name, int]:
    """Divide the total in the proportions of the pieces into whole numbers that add up to it: those with the largest
    remainders are rounded up."""
    counted = sum(pieces.values())
    shares = {name: divmod(count * total, counted) for name, count in pieces.items()}
    missing = total - sum(share for share, _remainder in shares.values())
    raised = set(sorted(shares, key=lambda name: -shares[name][1])[:missing])
    return {name: share + (name in raised) for name, (share, _remainder) in shares.items()}


def is_possible(count: int, thought: int) -> bool:
    """Whether a reported count is plausible compared with the estimate; a corrupt number is not."""
    return 0 <= count <= 100 * thought + 10_000_000


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
    reading, writing = _price(prices, long, "cached"), _price(prices, long, "cache_write")
    keeping = _price(prices, long, "cache_write_1h")
    share, extra = _share(usage, prices), _special_tokens(usage, prices, fresh, output)
    tools = [prices.tools.get(name) for name, count in usage.server_tools.items() if count > 0]
    if share is None or extra is None or None in tools:
        return None
    calls = sum(count * prices.tools[name] for name, count in usage.server_tools.items() if count > 0) / _THOUSAND
    parts = (
        (max(0, usage.input_tokens - cached - written), fresh),
        (cached, fresh if reading is None else reading),
        (written - for_an_hour, fresh if writing is None else writing),
        (for_an_hour, fresh * _HOUR_WRITE_FACTOR if keeping is None else keeping),
        (usage.output_tokens, output),
    )
    is_bound = (reading is None and cached > 0) or (keeping is None and for_an_hour > 0)
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
