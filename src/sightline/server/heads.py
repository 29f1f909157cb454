"""Heads: recognises request heads that llhttp has parsed before, and builds response heads.

A client repeats its head with every request; only the content length differs. A head is recognised by its bytes before
and after the digits of that length, provided that only the length frames its body.
"""

import re
from functools import lru_cache
from http import HTTPStatus
from operator import add
from typing import Final

from httptools import parse_url

from sightline.web.asgi import AsgiScope, Headers

MOST_HEAD_BYTES: Final = 64 * 1024
_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*(\d{1,12})[ \t]*\r\n", re.IGNORECASE)
_MOST_DIGITS: Final = 12
_FRAMED_OTHERWISE: Final = frozenset({b"transfer-encoding", b"upgrade", b"expect"})
_MOST_KNOWN: Final = 512


class KnownHead:
    """A parsed request head. There is one object per head, which others use as a key for what they derive from it."""

    __slots__ = ("_after", "_before", "_headers", "_length_at", "_method", "_path", "_query", "size")

    def __init__(self, before: bytes, after: bytes, scope: AsgiScope) -> None:
        self._before, self._after = before, after
        """The bytes before and after the digits of the length."""
        self.size = len(before) + len(after)
        self._method = scope["method"]
        self._path = scope["raw_path"]
        self._query = scope["query_string"]
        self._headers = tuple(scope["headers"])
        self._length_at = [name for name, _ in self._headers].index(b"content-length")

    def scope(self, length: bytes) -> AsgiScope:
        """The ASGI scope of this head with this content length."""
        headers = list(self._headers)
        headers[self._length_at] = (b"content-length", length)
        return {
            "type": "http",
            "method": self._method,
            "raw_path": self._path,
            "query_string": self._query,
            "headers": headers,
            "head": self,
        }

    def length_in(self, data: bytes) -> bytes:
        """The digits of the content length if the bytes begin with this head; otherwise empty."""
        if not data.startswith(self._before):
            return b""
        at = len(self._before)
        stop = data.find(b"\r", at, at + _MOST_DIGITS)
        length = data[at:stop]
        return length if stop > 0 and length.isdigit() and data.startswith(self._after, stop) else b""


_KNOWN: dict[tuple[bytes, bytes], KnownHead] = {}
"""By the bytes before and after the digits of the length. Shared by all connections."""


def find_head(data: bytes) -> KnownHead | None:
    """The known head that these bytes begin with, or None."""
    end = data.find(b"\r\n\r\n", 0, MOST_HEAD_BYTES) + 4
    found = _LENGTH.search(data, 0, end) if end >= 4 else None
    return None if found is None else _KNOWN.get((data[: found.start(1)], data[found.end(1) : end]))


def remember_head(data: bytes, scope: AsgiScope) -> None:
    """Remember the head of these bytes, which llhttp has parsed as one complete request that keeps the connection
    alive. Heads whose body is not framed by its length alone are not remembered."""
    end = data.find(b"\r\n\r\n") + 4
    found = _LENGTH.search(data, 0, end)
    names = [name for name, _ in scope["headers"]]
    if (
        found is None
        or len(data) != end + int(found[1])
        or names.count(b"content-length") != 1
        or not _FRAMED_OTHERWISE.isdisjoint(names)
    ):
        return
    if len(_KNOWN) >= _MOST_KNOWN:
        _KNOWN.clear()
    before, after = data[: found.start(1)], data[found.end(1) : end]
    _KNOWN[before, after] = KnownHead(before, after, scope)


@lru_cache(maxsize=256)
def split_url(url: bytes) -> tuple[bytes, bytes]:
    """The path and the query of a request's target, as they were written."""
    parsed = parse_url(url)
    return parsed.path, parsed.query or b""


STATUS_LINES: Final = {each.value: f"HTTP/1.1 {each.value} {each.phrase}\r\n".encode() for each in HTTPStatus}
CONTROLS: Final = bytes({*range(32), 127} - {9})


def lines_of(headers: Headers) -> tuple[list[bytes], int | None, bool]:
    """Format headers as lines without line breaks. Returns the lines without `connection: close`, the content length,
    and whether the connection closes after the response."""
    if not headers:
        return [], None, False
    names, values = zip(*headers, strict=True)
    begins, length_at, connection_at = _begin_lines(names)
    length = None if length_at is None else int(values[length_at])
    if connection_at is None or b"close" not in values[connection_at].lower():
        return list(map(add, begins, values)), length, False
    kept = [begin + value for begin, value in zip(begins, values, strict=True) if begin != b"connection: "]
    return kept, length, True


def join_head(status: int, lines: list[bytes]) -> bytes:
    """Build the whole head. Raises a RuntimeError if a line has characters that headers cannot have."""
    return (STATUS_LINES.get(status) or b"HTTP/1.1 %d \r\n" % status) + join_lines(lines)


def join_lines(lines: list[bytes]) -> bytes:
    """Join lines of headers or trailers, with the empty line after them."""
    said = b"".join(lines)
    # Nearly every head is printable, which is quick to check. Tabs and bytes above ASCII are legal too.
    if not said.decode("latin-1").isprintable() and said != said.translate(None, CONTROLS):
        raise RuntimeError("a header cannot be sent")
    return b"\r\n".join([*lines, b"", b""] if lines else [b"", b""])


@lru_cache(maxsize=256)
def _begin_lines(names: tuple[bytes, ...]) -> tuple[tuple[bytes, ...], int | None, int | None]:
    """The beginnings of the header lines, and the positions of `content-length` and `connection`. Cached, because most
    responses have the same header names."""
    low = [name.lower() for name in names]
    places = {name: place for place, name in enumerate(low)}
    return tuple(b"%b: " % name for name in low), places.get(b"content-length"), places.get(b"connection")
