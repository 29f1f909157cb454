"""Every fact as it becomes true: into the record first, then to whoever watches; and what is only announced."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, Self, TypeAlias

from sightline.model.exchange import FrameArrived
from sightline.model.json import JsonObject
from sightline.store.entries import Entry, Noted
from sightline.store.said import Said

Record = Callable[[Sequence[Entry]], None]
Hear = Callable[[Said], None]

SOON = 0.1
"""Seconds in which an answer may come before the request alone is written down."""

MOST_WAITING = 10_000
"""A watcher that is further behind is let go: it can ask for what it has missed."""


@dataclass(frozen=True, slots=True)
class Announced:
    """News that is not on record as a fact of an exchange: of which kind, and what."""

    event: str
    value: JsonObject


News: TypeAlias = Noted | Announced


class Watch:
    """Facts for one watcher, from the moment it was made. Iterate over it; `close` it, or leave its `with`."""

    def __init__(self, hub: "Hub") -> None:
        self._hub = hub
        self._waiting: asyncio.Queue[News | None] = asyncio.Queue()
        self._is_over = False

    def tell(self, news: News) -> None:
        """Put it into the queue."""
        if self._waiting.qsize() >= MOST_WAITING:
            self.close()
        else:
            self._waiting.put_nowait(news)

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

    async def __anext__(self) -> News:
        news = await self._waiting.get()
        if news is None:
            self._waiting.put_nowait(None)
            raise StopAsyncIteration
        return news

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Unwritten(Protocol):
    """Whoever has facts that are not written down yet."""

    def commit(self) -> None:
        """Write them down."""
        ...


class Hub:
    """Writes facts down by `record`, which is the store's, and tells them. `hear` is the store's too: what replies say,
    for the search. `watching` are those who are told, and stays the same list."""

    def __init__(self, record: Record, hear: Hear | None = None) -> None:
        self._record = record
        self.hear = hear
        self._unwritten: set[Unwritten] = set()
        self._overdue: set[Unwritten] = set()
        self._is_timed = False
        self.watching: list[Watch] = []
        self._is_closed = False

    def record(self, entries: Sequence[Entry]) -> None:
        """Write these down, then tell the facts among them; frames were shown when they came."""
        self._record(entries)
        if self.watching:
            for entry in entries:
                if isinstance(entry, Noted) and not isinstance(entry.fact, FrameArrived):
                    self.show(entry)

    def show(self, noted: Noted) -> None:
        """Tell a fact that is not recorded yet: a frame, as it comes."""
        for watch in self.watching[:]:
            watch.tell(noted)

    def announce(self, event: str, value: JsonObject) -> None:
        """Tell news of this kind. Nothing is recorded, and who does not watch misses it."""
        if self.watching:
            announced = Announced(event, value)
            for watch in self.watching[:]:
                watch.tell(announced)

    def expect(self, unwritten: Unwritten) -> None:
        """See to it that its facts are written down soon, if it does not do so before: at once where somebody watches.

        Most answers that are made up quickly are written down once and not twice.
        """
        if self.watching:
            unwritten.commit()
            return
        self._unwritten.add(unwritten)
        if not self._is_timed:
            self._is_timed = True
            asyncio.get_running_loop().call_later(SOON, self._write)

    def written(self, unwritten: Unwritten) -> None:
        """It has done so itself."""
        self._unwritten.discard(unwritten)
        self._overdue.discard(unwritten)

    def _write(self) -> None:
        """Have those write that were here a while ago already; the others have some time left."""
        for unwritten in list(self._overdue):
            unwritten.commit()
        self._overdue, self._unwritten = self._unwritten, self._overdue
        self._is_timed = bool(self._overdue)
        if self._is_timed:
            asyncio.get_running_loop().call_later(SOON, self._write)

    @property
    def is_watched(self) -> bool:
        """Whether anybody would hear of it."""
        return bool(self.watching)

    def watch(self) -> Watch:
        """Every fact from now on, in the order of its becoming true."""
        watch = Watch(self)
        self.watching.append(watch)
        if self._is_closed:
            watch.close()
        return watch

    def forget(self, watch: Watch) -> None:
        """Tell this one nothing more."""
        self.watching.remove(watch)

    def close(self) -> None:
        """Let every watcher go."""
        self._is_closed = True
        for watch in self.watching[:]:
            watch.close()
