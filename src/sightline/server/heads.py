"""The head of a response as bytes; and of a request, its address, and whether llhttp has read the same bytes before
and need not parse them again.

A client sends the same head with all of its requests, but for the length of the body. A head is known by its bytes
before and after the digits of that length, if nothing but the length frames its body.
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
    """One head. There is one object for each, so that what follows from a head can be kept by it."""

    __slots__ = ("_after", "_before", "_headers", "_length_at", "_method", "_path", "_query", "size")

    def __init__(self, before: bytes, after: bytes, scope: AsgiScope) -> None:
        self._before, self._after = before, after
        """Its bytes before and after the digits of the length."""
        self.size = len(before) + len(after)
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

    def length_in(self, data: bytes) -> bytes:
        """The digits of the length, if these bytes begin with this head; else nothing."""
        if not data.startswith(self._before):
            return b""
        at = len(self._before)
        stop = data.find(b"\r", at, at + _MOST_DIGITS)
        length = data[at:stop]
        return length if stop > 0 and length.isdigit() and data.startswith(self._after, stop) else b""


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


STATUS_LINES: Final = {each.value: f"HTTP/1.1 {each.value} {each.phrase}\r\n".encode() for each in HTTPStatus}
CONTROLS: Final = bytes({*range(32), 127} - {9})


def lines_of(headers: Headers) -> tuple[list[bytes], int | None, bool]:
    """These headers as lines without their ends, the length of the body that they name, and whether the connection
    closes after it, which has no line here."""
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
    """The whole head; a RuntimeError where a line has characters that no header can have."""
    return (STATUS_LINES.get(status) or b"HTTP/1.1 %d \r\n" % status) + join_lines(lines)


def join_lines(lines: list[bytes]) -> bytes:
    """Lines of headers or trailers, and the empty line behind them."""
    said = b"".join(lines)
    # Nearly every head is printable, which is seen at once; a tab and letters of other languages are legal too.
    if not said.decode("latin-1").isprintable() and said != said.translate(None, CONTROLS):
        raise RuntimeError("a header cannot be sent")
    return b"\r\n".join([*lines, b"", b""] if lines else [b"", b""])


@lru_cache(maxsize=256)
def _begin_lines(names: tuple[bytes, ...]) -> tuple[tuple[bytes, ...], int | None, int | None]:
    """How the lines of headers with these names begin, and which of them say the length and what becomes of the
    connection. Most responses have the same names."""
    low = [name.lower() for name in names]
    places = {name: place for place, name in enumerate(low)}
    return tuple(b"%b: " % name for name in low), places.get(b"content-length"), places.get(b"connection")
