"""Imports records from the journals of a data folder into its database, in batches.

One process of a data folder does this at a time: the one that holds the recorder's lock. If the database fails, a Fault
is raised and the records stay in the journal. A record that the database refuses because of its content is set aside,
so that it does not block others. Importing a record twice does no harm, so replaying needs no bookkeeping.
"""

import logging
import os
from collections.abc import Callable, Sequence
from itertools import chain, groupby
from operator import itemgetter
from pathlib import Path
from typing import Literal, Protocol, TypeAlias

import msgspec

from sightline.errors import Code, Fault
from sightline.platform.files import lock, open_pipe, replacing, write_pipe
from sightline.store.entries import FactEntry
from sightline.store.journal import (
    TornTail,
    lock_path,
    mark_imported,
    put_aside,
    quarantine,
    records,
    remove_spares,
    segments,
    slots_in,
    state_of,
    unwritable,
)
from sightline.store.summary import Unfinished, interruptions
from sightline.store.whole import RecordedEntry, decode_entries, unfold

_LOG = logging.getLogger(__name__)
Fsync: TypeAlias = Literal["never", "batches", "records"]
"""What is forced to the disk, so that it survives a crash of the machine; see `StoreSettings`."""
_LOCK, _WAKE, _TROUBLE = "recorder.lock", "recorder.wake", "recorder.trouble"
_MOST_IN_BATCH, _MOST_BYTES = 256, 4 << 20
"""The limits of a batch, in records and in bytes: a larger one costs memory and saves little."""


_MANY_SEGMENTS = 32


class Sink(Protocol):
    """A database, as the importer sees it.

    A Fault means that the caller should try again later. Any other error means that these entries cannot be imported.
    """

    @property
    def decode(self) -> Callable[[memoryview], Sequence[RecordedEntry]]:
        """The function that decodes a record into the entries that `apply` takes. It raises a `DecodeError` if the data
        is not a record."""

    def apply(self, batch: Sequence[RecordedEntry], slot: int) -> None:
        """Import all of these entries or none. `slot` is that of the process that recorded them. Entries that the
        database already has change nothing."""

    def open_exchanges(self, living: Sequence[int]) -> list[Unfinished]:
        """The exchanges of this data folder that have not ended, without those of processes with these slots."""

    def tidy(self) -> bool:
        """Do some of the deferred work; returns False if there is none left."""

    def refresh(self) -> None:
        """Drop what is cached of the database, because another process may have changed it."""

    def rest(self) -> None:
        """Drop caches that are quick to fill again, because there is nothing to do."""

    def close(self) -> None:
        """Close the database."""


