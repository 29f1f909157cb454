"""Bytes to lines of a bounded length. Of a line that is too long the two ends are kept, so that it can be answered."""

from dataclasses import dataclass

END = 512


@dataclass(frozen=True, slots=True)
class Overlong:
    """A line that was not kept: how it began, how it ended, and its length in bytes."""

    head: bytes
    tail: bytes
    size: int


class LineSplitter:
    """Takes bytes as they come; gives lines that are whole, without their ends. Blank lines are skipped."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> list[bytes | Overlong]:
        """The lines that are complete with these bytes."""
        *ends, rest = data.split(b"\n")
        found: list[bytes | Overlong] = []
        for end in ends:
            self._take(end)
            line = self._line()
            if isinstance(line, Overlong) or line.strip():
                found.append(line)
        self._take(rest)
        return found

    def _take(self, data: bytes) -> None:
        self._kept.append(data)
        self._size += len(data)
        if self._size > self._most:
            whole = b"".join(self._kept)
            self._kept = [whole[:END], whole[END:][-END:]]

    def _line(self) -> bytes | Overlong:
        whole, size = b"".join(self._kept), self._size
        self._kept, self._size = [], 0
        return whole if size <= self._most else Overlong(whole[:END], whole[END:], size)
