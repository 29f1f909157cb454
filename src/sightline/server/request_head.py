"""The head of a request: its address, and whether llhttp has read the same bytes before and need not parse them again.

A client sends the same head with all of its requests, but for the length of the body. A head is known by its bytes
before and after the digits of that length, if nothing but the length frames its body.
"""

import re
from functools import lru_cache
from typing import Final

from httptools import parse_url

from sightline.web.asgi import AsgiScope

MOST_HEAD_BYTES: Final = 64 * 1024
_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*(\d{1,12})[ \t]*\r\n", re.IGNORECASE)
_MOST_DIGITS: Final = 12
_FRAMED_OTHERWISE: Final = frozenset({b"transfer-encoding", b"upgrade", b"expect"})
_MOST_KNOWN: Final = 512


class KnownHead:
    """One head. There is one object for each, so that what follows from a head can be kept by it."""

    __slots__ = ("_headers", "_length_at", "_method", "_path", "_query", "after", "before")

    def __init__(self, before: bytes, after: bytes, scope: AsgiScope) -> None:
        self.before, self.after = before, after
        """Its bytes before and after the digits of the length."""
        self._method = scope["method"]
        self._path = scope["raw_path"]
        self._query = scope["query_string"]
        self._headers = tuple(scope["headers"])
        self._length_at = [name for name, _ in self._headers].index(b"content-length")

    def scope(self, length: bytes) -> AsgiScope:
        """The head, with this length of the body."""
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

    def length_in(self, data: bytes) -> bytes | None:
        """The digits of the length, if these bytes begin with this head; else None."""
        if not data.startswith(self.before):
            return None
        at = len(self.before)
        stop = data.find(b"\r", at, at + _MOST_DIGITS)
        length = data[at:stop]
        return length if stop > 0 and length.isdigit() and data.startswith(self.after, stop) else None


_KNOWN: dict[tuple[bytes, bytes], KnownHead] = {}
"""By their bytes before and after the digits of the length. All connections share them."""


def find_head(data: bytes) -> KnownHead | None:
    """The known head with which these bytes begin, if there is one."""
    end = data.find(b"\r\n\r\n", 0, MOST_HEAD_BYTES) + 4
    found = _LENGTH.search(data, 0, end) if end >= 4 else None
    return None if found is None else _KNOWN.get((data[: found.start(1)], data[found.end(1) : end]))


def remember_head(data: bytes, scope: AsgiScope) -> None:
    """Keep the head of these bytes, which llhttp has read as one whole request that keeps its connection alive. One
    whose body is framed in another way than by its length is not kept."""
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
