"""The journal: records that are acknowledged but not yet in the database, in files that survive every process.

Each process that records has a slot: a lock that ends with the process, and numbered segments. A segment is allocated
in advance and mapped into memory, so that a record costs a copy and no system call. The head of a segment contains the
position where its records end, and is written last: a process that dies leaves no partial record. The head also
contains how far the records are imported, so that a reader can wait for a record. Each record has its length and a
checksum, because a machine that crashes may lose some pages of a file and keep others.
"""

import errno
import mmap
import os
import struct
import threading
import zlib
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from time import sleep
from typing import NamedTuple

import msgspec

from sightline.errors import Code, Fault
from sightline.model.json import Json
from sightline.platform.files import BINARY, lock, map_file, write_at
from sightline.store.entries import BodyEntry, KeptEntry
from sightline.store.whole import RecordedEntry, decode_entries

SEGMENT_SIZE = 1 << 20
_LEAST_SIZE = 1 << 16
"""The size of a segment on a disk that has no room for a full one."""
RECORD_HEAD = struct.Struct("<II")
_HEAD = struct.Struct("<8sQQQ")
_MAGIC = b"sgtl-jn2"
_END, _IMPORTED, _SEALED = 8, 16, 24
_MOST_SPARES = 16
_LARGE = 3 << 10
"""Records of this size or more are written with a system call: faulting in their pages one by one costs up to five
times as much."""
_SCRUB = "scrub.lock"
_SCRUB_TRIES, _SCRUB_WAIT = 200, 0.01
_DRAFT = ".draft"
_NUMBER = struct.Struct("<Q")
_ZEROS = bytes(1 << 16)
_ENCODER = msgspec.msgpack.Encoder()


class TornTail(NamedTuple):
    """The end of a segment that is not a valid record: the file, the first such byte, and how many there are."""

    path: Path
    at: int
    size: int


def encode_entries(entries: Sequence[KeptEntry]) -> bytes:
    """Encode the entries of one record."""
    try:
        return _ENCODER.encode(entries)
    except UnicodeEncodeError:
        # A lone surrogate is legal in JSON and can occur in names and messages; UTF-8 cannot encode it.
        return _ENCODER.encode(_encodable(msgspec.to_builtins(entries, builtin_types=(bytes,))))


def frame_record(entries: Sequence[KeptEntry]) -> bytes:
    """Encode one record: its length, a checksum, and the entries."""
    data = encode_entries(entries)
    return RECORD_HEAD.pack(len(data), zlib.crc32(data)) + data


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


# --- writing ---


