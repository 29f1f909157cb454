"""What a process writes, kept within bounds while it writes: the head and the tail, and how much there was."""

from collections import deque

HEAD = 24 << 10
TAIL = 40 << 10
"""Together less than what one result may hold, so that nothing is cut twice."""


class Capture:
    """The first and the last bytes of an output of any length."""

    def __init__(self, head: int = HEAD, tail: int = TAIL) -> None:
        self.total = 0
        self._most_head = head
        self._most_tail = tail
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._in_tail = 0

    def add(self, data: bytes) -> None:
        """Take in what was written next."""
        self.total += len(data)
        room = self._most_head - len(self._head)
        self._head += data[:room]
        if rest := data[room:]:
            self._tail.append(rest[-self._most_tail :])
            self._in_tail += len(self._tail[-1])
            while self._in_tail - len(self._tail[0]) >= self._most_tail:
                self._in_tail -= len(self._tail.popleft())

    @property
    def text(self) -> str:
        """The output as text, with the place stated where something is missing."""
        tail = b"".join(self._tail)[-self._most_tail :]
        missing = self.total - len(self._head) - len(tail)
        if not missing:
            return (bytes(self._head) + tail).decode(errors="replace")
        mark = f"\n[{missing} of {self.total} bytes are left out here]\n"
        return self._head.decode(errors="replace") + mark + tail.decode(errors="replace")
