"""The bodies that were stored last, in memory, because the next one is likely to build on one of them."""

from collections import OrderedDict, deque

MOST_BYTES = 32 << 20
CANDIDATES = 6
"""An agent's side requests and its helpers' conversations stand between the turns of one conversation."""


class Recent:
    """Bodies by hash, and for each `near` the hashes of the last few; bounded by what they hold."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._bytes = 0
        self._bodies: OrderedDict[str, bytes] = OrderedDict()
        self._near: OrderedDict[str, deque[str]] = OrderedDict()

    def note(self, sha256: str, near: str, body: bytes) -> None:
        """This body is stored."""
        if sha256 not in self._bodies:
            self._bytes += len(body)
        self._bodies[sha256] = body
        self._bodies.move_to_end(sha256)
        if near:
            names = self._near.setdefault(near, deque(maxlen=CANDIDATES))
            self._near.move_to_end(near)
            if sha256 in names:
                names.remove(sha256)
            names.append(sha256)
        while self._bytes > self._most_bytes and len(self._bodies) > 1:
            _, gone = self._bodies.popitem(last=False)
            self._bytes -= len(gone)
        while len(self._near) > len(self._bodies):
            self._near.popitem(last=False)

    def body(self, sha256: str) -> bytes | None:
        """The body with this hash, if it is still here."""
        return self._bodies.get(sha256)

    def near(self, near: str) -> list[tuple[str, bytes]]:
        """The last bodies of this kind that are still here, the newest first."""
        names = reversed(self._near.get(near, deque()))
        return [(sha256, self._bodies[sha256]) for sha256 in names if sha256 in self._bodies]

    def forget(self, sha256: str) -> None:
        """This body is stored no more."""
        if (gone := self._bodies.pop(sha256, None)) is not None:
            self._bytes -= len(gone)