class JournalWriter:
    """The journal of one process. It creates no file before the first record. With `is_forced`, each record is on the
    disk when `append` returns, so that it also survives a crash of the machine."""

    def __init__(self, folder: Path, *, segment_size: int = SEGMENT_SIZE, is_forced: bool = False) -> None:
        self._folder = folder
        self._segment_size = segment_size
        self._is_forced = is_forced
        self._lock = -1
        self._slot = self._number = 0
        self._at = 0
        self._writing = threading.Lock()
        self._map: mmap.mmap | None = None
        self._file = -1
        """The descriptor of the mapped segment."""
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise unwritable(folder, error) from None

    def append(self, data: bytes) -> None:
        """Write a record of these encoded entries. After that, the end of this process cannot lose it."""
        head = RECORD_HEAD.pack(len(data), zlib.crc32(data))
        size, written = len(head) + len(data), 0
        with self._writing:
            mapped = self._map
            try:
                if mapped is None or self._at + size > len(mapped):
                    mapped = self._start_segment(size)
                if size >= _LARGE:
                    written = write_at(self._file, (head, data), self._at)
            except OSError as error:
                raise unwritable(self._folder, error) from None
            end = self._at + size
            if written < size:
                mapped[self._at + written : end] = (head + data)[written:]
            _NUMBER.pack_into(mapped, _END, end)
            if self._is_forced:
                mapped.flush()
            self._at = end

    def close(self) -> None:
        """Release the slot; the importer does the rest."""
        if self._map is not None:
            self._seal(self._map)
        if self._lock >= 0:
            os.close(self._lock)
        self._map, self._lock = None, -1

    def _start_segment(self, size: int) -> mmap.mmap:
        if self._lock < 0:
            self._slot, self._lock = _take_slot(self._folder)
        number = self._number + 1
        path = segment_path(self._folder, self._slot, number)
        draft = path.with_suffix(_DRAFT)  # it becomes a segment once it has a head
        is_spare = size + _HEAD.size <= self._segment_size and _reuse_spare(self._folder, draft)
        file = os.open(draft, os.O_CREAT | os.O_RDWR | BINARY, 0o600)
        try:
            try:
                if not is_spare or os.fstat(file).st_size != self._segment_size:
                    _allocate(file, _HEAD.size + size, self._segment_size)
                os.lseek(file, 0, os.SEEK_SET)
                os.write(file, _HEAD.pack(_MAGIC, _HEAD.size, _HEAD.size, 0))
            finally:
                os.close(file)
            draft.replace(path)
            file = os.open(path, os.O_RDWR | BINARY)
            try:
                mapped = mmap.mmap(file, 0)  # last, because Windows cannot rename a mapped file
            except OSError:
                os.close(file)
                raise
        except OSError:
            draft.unlink(missing_ok=True)
            raise
        # Only now: until there is a next segment, the old one is not complete.
        if self._map is not None:
            self._seal(self._map)
        self._map, self._file, self._number, self._at = mapped, file, number, _HEAD.size
        return mapped

    def _seal(self, mapped: mmap.mmap) -> None:
        _NUMBER.pack_into(mapped, _SEALED, 1)
        mapped.close()
        os.close(self._file)


def _allocate(file: int, least: int, most: int) -> None:
    """Reserve space on the disk: writing to mapped memory without it would kill the process."""
    for size in (max(least, most), max(least, min(_LEAST_SIZE, most))):
        try:
            os.ftruncate(file, 0)
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file, 0, size)
            elif os.write(file, bytes(size)) < size:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError:
            os.ftruncate(file, 0)
            os.lseek(file, 0, os.SEEK_SET)
            if size == max(least, min(_LEAST_SIZE, most)):
                raise
        else:
            return


def _reuse_spare(folder: Path, draft: Path) -> bool:
    """Move a spare segment to the path `draft`; returns whether there was one."""
    for number in range(_MOST_SPARES):
        try:
            (folder / spare_name(number)).replace(draft)
        except FileNotFoundError:
            continue
        return True
    return False


