"""An estimated number of tokens with a band that contains the true number."""

from collections.abc import Hashable, Iterable, Mapping
from math import ceil, floor
from typing import TypeVar

import msgspec


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
