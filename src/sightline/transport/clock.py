"""Time as it is handed down: one place to look at it, and one to wait."""

from typing import Protocol


class Clock(Protocol):
    """`now` is the time of day in seconds since 1970, `monotonic` never goes back."""

    def now(self) -> float:
        """Seconds since 1970."""
        ...

    def monotonic(self) -> float:
        """Seconds since some moment."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        ...
