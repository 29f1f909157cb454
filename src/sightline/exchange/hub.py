"""The hub: writes facts to the store, then to everything that watches; and announces news that is not recorded."""

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
"""The same for entries that are encoded."""

SOON = 0.1
"""Seconds in which a response may come before the request is written without it."""

SHOWN = 0.1
"""Seconds in which frames are gathered before they are shown: no eye follows more, and to make each of them by itself
costs as much as to pass its chunk on."""

TRY_AGAIN = 1.0
"""Seconds between two attempts to write down what the store did not take."""

MOST_OWED = 64 << 20
"""How many bytes wait in memory while the store fails; what exceeds that is not recorded."""

_SMALL = 4096
_MOST_LOST = 10_000

MOST_WAITING = 10_000
"""A watcher that is further behind is disconnected; it can ask for what it has missed."""

FEW = 100
"""How many facts wait for a brief watcher before others are left out."""
_NOT_FOLLOWED = (*ENDS, Budgeted, ReplyStored)
"""Facts that may be the last ones of an exchange."""


@dataclass(frozen=True, slots=True)
class Announced:
    """News that is not on record as a fact of an exchange: of which kind, and what."""

    event: str
    value: JsonObject


News: TypeAlias = FactEntry | FramesEntry | Announced


def _size_of(entries: Sequence[KeptEntry]) -> int:
    """About how much memory these take."""
    size = 0
    for entry in entries:
        if isinstance(entry, FramesEntry):
            size += sum(128 + len(data) for data in entry.data)
        else:
            size += 512 + (len(entry.data) if isinstance(entry, BodyEntry) else 0)
    return size


class FactQueue:
    """Facts for one watcher, from the moment it was made. Iterate over it; `close` it, or leave its `with`.

    With `is_brief` it is for a watcher that shows what happens, and asks the record for the rest: while `FEW` facts
    wait, other exchanges are left out, and `more` is announced behind what waits. Of an exchange of which a fact came,
    all later ones come, up to its end. A hold always comes.
    """

    most_waiting = MOST_WAITING

    def __init__(self, hub: "Hub", *, is_brief: bool = False) -> None:
        self._hub = hub
        self._waiting: deque[News] = deque()
        self._change = asyncio.Event()
        self._is_over = False
        self.is_brief = is_brief
        self._followed: set[str] = set()
        """Exchanges of which all comes."""
        self.has_more = False
        """Whether something was left out since `take_waiting`."""

    def wants(self, exchange: str) -> bool:
        """Whether it takes the next fact of this exchange; what it does not take is left out."""
        if not self.is_brief or exchange in self._followed or len(self._waiting) < FEW:
            return True
        self.has_more = True
        return False

    def tell(self, news: News) -> None:
        """Put it into the queue, or leave it out."""
        if self.is_brief and not isinstance(news, Announced) and not self._follow(news):
            return
        if len(self._waiting) >= self.most_waiting:
            self.close()
        else:
            self._waiting.append(news)
            self._change.set()

    def _follow(self, entry: FactEntry | FramesEntry) -> bool:
        """Whether this is to be told, and with it what comes later of its exchange."""
        fact = entry.fact if isinstance(entry, FactEntry) else None
        if not isinstance(fact, Held) and not self.wants(entry.exchange):
            return False
        if isinstance(fact, _NOT_FOLLOWED):
            self._followed.discard(entry.exchange)
        else:
            self._followed.add(entry.exchange)
        return True

    def take_waiting(self) -> list[News]:
        """All that waits now, and whether there is more."""
        taken = list(self._waiting)
        self._waiting.clear()
        if self.has_more:
            self.has_more = False
            taken.append(Announced("more", {}))
        return taken

    def close(self) -> None:
        """No more facts; those that wait can still be had."""
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
        """Show the frames that have come since the last time."""


RUN_PREFIX = "r_"
"""What the names of runs begin with."""


