"""Lines for one log, written together: while some are on their way to the disk, the next ones gather."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from sightline.errors import Fault

Write: TypeAlias = Callable[[Sequence[bytes]], Awaitable[None]]
"""Writes these lines behind all before; when it returns they last."""


class LineWriter:
    """`add` never waits, `lasting` does for its own line, and `flush` for all. What fails is raised by all of them
    from then on."""

    def __init__(self, write: Write) -> None:
        self._write = write
        self._waiting: list[tuple[bytes, Callable[[], None] | None]] = []
        self._task: asyncio.Task[None] | None = None
        self._trouble: Fault | None = None
        self._unsure: set[asyncio.Future[None]] = set()

    def add(self, line: bytes, then: Callable[[], None] | None = None) -> None:
        """One more line; `then` hears when it lasts."""
        if self._trouble is not None:
            raise self._trouble
        self._waiting.append((line, then))
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run())
            self._task.add_done_callback(self._on_task_end)

    async def lasting(self, line: bytes, then: Callable[[], None] | None = None) -> None:
        """One more line, which lasts when this returns."""
        lasts: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def confirm() -> None:
            if then is not None:
                then()
            if not lasts.done():
                lasts.set_result(None)

        self._unsure.add(lasts)
        try:
            self.add(line, confirm)
            await lasts
        finally:
            self._unsure.discard(lasts)

    async def flush(self) -> None:
        """Wait until all lines are written. A cancellation in the meantime is raised afterwards."""
        cancelled: asyncio.CancelledError | None = None
        while self._task is not None and not self._task.done():
            try:
                await asyncio.wait({self._task})
            except asyncio.CancelledError as error:
                cancelled = error
        if cancelled is not None:
            raise cancelled
        if self._trouble is not None:
            raise self._trouble
        if self._task is not None:
            self._task.result()

    def _on_task_end(self, task: "asyncio.Task[None]") -> None:
        """Fail the waiting lines if the task failed, also when a callback for another line raised."""
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        for lasts in self._unsure:
            if not lasts.done():
                lasts.set_exception(error)

    async def _run(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting, []
            try:
                await self._write([line for line, _ in batch])
            except Fault as fault:
                self._trouble = fault
                self._fail(fault)
                return
            for _, then in batch:
                if then is not None:
                    then()
