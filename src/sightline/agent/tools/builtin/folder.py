"""A folder that no path leads out of.

A path is walked component by component: each is opened relative to the previous one and never through a link; a link is
read and its target walked in the same way. This leaves no moment between check and open in which a link could be
swapped in. `..` goes back to a folder that is already open, and never above the root.
"""

import errno
import os
import stat
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path, PurePosixPath

from sightline.errors import Code, Fault

_MOST_LINKS = 40
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NUMBERS = count(1)


@dataclass(frozen=True, slots=True)
class Spot:
    """Where a path leads: an open folder, a name in it, and the path relative to the root folder.

    The name may not exist yet. It is `.` for the open folder itself.
    """

    parent: int
    name: str
    shown: str


class Folder:
    """A root folder, kept open: it stays the same one even if its path is reused."""

    def __init__(self, path: Path) -> None:
        try:
            self._root = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            hint = "Name a folder that is there and that you may read."
            raise Fault(Code.CONFIG, f"{path}: {error.strerror}", hint=hint) from None
        self.path = path.resolve()

    def close(self) -> None:
        root, self._root = self._root, -1
        if root >= 0:
            os.close(root)

    @contextmanager
    def spot(self, path: str, *, makes_folders: bool = False) -> Iterator[Spot]:
        """Resolve a path, following links. `makes_folders` creates missing folders."""
        walk = _Walk(self._root, self.path, path, makes_folders=makes_folders)
        try:
            yield walk.spot()
        except OSError as error:
            raise unusable(path, error) from None
        finally:
            walk.close()

    @contextmanager
    def open_file(self, path: str) -> Iterator[int]:
        """Open a regular file for reading."""
        with self.spot(path) as spot:
            # Without O_NONBLOCK, opening a named pipe blocks until another process writes to it.
            file = os.open(spot.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=spot.parent)
            try:
                _check_regular(os.fstat(file), path)
                yield file
            finally:
                os.close(file)

    @contextmanager
    def open_folder(self, path: str) -> Iterator[tuple[int, str]]:
        """Open a folder; yields its descriptor and its path."""
        with self.spot(path) as spot:
            folder = os.open(spot.name, _FOLDER, dir_fd=spot.parent)
            try:
                yield folder, spot.shown
            finally:
                os.close(folder)

    def write(self, path: str, data: bytes) -> bool:
        """Write a file atomically. Returns whether it replaced an existing file."""
        with self.spot(path, makes_folders=True) as spot:
            if spot.name == ".":
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
            mode = _mode(spot, path)
            temporary = f".{spot.name[:100]}.{os.getpid()}-{next(_NUMBERS)}.tmp"
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            file = os.open(temporary, flags, 0o666, dir_fd=spot.parent)
            try:
                with open(file, "wb") as out:  # noqa: PTH123 - a path could lead elsewhere by now
                    out.write(data)
                    if mode is not None:
                        os.fchmod(file, mode)
                    out.flush()
                    os.fsync(file)
                os.replace(temporary, spot.name, src_dir_fd=spot.parent, dst_dir_fd=spot.parent)
            except BaseException:
                os.unlink(temporary, dir_fd=spot.parent)
                raise
            return mode is not None


class _Walk:
    """The walk along one path. It keeps every folder on the path open until closed."""

    def __init__(self, root: int, root_path: Path, path: str, *, makes_folders: bool) -> None:
        self._path = path
        self._root_path = root_path
        self._makes_folders = makes_folders
        self._folders = [os.dup(root)]
        self._names: list[str] = []
        self._left: deque[str] = deque()
        self._links = 0
        try:
            _check_spelling(path)
            self._add(path)
        except Fault:
            self.close()
            raise

    def close(self) -> None:
        while self._folders:
            os.close(self._folders.pop())

    def spot(self) -> Spot:
        while self._left:
            name = self._left.popleft()
            if name == "..":
                self._go_back()
            elif self._follows(name):
                continue
            elif not self._left:
                return Spot(self._folders[-1], name, "/".join([*self._names, name]))
            else:
                self._enter(name)
        return Spot(self._folders[-1], ".", "/".join(self._names) or ".")

    def _add(self, path: str) -> None:
        """Prepend this path to what is still to be walked. An absolute path must lead into the root folder."""
        steps = PurePosixPath(path)
        if steps.is_absolute():
            if not steps.is_relative_to(self._root_path):
                raise self._outside()
            steps = steps.relative_to(self._root_path)
            while len(self._folders) > 1:
                self._go_back()
        self._left.extendleft(reversed(steps.parts))

    def _follows(self, name: str) -> bool:
        """Whether the name is a link; if so, its target is walked next."""
        try:
            target = os.readlink(name, dir_fd=self._folders[-1])
        except OSError as error:
            if error.errno in (errno.EINVAL, errno.ENOENT):
                return False
            raise
        self._links += 1
        if self._links > _MOST_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        self._add(target)
        return True

    def _enter(self, name: str) -> None:
        if self._makes_folders:
            with suppress(FileExistsError):
                os.mkdir(name, dir_fd=self._folders[-1])
        self._folders.append(os.open(name, _FOLDER, dir_fd=self._folders[-1]))
        self._names.append(name)

    def _go_back(self) -> None:
        if len(self._folders) == 1:
            raise self._outside()
        os.close(self._folders.pop())
        self._names.pop()

    def _outside(self) -> Fault:
        hint = "Give a path relative to the folder, such as src/main.py."
        return Fault(Code.PERMISSION, f"{self._path!r} is outside the folder that may be used", hint=hint)


def printable(path: str) -> str:
    """The path for a list with one path per line: line breaks and other control characters are escaped."""
    return path if path.isprintable() else repr(path)


def unusable(path: str, error: OSError) -> Fault:
    """The fault for a path that the system refuses; it names the path as given."""
    hint = "list_files shows what is there." if isinstance(error, FileNotFoundError) else ""
    return Fault(Code.USAGE, f"{path!r}: {error.strerror}", hint=hint)


def _check_spelling(path: str) -> None:
    try:
        is_spelled = b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:
        is_spelled = False
    if not is_spelled:
        raise Fault(Code.USAGE, f"{path!r} cannot be the name of a file")


def _mode(spot: Spot, path: str) -> int | None:
    """The mode of the file to be replaced; None if there is none."""
    try:
        found = os.stat(spot.name, dir_fd=spot.parent, follow_symlinks=False)
    except FileNotFoundError:
        return None
    _check_regular(found, path)
    return stat.S_IMODE(found.st_mode)


def _check_regular(found: os.stat_result, path: str) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(found.st_mode):
        raise Fault(Code.USAGE, f"{path!r} is not a regular file")
