"""Work that a person may break off at any time, also before it has begun."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from sightline.errors import CancelReason
from sightline.exchange.cancellation import Cancellation, cancellation

T = TypeVar("T")


class BrokenOff(Exception):
    """A person has broken it off."""


class Breaking:
    """One thing after the other is done; once `is_broken`, each is cancelled at once, for that `reason`."""

    def __init__(self) -> None:
        self.is_broken = False
        self.reason: CancelReason = "user"
        self._doing: asyncio.Task[Any] | None = None
        self._cancellation: Cancellation | None = None

    def break_off(self, reason: CancelReason) -> None:
        """Do no more."""
        self.is_broken, self.reason = True, reason
        if self._cancellation is not None:
            self._cancellation.reason = reason
        if self._doing is not None:
            self._doing.cancel()

    async def run(self, doing: Coroutine[Any, Any, T]) -> T:
        """What comes of it, unless it is broken off."""
        with cancellation(self.reason) as self._cancellation:  # the task takes it along
            task = asyncio.get_running_loop().create_task(doing)
        self._doing = task
        if self.is_broken:
            task.cancel()
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            task.cancel()
            await asyncio.wait({task})
            raise
        finally:
            self._doing = None
        if task.cancelled():
            raise BrokenOff
        return task.result()
