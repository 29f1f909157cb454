"""Reading a file: text by its lines and within bounds, pictures as pictures, and nothing of what is neither."""

import io
import os
from dataclasses import dataclass
from typing import BinaryIO

from sightline.agent.core.output import ToolOutcome, text_outcome
from sightline.agent.tools.builtin.folder import Folder
from sightline.agent.tools.outcomes import part_of
from sightline.errors import Code, Fault
from sightline.wire.media_type import BINARY, encoding_of, is_text, sniff

MOST_LETTERS = 60_000
MOST_MEDIA = 2_500_000
_LONGEST_LINE = 5000
_HEAD = 8192


@dataclass(frozen=True, slots=True)
class ReadFileTool:
    """The tool `read_file`."""

    folder: Folder

    def read_file(self, path: str, first_line: int = 1, last_line: int | None = None) -> ToolOutcome:
        """Read a text file, or look at a picture or a PDF.

        A long text comes in pieces; the last line says where to go on.

        Args:
            path: the file, relative to the project
            first_line: the number of the first line to read, from 1
            last_line: the number of the last one; without it, as much as fits
        """
        if first_line < 1 or (last_line is not None and last_line < first_line):
            raise Fault(Code.USAGE, f"there are no lines {first_line} to {last_line}")
        with self.folder.open_file(path) as descriptor, os.fdopen(os.dup(descriptor), "rb") as file:
            head = file.read(_HEAD)
            kind = _kind(head)
            size = os.fstat(descriptor).st_size
            file.seek(0)
            if kind:
                return _media_outcome(file, kind, size, path)
            with io.TextIOWrapper(file, encoding_of(head), errors="replace") as text:
                return text_outcome(_lines(text, first_line, last_line, path))


def _kind(head: bytes) -> str:
    """What a file is that is no text; empty for text, of which the head may end within a character."""
    kind = sniff(head, "")
    if kind == BINARY and (b"\0" not in head or encoding_of(head) != "utf-8-sig"):
        return ""
    return "" if is_text(kind) else kind


def _media_outcome(file: BinaryIO, kind: str, size: int, path: str) -> ToolOutcome:
    if kind != BINARY and size <= MOST_MEDIA and (part := part_of(file.read(MOST_MEDIA), path)) is not None:
        return ToolOutcome((part,))
    much = "which is too large to look at" if size > MOST_MEDIA and kind != BINARY else "which is no text"
    raise Fault(Code.USAGE, f"{path!r} is {size} bytes of {kind}, {much}")


def _lines(text: io.TextIOWrapper, first: int, last: int | None, path: str) -> str:
    """The lines that were asked for, as far as there is room, and what there is besides."""
    taken: list[str] = []
    room = MOST_LETTERS
    number = 0
    while last is None or number < last:
        line, is_cut = _line(text)
        if not line:
            break
        number += 1
        if number < first:
            continue
        room -= len(line)
        if room < 0 and taken:
            taken.append(f"[lines {first} to {number - 1}; go on with first_line={number}]")
            break
        taken.append(f"{line}[… the rest of this line is left out]\n" if is_cut else line)
    if not taken:
        if number == 0:
            return "(the file is empty)"
        raise Fault(Code.USAGE, f"{path!r} has only {number} lines")
    whole = "".join(taken)
    return f"{whole}\n[bytes that are no text are shown as �]" if "�" in whole else whole


def _line(text: io.TextIOWrapper) -> tuple[str, bool]:
    """The next line, or its beginning where it is long."""
    line = text.readline(_LONGEST_LINE)
    is_cut = len(line) == _LONGEST_LINE and not line.endswith("\n")
    rest = line
    while len(rest) == _LONGEST_LINE and not rest.endswith("\n"):
        rest = text.readline(_LONGEST_LINE)
    return line, is_cut
