"""A number of tokens that is not quite known: the likely value and the band that holds the truth."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil, floor


@dataclass(frozen=True, slots=True)
class Estimate:
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


def is_possible(count: int, thought: int) -> bool:
    """Whether a count of somebody else can be meant at all, where so many were thought; a slip of the pen cannot."""
    return 0 <= count <= 100 * thought + 10_000_000
