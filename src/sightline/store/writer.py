"""One thread that brings what was recorded into the database, in batches, and never loses any of it.

A caller that records waits for the journal alone. When the database falls behind, what is recorded stays in the journal
and is read back from there, so that memory stays bounded. When the database fails, `trouble` says so and the thread
tries again. A record that it cannot take for a reason of its own is set aside, so that it does not block others.
"""

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

from sightline.errors import Code, Fault
from sightline.store.entries import BodyEntry, Entry, FactEntry
from sightline.store.journal import EntryJournal, JournalPosition, frame_record
from sightline.store.summary import Unfinished, interruptions

MOST_IN_MEMORY = 32 << 20
_LOG = logging.getLogger(__name__)
_MOST_IN_BATCH = 4 << 20
_MOST_ENTRIES = 4096
_PAUSE, _MOST_PAUSES = 0.1, 5
"""Seconds in which a batch may grow, and how often that is so while much comes in: many small batches change the same
pages again and again. Readers of the record do not wait for them."""
_MUCH = 64
"""Records in one such pause."""
_LULL = 0.02
"""Seconds without anything new after which there is time for what can wait."""
_FIRST_WAIT, _LONGEST_WAIT = 0.05, 5.0


class Sink(Protocol):
    """A database, as the thread sees it; all of this is called on that thread.

    A Fault means: not now, try again. Any other error means that it cannot be done with these entries.
    """

    def apply(self, batch: Sequence[Entry]) -> None:
        """Bring all of these in, or none; what is there already changes nothing."""
        ...

    def claim_open_exchanges(self, slots: Sequence[int]) -> list[Unfinished]:
        """The exchanges that have not ended and were written by processes with these slots of our journal."""
        ...

    def tidy(self) -> bool:
        """Do a piece of the work that can wait; False where none is left."""
        ...

    def close(self) -> None:
        """The thread ends."""
        ...


