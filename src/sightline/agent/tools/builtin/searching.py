"""Lists and searches the files below a folder.

A search runs in a separate process: matching a regular expression can take very long, and blocks every other thread of
its process.
"""

import json
import os
import re
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from sightline.agent.tools.builtin.folder import Folder, printable
from sightline.agent.tools.commands import Commands
from sightline.errors import Code, Fault

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


def files_below(folder: int) -> Iterator[tuple[tuple[str, ...], str, int]]:
    """Walk all files below an open folder without following links: yields the parent folders, the name, and the open
    parent."""
    visited = 0
    for root, folders, files, opened in os.fwalk(".", dir_fd=folder):
        folders[:] = sorted(name for name in folders if name not in PASSED_OVER)
        names = tuple(root.split("/")[1:])
        visited += len(files) + 1
        if visited > MOST_VISITED:
            raise Fault(Code.USAGE, f"there are more than {MOST_VISITED} files", hint="Name a folder further down.")
        for file in sorted(files):
            yield names, file, opened


PROGRAM = "sightline.agent.tools.builtin.searching"
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
        for each in self._direct(path) if not pattern else self._below(path, Glob(pattern)):
            if len(lines) == _MOST_SHOWN:
                lines.append(f"[there are more than {_MOST_SHOWN}: use a pattern, or a folder further down]")
                break
            lines.append(printable(each))
        return "\n".join(lines) or ("(the folder is empty)" if not pattern else "(no file fits)")

    def _direct(self, path: str) -> Iterator[str]:
        with self.folder.open_folder(path) as (folder, _), os.scandir(folder) as entries:
            yield from sorted(f"{each.name}/" if each.is_dir(follow_symlinks=False) else each.name for each in entries)

    def _below(self, path: str, glob: Glob) -> Iterator[str]:
        with self.folder.open_folder(path) as (folder, shown):
            for names, file, _ in files_below(folder):
                relative = "/".join((*names, file))
                if glob.fits(relative):
                    yield relative if shown == "." else f"{shown}/{relative}"

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
        raise Fault(Code.USAGE, f"the search was not finished: {finished.in_words}", hint=hint)


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
            if expression.search(line):
                lines.append(f"{printable(shown)}:{number}: {line.strip()[:_LONGEST_LINE]}")
                if len(lines) == _MOST_FOUND:
                    return "\n".join([*lines, f"[the first {_MOST_FOUND} lines; there may be more]"])
    if left_out:
        lines.append(f"[{left_out} files are no text or too large and were left out]")
    return "\n".join(lines or [f"(not found in {looked_at} files)"])


def _texts(folder: Folder, path: str, glob: Glob) -> Iterator[tuple[str, str | None]]:
    """Each matching file with its text; None if it is not text."""
    if _is_file(folder, path):
        with folder.open_file(path) as file:
            yield path, _text(file)
        return
    with folder.open_folder(path) as (opened, shown):
        for names, name, parent in files_below(opened):
            relative = "/".join((*names, name))
            if glob.fits(relative):
                text = _text_at(name, parent)
                yield (relative if shown == "." else f"{shown}/{relative}"), text


def _is_file(folder: Folder, path: str) -> bool:
    try:
        with folder.open_file(path):
            return True
    except Fault:
        return False


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
    return None if b"\0" in data[:_HEAD] else data.decode(errors="replace")


if __name__ == "__main__":
    sys.exit(main())
