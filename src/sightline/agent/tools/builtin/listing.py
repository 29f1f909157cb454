"""Lists the files below a folder in order, and matches their paths against patterns."""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from sightline.agent.tools.builtin.folder import Folder, printable
from sightline.errors import Code, Fault

_MOST_PATTERNS = 64
_BRACES = re.compile(r"\{([^{}]*)\}")


class Glob:
    """A path pattern. One without a slash matches the file's name in any folder; an empty one matches everything."""

    def __init__(self, pattern: str) -> None:
        self._ways = [_steps(each) for each in _expand_braces(pattern.removeprefix("./"))] if pattern else []

    def fits(self, path: str) -> bool:
        """Whether a relative path with slashes matches."""
        names = path.split("/")
        return not self._ways or any(_fits(way, names, "**", _fits_name) for way in self._ways)


def _steps(pattern: str) -> list[str]:
    return pattern.split("/") if "/" in pattern else ["**", pattern]


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


@dataclass(frozen=True, slots=True)
class ListFilesTool:
    """The tool `list_files`."""

    folder: Folder

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
