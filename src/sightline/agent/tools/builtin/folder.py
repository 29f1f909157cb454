"""A folder that no path leads out of, and the tools that list and search the files below it.

A path is walked component by component: each is opened relative to the previous one and never through a link; a link is
read and its target walked in the same way. This leaves no moment between check and open in which a link could be
swapped in. `..` goes back to a folder that is already open, and never above the root.

A search runs in a separate process: matching a regular expression can take very long, and blocks every other thread of
its process.
"""

import errno
import json
import os
import re
import stat
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path, PurePosixPath
from typing import TypedDict

from sightline.agent.tools.commands import Commands, last_line_in
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
            # A name may have 255 bytes, and a character up to 4.
            temporary = f".{spot.name[:40]}.{os.getpid()}-{next(_NUMBERS)}.tmp"
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


_MOST_PATTERNS = 64
_BRACES = re.compile(r"\{([^{}]*)\}")


class Glob:
    """A path pattern. One without a slash matches the file's name in any folder; an empty one matches everything."""

    def __init__(self, pattern: str) -> None:
        ways = _expand_braces(pattern.removeprefix("./")) if pattern else []
        self._ways = [way.split("/") if "/" in way else ["**", way] for way in ways]

    def fits(self, path: str) -> bool:
        """Whether a relative path with slashes matches."""
        names = path.split("/")
        return not self._ways or any(_fits(way, names, "**", _fits_name) for way in self._ways)


def _expand_braces(pattern: str) -> list[str]:
    done: list[str] = []
    waiting = [pattern]
    while waiting:
        each = waiting.pop()
        if found := _BRACES.search(each):
            waiting += [each[: found.start()] + choice + each[found.end() :] for choice in found[1].split(",")]
        else:
            done.append(each)
        if len(done) + len(waiting) > _MOST_PATTERNS:
            raise Fault(Code.USAGE, f"{pattern!r} stands for too many patterns", hint="Use fewer braces.")
    return done


def _fits_name(pattern: str, name: str) -> bool:
    return _fits(pattern, name, "*", lambda letter, other: letter in ("?", other))


def _fits(pattern: Sequence[str], items: Sequence[str], star: str, one: Callable[[str, str], bool]) -> bool:
    place = item = 0
    back: tuple[int, int] | None = None
    while item < len(items):
        if place < len(pattern) and pattern[place] == star:
            back = (place, item)
            place += 1
        elif place < len(pattern) and one(pattern[place], items[item]):
            place += 1
            item += 1
        elif back is not None:
            back = (back[0], back[1] + 1)
            place, item = back[0] + 1, back[1]
        else:
            return False
    return all(each == star for each in pattern[place:])


PASSED_OVER = frozenset({".git", ".hg", ".svn", ".venv", "__pycache__", "node_modules"})
MOST_VISITED = 200_000
_MOST_SHOWN = 1000


def files_below(folder: Folder, path: str, glob: Glob) -> Iterator[tuple[str, str, int]]:
    """Walk the files below this path that the pattern matches, without following links: yields the path, the name, and
    the open parent."""
    visited = 0
    with folder.open_folder(path) as (opened, shown):
        for root, folders, files, parent in os.fwalk(".", dir_fd=opened):
            folders[:] = sorted(name for name in folders if name not in PASSED_OVER)
            visited += len(files) + 1
            if visited > MOST_VISITED:
                raise Fault(Code.USAGE, f"there are more than {MOST_VISITED} files", hint="Name a folder further down.")
            for file in sorted(files):
                relative = "/".join((*root.split("/")[1:], file))
                if glob.fits(relative):
                    yield (relative if shown == "." else f"{shown}/{relative}"), file, parent


PROGRAM = "sightline.agent.tools.builtin.folder"
_MOST_FOUND = 200
_LONGEST_LINE = 250
_LARGEST_FILE = 20_000_000
_HEAD = 8192
_REFUSED = 3


class SearchRequest(TypedDict):
    """The search process's input."""

    folder: str
    text: str
    path: str
    pattern: str
    is_regex: bool
    ignore_case: bool


