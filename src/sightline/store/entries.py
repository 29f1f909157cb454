"""Entries of the record: facts of exchanges and the bodies that they name by hash, and how both are compressed.

An agent sends its whole history again with every turn, so a body is stored as its difference from another one. Two
bodies share a beginning and an end; the middle is compressed. The point where they differ is found by binary search
over comparisons of slices, which needs no copy of the body and no loop over its bytes.
"""

from collections import OrderedDict, deque
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple, TypeAlias

import msgspec
import zstandard

from sightline.errors import Code, Fault
from sightline.model.exchange import Fact, FrameArrived


class FactEntry(msgspec.Struct, frozen=True, tag_field="type", tag="fact"):
    """Fact number `n` of an exchange, counted from 0, and the time of day at which it happened."""

    exchange: str
    n: int
    at: float
    fact: Fact


class BodyEntry(msgspec.Struct, frozen=True, tag_field="type", tag="body", gc=False):
    """A body. `near` is a key that bodies which are likely to resemble each other share, such as those of a session, so
    that common parts are stored once."""

    sha256: str
    data: bytes
    near: str = ""


Entry: TypeAlias = FactEntry | BodyEntry


class FramesEntry(msgspec.Struct, frozen=True, tag_field="type", tag="frames"):
    """Consecutive frames of an exchange, the first of them as fact number `n`: for each its time of day, the seconds
    after the attempt, and its data. Journals and blocks use it in place of a `FactEntry` for each frame, which would
    often be larger than the frame itself."""

    exchange: str
    n: int
    at: list[float]
    after: list[float]
    data: list[bytes]


KeptEntry: TypeAlias = FactEntry | BodyEntry | FramesEntry
"""What a journal or a block contains."""


def join_frames(entries: Sequence[KeptEntry]) -> list[KeptEntry]:
    """These entries with their frames joined into one entry, if the frames are consecutive, as they are in an exchange.

    A client waits for this: a loop over 200 frames takes 75 µs, these comprehensions 20.
    """
    kinds = [type(entry.fact) if type(entry) is FactEntry else None for entry in entries]
    count = kinds.count(FrameArrived)
    if not count:
        return list(entries)
    start = kinds.index(FrameArrived)
    first = entries[start]
    assert type(first) is FactEntry
    if count == 1 and type(first.fact) is FrameArrived:  # as in a whole answer
        whole = FramesEntry(first.exchange, first.n, [first.at], [first.fact.after], [first.fact.data])
    else:
        if kinds[start : start + count].count(FrameArrived) < count:  # an archive has bodies between them
            return list(entries)
        run: list[FactEntry] = entries[start : start + count]  # type: ignore[assignment]
        if [entry.n for entry in run if entry.exchange == first.exchange] != [*range(first.n, first.n + count)]:
            return list(entries)
        frames: list[FrameArrived] = [entry.fact for entry in run]  # type: ignore[misc]
        after, data = [each.after for each in frames], [each.data for each in frames]
        whole = FramesEntry(first.exchange, first.n, [entry.at for entry in run], after, data)
    return [*entries[:start], whole, *entries[start + count :]]


def plain_entries(entries: Iterable[KeptEntry]) -> list[Entry]:
    """The entries with one `FactEntry` for each frame; the inverse of `join_frames`."""
    plain: list[Entry] = []
    for entry in entries:
        if type(entry) is FramesEntry:
            plain += frames_in(entry)
        else:
            plain.append(entry)  # type: ignore[arg-type]
    return plain


def frames_in(entry: FramesEntry) -> list[FactEntry]:
    """The facts of these frames."""
    return [
        FactEntry(entry.exchange, n, at, FrameArrived(data, after))
        for n, (at, after, data) in enumerate(zip(entry.at, entry.after, entry.data, strict=True), entry.n)
    ]


def raw_reply(entries: Iterable[KeptEntry]) -> bytes:
    """The joined data of the frames among these entries."""
    pieces: list[bytes] = []
    for entry in entries:
        if type(entry) is FramesEntry:
            pieces += entry.data
        elif type(entry) is FactEntry and type(entry.fact) is FrameArrived:
            pieces.append(entry.fact.data)
    return b"".join(pieces)


