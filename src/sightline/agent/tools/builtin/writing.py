"""Writing files and changing them in one place. A file is replaced as a whole, so that nobody ever sees half of it."""

import os
from dataclasses import dataclass

from sightline.agent.tools.builtin.folder import Folder
from sightline.errors import Code, Fault

MOST_BYTES = 10_000_000
_MOST_LINES = 5
_MARKS = (
    (b"\xef\xbb\xbf", "utf-8"),
    (b"\xff\xfe\0\0", "utf-32-le"),
    (b"\0\0\xfe\xff", "utf-32-be"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
)


@dataclass(frozen=True, slots=True)
class Writing:
    """The tools `write_file` and `edit_file`."""

    folder: Folder

    def write_file(self, path: str, content: str) -> str:
        """Write a file. One that is there is replaced; folders that are missing are made.

        Args:
            path: the file, relative to the project
            content: all of the new text
        """
        data = _encode(content, "utf-8")
        was_there = self.folder.write(path, data)
        return f"{'Replaced' if was_there else 'Made'} {path}: {_lines(content)}, {len(data)} bytes."

    def edit_file(self, path: str, old_text: str, new_text: str, *, every: bool = False) -> str:
        """Change a file: replace a piece of text that is in it exactly once.

        Args:
            path: the file, relative to the project
            old_text: what is there now, exactly, with enough of what is around it to be the only such place
            new_text: what shall be there instead; empty to take it out
            every: replace it wherever it is
        """
        mark, codec, text = self._read(path)
        if "\r\n" in text and old_text not in text:
            # Those who read it saw plain ends of lines.
            old_text, new_text = _with_returns(old_text), _with_returns(new_text)
        places = _places(text, old_text)
        _check(path, text, old_text, new_text, places, every=every)
        changed = text.replace(old_text, new_text)
        self.folder.write(path, mark + _encode(changed, codec))
        many = "place" if len(places) == 1 else "places"
        return f"Changed {path} in {len(places)} {many}: line {_line_numbers(places)}."

    def _read(self, path: str) -> tuple[bytes, str, str]:
        """The file's byte order mark, its encoding and its text."""
        with self.folder.open_file(path) as descriptor, os.fdopen(os.dup(descriptor), "rb") as file:
            data = file.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            raise Fault(Code.USAGE, f"{path!r} has more than {MOST_BYTES} bytes, which is too large to edit")
        mark, codec = next(((mark, codec) for mark, codec in _MARKS if data.startswith(mark)), (b"", "utf-8"))
        try:
            return mark, codec, data[len(mark) :].decode(codec)
        except UnicodeDecodeError:
            raise Fault(Code.USAGE, f"{path!r} is no text in UTF-8 or UTF-16, so it cannot be edited") from None


def _check(path: str, text: str, old: str, new: str, places: list[int], *, every: bool) -> None:
    if not old:
        raise Fault(Code.USAGE, "old_text is empty", hint="To write a whole file, use write_file.")
    if old == new:
        raise Fault(Code.USAGE, "old_text and new_text are the same", hint="Give what shall be there instead.")
    if not places:
        raise Fault(Code.USAGE, f"old_text is not in {path!r}", hint=_nearly(text, old))
    if len(places) > 1 and not every:
        hint = "Give more of what is around the place that you mean, or set every to true."
        raise Fault(Code.USAGE, f"old_text is in {path!r} {len(places)} times: line {_line_numbers(places)}", hint=hint)


def _nearly(text: str, old: str) -> str:
    """Where the same words stand with other spaces."""
    wanted = [" ".join(line.split()) for line in old.strip().splitlines()]
    lines = [" ".join(line.split()) for line in text.splitlines()]
    for start in range(len(lines) - len(wanted) + 1):
        if wanted and lines[start : start + len(wanted)] == wanted:
            return f"Line {start + 1} differs from it only in spaces: copy it exactly as read_file shows it."
    return "Read the file again: it may have changed."


def _places(text: str, old: str) -> list[int]:
    """The lines in which it begins."""
    places: list[int] = []
    at = text.find(old) if old else -1
    line = 1
    before = 0
    while at >= 0:
        line += text.count("\n", before, at)
        before = at
        places.append(line)
        at = text.find(old, at + len(old))
    return places


def _line_numbers(places: list[int]) -> str:
    shown = ", ".join(map(str, places[:_MOST_LINES]))
    return f"{shown} and more" if len(places) > _MOST_LINES else shown


def _with_returns(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\n", "\r\n")


def _encode(text: str, codec: str) -> bytes:
    try:
        return text.encode(codec)
    except UnicodeEncodeError as error:
        raise Fault(Code.USAGE, f"the text cannot be written: half a character at {error.start}") from None


def _lines(text: str) -> str:
    count = text.count("\n") + (not text.endswith("\n") and bool(text))
    return "1 line" if count == 1 else f"{count} lines"