class Hub:
    """Writes facts by `record` of the store, or by its `append`, and shows them to the watchers. `watching` is always
    the same list."""

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
        """What follows runs from outside; the agent's room says what that must be able to do."""
        self.spread: Callable[[], Awaitable[None]] | None = None
        """Has other processes show their facts here too; none is missed once it has returned."""
        self._is_closed = False
        self._owed: deque[Sequence[KeptEntry]] = deque()
        """What could not be written down yet, in its order."""
        self._owed_size = 0
        self._is_owing = False
        self._lost: dict[str, None] = {}
        """Exchanges of which nothing is written down any more, the latest last."""

    def record(self, entries: Sequence[KeptEntry], *, shown: int = 0) -> None:
        """Write these down, then show them; of frames those from fact number `shown` on, the others were shown before.

        What is owed goes first: facts of an exchange that came without those before them would be a torso. Raises what
        the store raises, and then these entries are not written.
        """
        while self._owed:
            try:
                self._write_down(self._owed[0])
            except (Fault, OSError):
                raise
            except Exception:  # noqa: BLE001 - whatever is wrong with one record, the others are written
                # The store will never take this, and must not refuse everything behind it for that.
                _LOG.exception("what was to be recorded later is lost")
            self._owed_size -= _size_of(self._owed.popleft())
        self._write_down(entries, shown)

    def append(self, data: bytes, exchange: str) -> None:
        """The same for entries of one exchange that are encoded; see `join_entries`."""
        if self._append is None or self._owed or self._lost:
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
        """Write these down as soon as the store takes them again; False where too much is owed already."""
        size = _size_of(entries)
        # The end of an exchange is small, and there is room for it when there is none for its contents.
        if self._owed_size + size > (2 * MOST_OWED if size < _SMALL else MOST_OWED):
            return False
        self._owed.append(entries)
        self._owed_size += size
        self._try_again_later()
        return True

    def lose(self, exchange: str) -> None:
        """Write nothing more of an exchange, because a part of it is missing."""
        self._lost[exchange] = None
        if len(self._lost) > _MOST_LOST:
            del self._lost[next(iter(self._lost))]

    def is_missing(self, exchange: str) -> bool:
        """Whether facts of an exchange came that are not on record."""
        owed = (entry for entries in self._owed for entry in entries)
        return exchange in self._lost or any(
            not isinstance(each, BodyEntry) and each.exchange == exchange for each in owed
        )

    def _try_again_later(self) -> None:
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return  # without a loop, the next record tries again
        if not self._is_owing:
            self._is_owing = True
            loop.call_later(TRY_AGAIN, self._settle)

    def _settle(self) -> None:
        self._is_owing = False
        if self._owed:
            try:
                self.record([])
            except (Fault, OSError):
                self._try_again_later()  # what is wrong is in the log already

    def expect_frames(self, source: FrameSource) -> None:
        """Have its frames shown soon, with all that come until then."""
        if not self._arriving:
            asyncio.get_running_loop().call_later(SHOWN, self._show_frames)
        self._arriving.add(source)

    def _show_frames(self) -> None:
        arriving, self._arriving = self._arriving, set()
        for source in arriving:
            source.show_frames()

    def show(self, entry: FactEntry | FramesEntry) -> None:
        """Show facts that are not recorded yet, such as frames, or not by this process."""
        for watch in self.watching[:]:
            watch.tell(entry)

    def announce(self, event: str, value: JsonObject) -> None:
        """Show news of this kind to the watchers. Nothing is recorded."""
        if self.watching:
            announced = Announced(event, value)
            for watch in self.watching[:]:
                watch.tell(announced)

    def expect(self, unwritten: PendingWrite) -> None:
        """Have its facts written soon, unless it writes them before.

        So a response that comes quickly is written together with its request. Who watches sees others a moment later.
        """
        self._unwritten.add(unwritten)
        if not self._is_timed:
            self._is_timed = True
            asyncio.get_running_loop().call_later(SOON, self._write)

    def stop_expecting(self, unwritten: PendingWrite) -> None:
        """It has written its facts itself."""
        self._unwritten.discard(unwritten)
        self._overdue.discard(unwritten)

    def _write(self) -> None:
        """Let those write that have waited for a whole interval; the others have some time left."""
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
        """Tell brief watchers that there is more than they were shown."""
        for watch in self.watching:
            watch.has_more = watch.is_brief

    def watch(self, *, is_brief: bool = False) -> FactQueue:
        """A watcher: every fact from now on, in order; with `is_brief` not more of them than a page can show."""
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
        """Let every watcher go, and try once more to write down what is owed."""
        self._is_closed = True
        self._settle()
        for watch in self.watching[:]:
            watch.close()
