"""Where a number may lie."""

import msgspec

from sightline.errors import Code, Fault

LEVEL = 0.95
_LOWEST, _HIGHEST = 0.5, 0.9999


class Interval(msgspec.Struct, frozen=True):
    """From `low` to `high`, made such that `level` of all intervals made so hold the true value."""

    low: float
    high: float
    level: float
    method: str

    def holds(self, value: float) -> bool:
        """Whether the value lies in it; its ends do."""
        return self.low <= value <= self.high


def upper(level: float) -> float:
    """The probability at the upper end of a two-sided interval of this level."""
    if not _LOWEST <= level <= _HIGHEST:
        raise Fault(
            Code.USAGE,
            f"a level of {level:g} cannot be used for intervals",
            hint=f"Give a level from {_LOWEST:g} to {_HIGHEST:g}, such as 0.95.",
        )
    return (1 + level) / 2
