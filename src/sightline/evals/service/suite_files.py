"""The files of suites: below one folder, and nowhere else."""

import os
from pathlib import Path

from sightline.errors import Code, Fault
from sightline.evals.core.reading.files import Need, candidates

LONGEST_FILE = 64 << 20
_MOST_LISTED = 100_000
_LONGEST_SHOWN = 80
_PRESENT = b""


class SuiteFiles:
    """Reads files by their path below `root`. What a link leads to counts, so that none leads out of the folder."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()

    def path(self, path: str) -> Path | None:
        """Where it lies; None where that is not below the folder."""
        if "\0" in path:
            return None
        found = (self.root / path).resolve()
        return found if found == self.root or self.root in found.parents else None

    def read(self, path: str) -> bytes | None:
        """What stands in a file; None if there is no such file. One that cannot be read is a fault."""
        found = self.path(path)
        if found is None or not _is_file(found, path):
            return None
        try:
            with found.open("rb") as file:
                data = file.read(LONGEST_FILE + 1)
        except OSError as error:
            raise Fault(Code.CONFIG, f"{path}: {error.strerror}", hint="Check who may read the file.") from None
        if len(data) > LONGEST_FILE:
            raise Fault(Code.CONFIG, f"{path} is larger than {LONGEST_FILE >> 20} MB", hint="Is it another file?")
        return data

    def bring(self, need: Need) -> bytes | None:
        """What a reader of suites asks for."""
        match need.wanted:
            case "content":
                return self.read(need.path)
            case "presence":
                found = self.path(need.path)
                return _PRESENT if found is not None and _is_file(found, need.path) else None
            case "listing":
                return self._listing(need.path)

    def find(self, path: str, suite: str) -> str | None:
        """Where a file lies that a suite names: beside it, or in a folder above."""
        for each in candidates(suite, path):
            found = self.path(each)
            if found is not None and _is_file(found, each):
                return each
        return None

    def _listing(self, folder: str) -> bytes | None:
        found = self.path(folder)
        if found is None or not found.is_dir():
            return None
        names: list[str] = []
        for base, folders, files in os.walk(found):
            folders[:] = sorted(each for each in folders if not each.startswith("."))
            here = Path(base).relative_to(found)
            names += [(here / each).as_posix() for each in sorted(files)]
            if len(names) > _MOST_LISTED:
                raise Fault(
                    Code.CONFIG, f"{folder or '.'} has more than {_MOST_LISTED} files", hint="Name a folder in it."
                )
        return "\n".join(names).encode("utf-8", "surrogateescape")


def _is_file(found: Path, path: str) -> bool:
    """Whether there is a file. A name that no file can have is a fault."""
    try:
        return found.is_file()
    except OSError as error:
        shown = path if len(path) <= _LONGEST_SHOWN else f"{path[:_LONGEST_SHOWN]}…"
        raise Fault(Code.CONFIG, f"{shown}: {error.strerror}", hint="Give it a shorter name.", status=422) from None
