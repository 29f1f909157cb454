"""The hub: writes facts to the store, then shows them to all watchers; announces news that is not recorded."""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, Self, TypeAlias

from sightline.errors import Fault
from sightline.model.exchange import ENDS, Budgeted, Held, ReplyStored
from sightline.model.json import JsonObject
from sightline.store.entries import BodyEntry, FactEntry, FramesEntry, KeptEntry, since
from sightline.store.whole import decode_entries

_LOG = logging.getLogger(__name__)

Record = Callable[[Sequence[KeptEntry]], None]
Append = Callable[[bytes], None]
"""The same for encoded entries."""

SOON = 0.1
"""Seconds to wait for a response before the request is written without it."""

SHOWN = 0.1
"""Seconds for which frames are gathered before they are shown: nobody can follow more, and making each frame separately
costs as much as passing its chunk on."""

TRY_AGAIN = 1.0
"""Seconds between two attempts to write what the store could not write."""

MOST_OWED = 64 << 20
"""The most bytes that wait in memory while the store fails. Anything beyond that is not recorded."""

_SMALL = 4096
_MOST_LOST = 10_000

MOST_WAITING = 10_000
"""A watcher with more facts waiting is disconnected; it can ask for what it has missed."""

FEW = 100
"""How many facts wait for a brief watcher before other exchanges are skipped."""
_NOT_FOLLOWED = (*ENDS, Budgeted, ReplyStored)
"""Facts that may be the last of an exchange."""


@dataclass(frozen=True, slots=True)
class Announced:
    """News that is not recorded as a fact of an exchange: its kind and its value."""

    event: str
    value: JsonObject


News: TypeAlias = FactEntry | FramesEntry | Announced


def _size_of(entries: Sequence[KeptEntry]) -> int:
    """Roughly how much memory these entries take."""
    size = 0
    for entry in entries:
        if isinstance(entry, FramesEntry):
            size += sum(128 + len(data) for data in entry.data)
        else:
            size += 512 + (len(entry.data) if isinstance(entry, BodyEntry) else 0)
    return size


class FactQueue:
    """Facts for one watcher, from the moment it was created. Iterate over it; `close` it, or leave its `with` block.

    With `is_brief`, it is for a watcher that shows what is happening, and asks the record for the rest: while `FEW`
    facts wait, other exchanges are skipped, and `more` is announced after the waiting facts. Once a fact of an exchange
    was delivered, all later ones are, until its end. A hold is always delivered.
    """

    most_waiting = MOST_WAITING

    def __init__(self, hub: "Hub", *, is_brief: bool = False) -> None:
        self._hub = hub
        self._waiting: deque[News] = deque()
        self._change = asyncio.Event()
        self._is_over = False
        self.is_brief = is_brief
        self._followed: set[str] = set()
        """Exchanges of which every fact is delivered."""
        self.has_more = False
        """Whether something was skipped since `take_waiting`."""

    def wants(self, exchange: str) -> bool:
        """Whether the queue takes the next fact of this exchange; otherwise the fact is skipped."""
        if not self.is_brief or exchange in self._followed or len(self._waiting) < FEW:
            return True
        self.has_more = True
        return False

    def tell(self, news: News) -> None:
        """Add news to the queue, or skip it."""
        if self.is_brief and not isinstance(news, Announced) and not self._follow(news):
            return
        if len(self._waiting) >= self.most_waiting:
            self.close()
        else:
            self._waiting.append(news)
            self._change.set()

    def _follow(self, entry: FactEntry | FramesEntry) -> bool:
        """Whether to deliver this fact, and with it later facts of its exchange."""
        fact = entry.fact if isinstance(entry, FactEntry) else None
        if not isinstance(fact, Held) and not self.wants(entry.exchange):
            return False
        if isinstance(fact, _NOT_FOLLOWED):
            self._followed.discard(entry.exchange)
        else:
            self._followed.add(entry.exchange)
        return True

    def take_waiting(self) -> list[News]:
        """All waiting news, and an announcement of `more` if something was skipped."""
        taken = list(self._waiting)
        self._waiting.clear()
        if self.has_more:
            self.has_more = False
            taken.append(Announced("more", {}))
        return taken

    def close(self) -> None:
        """Accept no more facts; waiting ones can still be read."""
        if not self._is_over:
            self._is_over = True
            self._hub.forget(self)
            self._change.set()

    async def aclose(self) -> None:
        self.close()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> News:
        while not self._waiting:
            if self._is_over:
                raise StopAsyncIteration
            self._change.clear()
            await self._change.wait()
        return self._waiting.popleft()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class PendingWrite(Protocol):
    """A recorder with facts that are not written yet."""

    def commit(self) -> None:
        """Write them."""


