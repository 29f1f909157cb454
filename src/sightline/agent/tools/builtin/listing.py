"""The files below a folder, in order and without an end to the patience: what nobody looks for is passed over."""

import os
from collections.abc import Iterator
from dataclasses import dataclass

from sightline.agent.tools.builtin.folder import Folder, printable
from sightline.agent.tools.builtin.glob import Glob
from sightline.errors import Code, Fault

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
    """Every file below an open folder, links left alone: the folders on the way, its name, and its open folder."""
    visited = 0
    for root, folders, files, opened in os.fwalk(".", dir_fd=folder):
        folders[:] = sorted(name for name in folders if name not in PASSED_OVER)
        names = tuple(root.split("/")[1:])
        visited += len(files) + 1
        if visited > MOST_VISITED:
            raise Fault(Code.USAGE, f"there are more than {MOST_VISITED} files", hint="Name a folder further down.")
        for file in sorted(files):
            yield names, file, opened
