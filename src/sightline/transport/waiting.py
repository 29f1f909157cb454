"""The clock that is passed in; waiting for the first of two things; work that survives or yields to cancellation.

asyncio has no primitive that waits for one of two awaitables and cleans up the other. The functions here are the only
places in the package that do this.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Clock(Protocol):
    """`now` is the time of day in seconds since 1970; `monotonic` never goes back."""

    def now(self) -> float:
        """Seconds since 1970."""

    def monotonic(self) -> float:
        """Seconds since an arbitrary moment."""

    async def sleep(self, seconds: float) -> None:
        """Wait."""


class WorkInterrupted(Exception):
    """The work was cancelled before it had a result, because its event was set."""


async def wait_either(first: "asyncio.Future[Any]", second: "asyncio.Future[Any] | Coroutine[Any, Any, Any]") -> None:
    """Wait until one of the two is done. A coroutine is cancelled when this returns; futures are left as they are."""
    if isinstance(second, asyncio.Future):
        await asyncio.wait({first, second}, return_when=asyncio.FIRST_COMPLETED)
        return
    waiting = asyncio.get_running_loop().create_task(second)
    try:
        await asyncio.wait({first, waiting}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()
        await asyncio.wait({waiting})


async def run_unless(event: asyncio.Event, work: Coroutine[Any, Any, T]) -> T:
    """Run the work and return its result. Setting the event cancels it, which raises `WorkInterrupted` unless the work
    ends with a result nevertheless."""
    if event.is_set():
        work.close()
        raise WorkInterrupted
    task = asyncio.get_running_loop().create_task(work)
    try:
        await wait_either(task, event.wait())
    finally:
        if not task.done():
            task.cancel()
        # Cancelled work may have child processes to end, which takes a moment.
        await asyncio.wait({task})
        if not task.cancelled():
            task.exception()  # marks it as retrieved if the caller itself is being cancelled
    if task.cancelled():
        raise WorkInterrupted
    return task.result()


async def run_to_end(work: Coroutine[Any, Any, T]) -> T:
    """Run the work to its end even if the caller is cancelled meanwhile; the cancellation is raised afterwards."""
    task = asyncio.get_running_loop().create_task(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        if not task.cancelled():
            task.exception()  # marks it as retrieved
        raise cancelled
    return task.result()


async def wait_started(started: "asyncio.Future[T]", task: "asyncio.Task[Any]") -> T:
    """Wait until a background task reports its start. If the task ends before that, its fault is raised here."""
    await wait_either(started, task)
    if not started.done():
        await task
    return started.result()
