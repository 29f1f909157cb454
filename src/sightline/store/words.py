"""The words of a record: in lower case, compressed in blocks that a search scans, the newest first.

There is no index. In SQLite one of trigrams cost 250 µs an exchange to build, and a PostgreSQL server spent 700 µs on
one, more than on everything else together. A block costs 5 µs an exchange to write and 2 µs to search, so that 100,000
exchanges take a fifth of a second. The format is the same in both databases, which differ in how they name an exchange:
SQLite by the number of its row, PostgreSQL by its id.
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
"""Bytes of text in a block, before it is compressed: larger ones compress little better."""
FILLED = BLOCK // 2
"""Bytes from which on the last block is left as it is; see `sqlite_blocks.py`."""
_ASCII = bytes(range(128))
END = b"\0"
"""What stands between two texts of a block."""
_name, _text = itemgetter(0), itemgetter(1)
_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(tuple[msgspec.Raw, bytes])
_NAMES: msgspec.msgpack.Decoder[list[Any]] = msgspec.msgpack.Decoder(list[int | str])

Name = TypeVar("Name", int, str)
"""How a database names an exchange. A higher name is that of a newer one, or of one that came in later."""

Said = tuple[Name, bytes]
"""The words of a request or a reply, and the name of its exchange."""


class WordBlock(NamedTuple, Generic[Name]):
    """A block to store: the lowest and the highest exchange with words in it, and how long the text is."""

    first: Name
    last: Name
    size: int
    data: bytes


def searchable(words: str) -> bytes:
    """The words as they are stored: in lower case, and without the character that separates them."""
    if "\0" in words:
        words = words.replace("\0", "\ufffd")
    data = words.encode("utf-8", "replace")
    if words.isascii() or _is_lower(data.translate(None, _ASCII).decode()):
        return data.lower()
    return fold_case(words).encode("utf-8", "replace")


def _is_lower(letters: str) -> bool:
    """Whether none of these would be another in lower case. Some dashes and quotes, as many texts have, are not worth
    `str.lower`, which takes three nanoseconds for each letter of a text with one of them."""
    return fold_case(letters) == letters


def fill_blocks(codec: Codec, latest: bytes | None, said: Sequence[Said[Name]]) -> list[WordBlock[Name]]:
    """These words in blocks. With `latest`, the first of them is that block, filled up."""
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
    """The names in a block, which most searches need not read, and its whole text."""
    return _DECODER.decode(unpacked)


def read_names(names: msgspec.Raw) -> list[Any]:
    """The exchanges that the texts of a block are of, in the same order."""
    return _NAMES.decode(names)


def find_blocks(spans: Iterable[tuple[int, Name, Name]], exchanges: Collection[Name]) -> list[int]:
    """The numbers of those blocks, of which the first and the last exchange are given, that may have words of these
    exchanges."""
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
    """Take the words of these exchanges out of these blocks: the numbers of those that are then empty, and those that
    are different then."""
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
