"""A clock that moves only when somebody waits on it."""

import asyncio


class FakeClock:
    """`waits` are the sleeps so far. With `holds` a sleep never ends by itself; `asleep` tells that one has begun."""

    def __init__(self, start: float = 1_760_000_000.0, *, holds: bool = False) -> None:
        self.time = start
        self.waits: list[float] = []
        self.asleep = asyncio.Event()
        self._holds = holds

    def now(self) -> float:
        return self.time

    def monotonic(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.asleep.set()
        if self._holds:
            await asyncio.Event().wait()
        self.time += seconds
        await asyncio.sleep(0)
