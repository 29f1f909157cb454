"""A clock that a test moves by hand: sleepers wake in the order of their time."""

import asyncio


class SteppingClock:
    """`sleepers` are those who wait now, each with its time."""

    def __init__(self, start: float = 1_760_000_000.0) -> None:
        self.time = start
        self.sleepers: list[tuple[float, asyncio.Future[None]]] = []
        self._changed = asyncio.Event()

    def now(self) -> float:
        return self.time

    def monotonic(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        entry = self.time + seconds, asyncio.get_running_loop().create_future()
        self.sleepers.append(entry)
        self._changed.set()
        try:
            await entry[1]
        finally:
            self.sleepers.remove(entry)

    async def asleep(self, count: int = 1) -> None:
        """Wait until that many sleep."""
        while len(self.sleepers) < count:
            self._changed.clear()
            await self._changed.wait()

    async def forward(self, seconds: float) -> None:
        """Move on, and let everybody who is awake by then do what they do."""
        self.time += seconds
        for due, sleeper in list(self.sleepers):
            if due <= self.time and not sleeper.done():
                sleeper.set_result(None)
        for _ in range(20):
            await asyncio.sleep(0)
