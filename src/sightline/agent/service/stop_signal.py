"""A person's wish to stop a run: once what is under way has ended, or at once."""

import asyncio
from collections.abc import Coroutine
from typing import TypeVar

T = TypeVar("T")


class Brake:
    """Pulled by a person, at any time and more than once."""

    def __init__(self) -> None:
        self._soon = asyncio.Event()
        self._now = asyncio.Event()
        self._leaves = False

    def pull(self, *, now: bool) -> None:
        """Stop after the step, or `now`."""
        self._leaves = False
        self._soon.set()
        if now:
            self._now.set()

    def leave(self, *, now: bool = False) -> None:
        """Stop after the step, or `now`, in such a way that the run can be taken up again. A run that is to end,
        ends."""
        self._leaves = not self.is_pulled or self._leaves
        self._soon.set()
        if now:
            self._now.set()

    @property
    def is_leaving(self) -> bool:
        """Whether the run is to be left as it stands, and not ended."""
        return self._leaves

    @property
    def is_pulled(self) -> bool:
        """Whether nothing new is to be begun."""
        return self._soon.is_set()

    async def unless_now(self, work: Coroutine[object, object, T]) -> T | None:
        """What the work brings; None if it was cut off because all has to stop at once."""
        return await _unless(self._now, work)

    async def unless_soon(self, work: Coroutine[object, object, T]) -> T | None:
        """What the work brings, which is nothing but waiting; None if it was cut off because somebody wants to stop."""
        return await _unless(self._soon, work)


async def _unless(event: asyncio.Event, work: Coroutine[object, object, T]) -> T | None:
    loop = asyncio.get_running_loop()
    task, waiting = loop.create_task(work), loop.create_task(event.wait())
    try:
        await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()
        if not task.done():
            task.cancel()
        # What is cut off may have processes to end, which takes a moment.
        await asyncio.wait({task, waiting})
        if not task.cancelled():
            task.exception()  # heard, also where nobody gets to the next line
    return None if task.cancelled() else task.result()