def since(entry: FactEntry | FramesEntry, n: int) -> FactEntry | FramesEntry | None:
    """The part of this entry whose facts have number `n` or higher; None if there is none."""
    if entry.n >= n:
        return entry
    skipped = n - entry.n
    if not isinstance(entry, FramesEntry) or skipped >= len(entry.at):
        return None
    return FramesEntry(entry.exchange, n, entry.at[skipped:], entry.after[skipped:], entry.data[skipped:])


def next_number(entry: FactEntry | FramesEntry) -> int:
    """The number of the fact after this entry."""
    return entry.n + (len(entry.at) if type(entry) is FramesEntry else 1)


_DECODER: msgspec.msgpack.Decoder[Fact] = msgspec.msgpack.Decoder(Fact)


def fact_of(data: bytes) -> Fact:
    """The fact in these bytes. Raises a Fault if it is of a kind that only a newer version knows."""
    try:
        return _DECODER.decode(data)
    except msgspec.ValidationError as error:
        raise too_new(error) from None


def too_new(error: msgspec.ValidationError) -> Fault:
    """The fault for a fact that cannot be decoded."""
    return Fault(
        Code.CONFIG,
        f"the record holds a fact that this version does not understand: {error}",
        hint="A newer version of Sightline has written it; look at this exchange with that version.",
    )


DEEPEST = 32
"""How many bodies may be needed to restore one; then a body is stored whole again."""
LEAST_SIZE = 4096
"""Smaller bodies are stored whole: looking for a base costs more than it saves."""
_EDGE = 48
_LEVEL = 1
"""The next levels take up to three quarters more time and make short texts 1 % smaller, long ones 10 %."""


class EncodedBody(NamedTuple):
    """A body as it is stored. `base` is the hash of the body that it is based on, empty if it is stored whole; `prefix`
    and `suffix` are how many bytes it shares with the beginning and the end of the base; `data` is the compressed
    rest."""

    base: str
    prefix: int
    suffix: int
    data: bytes
    depth: int = 0


class Codec:
    """Compresses and restores data. An instance belongs to one thread."""

    def __init__(self) -> None:
        self._compressor = zstandard.ZstdCompressor(level=_LEVEL)
        self._decompressor = zstandard.ZstdDecompressor()

    def pack(self, data: bytes) -> bytes:
        """Compress these bytes."""
        return self._compressor.compress(data)

    def unpack(self, packed: bytes) -> bytes:
        """Decompress these bytes."""
        return self._decompressor.decompress(packed)

    def whole(self, body: bytes) -> EncodedBody:
        """Encode the body without a base."""
        return EncodedBody("", 0, 0, self.pack(body))

    def against(self, body: bytes, base: bytes, sha256: str, depth: int) -> EncodedBody:
        """Encode the body as a difference from `base`, which takes `depth` steps to restore; whole if that saves
        nothing."""
        return self._change(body, sha256, depth, common_ends(base, body))

    def best(self, body: bytes, bases: Iterable[tuple[str, bytes, int]]) -> EncodedBody:
        """Encode the body as a difference from the first of these (hash, body, depth) that it has grown from, otherwise
        from the one that it shares most with, otherwise whole."""
        found: tuple[str, int, tuple[int, int]] = ("", DEEPEST, (0, 0))
        for sha256, base, depth in bases if len(body) >= LEAST_SIZE else ():
            if depth >= DEEPEST:
                continue
            ends = common_ends(base, body)
            if sum(ends) > sum(found[2]):
                found = (sha256, depth, ends)
            if 10 * sum(ends) > 9 * len(base):
                break
        return self._change(body, *found)

    def _change(self, body: bytes, sha256: str, depth: int, ends: tuple[int, int]) -> EncodedBody:
        prefix, suffix = ends
        if depth >= DEEPEST or prefix + suffix < len(body) // 4:
            return self.whole(body)
        return EncodedBody(sha256, prefix, suffix, self.pack(body[prefix : len(body) - suffix]), depth + 1)

    def restore(self, coded: EncodedBody, base: bytes) -> bytes:
        """Restore a body; `base` is used only if `coded` has one."""
        middle = self.unpack(coded.data)
        return base[: coded.prefix] + middle + base[len(base) - coded.suffix :] if coded.base else middle


def may_share(old: bytes, new: bytes) -> bool:
    """Whether both begin or end alike, which is quick to check. If not, one is unlikely to be based on the other."""
    return len(new) >= LEAST_SIZE and (old[:_EDGE] == new[:_EDGE] or old[-_EDGE:] == new[-_EDGE:])


