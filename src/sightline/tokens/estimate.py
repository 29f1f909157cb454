"""A number of tokens that is not quite known, with the band that holds the truth, and what an exchange cost."""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from math import ceil, floor
from typing import TypeVar

import msgspec

from sightline.catalog.facts import LongPrices, Prices
from sightline.model.reply import Usage


class Estimate(msgspec.Struct, frozen=True, gc=False):
    """`low <= tokens <= high`; exact where all three are equal. `how` says what it rests on, in a word or two."""

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
    """A number without a doubt."""
    return Estimate(tokens, tokens, tokens, how)


def between(low: float, tokens: float, high: float, how: str = "") -> Estimate:
    """A number with its band, rounded outwards and never below nothing."""
    likely = max(0, round(tokens))
    return Estimate(likely, min(likely, max(0, floor(low))), max(likely, ceil(high)), how)


def sum_estimates(estimates: Iterable[Estimate]) -> Estimate:
    """What many add up to, in one pass: a keystroke adds up a whole history."""
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
    """The total in the proportions of the pieces, in whole numbers that add up to it: those with the largest
    remainders are rounded up."""
    counted = sum(pieces.values())
    shares = {name: divmod(count * total, counted) for name, count in pieces.items()}
    missing = total - sum(share for share, _remainder in shares.values())
    raised = set(sorted(shares, key=lambda name: -shares[name][1])[:missing])
    return {name: share + (name in raised) for name, (share, _remainder) in shares.items()}


def is_possible(count: int, thought: int) -> bool:
    """Whether a reported count is plausible beside the estimate; a corrupt number is not."""
    return 0 <= count <= 100 * thought + 10_000_000


_THOUSAND, _MILLION = 1_000, 1_000_000
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

    What the provider itself says goes first. Cached and cache-written tokens are parts of the input and have prices of
    their own; cached ones without one cost no more than the rest of the input. A long prompt is charged at its own
    prices, as far as it has some. The tier and the region multiply the price of tokens, calls of the provider's own
    tools come on top.
    """
    if usage.cost is not None:
        return Cost(usage.cost)
    if prices is None or not usage.input_tokens or usage.output_tokens is None:
        return None  # a prompt of 0 tokens is one that was not counted
    long = prices.long if prices.long is not None and usage.input_tokens > prices.long.above else None
    fresh, output = _price(prices, long, "input"), _price(prices, long, "output")
    if fresh is None or (output is None and usage.output_tokens):
        return None  # embeddings have no output, and no price of one
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
        (for_an_hour, fresh * _AN_HOUR if keeping is None else keeping),
        (usage.output_tokens, output),
    )
    is_bound = (reading is None and cached > 0) or (keeping is None and for_an_hour > 0)
    tokens = (sum(count * price for count, price in parts) + extra) * share / _MILLION
    return Cost(tokens + calls, is_bound=is_bound)


def savings_of(usage: Usage, prices: Prices | None) -> float | None:
    """What the tokens that came from the cache would have cost more; None where that is not known."""
    if not usage.cached_tokens:
        return None
    counted = msgspec.structs.replace(usage, cost=None)
    paid, fresh = cost_of(counted, prices), cost_of(msgspec.structs.replace(counted, cached_tokens=0), prices)
    return None if paid is None or fresh is None else fresh.dollars - paid.dollars


def _share(usage: Usage, prices: Prices) -> float | None:
    """What the tier and the region multiply the price with; None where that is not known. A region that the address
    tells and not the reply costs more with some models only: those whose prices say so."""
    tier = prices.tiers.get(usage.tier) if usage.tier else 1.0
    region = prices.regions.get(usage.region) if usage.region else prices.regions.get(prices.region, 1.0)
    return None if tier is None or region is None else tier * region


def _special_tokens(usage: Usage, prices: Prices, fresh: float, output: float) -> float | None:
    """What audio and images cost more than text; None where there are some whose price is not known."""
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
