"""The words of a record: in lower case, in compressed blocks that a search scans, the newest first.

There is no index. In SQLite a trigram index cost 250 µs per exchange to build, and a PostgreSQL server spent 700 µs on
one, more than on everything else together. A block costs 5 µs per exchange to write and 2 µs to search, so searching
100,000 exchanges takes a fifth of a second. The format is the same in both databases. They differ in how they name an
exchange: SQLite by its row number, PostgreSQL by its id.
"""

from bisect import bisect_left
from collections.abc import Collection, Iterable, Sequence
from itertools import accumulate
from operator import itemgetter
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from sightline.filters.predicate import fold_case
from sightline.store.entries import Codec

BLOCK = 1 << 16
"""Bytes of text in a block before compression: larger blocks compress little better."""
FILLED = BLOCK // 2
"""A last block with so many bytes is not filled further; see `sqlite_blocks.py`."""
_ASCII = bytes(range(128))
END = b"\0"
"""The separator between two texts of a block."""
_name, _text = itemgetter(0), itemgetter(1)
_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(tuple[msgspec.Raw, bytes])
_NAMES: msgspec.msgpack.Decoder[list[Any]] = msgspec.msgpack.Decoder(list[int | str])

Name = TypeVar("Name", int, str)
"""How a database names an exchange. A higher name means that the exchange is newer, or was imported later."""

Said = tuple[Name, bytes]
"""The name of an exchange, and the words of its request or its reply."""


class WordBlock(NamedTuple, Generic[Name]):
    """A block to store: the lowest and the highest exchange with words in it, and the length of its text."""

    first: Name
    last: Name
    size: int
    data: bytes


def searchable(words: str) -> bytes:
    """The words as they are stored: in lower case, and without the separator."""
    if "\0" in words:
        words = words.replace("\0", "\ufffd")
    data = words.encode("utf-8", "replace")
    if words.isascii() or _is_lower(data.translate(None, _ASCII).decode()):
        return data.lower()
    return fold_case(words).encode("utf-8", "replace")


def _is_lower(letters: str) -> bool:
    """Whether lower-casing these characters changes none of them. Many texts contain only a few dashes and quotes that
    are not ASCII, and `str.lower` would then take three nanoseconds for each character of the text."""
    return fold_case(letters) == letters


def fill_blocks(codec: Codec, latest: bytes | None, said: Sequence[Said[Name]]) -> list[WordBlock[Name]]:
    """Pack these words into blocks. With `latest`, the first block is that one, filled."""
    names: list[Name]
    names, texts = ([], []) if latest is None else _unpack(codec, latest)
    names += map(_name, said)
    texts += map(_text, said)
    ends = list(accumulate(map(len, texts)))
    blocks: list[WordBlock[Name]] = []
    start, size = 0, 0
    while start < len(texts):
        # A block ends with the text that makes it large enough.
        end = min(bisect_left(ends, size + BLOCK, start) + 1, len(texts))
        blocks.append(_pack(codec, names[start:end], texts[start:end]))
        start, size = end, ends[end - 1]
    return blocks


def _pack(codec: Codec, names: Sequence[Name], texts: Sequence[bytes]) -> WordBlock[Name]:
    text = END.join(texts)
    return WordBlock(min(names), max(names), len(text), codec.pack(_ENCODER.encode((names, text))))


def _unpack(codec: Codec, data: bytes) -> tuple[list[Any], list[bytes]]:
    names, text = split_block(codec.unpack(data))
    return read_names(names), text.split(END)


def unpack_words(codec: Codec, data: bytes) -> list[Said[Any]]:
    """The words in a block."""
    return list(zip(*_unpack(codec, data), strict=True))


def split_block(unpacked: bytes) -> tuple[msgspec.Raw, bytes]:
    """The names in a block, which most searches need not decode, and its whole text."""
    return _DECODER.decode(unpacked)


def read_names(names: msgspec.Raw) -> list[Any]:
    """The exchanges that the texts of a block belong to, in the same order."""
    return _NAMES.decode(names)


def find_blocks(spans: Iterable[tuple[int, Name, Name]], exchanges: Collection[Name]) -> list[int]:
    """The numbers of the blocks that may contain words of these exchanges. `spans` are the number, first and last
    exchange of each block."""
    names = sorted(exchanges)
    found: list[int] = []
    for number, first, last in spans:
        at = bisect_left(names, first)
        if at < len(names) and names[at] <= last:
            found.append(number)
    return found


def drop_words(
    codec: Codec, blocks: Iterable[tuple[int, bytes]], exchanges: Collection[Name]
) -> tuple[list[int], list[tuple[int, WordBlock[Name]]]]:
    """Remove the words of these exchanges from these blocks. Returns the numbers of the blocks that become empty, and
    the blocks that change."""
    emptied: list[int] = []
    changed: list[tuple[int, WordBlock[Name]]] = []
    for number, data in blocks:
        block = unpack_words(codec, data)
        left = [each for each in block if each[0] not in exchanges]
        if not left:
            emptied.append(number)
        elif len(left) < len(block):
            changed.append((number, _pack(codec, [name for name, _ in left], [words for _, words in left])))
    return emptied, changed


def measure_words(codec: Codec, data: bytes, exchanges: Collection[Name]) -> int:
    """How many compressed bytes of a block are words of these exchanges, by their share of it."""
    block = unpack_words(codec, data)
    of_exchanges = sum(len(words) for name, words in block if name in exchanges)
    return len(data) * of_exchanges // (sum(len(words) for _, words in block) or 1)