def put_aside(*paths: Path) -> None:
    """Remove imported segments of one folder. A few are emptied and kept for reuse: returning a megabyte to the file
    system and allocating it again takes some milliseconds of CPU time."""
    folder = paths[0].parent
    guard = os.open(folder / _SCRUB, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        if not lock(guard):
            return  # a scrub is in progress; the next look at the journals puts them aside
        taken = set(os.listdir(folder))  # noqa: PTH208 - one system call in place of one for each spare
        free = [name for number in range(_MOST_SPARES) if (name := spare_name(number)) not in taken]
        for path in paths:
            with suppress(FileNotFoundError):  # another process has removed it
                if free and path.stat().st_size == SEGMENT_SIZE:
                    _zero_segment(path, folder / free.pop(0))
                else:
                    path.unlink()
    finally:
        os.close(guard)


def _zero_segment(path: Path, spare: Path) -> None:
    """Overwrite a segment and keep it as this spare: data that retention removes must not survive there."""
    draft = path.with_name(f"spare{_DRAFT}")  # otherwise a process could take the spare before it is empty
    path.replace(draft)
    file = os.open(draft, os.O_RDWR | BINARY)
    try:
        for _ in range(SEGMENT_SIZE // len(_ZEROS)):
            os.write(file, _ZEROS)
    finally:
        os.close(file)
    draft.replace(spare)


def scrub(folder: Path, exchanges: Collection[str]) -> None:
    """Overwrite the imported part of every segment, and remove these exchanges from the files of entries that the
    database refused. Afterwards, no file of the folder contains anything of ended exchanges that were removed from the
    database."""
    guard = _guard_segments(folder)
    try:
        for _, path in segments(folder):
            state = state_of(path)
            if state is None or not state.has_head or state.imported <= _HEAD.size:
                continue
            with suppress(FileNotFoundError), path.open("r+b", buffering=0) as file:
                # If the machine crashes now, the zeros must not survive without the mark up to which they are not
                # records.
                os.fsync(file.fileno())
                file.seek(_HEAD.size)
                file.write(bytes(state.imported - _HEAD.size))
        for path in folder.glob("refused-*.journal"):
            _remove_refused(path, exchanges)
    except OSError as error:
        raise unwritable(folder, error) from None
    finally:
        os.close(guard)


def _guard_segments(folder: Path) -> int:
    """Take the lock that prevents segments from being put aside: one that is reused in the meantime would lose its new
    records. Raises a Fault if another process keeps the lock."""
    guard = os.open(folder / _SCRUB, os.O_CREAT | os.O_RDWR, 0o600)
    for _ in range(_SCRUB_TRIES):
        if lock(guard):
            return guard
        sleep(_SCRUB_WAIT)
    os.close(guard)
    hint = "Wait until it is done, and try again."
    raise Fault(Code.CONFIG, "another process changes the journal at the moment", hint=hint)


def _remove_refused(path: Path, exchanges: Collection[str]) -> None:
    left: list[bytes] = []
    is_changed = False
    for record in records(path):
        if isinstance(record, TornTail):
            break
        entries: Sequence[KeptEntry] = record[0]  # type: ignore[assignment]
        if any(not isinstance(entry, BodyEntry) and entry.exchange in exchanges for entry in entries):
            is_changed = True
        else:
            left.append(frame_record(entries))
    if is_changed and left:
        draft = path.with_suffix(_DRAFT)
        draft.touch(mode=0o600)
        draft.write_bytes(b"".join(left))
        draft.replace(path)
    elif is_changed:
        path.unlink()


def remove_spares(folder: Path) -> None:
    """Remove the spare segments; called when no process records any more."""
    for path in folder.glob("spare*"):
        path.unlink(missing_ok=True)


def _take_slot(folder: Path) -> tuple[int, int]:
    """Claim a slot that no other process has; returns its number and the locked file."""
    slot = max(slots_in(folder), default=0)
    while True:
        slot += 1
        file = os.open(lock_path(folder, slot), os.O_CREAT | os.O_RDWR, 0o600)
        # A process that cleans up may have locked the file first, or removed it in the meantime.
        if lock(file) and lock_path(folder, slot).exists():
            return slot, file
        os.close(file)


# --- files ---


def lock_path(folder: Path, slot: int) -> Path:
    """The file that a living process holds locked."""
    return folder / f"{slot:03}.lock"


def spare_name(number: int) -> str:
    """The file name of a spare segment."""
    return f"spare-{number}"


def segment_path(folder: Path, slot: int, number: int) -> Path:
    """The path of a segment."""
    return folder / f"{slot:03}-{number:08}.log"


def segments(folder: Path) -> list[tuple[int, Path]]:
    """All segments with their slots, ordered by slot and number."""
    found = [name[:-4].split("-") for name in os.listdir(folder) if name.endswith(".log")]  # noqa: PTH208 - ten times a second
    return [(slot, segment_path(folder, slot, number)) for slot, number in sorted((int(s), int(n)) for s, n in found)]


def slots_in(folder: Path) -> set[int]:
    """The slots of living processes, and of ended ones that left files."""
    names = (name.partition("." if name.endswith(".lock") else "-")[0] for name in os.listdir(folder))  # noqa: PTH208
    return {int(name) for name in names if name.isdigit()}


# --- reading ---


class SegmentState(NamedTuple):
    """The position where the records of a segment end, and how far they are imported. A sealed segment gets no more
    records. One of an earlier version has no head."""

    end: int
    imported: int
    is_sealed: bool
    has_head: bool = True


def state_of(path: Path) -> SegmentState | None:
    """The state of a segment; None if it is gone."""
    try:
        file = os.open(path, os.O_RDONLY | BINARY)
    except FileNotFoundError:
        return None
    try:
        head = os.read(file, _HEAD.size)
        if len(head) == _HEAD.size and head.startswith(_MAGIC):
            _, end, imported, sealed = _HEAD.unpack(head)
            return SegmentState(end, imported, bool(sealed))
        size = os.lseek(file, 0, os.SEEK_END)
    finally:
        os.close(file)
    # A segment of this version that has no head yet has no records either: it is all zeros.
    return SegmentState(0, 0, is_sealed=False) if not head.strip(b"\0") else SegmentState(size, 0, False, False)


def mark_imported(path: Path, at: int) -> None:
    """Store in the head that everything up to this byte is imported."""
    file = os.open(path, os.O_RDWR | BINARY)
    try:
        os.lseek(file, _IMPORTED, os.SEEK_SET)
        os.write(file, _NUMBER.pack(at))
    finally:
        os.close(file)


def records(
    path: Path,
    start: int = 0,
    stop: int | None = None,
    decode: Callable[[memoryview], Sequence[RecordedEntry]] = decode_entries,
    *,
    is_certain: bool = False,
) -> Iterator[tuple[Sequence[RecordedEntry], int] | TornTail]:
    """The records of a file between two positions, each with the position after it; a torn end comes last.

    With `is_certain`, checksums are not verified; that takes a twelfth of the time that a large request costs. Only a
    crash of the machine loses pages of a file, and no process survives that: what a living one has written is intact.
    """
    whole, size = map_file(path)
    at, end = start, size if stop is None else stop
    whole = whole[:end]
    while at < end:
        here = at + RECORD_HEAD.size
        length, checksum = RECORD_HEAD.unpack_from(whole, at) if here <= len(whole) else (end, 0)
        data = whole[here : here + length]  # a torn head may contain any length
        try:
            if len(data) == length and (is_certain or zlib.crc32(data) == checksum):
                at = here + length
                yield decode(data), at
                continue
        except msgspec.DecodeError:
            at = here - RECORD_HEAD.size
        yield TornTail(path, at, end - at)
        return


def pending(folder: Path) -> dict[Path, int]:
    """The segments with records that are not imported, and where these records end now."""
    states = ((path, state_of(path)) for _, path in segments(folder))
    return {path: state.end for path, state in states if state is not None and state.imported < state.end}


def is_imported(wanted: dict[Path, int]) -> bool:
    """Whether all of these segments are imported up to these positions."""
    return all((state := state_of(path)) is None or state.imported >= end for path, end in wanted.items())


def quarantine(folder: Path, slot: int, entries: Sequence[KeptEntry]) -> Path:
    """Save entries that the database refuses in a separate file, so that they do not block later ones; returns its
    path. Sightline never imports this file."""
    path = folder / f"refused-{slot:03}.journal"
    record = frame_record(entries)
    try:
        file = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND | BINARY, 0o600)
        try:
            size = os.fstat(file).st_size
            if os.write(file, record) != len(record):
                # A disk that becomes full may take only a part; half a record would hide everything after it.
                os.ftruncate(file, size)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        finally:
            os.close(file)
    except OSError as error:
        raise unwritable(folder, error) from None
    return path


def unwritable(folder: Path, error: OSError) -> Fault:
    """The fault for a journal that cannot be written."""
    hint = "Free some space, or name another folder with --data."
    return Fault(Code.CONFIG, f"the record cannot be written to {folder}: {error.strerror}", hint=hint)