@dataclass(frozen=True, slots=True)
class SearchTools:
    """The tools `list_files` and `search_files`."""

    folder: Folder
    commands: Commands
    timeout: float

    def list_files(self, path: str = ".", pattern: str = "") -> str:
        """List the files of a folder.

        Without a pattern: what is directly in the folder, folders with a slash at the end. With one: every file below
        it that fits.

        Args:
            path: the folder, relative to the project
            pattern: such as *.py for a name anywhere below, or src/**/test_*.py for a path; {a,b} is either
        """
        lines: list[str] = []
        below = (shown for shown, _, _ in files_below(self.folder, path, Glob(pattern)))
        for each in below if pattern else self._direct(path):
            if len(lines) == _MOST_SHOWN:
                lines.append(f"[there are more than {_MOST_SHOWN}: use a pattern, or a folder further down]")
                break
            lines.append(printable(each))
        return "\n".join(lines) or ("(the folder is empty)" if not pattern else "(no file fits)")

    def _direct(self, path: str) -> Iterator[str]:
        with self.folder.open_folder(path) as (folder, _), os.scandir(folder) as entries:
            yield from sorted(f"{each.name}/" if each.is_dir(follow_symlinks=False) else each.name for each in entries)

    async def search_files(
        self, text: str, path: str = ".", pattern: str = "", *, is_regex: bool = False, ignore_case: bool = False
    ) -> str:
        """Search the text of files; each line that has it is shown with its file and number.

        Args:
            text: what to look for, as it stands in the files
            path: a folder or a file, relative to the project
            pattern: only files that fit, such as *.py or src/**/*.{ts,js}
            is_regex: the text is a regular expression of Python, for one line at a time
            ignore_case: capitals do not matter
        """
        if not text:
            raise Fault(Code.USAGE, "text is empty", hint="Say what to look for; list_files lists files.")
        if "\n" in text:
            raise Fault(Code.USAGE, "text has several lines", hint="Each line is searched by itself: give one of them.")
        folder, given = str(self.folder.path), {"is_regex": is_regex, "ignore_case": ignore_case}
        wanted = {"folder": folder, "text": text, "path": path, "pattern": pattern, **given}
        finished = await self.commands.run(
            (sys.executable, "-P", "-m", PROGRAM),
            folder=self.folder.path,
            timeout=self.timeout,
            given=json.dumps(wanted).encode(),
        )
        if finished.code == 0:
            return finished.output
        if finished.code == _REFUSED:
            raise Fault(Code.USAGE, finished.output)
        hint = "Use a simpler pattern, or a folder further down." if finished.code is None else ""
        why = "; ".join(filter(None, (finished.in_words, last_line_in(finished.complaints))))
        raise Fault(Code.USAGE, f"the search was not finished: {why}", hint=hint)


def main() -> int:
    """The search process: print the matches or the error."""
    wanted: SearchRequest = json.load(sys.stdin)
    code = 0
    try:
        folder = Folder(Path(wanted["folder"]))
        text = search_folder(folder, wanted)
        folder.close()
    except Fault as fault:
        text, code = " ".join(filter(None, (fault.message, fault.hint))), _REFUSED
    sys.stdout.buffer.write(text.encode(errors="replace"))
    return code


def search_folder(folder: Folder, wanted: SearchRequest) -> str:
    """The matching lines, with notes on what was left out."""
    flags = re.IGNORECASE if wanted["ignore_case"] else 0
    try:
        expression = re.compile(wanted["text"] if wanted["is_regex"] else re.escape(wanted["text"]), flags)
    except re.error as error:
        raise Fault(Code.USAGE, f"this is not a regular expression: {error}") from None
    except (RecursionError, OverflowError):
        raise Fault(Code.USAGE, "this regular expression is too large") from None
    lines: list[str] = []
    looked_at = left_out = 0
    for shown, text in _texts(folder, wanted["path"], Glob(wanted["pattern"])):
        looked_at += text is not None
        left_out += text is None
        for number, line in enumerate((text or "").split("\n"), 1):
            if expression.search(line.removesuffix("\r")):
                lines.append(f"{printable(shown)}:{number}: {line.strip()[:_LONGEST_LINE]}")
                if len(lines) == _MOST_FOUND:
                    return "\n".join([*lines, f"[the first {_MOST_FOUND} lines; there may be more]"])
    if left_out:
        lines.append(f"[{left_out} files are no text or too large and were left out]")
    return "\n".join(lines or [f"(not found in {looked_at} files)"])


def _texts(folder: Folder, path: str, glob: Glob) -> Iterator[tuple[str, str | None]]:
    """Each matching file with its text; None if it is not text."""
    try:
        with folder.open_file(path) as file:
            text = _text(file)
    except Fault:  # not a regular file
        for shown, name, parent in files_below(folder, path, glob):
            yield shown, _text_at(name, parent)
    else:
        yield path, text


def _text_at(name: str, parent: int) -> str | None:
    try:
        file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=parent)
    except OSError:  # a link, a socket, or not permitted
        return None
    try:
        return _text(file)
    finally:
        os.close(file)


def _text(file: int) -> str | None:
    """The text of a regular file; None if it is binary or too large."""
    found_file = os.fstat(file)
    if not stat.S_ISREG(found_file.st_mode) or found_file.st_size > _LARGEST_FILE:
        return None
    with os.fdopen(os.dup(file), "rb") as opened:
        try:
            data = opened.read(_LARGEST_FILE)
        except OSError:
            return None
    return None if b"\0" in data[:_HEAD] else data.decode("utf-8-sig", "replace")


if __name__ == "__main__":
    sys.exit(main())
