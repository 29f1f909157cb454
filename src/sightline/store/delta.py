"""A body as what differs from another one: an agent sends its whole history again with every turn.

Two bodies share a beginning and an end; what stands between is compressed. The place where they part is found by
comparing slices and halving, which costs a few copies of the body and no loop over its bytes.
"""

from collections.abc import Iterable
from typing import NamedTuple

import zstandard

DEEPEST = 32
"""How many bodies may be needed to read one; then one is stored whole again."""
LEAST_SIZE = 4096
"""What is smaller is stored by itself: looking for something to build on costs more than it saves."""
_EDGE = 48
_BLOCK = 1 << 16
_LEVEL = 1
"""The next ones take up to three quarters more time for a hundredth less of short texts, and a tenth of long ones."""


class Coded(NamedTuple):
    """A body as it is stored. `base` is the hash of the body that it builds on, empty where it stands alone; `prefix`
    and `suffix` are how many bytes of the base begin and end it, `data` is the compressed rest."""

    base: str
    prefix: int
    suffix: int
    data: bytes
    depth: int = 0


class Codec:
    """Compresses and restores. It belongs to one thread."""

    def __init__(self) -> None:
        self._compressor = zstandard.ZstdCompressor(level=_LEVEL)
        self._decompressor = zstandard.ZstdDecompressor()

    def pack(self, data: bytes) -> bytes:
        """These bytes, smaller."""
        return self._compressor.compress(data)

    def unpack(self, packed: bytes) -> bytes:
        """The bytes that were packed."""
        return self._decompressor.decompress(packed)

    def whole(self, body: bytes) -> Coded:
        """The body by itself."""
        return Coded("", 0, 0, self.pack(body))

    def against(self, body: bytes, base: bytes, sha256: str, depth: int) -> Coded:
        """The body as a change of `base`, which is read in `depth` steps; whole where that gains nothing."""
        prefix, suffix = common_ends(base, body)
        if depth >= DEEPEST or prefix + suffix < len(body) // 4:
            return self.whole(body)
        return Coded(sha256, prefix, suffix, self.pack(body[prefix : len(body) - suffix]), depth + 1)

    def best(self, body: bytes, bases: Iterable[tuple[str, bytes, int]]) -> Coded:
        """The body as a change of the first of these (hash, body, depth) that it grew from, else of the one that it
        shares most with, else whole."""
        found: tuple[int, str, bytes, int] = (0, "", b"", 0)
        for sha256, base, depth in bases if len(body) >= LEAST_SIZE else ():
            if depth >= DEEPEST:
                continue
            alike = sum(common_ends(base, body))
            if alike > found[0]:
                found = (alike, sha256, base, depth)
            if 10 * alike > 9 * len(base):
                break
        _, sha256, base, depth = found
        return self.against(body, base, sha256, depth) if sha256 else self.whole(body)

    def restore(self, coded: Coded, base: bytes) -> bytes:
        """The body again; `base` counts only where it builds on one."""
        middle = self.unpack(coded.data)
        return base[: coded.prefix] + middle + base[len(base) - coded.suffix :] if coded.base else middle


def may_share(old: bytes, new: bytes) -> bool:
    """Whether they begin or end alike, which is quickly seen; if not, one is hardly a change of the other."""
    return len(new) >= LEAST_SIZE and (old[:_EDGE] == new[:_EDGE] or old[-_EDGE:] == new[-_EDGE:])


def common_ends(old: bytes, new: bytes) -> tuple[int, int]:
    """How many bytes at the beginning and, of the rest, at the end are the same in both."""
    most = min(len(old), len(new))
    prefix = _agreement(old, new, most)
    return prefix, _agreement(old, new, most - prefix, from_end=True)


def _agreement(old: bytes, new: bytes, most: int, *, from_end: bool = False) -> int:
    """The largest count up to `most` of bytes that agree, from the beginning or from the end."""

    def agree(start: int, stop: int) -> bool:
        if from_end:
            return old[len(old) - stop : len(old) - start] == new[len(new) - stop : len(new) - start]
        return old[start:stop] == new[start:stop]

    known = 0
    while known < most and agree(known, min(most, known + _BLOCK)):
        known = min(most, known + _BLOCK)
    low, high = known, min(most, known + _BLOCK)
    while low < high:
        middle = (low + high + 1) // 2
        if agree(low, middle):
            low = middle
        else:
            high = middle - 1
    return low