class FrameSource(Protocol):
    """A recorder of a response that is arriving."""

    def show_frames(self) -> None:
        """Show the frames that have arrived since the last call."""


RUN_PREFIX = "r_"
"""The prefix of the ids of runs."""


class Hub:
    """Writes facts with the store's `record`, or encoded ones with its `append`, and shows them to the watchers.
    `watching` is always the same list."""

    def __init__(self, record: Record, append: Append | None = None) -> None:
        self._record = record
        self._append = append
        self._unwritten: set[PendingWrite] = set()
        self._overdue: set[PendingWrite] = set()
        self._is_timed = False
        self._arriving: set[FrameSource] = set()
        self.streaming: set[FrameSource] = set()
        """Recorders of responses whose chunks pass without being recorded one by one."""
        self.watching: list[FactQueue] = []
        self.observer: object | None = None
        """What observes runs from outside this process; the agent package defines its interface."""
        self.spread: Callable[[], Awaitable[None]] | None = None
        """Makes other processes show their facts here too; once it has returned, no fact is missed."""
        self._is_closed = False
        self._deferred: deque[Sequence[KeptEntry]] = deque()
        """Entries that could not be written yet, in order."""
        self._owed_size = 0
        self._retry_scheduled = False
        self._lost: dict[str, None] = {}
        """Exchanges of which nothing more is written, the latest last."""

    def record(self, entries: Sequence[KeptEntry], *, shown: int = 0) -> None:
        """Write these entries, then show them. Of frames, only those from fact number `shown` on are shown: the others
        were shown before.

        Entries that are still owed are written first: an exchange without its first facts would be incomplete. Raises
        what the store raises; these entries are then not written.
        """
        while self._deferred:
            try:
                self._write_down(self._deferred[0])
            except (Fault, OSError):
                raise
            except Exception:  # noqa: BLE001 - one bad record must not keep the others from being written
                # The store will never accept this entry, which must not block everything after it.
                _LOG.exception("what was to be recorded later is lost")
            self._owed_size -= _size_of(self._deferred.popleft())
        self._write_down(entries, shown)

    def append(self, data: bytes, exchange: str) -> None:
        """The same for encoded entries of one exchange; see `join_entries`."""
        if self._append is None or self._deferred or self._lost:
            self.record(decode_entries(memoryview(data)))
            return
        self._append(data)
        if self.watching and any(watch.wants(exchange) for watch in self.watching):
            self._show_all(decode_entries(memoryview(data)))

    def _write_down(self, entries: Sequence[KeptEntry], shown: int = 0) -> None:
        if self._lost:
            entries = [each for each in entries if isinstance(each, BodyEntry) or each.exchange not in self._lost]
        if not entries:
            return
        self._record(entries)
        if self.watching:
            self._show_all(entries, shown)

    def _show_all(self, entries: Sequence[KeptEntry], shown: int = 0) -> None:
        for entry in entries:
            if isinstance(entry, FactEntry):
                self.show(entry)
            elif isinstance(entry, FramesEntry) and (unseen := since(entry, shown)) is not None:
                self.show(unseen)

    def owe(self, entries: Sequence[KeptEntry]) -> bool:
        """Write these entries as soon as the store accepts them again. False if too much is owed already."""
        size = _size_of(entries)
        # The end of an exchange is small: there is still room for it if there is none for its contents.
        if self._owed_size + size > (2 * MOST_OWED if size < _SMALL else MOST_OWED):
            return False
        self._deferred.append(entries)
        self._owed_size += size
        self._try_again_later()
        return True

    def lose(self, exchange: str) -> None:
        """Write nothing more of an exchange, because part of it is missing."""
        self._lost[exchange] = None
        if len(self._lost) > _MOST_LOST:
            del self._lost[next(iter(self._lost))]

    def is_missing(self, exchange: str) -> bool:
        """Whether there are facts of an exchange that are not recorded."""
        owed = (entry for entries in self._deferred for entry in entries)
        return exchange in self._lost or any(
            not isinstance(each, BodyEntry) and each.exchange == exchange for each in owed
        )

    def _try_again_later(self) -> None:
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return  # without a loop, the next `record` tries again
        if not self._retry_scheduled:
            self._retry_scheduled = True
            loop.call_later(TRY_AGAIN, self._settle)

    def _settle(self) -> None:
        self._retry_scheduled = False
        if self._deferred:
            try:
                self.record([])
            except (Fault, OSError):
                self._try_again_later()  # the reason is in the log already

    def expect_frames(self, source: FrameSource) -> None:
        """Show the frames of this source soon, with all that arrive until then."""
        if not self._arriving:
            asyncio.get_running_loop().call_later(SHOWN, self._show_frames)
        self._arriving.add(source)

    def _show_frames(self) -> None:
        arriving, self._arriving = self._arriving, set()
        for source in arriving:
            source.show_frames()

    def show(self, entry: FactEntry | FramesEntry) -> None:
        """Show facts that are not recorded yet, such as frames, or not recorded by this process."""
        for watch in self.watching[:]:
            watch.tell(entry)

    def announce(self, event: str, value: JsonObject) -> None:
        """Show news of this kind to the watchers. Nothing is recorded."""
        if self.watching:
            announced = Announced(event, value)
            for watch in self.watching[:]:
                watch.tell(announced)

    def expect(self, unwritten: PendingWrite) -> None:
        """Write the facts of this recorder soon, unless it writes them first.

        A response that arrives quickly is thus written together with its request. Watchers see slower requests a moment
        later.
        """
        self._unwritten.add(unwritten)
        if not self._is_timed:
            self._is_timed = True
            asyncio.get_running_loop().call_later(SOON, self._write)

    def stop_expecting(self, unwritten: PendingWrite) -> None:
        """The recorder has written its facts itself."""
        self._unwritten.discard(unwritten)
        self._overdue.discard(unwritten)

    def _write(self) -> None:
        """Write the facts that have waited for a whole interval; the others have some time left."""
        for unwritten in list(self._overdue):
            unwritten.commit()
        self._overdue, self._unwritten = self._unwritten, self._overdue
        self._is_timed = bool(self._overdue)
        if self._is_timed:
            asyncio.get_running_loop().call_later(SOON, self._write)

    @property
    def is_watched(self) -> bool:
        return bool(self.watching)

    @property
    def is_watched_closely(self) -> bool:
        return any(not watch.is_brief for watch in self.watching)

    def leave_out(self) -> None:
        """Tell brief watchers that some facts were skipped."""
        for watch in self.watching:
            watch.has_more = watch.is_brief

    def watch(self, *, is_brief: bool = False) -> FactQueue:
        """A watcher that gets every fact from now on, in order; with `is_brief`, only as many as a page can show."""
        watch = FactQueue(self, is_brief=is_brief)
        self.add_watcher(watch)
        if self._is_closed:
            watch.close()
        return watch

    def add_watcher(self, watch: FactQueue) -> None:
        self.watching.append(watch)
        for source in self.streaming:
            self.expect_frames(source)

    def forget(self, watch: FactQueue) -> None:
        self.watching.remove(watch)

    def close(self) -> None:
        """Disconnect every watcher, and try once more to write what is owed."""
        self._is_closed = True
        self._settle()
        for watch in self.watching[:]:
            watch.close()
