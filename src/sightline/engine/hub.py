"""Every fact as it becomes true: into the record first, then to whoever watches."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Self

from sightline.model.exchange import FrameArrived
from sightline.store.entries import Entry, Noted

Record = Callable[[Sequence[Entry]], None]

MOST_WAITING = 10_000
"""A watcher that is further behind is let go: it can ask for what it has missed."""


class Watch:
    """Facts for one watcher, from the moment it was made. Iterate over it; `close` it, or leave its `with`."""

    def __init__(self, hub: "Hub") -> None:
        self._hub = hub
        self._waiting: asyncio.Queue[Noted | None] = asyncio.Queue()
        self._is_over = False

    def tell(self, noted: Noted) -> None:
        """Put a fact into the queue."""
        if self._waiting.qsize() >= MOST_WAITING:
            self.close()
        else:
            self._waiting.put_nowait(noted)

    def close(self) -> None:
        """No more facts; those that wait can still be had."""
        if not self._is_over:
            self._is_over = True
            self._hub.forget(self)
            self._waiting.put_nowait(None)

    async def aclose(self) -> None:
        """The same, as iterators have it."""
        self.close()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Noted:
        noted = await self._waiting.get()
        if noted is None:
            self._waiting.put_nowait(None)
            raise StopAsyncIteration
        return noted

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Hub:
    """Writes facts down by `record`, which is the store's, and tells them."""

    def __init__(self, record: Record) -> None:
        self._record = record
        self._watching: list[Watch] = []
        self._is_closed = False

    def record(self, entries: Sequence[Entry]) -> None:
        """Write these down, then tell the facts among them; frames were shown when they came."""
        self._record(entries)
        if self._watching:
            for entry in entries:
                if isinstance(entry, Noted) and not isinstance(entry.fact, FrameArrived):
                    self.show(entry)

    def show(self, noted: Noted) -> None:
        """Tell a fact that is not recorded yet: a frame, as it comes."""
        for watch in self._watching[:]:
            watch.tell(noted)

    @property
    def is_watched(self) -> bool:
        """Whether anybody would hear of it."""
        return bool(self._watching)

    def watch(self) -> Watch:
        """Every fact from now on, in the order of its becoming true."""
        watch = Watch(self)
        self._watching.append(watch)
        if self._is_closed:
            watch.close()
        return watch

    def forget(self, watch: Watch) -> None:
        """Tell this one nothing more."""
        self._watching.remove(watch)

    def close(self) -> None:
        """Let every watcher go."""
        self._is_closed = True
        for watch in self._watching[:]:
            watch.close()