class RecordWriter:
    """The way into one database. `trouble` is what keeps entries in the journal at the moment, None if nothing does;
    `unwritten` why the latest could not even be written there."""

    def __init__(
        self, journal: EntryJournal, sink: Sink, now: Callable[[], float], *, most_in_memory: int = MOST_IN_MEMORY
    ) -> None:
        self._journal = journal
        self._sink = sink
        self._now = now
        self._most_in_memory = most_in_memory
        self._lock = threading.Lock()
        self._queue: deque[tuple[Sequence[Entry], JournalPosition]] = deque()
        self._in_memory = 0
        self._behind: JournalPosition | None = None
        """The first record that is in the journal only."""
        self._work = threading.Event()
        self._nudge = threading.Event()
        self._changed = threading.Condition()
        # What ended processes left counts as one record, so that settling waits for it.
        self._recorded, self._done, self._failures = 1, 0, 0
        self._tidy_at = 0
        """How many records there were when nothing was left to tidy."""
        self._is_closing = False
        self._has_ended = False
        self.trouble: Fault | None = None
        self.unwritten: Fault | None = None
        self._thread = threading.Thread(target=self._run, name="sightline-record", daemon=True)
        self._thread.start()

    def record(self, entries: Sequence[Entry]) -> None:
        """Take these entries; once it returns, the end of this process cannot lose them."""
        record, entries = frame_record(entries)
        with self._lock:
            place = self._append(record)
            size = place.end - place.start
            if self._behind is None and self._in_memory + size <= self._most_in_memory:
                self._queue.append((entries, place))
                self._in_memory += size
            elif self._behind is None:
                self._behind = place
            self._recorded += 1
        if not self._work.is_set():
            self._work.set()

    def _append(self, record: bytearray) -> JournalPosition:
        try:
            place = self._journal.append(record)
        except Fault as fault:
            self.unwritten = fault
            raise
        self.unwritten = None
        return place

    def wait_for_replay(self) -> None:
        """Wait until what earlier processes left is in the database, or say why it is not."""
        self._await(lambda: self._done >= 1)

    def settle(self) -> None:
        """Wait until all that was recorded is in the database, or say why it is not; a closed writer says so."""
        if self._is_closing:
            raise _store_closed()
        wanted = self._recorded
        self._await(lambda: self._done >= wanted and self._tidy_at >= wanted)

    def _await(self, is_so: Callable[[], bool]) -> None:
        with self._changed:
            seen = self._failures
            self._work.set()
            self._nudge.set()
            self._changed.wait_for(lambda: self._has_ended or self._failures > seen or is_so())
            if is_so():
                return
        raise self.trouble or _store_closed()

    def close(self) -> None:
        """Bring in what can be brought in, and end the thread. What cannot stays in the journal."""
        self._is_closing = True
        self._work.set()
        self._nudge.set()
        self._thread.join()
        self._journal.close(is_drained=self._done >= self._recorded)

    def _run(self) -> None:
        try:
            if self._replay():
                while self._step():
                    pass
        finally:
            self._sink.close()
            with self._changed:
                self._has_ended = True
                if not self._is_closing:
                    self.trouble = _store_closed()
                self._changed.notify_all()

    def _replay(self) -> bool:
        """Import what ended processes left in their journals, and end the exchanges that they had open."""
        batch: list[Sequence[Entry]] = []
        weight = 0
        for entries in self._journal.remaining_records():
            batch.append(entries)
            weight += sum(map(_weight, entries))
            if weight >= _MOST_IN_BATCH:
                if not self._import_batch(batch):
                    return False
                batch, weight = [], 0
        if not self._import_batch(batch) or not self._end_interrupted():
            return False
        self._journal.forget_left()
        self._advance(1)
        self._work.set()
        return True

    def _end_interrupted(self) -> bool:
        unfinished: list[Unfinished] = []
        try:
            if not self._retry(lambda: unfinished.extend(self._sink.claim_open_exchanges(self._journal.slots))):
                return False
        except Exception:  # noqa: BLE001 - the one thread that writes must not die of what another has left
            _LOG.exception("exchanges that were cut off are not ended; the next start tries it again")
        return self._import_batch([[end] for end in interruptions(unfinished, self._now())])

    def _step(self) -> bool:
        """One batch, or a piece of what can wait; False when the thread shall end."""
        self._work.wait()
        self._wait_for_batch()
        self._work.clear()
        batch, place = self._take_batch()
        if place is None:
            return not self._is_closing and (self._is_busy() or self._run_chores())
        if not self._import_batch(batch):
            return False
        self._journal.mark_committed(place)
        self._work.set()
        self._advance(len(batch))
        return True

    def _wait_for_batch(self) -> None:
        """Wait while the next batch grows, unless a caller waits for it."""
        seen = 0
        for _ in range(_MOST_PAUSES):
            if not self._queue or self._in_memory >= _MOST_IN_BATCH or self._is_closing:
                return
            if self._nudge.wait(_PAUSE):
                self._nudge.clear()
                return
            if len(self._queue) < seen + _MUCH:
                return
            seen = len(self._queue)

    def _is_busy(self) -> bool:
        """Whether more comes in a moment, so that what can wait had better wait; not where a caller waits for it."""
        if self._nudge.wait(_LULL):
            self._nudge.clear()
            return False
        return bool(self._queue)

    def _import_batch(self, batch: Sequence[Sequence[Entry]]) -> bool:
        """Bring these records in; False where that cannot be done before the thread shall end."""
        try:
            return self._retry(partial(self._sink.apply, [entry for record in batch for entry in record]))
        except Exception as error:  # noqa: BLE001 - the one thread that writes must not die of one record
            _LOG.warning("a batch of %d records was refused and is brought in one by one: %r", len(batch), error)
        return all(self._import_record(record) for record in batch)

    def _import_record(self, record: Sequence[Entry]) -> bool:
        try:
            return self._retry(partial(self._sink.apply, record))
        except Exception as error:  # noqa: BLE001 - as above
            names = sorted({entry.exchange for entry in record if isinstance(entry, FactEntry)})
            aside = self._journal.refused
            _LOG.error("%s: the database cannot take this; it is in %s", ", ".join(names), aside, exc_info=error)
        return self._retry(partial(self._journal.quarantine, record))

    def _run_chores(self) -> bool:
        """Do some of what can wait; False when the thread shall end."""
        known = self._done
        more: list[bool] = []
        try:
            if not self._retry(lambda: more.append(self._sink.tidy())):
                return False
        except Exception:  # noqa: BLE001 - as above
            _LOG.exception("an exchange could not be read for search; it is on record all the same")
        if any(more):
            self._work.set()
            return True
        with self._changed:
            self._tidy_at = known
            self._changed.notify_all()
        return True

    def _take_batch(self) -> tuple[list[Sequence[Entry]], JournalPosition | None]:
        """The next records, and the last one's place."""
        batch: list[Sequence[Entry]] = []
        count = weight = 0
        place: JournalPosition | None = None
        with self._lock:
            while self._queue and weight < _MOST_IN_BATCH and count < _MOST_ENTRIES:
                entries, place = self._queue.popleft()
                batch.append(entries)
                count += len(entries)
                weight += place.end - place.start
            self._in_memory -= weight
            behind = self._behind
        if batch or behind is None:
            return batch, place
        for entries, place in self._journal.since(behind):
            batch.append(entries)
            weight += place.end - place.start
            if weight >= _MOST_IN_BATCH:
                break
        with self._lock:
            if place is not None:
                # What comes next is read from the journal too, until its end is reached.
                self._behind = (
                    None if self._journal.ends_at(place) else JournalPosition(place.segment, place.end, place.end)
                )
        return batch, place

    def _retry(self, attempt: Callable[[], None]) -> bool:
        """Do it, again and again while it fails; False where it still fails when the thread shall end. An error that is
        no Fault is the caller's."""
        wait = _FIRST_WAIT
        while True:
            try:
                attempt()
            except Fault as fault:
                self._tell(fault)
            else:
                self.trouble = None
                return True
            if self._is_closing:
                return False
            if self._nudge.wait(wait):
                self._nudge.clear()
            wait = min(2 * wait, _LONGEST_WAIT)

    def _tell(self, fault: Fault) -> None:
        with self._changed:
            self.trouble = fault
            self._failures += 1
            self._changed.notify_all()

    def _advance(self, count: int) -> None:
        with self._changed:
            self._done += count
            self._changed.notify_all()


def _weight(entry: Entry) -> int:
    return len(entry.data) if isinstance(entry, BodyEntry) else 512


def _store_closed() -> Fault:
    return Fault(Code.CONFIG, "the record is closed", hint="Start Sightline again; what was recorded is kept.")
