"""The head of a response as bytes."""

from functools import lru_cache
from http import HTTPStatus
from operator import add
from typing import Final

from sightline.web.asgi import Headers

STATUS_LINES: Final = {each.value: f"HTTP/1.1 {each.value} {each.phrase}\r\n".encode() for each in HTTPStatus}
_CONTROLS: Final = bytes({*range(32), 127} - {9})


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
    if not said.decode("latin-1").isprintable() and said != said.translate(None, _CONTROLS):
        raise RuntimeError("a header cannot be sent")
    return b"\r\n".join([*lines, b"", b""] if lines else [b"", b""])


@lru_cache(maxsize=256)
def _begin_lines(names: tuple[bytes, ...]) -> tuple[tuple[bytes, ...], int | None, int | None]:
    """How the lines of headers with these names begin, and which of them say the length and what becomes of the
    connection. Most responses have the same names."""
    low = [name.lower() for name in names]
    places = {name: place for place, name in enumerate(low)}
    return tuple(b"%b: " % name for name in low), places.get(b"content-length"), places.get(b"connection")
