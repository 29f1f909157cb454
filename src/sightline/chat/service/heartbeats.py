"""Heartbeats of the process that sends, so that another process can tell a long answer from a dead sender."""

import asyncio
import logging
from collections.abc import Callable

from sightline.errors import Fault
from sightline.store.store import Logbook

LOG = "chat-sending:"
"""Where the signs are, with the pair's id behind it; nothing of it stays once the pair has ended."""

BEAT = 10.0
"""Seconds between two signs."""

SILENCE = 35.0
"""After so many seconds without a heartbeat the sender counts as dead."""

_LOG = logging.getLogger(__name__)


class Heartbeats:
    """`process` is a name of this process that no other has or had, with its machine before a colon. Whether a process
    of the same machine still runs is for `is_alive` to say."""

    def __init__(
        self, logbook: Logbook, now: Callable[[], float], process: str, is_alive: Callable[[str], bool]
    ) -> None:
        self._logbook = logbook
        self._now = now
        self._process = process
        self._is_alive = is_alive
        self._pair = ""
        self._count = 0
        self._beating: asyncio.Task[None] | None = None

    async def begin(self, pair: str) -> None:
        """From now on this process sends the pair, and says so until it has ended."""
        self._pair, self._count = pair, 0
        await self.beat()
        self._beating = asyncio.get_running_loop().create_task(self._beat())

    async def end(self) -> None:
        """It has ended."""
        pair, self._pair = self._pair, ""
        if self._beating is not None:
            self._beating.cancel()
            await asyncio.wait({self._beating})
            self._beating = None
        await self.forget(pair)

    async def beat(self) -> None:
        """One sign. One that cannot be given is no reason to stop."""
        try:
            await self._logbook.append(LOG + self._pair, self._count, [self._process.encode()], self._now())
            self._count += 1
        except Fault as fault:
            _LOG.warning("no sign of life could be given: %s", fault.message)

    async def forget(self, pair: str) -> None:
        """Remove the heartbeats of a pair that has ended."""
        try:
            await self._logbook.forget(LOG + pair)
        except Fault as fault:
            _LOG.warning("signs of life could not be taken away: %s", fault.message)

    async def is_alive(self, pair: str) -> bool:
        """Whether a process is sending this pair, as far as can be known from here."""
        if pair == self._pair:
            return True
        lines = await self._logbook.lines(LOG + pair)
        if not lines:
            return False
        process, latest = lines[-1].data.decode(), lines[-1].at
        if process == self._process:
            return False  # its end could not be kept, nor the sign taken away
        if _machine(process) == _machine(self._process):
            return self._is_alive(process)  # a suspended process has no heartbeats, and goes on later
        return self._now() - latest < SILENCE

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(BEAT)
            await self.beat()


def _machine(process: str) -> str:
    return process.partition(":")[0]
