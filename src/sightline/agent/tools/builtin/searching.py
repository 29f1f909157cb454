"""Searches the files of a folder in a separate process: matching a regular expression can take very long, and blocks
every other thread of its process."""

import json
import os
import re
import stat
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from sightline.agent.tools.builtin.folder import Folder, printable
from sightline.agent.tools.builtin.listing import Glob, files_below
from sightline.agent.tools.commands import Commands
from sightline.errors import Code, Fault

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
class SearchFilesTool:
    """The tool `search_files`."""

    folder: Folder
    commands: Commands
    timeout: float

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
        wanted = SearchRequest(
            folder=str(self.folder.path),
            text=text,
            path=path,
            pattern=pattern,
            is_regex=is_regex,
            ignore_case=ignore_case,
        )
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
    try:
        folder = Folder(Path(wanted["folder"]))
        text = search_folder(folder, wanted)
        folder.close()
    except Fault as fault:
        text = " ".join(filter(None, (fault.message, fault.hint)))
        sys.stdout.buffer.write(text.encode(errors="replace"))
        return _REFUSED
    sys.stdout.buffer.write(text.encode(errors="replace"))
    return 0


def search_folder(folder: Folder, wanted: SearchRequest) -> str:
    """The matching lines, with notes on what was left out."""
    flags = re.IGNORECASE if wanted["ignore_case"] else 0
    try:
        expression = re.compile(wanted["text"] if wanted["is_regex"] else re.escape(wanted["text"]), flags)
    except re.error as error:
        raise Fault(Code.USAGE, f"this is no regular expression: {error}") from None
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
