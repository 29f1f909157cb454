"""What was acknowledged and is not in the database yet, in files that survive this process.

Each process on a data folder has a slot of its own: a lock that ends with it, and numbered segments of records, each
with its length and a checksum. The next process that opens the journal takes over the slots whose owners are gone.
Nothing is forced to the disk: this guards against the end of a process, not of the machine. A process that dies leaves
at most its last record torn, and that record was never acknowledged.
"""

import errno
import os
import struct
import threading
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from sightline.errors import Code, Fault
from sightline.model.json import Json
from sightline.store.entries import Entry

HEAD = struct.Struct("<II")
_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(list[Entry])


class JournalPosition(NamedTuple):
    """The position of a record: the number of its segment, its first byte and the one after it."""

    segment: int
    start: int
    end: int


class Torn(NamedTuple):
    """The end of a segment that is no record: which file, from which byte on, how many."""

    path: Path
    at: int
    size: int


def frame_record(entries: Sequence[Entry]) -> tuple[bytearray, Sequence[Entry]]:
    """One record, and the entries as it holds them."""
    record = bytearray(HEAD.size)
    try:
        _ENCODER.encode_into(entries, record, HEAD.size)
    except UnicodeEncodeError:
        # A lone surrogate is legal in JSON and comes through in names and messages; UTF-8 cannot carry it.
        entries = msgspec.convert(_encodable(msgspec.to_builtins(entries, builtin_types=(bytes,))), list[Entry])
        _ENCODER.encode_into(entries, record, HEAD.size)
    HEAD.pack_into(record, 0, len(record) - HEAD.size, zlib.crc32(memoryview(record)[HEAD.size :]))
    return record, entries


def records(path: Path, start: int = 0, stop: int | None = None) -> Iterator[tuple[list[Entry], int] | Torn]:
    """The records of a file from one byte to another, each with the place behind it; a torn end comes last."""
    with path.open("rb") as file:
        size = file.seek(0, 2) if stop is None else stop
        at = file.seek(start)
        while at < size:
            head = file.read(HEAD.size)
            length, checksum = HEAD.unpack(head) if len(head) == HEAD.size else (size, 0)
            # A torn head may name any length; what is not there is not read.
            data = file.read(length) if at + HEAD.size + length <= size else b""
            entries = _entries(data) if len(data) == length and zlib.crc32(data) == checksum else None
            if entries is None:
                yield Torn(path, at, size - at)
                return
            at += HEAD.size + length
            yield entries, at


def _entries(data: bytes) -> list[Entry] | None:
    try:
        return _DECODER.decode(data)
    except msgspec.DecodeError:
        return None


def _encodable(value: Json | bytes) -> Json | bytes:
    match value:
        case str():
            return value.encode("utf-8", "replace").decode("utf-8")
        case list() | tuple():
            return [_encodable(item) for item in value]  # type: ignore[misc]
        case dict():
            return {_encodable(key): _encodable(item) for key, item in value.items()}  # type: ignore[misc]
        case _:
            return value


SEGMENT_SIZE = 16 << 20
_EMPTIED_ABOVE = 1 << 20


class EntryJournal:
    """The journal of one process. `slot` is its own; `slots` are all slots that it owns, also those of ended processes.

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
            self._left = [path for slot in self.slots for path in self._segments(slot)]
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
    def slots(self) -> tuple[int, ...]:
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
        """Whether no record follows this one."""
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
                        f"{path} was changed by another program at byte {record.at}",
                        hint="Leave the journal folder to Sightline, and start it again.",
                    )
                entries, end = record
                yield entries, JournalPosition(segment, start, end)
                start = end
            start = 0

    @property
    def refused(self) -> Path:
        """The file for records that the database cannot take. Sightline never reads it again."""
        return self._folder / f"refused-{self.slot:03}.journal"

    def quarantine(self, entries: Sequence[Entry]) -> None:
        """Keep entries that the database refuses in a file of their own, so that they do not block later ones."""
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
        """The records that ended processes acknowledged and did not import into the database, oldest first."""
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
        for slot in self.slots[1:]:
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
    """Whether the file could be locked for this process; True where the system has no such locks."""
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
