"""Files: where those of a user belong, who may read them, writing them in one step, locks that end with the process
that holds them, and a fast search in their contents."""

import mmap
import os
import stat
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import IO, Final, Literal, NamedTuple, TypeAlias

FolderKind: TypeAlias = Literal["config", "data"]
BINARY: Final[int] = getattr(os, "O_BINARY", 0)
"""A flag for `os.open`. Without it, Windows writes two bytes for each line break."""


class _UserFolder(NamedTuple):
    variable: str
    below_home: str


_XDG: Final[dict[FolderKind, _UserFolder]] = {
    "config": _UserFolder("XDG_CONFIG_HOME", ".config"),
    "data": _UserFolder("XDG_DATA_HOME", ".local/share"),
}
_WINDOWS: Final[dict[FolderKind, _UserFolder]] = {
    "config": _UserFolder("APPDATA", "AppData/Roaming"),
    "data": _UserFolder("LOCALAPPDATA", "AppData/Local"),
}


def user_folder(
    kind: FolderKind, environment: Mapping[str, str], home: Callable[[], Path], platform: str = sys.platform
) -> Path:
    """The user's folder for Sightline. The XDG variables apply on every system. Without them it is below AppData on
    Windows, and elsewhere in the places of the XDG convention, on macOS too, as for most commands. `home` may raise
    RuntimeError, and is called only if it is needed."""
    candidates = (_XDG[kind], *((_WINDOWS[kind],) if platform == "win32" else ()))
    for each in candidates:
        if named := environment.get(each.variable, "").strip():
            return Path(named) / "sightline"
    return home().joinpath(candidates[-1].below_home, "sightline")


# --- permissions ---


def make_private(path: Path) -> None:
    """Make a file, or a folder that is our own, readable only by its owner. A shared folder (with the sticky bit) and
    another user's folder stay as they are. On Windows nothing is done, because the permissions of the profile folder
    make a user's files private."""
    if sys.platform != "win32":
        found = path.stat()
        if not stat.S_ISDIR(found.st_mode):
            path.chmod(0o600)
        elif found.st_uid == os.geteuid() and found.st_mode & 0o077 and not found.st_mode & stat.S_ISVTX:
            path.chmod(0o700)


# --- files that are there whole, or not at all ---


@contextmanager
def replacing(
    path: Path, *, mode: int = 0o600, is_forced: bool = False, put: Callable[[Path, Path], None] = os.replace
) -> Iterator[IO[bytes]]:
    """Write a file that takes the place of the one at this path, if there is one, when the context ends. Where it ends
    with an error, nothing has changed. With `is_forced`, the file is on the disk before it is at its place, and
    survives the end of the machine. `put` puts it there."""
    fresh = path.with_name(f".{path.name[:100]}.{os.urandom(6).hex()}")
    try:
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | BINARY, 0o600), "wb") as file:
            yield file
            if is_forced:
                file.flush()
                os.fsync(file.fileno())
        if mode != 0o600:
            fresh.chmod(mode)
        put(fresh, path)  # after the file is closed: Windows renames no open one
    finally:
        fresh.unlink(missing_ok=True)


def add_file(path: Path, data: bytes) -> bool:
    """Write a file that only its owner may read, in one step; False if there is one already, which stays."""
    try:
        with replacing(path, put=os.link) as file:
            file.write(data)
    except FileExistsError:
        return False
    return True


# --- locks ---


def lock(file: int, *, is_shared: bool = False, waits: bool = False) -> bool:
    """Lock an open file; the lock ends with the process, or when the file is closed. Returns whether it was locked;
    with `waits` it waits until it is. Windows has only exclusive locks: what needs shared ones is not supported
    there."""
    try:
        if sys.platform == "win32":
            _lock_first_byte(file, waits=waits)
        else:
            import fcntl

            fcntl.flock(file, (fcntl.LOCK_SH if is_shared else fcntl.LOCK_EX) | (0 if waits else fcntl.LOCK_NB))
    except OSError:
        if waits:
            raise
        return False
    return True


if sys.platform == "win32":

    def _lock_first_byte(file: int, *, waits: bool) -> None:
        """msvcrt locks from the position of the file, and gives up after waiting for ten seconds."""
        import msvcrt

        while True:
            os.lseek(file, 0, os.SEEK_SET)
            try:
                msvcrt.locking(file, msvcrt.LK_LOCK if waits else msvcrt.LK_NBLCK, 1)
            except OSError:
                if not waits:
                    raise
            else:
                return


@contextmanager
def hold_lock(path: Path, *, is_shared: bool = False, waits: bool = True) -> Iterator[bool]:
    """Hold a lock on a file, which is created if it is missing, while the context is open. Yields whether it is held,
    which it always is with `waits`."""
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        yield lock(file, is_shared=is_shared, waits=waits)
    finally:
        os.close(file)


# --- mapped files ---


def map_file(path: Path) -> tuple[memoryview, int]:
    """The contents of a file, and its size. The file is mapped, because reading a megabyte into fresh memory costs 200
    µs of page faults, and mapping it 40. Windows cannot rename a mapped file, so there it is read."""
    with path.open("rb", buffering=0) as file:
        size = file.seek(0, os.SEEK_END)
        if size and sys.platform != "win32":
            return memoryview(mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ)), size
        file.seek(0)
        return memoryview(file.read()), size


if sys.platform == "linux":
    write_at = os.pwritev
    """Write pieces at a position of a file whose pages are also mapped. Returns how many bytes were written, which may
    not be all."""
elif sys.platform == "win32":

    def write_at(_file: int, _pieces: Sequence[bytes], _at: int) -> int:
        """Write nothing, because it would not be visible in the mapped pages here."""
        return 0
else:

    def write_at(file: int, pieces: Sequence[bytes], at: int) -> int:
        return os.pwrite(file, b"".join(pieces), at)


# --- searching in contents ---


def contains(text: bytes, needle: bytes) -> bool:
    return _find_function()(text, needle)


@cache
def _find_function() -> Callable[[bytes, bytes], bool]:
    """`memmem` of Linux takes a third of the time of Python's own search (18 µs instead of 51 for six letters in 64
    KB), and other threads continue meanwhile."""
    if sys.platform == "linux":
        import ctypes

        memmem = ctypes.CDLL(None).memmem
        memmem.argtypes = (ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t)
        memmem.restype = ctypes.c_void_p
        return lambda text, needle: memmem(text, len(text), needle, len(needle)) is not None
    else:  # noqa: RET505 - a type checker must see that this is not reached on Linux
        return bytes.__contains__


# --- named pipes ---

HAS_NAMED_PIPES: Final = sys.platform != "win32"
"""Whether named pipes are files. Those of Windows are not, and need another event loop."""


def open_pipe(path: Path) -> int:
    """Create a named pipe, if there is none, and open it for reading; `write_pipe` wakes its reader. Only if
    `HAS_NAMED_PIPES`."""
    if sys.platform == "win32":
        raise OSError("this system has no named pipes; look at HAS_NAMED_PIPES first")
    else:  # noqa: RET506 - a type checker for Windows must see that this is not reached there
        if not path.is_fifo():
            path.unlink(missing_ok=True)
            os.mkfifo(path, 0o600)
        return os.open(path, os.O_RDWR | os.O_NONBLOCK)


def write_pipe(path: Path) -> None:
    """Write a byte to a named pipe, without waiting; nothing happens if no one has opened it."""
    if sys.platform != "win32":
        try:
            pipe = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            return  # no one reads it
        try:
            os.write(pipe, b"!")
        except OSError:
            pass  # it is full: its reader already has work
        finally:
            os.close(pipe)
