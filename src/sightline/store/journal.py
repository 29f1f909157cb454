"""What was acknowledged and is not in the database yet, in files that survive this process.

Each process on a data folder has a slot of its own: a lock that ends with it, and numbered segments. Whoever opens the
journal next takes over the slots whose owners are gone. Nothing is forced to the disk: this guards against the end of a
process, not of the machine.
"""

import errno
import os
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

from sightline.errors import Code, Fault
from sightline.store.entries import Entry
from sightline.store.segments import JournalPosition, Torn, frame_record, records

SEGMENT_SIZE = 16 << 20
_EMPTIED_ABOVE = 1 << 20


class EntryJournal:
    """The journal of one process. `slot` is its own; `taken` are all that it answers for, dead owners' included.

    `torn` are the ends that could not be read when what was left was replayed.
    """

    def __init__(self, folder: Path, *, segment_size: int = SEGMENT_SIZE) -> None:
        self._folder = folder
        self._segment_size = segment_size
        self._lock = threading.Lock()
        self.torn: list[Torn] = []
        self._locks: dict[int, int] = {}
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._take_slots()
            self._left = [path for slot in self.taken for path in self._segments(slot)]
            self._number = max((_number(path) for path in self._segments(self.slot)), default=0) + 1
            self._file = self._open_segment(self._number)
        except OSError as error:
            self._release()
            raise _unwritable(folder, error) from None
        self._oldest = self._number
        self._size = 0

    @property
    def slot(self) -> int:
        """The slot that this process writes to."""
        return next(iter(self._locks))

    @property
    def taken(self) -> tuple[int, ...]:
        """The slots whose entries are this process's to bring into the database."""
        return tuple(self._locks)

    def append(self, record: bytearray) -> JournalPosition:
        """Write a record that `framed` made; the end of the process cannot lose it any more."""
        with self._lock:
            try:
                if self._size >= self._segment_size:
                    self._rotate()
                _append_record(self._file, record, self._size)
            except OSError as error:
                raise _unwritable(self._folder, error) from None
            self._size += len(record)
            return JournalPosition(self._number, self._size - len(record), self._size)

    def mark_committed(self, place: JournalPosition) -> None:
        """Everything up to this record is in the database; the files that hold nothing else go."""
        with self._lock:
            for number in range(self._oldest, place.segment):
                self._path(self.slot, number).unlink(missing_ok=True)
            self._oldest = max(self._oldest, place.segment)
            if place.segment == self._number and place.end == self._size and self._size > _EMPTIED_ABOVE:
                os.ftruncate(self._file, 0)
                self._size = 0

    def ends_at(self, place: JournalPosition) -> bool:
        """Whether no record stands behind this one."""
        with self._lock:
            return place.segment == self._number and place.end == self._size

    def since(self, place: JournalPosition) -> Iterator[tuple[list[Entry], JournalPosition]]:
        """The records of this process from this one on, as far as they are written by now."""
        with self._lock:
            number, size = self._number, self._size
        start = place.start
        for segment in range(place.segment, number + 1):
            path = self._path(self.slot, segment)
            for record in records(path, start, size if segment == number else None):
                if isinstance(record, Torn):
                    raise Fault(
                        Code.CONFIG,
                        f"{path} was changed by somebody else at byte {record.at}",
                        hint="Leave the journal folder to Sightline, and start it again.",
                    )
                entries, end = record
                yield entries, JournalPosition(segment, start, end)
                start = end
            start = 0

    @property
    def refused(self) -> Path:
        """The file for records that the database cannot take; it is read by nobody but a person."""
        return self._folder / f"refused-{self.slot:03}.journal"

    def quarantine(self, entries: Sequence[Entry]) -> None:
        """Keep these where they do not stand in the way of others."""
        record, _ = frame_record(entries)
        try:
            file = os.open(self.refused, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
            try:
                _append_record(file, record, os.fstat(file).st_size)
            finally:
                os.close(file)
        except OSError as error:
            raise _unwritable(self._folder, error) from None

    def remaining_records(self) -> Iterator[list[Entry]]:
        """What dead processes had acknowledged and not brought into the database, oldest first."""
        for path in self._left:
            for record in records(path):
                if isinstance(record, Torn):
                    self.torn.append(record)
                else:
                    yield record[0]

    def forget_left(self) -> None:
        """What was left is in the database."""
        for path in self._left:
            path.unlink(missing_ok=True)
        self._left = []
        for slot in self.taken[1:]:
            os.close(self._locks.pop(slot))

    def close(self, *, is_drained: bool) -> None:
        """Let go of the slot; what was not brought into the database stays for the next."""
        with self._lock:
            os.close(self._file)
            if is_drained:
                for number in range(self._oldest, self._number + 1):
                    self._path(self.slot, number).unlink(missing_ok=True)
            self._release()

    def _rotate(self) -> None:
        file = self._open_segment(self._number + 1)
        os.close(self._file)
        self._file, self._number, self._size = file, self._number + 1, 0

    def _open_segment(self, number: int) -> int:
        flags = os.O_CREAT | os.O_WRONLY | os.O_APPEND | os.O_TRUNC
        return os.open(self._path(self.slot, number), flags, 0o600)

    def _take_slots(self) -> None:
        """A slot of our own, and all others whose owner is gone."""
        known = sorted(int(path.stem) for path in self._folder.glob("*.lock"))
        slot = 0
        for slot in known:
            self._take(slot)
        while not self._locks:
            slot += 1
            self._take(slot)

    def _take(self, slot: int) -> None:
        file = os.open(self._folder / f"{slot:03}.lock", os.O_CREAT | os.O_RDWR, 0o600)
        if _is_locked(file):
            self._locks[slot] = file
        else:
            os.close(file)

    def _release(self) -> None:
        for file in self._locks.values():
            os.close(file)
        self._locks.clear()

    def _segments(self, slot: int) -> list[Path]:
        return sorted(self._folder.glob(f"{slot:03}-*.log"), key=_number)

    def _path(self, slot: int, number: int) -> Path:
        return self._folder / f"{slot:03}-{number:08}.log"


def _append_record(file: int, record: bytearray, size: int) -> None:
    """Write a record behind so many bytes, all of it or nothing."""
    try:
        written = os.write(file, record)
    except OSError:
        os.ftruncate(file, size)
        raise
    if written != len(record):
        # A disk that fills up takes a part; half a record would hide all that comes behind it.
        os.ftruncate(file, size)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _number(path: Path) -> int:
    return int(path.stem.partition("-")[2])


def _is_locked(file: int) -> bool:
    """Whether the file could be locked for this process; where the system has no such locks, each stands alone."""
    if os.name != "posix":
        return True
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _unwritable(folder: Path, error: OSError) -> Fault:
    hint = "Free some space, or name another folder with --data."
    return Fault(Code.CONFIG, f"the record cannot be written to {folder}: {error.strerror}", hint=hint)