class Importer:
    """Imports the journals of one data folder. `torn` are the ends of journals that a crash of the machine has made
    unreadable.

    An importer belongs to one thread. The sink is opened when there is something to do for the first time.
    """

    def __init__(self, folder: Path, open_sink: Callable[[], Sink], now: Callable[[], float]) -> None:
        self.torn: list[TornTail] = []
        self._folder = folder
        self._open_sink = open_sink
        self._now = now
        self._sink: Sink | None = None
        self._lock = -1
        self._has_ended_all = False
        self.is_behind = False
        """Whether so many segments wait that they should be imported without regard for other work."""

    def acquire(self) -> bool:
        """Take the recorder's lock; returns False if another process holds it."""
        file = os.open(self._folder / _LOCK, os.O_CREAT | os.O_RDWR, 0o600)
        if not lock(file):
            os.close(file)
            return False
        self._lock = file
        if self._sink is not None:
            self._sink.refresh()
        return True

    def release(self) -> None:
        """Release the recorder's lock."""
        os.close(self._lock)
        self._lock = -1

    def catch_up(self) -> bool:
        """Import all records that are there now; returns whether there were any. Raises a Fault if the database
        fails."""
        is_any = False
        try:
            living = {slot for slot in slots_in(self._folder) if not self._is_dead(slot)}
            waiting = segments(self._folder)
            self.is_behind = len(waiting) > _MANY_SEGMENTS
            for slot, found in groupby(waiting, key=itemgetter(0)):
                is_any |= self._import_slot(slot, [path for _, path in found], is_living=slot in living)
        except Fault as fault:
            note_trouble(self._folder, fault)
            raise
        note_trouble(self._folder, None)
        return is_any

    def end_interrupted(self) -> None:
        """Import the records of processes that are gone, end their exchanges, and remove their files."""
        dead = [slot for slot in slots_in(self._folder) if self._is_dead(slot)]
        self.catch_up()
        if not dead and self._has_ended_all:
            return
        living = [slot for slot in slots_in(self._folder) if slot not in dead]
        try:
            ends = interruptions(self._get_sink().open_exchanges(living), self._now())
            self._import([[end] for end in ends], 0)
        except Fault as fault:
            note_trouble(self._folder, fault)
            raise
        except Exception:  # noqa: BLE001 - what another process has left must not stop recording
            _LOG.exception("exchanges that were cut off are not ended; the next start tries it again")
        for slot in dead:
            self._remove(slot)
        if not living:
            remove_spares(self._folder)
        self._has_ended_all = True

    def rest(self) -> None:
        """Drop caches, because there is nothing to do."""
        if self._sink is not None:
            self._sink.rest()

    def close(self) -> None:
        """Close the database and release the lock."""
        if self._sink is not None:
            self._sink.close()
        if self._lock >= 0:
            self.release()

    def _get_sink(self) -> Sink:
        if self._sink is None:
            self._sink = self._open_sink()
        return self._sink

    def _is_dead(self, slot: int) -> bool:
        try:
            file = os.open(lock_path(self._folder, slot), os.O_RDWR)
        except FileNotFoundError:
            return True
        try:
            return lock(file)
        finally:
            os.close(file)

    def _remove(self, slot: int) -> None:
        for path in self._folder.glob(f"{slot:03}-*"):
            path.unlink(missing_ok=True)
        lock_path(self._folder, slot).unlink(missing_ok=True)

    def _import_slot(self, slot: int, paths: Sequence[Path], *, is_living: bool) -> bool:
        """Import the records of one process; returns whether there were any. A batch may span several segments."""
        batch, size, is_any = list[Sequence[RecordedEntry]](), 0, False
        reached: dict[Path, int] = {}
        done: list[Path] = []
        for path in paths:
            state = state_of(path)
            if state is None or (is_living and not state.has_head):
                continue  # a process of an earlier version imports its records itself
            at = state.imported
            decode = self._get_sink().decode if at < state.end else decode_entries
            for record in records(path, at, state.end, decode, is_certain=is_living):
                if isinstance(record, TornTail):
                    if is_living:
                        self._import(batch, slot)
                        _store_progress({**reached, path: at}, done)
                        raise _damage_fault(record)
                    if record not in self.torn:
                        self.torn.append(record)
                    at = state.end
                    break
                entries, end = record
                batch.append(entries)
                size += end - at
                at = end
                if len(batch) >= _MOST_IN_BATCH or size >= _MOST_BYTES:
                    self._import(batch, slot)
                    _store_progress(reached | ({path: at} if state.has_head else {}), done)
                    reached.clear()
                    batch, size = [], 0
            is_any |= at > state.imported
            if state.is_sealed and at >= state.end:
                done.append(path)
            elif state.has_head and at > state.imported:
                reached[path] = at
        self._import(batch, slot)
        _store_progress(reached, done)
        return is_any

    def _import(self, batch: Sequence[Sequence[RecordedEntry]], slot: int) -> None:
        """Import these records and do the deferred work that they cause."""
        if not batch:
            return
        sink = self._get_sink()
        try:
            sink.apply(list(chain.from_iterable(batch)), slot)
        except Fault:
            raise
        except Exception as error:  # noqa: BLE001 - an error in one record must not block others
            _LOG.warning("a batch of %d records was refused and is brought in one by one: %r", len(batch), error)
            for record in batch:
                self._import_record(sink, record, slot)
        try:
            while sink.tidy():
                pass
        except Fault:
            raise
        except Exception:  # noqa: BLE001 - as above
            _LOG.exception("an exchange could not be read for search; it is on record all the same")

    def _import_record(self, sink: Sink, record: Sequence[RecordedEntry], slot: int) -> None:
        try:
            sink.apply(record, slot)
        except Fault:
            raise
        except Exception as error:  # noqa: BLE001 - as above
            entries = unfold(record)
            aside = quarantine(self._folder, slot, entries)
            names = sorted({entry.exchange for entry in entries if isinstance(entry, FactEntry)})
            _LOG.error("%s: the database cannot take this; it is in %s", ", ".join(names), aside, exc_info=error)


def _store_progress(reached: dict[Path, int], done: list[Path]) -> None:
    """Store how far these segments are imported. Segments that are done can be reused."""
    if done:
        put_aside(*done)
    for path in done:
        reached.pop(path, None)
    for path, at in reached.items():
        mark_imported(path, at)
    done.clear()


def _damage_fault(torn: TornTail) -> Fault:
    return Fault(
        Code.CONFIG,
        f"{torn.path} was changed by another program at byte {torn.at}",
        hint="Leave the journal folder to Sightline, and start it again.",
    )


# --- signals between processes ---


class _Trouble(msgspec.Struct, frozen=True):
    """Why records do not reach the database, and how many times that has happened in a row."""

    count: int
    code: Code
    message: str
    hint: str


def note_trouble(folder: Path, fault: Fault | None) -> None:
    """Write for all processes why records do not reach the database; None if they do."""
    path = folder / _TROUBLE
    if fault is None:
        path.unlink(missing_ok=True)
        return
    known = _read_trouble(folder)
    trouble = _Trouble(known.count + 1 if known else 1, fault.code, fault.message, fault.hint)
    try:
        with replacing(path) as file:
            file.write(msgspec.json.encode(trouble))
    except OSError:
        _LOG.warning("the record cannot be written: %s", fault)  # a full disk; the importer has the fault itself


def trouble_of(folder: Path) -> tuple[int, Fault] | None:
    """The number and the fault of the current trouble; None if records reach the database."""
    found = _read_trouble(folder)
    return None if found is None else (found.count, Fault(found.code, found.message, hint=found.hint))


def _read_trouble(folder: Path) -> _Trouble | None:
    try:
        return msgspec.json.decode((folder / _TROUBLE).read_bytes(), type=_Trouble)
    except (OSError, msgspec.DecodeError):
        return None


def open_wake(folder: Path) -> int:
    """Open the pipe that wakes the recorder."""
    try:
        return open_pipe(folder / _WAKE)
    except OSError as error:
        raise unwritable(folder, error) from None


def wake(folder: Path) -> None:
    """Make the recorder import what there is now, if one is running."""
    write_pipe(folder / _WAKE)
