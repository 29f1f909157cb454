"""The machine's own time and chance, and the names that are made of them."""

import asyncio
import random
import secrets
import time
from collections.abc import Callable


class SystemClock:
    """The machine's own time."""

    def now(self) -> float:
        """Seconds since 1970."""
        return time.time()

    def elapsed(self) -> float:
        """Seconds since some moment."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)


def chance() -> Callable[[], str]:
    """Six hexadecimal digits at a time. Nothing hangs on their being guessed, so that the system is asked only once."""
    source = random.Random(secrets.randbits(128))
    return lambda: f"{source.getrandbits(24):06x}"


class Ids:
    """Names for exchanges, which sort as they were made: microseconds since 1970, never twice the same, and some chance
    for those who share a record."""

    def __init__(self, nanoseconds: Callable[[], int], chance: Callable[[], str]) -> None:
        self._nanoseconds = nanoseconds
        self._chance = chance
        self._last = 0

    def __call__(self) -> str:
        """The next one."""
        self._last = max(self._last + 1, self._nanoseconds() // 1000)
        return f"x_{self._last:014x}{self._chance()}"