def common_ends(old: bytes, new: bytes) -> tuple[int, int]:
    """How many bytes both have in common at the beginning and, in the rest, at the end."""
    prefix = common_prefix(old, new)
    view, whole = memoryview(new), len(new)
    low, high = 0, min(len(old), len(new)) - prefix
    while high - low > _WINDOW:
        middle = (low + high + 1) // 2
        if old.endswith(view[whole - middle : whole - low], 0, len(old) - low):
            low = middle
        else:
            high = middle - 1
    ends = old[len(old) - high : len(old) - low], new[whole - high : whole - low]
    return prefix, high - _length_of_difference(*ends, "little")


def common_prefix(old: bytes, new: bytes) -> int:
    """How many bytes both have in common at the beginning."""
    view = memoryview(new)
    low, high = 0, min(len(old), len(new))
    if high > _USUAL_DIFFERENCE and old.startswith(view[: high - _USUAL_DIFFERENCE]):
        low = high - _USUAL_DIFFERENCE
    while high - low > _WINDOW:
        middle = (low + high + 1) // 2
        if old.startswith(view[low:middle], low):
            low = middle
        else:
            high = middle - 1
    return high - _length_of_difference(old[low:high], new[low:high], "big")


_USUAL_DIFFERENCE = 4096
"""A conversation grows at its end: two bodies usually differ only in so many bytes at the end of the shorter one.
Checking that first saves five of nine steps, which is a third of the time for 97 KB."""
_WINDOW = 256
"""At most so many bytes are compared as integers, which is then faster than more steps."""


def _length_of_difference(one: bytes, other: bytes, order: Literal["big", "little"]) -> int:
    """The length of two byte strings of equal length without their common beginning ("big") or common end
    ("little")."""
    difference = int.from_bytes(one, order) ^ int.from_bytes(other, order)
    return (difference.bit_length() + 7) // 8


PackedFrame: TypeAlias = tuple[int, float, float, bytes]
"""A frame: its fact number, its time of day, the seconds after the attempt, and its data."""
_ENCODER = msgspec.msgpack.Encoder()
_FRAME_DECODER = msgspec.msgpack.Decoder(list[PackedFrame])


def pack_frames(codec: Codec, frames: Sequence[PackedFrame]) -> bytes:
    """Compress these frames of one exchange."""
    return codec.pack(_ENCODER.encode(frames))


def unpack_frames(codec: Codec, exchange: str, data: bytes) -> list[FactEntry]:
    """The facts of compressed frames."""
    return [
        FactEntry(exchange, n, at, FrameArrived(raw, after))
        for n, at, after, raw in _FRAME_DECODER.decode(codec.unpack(data))
    ]


def raw_bytes(codec: Codec, data: bytes) -> bytes:
    """The joined data of compressed frames."""
    return b"".join(raw for _, _, _, raw in _FRAME_DECODER.decode(codec.unpack(data)))


MOST_BYTES = 8 << 20
CANDIDATES = 6
"""How many bodies are tried as a base. An agent's side requests and the conversations of its helpers come between the
turns of one conversation."""


class Recent:
    """Recent bodies by hash, and the latest hashes for each `near`, up to a total size."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._bytes = 0
        self._bodies: OrderedDict[str, bytes] = OrderedDict()
        self._near: OrderedDict[str, deque[str]] = OrderedDict()

    def note(self, sha256: str, near: str, body: bytes) -> None:
        """Remember a body that was stored."""
        if sha256 in self._bodies:
            self._bodies.move_to_end(sha256)
        else:
            self._bytes += len(body)
        self._bodies[sha256] = body
        if near:
            names = self._near.get(near)
            if names is None:
                names = self._near[near] = deque(maxlen=CANDIDATES)
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
        """The body with this hash; None if it is not remembered."""
        return self._bodies.get(sha256)

    def near(self, near: str) -> list[tuple[str, bytes]]:
        """The latest remembered bodies with this `near`, the newest first."""
        names = reversed(self._near.get(near, deque()))
        return [(sha256, self._bodies[sha256]) for sha256 in names if sha256 in self._bodies]

    def forget(self, sha256: str) -> None:
        """Forget a body that is no longer stored."""
        if (gone := self._bodies.pop(sha256, None)) is not None:
            self._bytes -= len(gone)
