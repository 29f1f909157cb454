"""Content codings undone: what a body says once gzip, deflate or zstd is taken off, and never more than is allowed.

A few bytes can be made to say gigabytes, so what comes out is counted while it comes.
"""

import zlib
from typing import Protocol

import brotli  # type: ignore[import-untyped]
import zstandard

from sightline.errors import Code, Fault

LIMIT = 64 * 1024 * 1024
_PIECE = 1024
"""So much is undone at a time: a zstd block of a few bytes may stand for 128 KiB."""

_LARGEST_WINDOW = 1 << 27
_PORTION = 1 << 16
_HINT = "Send the body as it is, or with Content-Encoding gzip, deflate, br or zstd and all of its bytes."

READABLE = frozenset({"gzip", "x-gzip", "deflate", "br", "zstd", "identity"})
"""The codings that can be undone here."""


class _Undoing(Protocol):
    @property
    def eof(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes, /) -> bytes: ...


def decode_body(data: bytes, codings: str, limit: int = LIMIT) -> bytes:
    """What a body says whose Content-Encoding is this; a fault where it is broken off, damaged or too much."""
    for name in reversed([name for each in codings.split(",") if (name := each.strip().lower())]):
        undoing = Decoding(name, limit)
        data = undoing.feed(data)
        if not undoing.is_whole:
            raise _damage_fault(name, "it ends too early")
    if len(data) > limit:
        raise _too_large(limit)
    return data


class Decoding:
    """One coding undone while the bytes come. `is_whole` tells whether what came so far could be all."""

    def __init__(self, coding: str, limit: int = LIMIT) -> None:
        if coding not in READABLE:
            hint = "Send the body without a coding, or with gzip, deflate, br or zstd."
            raise Fault(Code.INVALID_REQUEST, f"the content coding {coding!r} is not known", hint=hint, status=415)
        self._coding = coding
        self._limit = limit
        self._size = 0
        self._undoing: _Undoing | None = None
        self._head = b""

    @property
    def is_whole(self) -> bool:
        """Whether nothing is begun and not ended."""
        return self._undoing is None and not self._head

    def feed(self, data: bytes) -> bytes:
        """What these bytes add."""
        if self._coding == "identity":
            return data
        out: list[bytes] = []
        data, self._head = self._head + data, b""
        if self._undoing is None and self._coding == "deflate" and len(data) < 2:
            self._head = data  # two bytes show which of the two forms it has
            return b""
        for start in range(0, len(data), _PIECE):
            self._take(data[start : start + _PIECE], out)
        return b"".join(out)

    def _take(self, piece: bytes, out: list[bytes]) -> None:
        while piece:
            if self._undoing is None:
                self._undoing = _begin_decoding(self._coding, piece, self._limit)
            try:
                some = self._undoing.decompress(piece)
            except (zlib.error, zstandard.ZstdError, brotli.error) as error:
                raise _damage_fault(self._coding, str(error)) from None
            self._size += len(some)
            if self._size > self._limit:
                raise _too_large(self._limit)
            out.append(some)
            piece = b""
            if self._undoing.eof:
                # Another member may follow; both formats allow it.
                piece, self._undoing = self._undoing.unused_data, None


class _Brotli:
    """Brotli undone. One byte of it may stand for 16 MiB, so what comes out is taken in portions, and no further than
    just above the limit, which its caller then refuses."""

    unused_data = b""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._decoder = brotli.Decompressor()

    @property
    def eof(self) -> bool:
        return bool(self._decoder.is_finished())

    def decompress(self, data: bytes, /) -> bytes:
        pieces = [self._decoder.process(data, output_buffer_limit=_PORTION)]
        size = len(pieces[0])
        while size <= self._limit and not self._decoder.can_accept_more_data():
            pieces.append(self._decoder.process(b"", output_buffer_limit=_PORTION))
            size += len(pieces[-1])
        return b"".join(pieces)


def _begin_decoding(coding: str, head: bytes, limit: int) -> _Undoing:
    if coding == "br":
        return _Brotli(limit)
    if coding == "zstd":
        return zstandard.ZstdDecompressor(max_window_size=_LARGEST_WINDOW).decompressobj()
    if coding == "deflate":
        # Properly with zlib's frame around it; many send it bare.
        is_framed = head[0] & 0x0F == 8 and int.from_bytes(head[:2], "big") % 31 == 0
        return zlib.decompressobj(zlib.MAX_WBITS if is_framed else -zlib.MAX_WBITS)
    return zlib.decompressobj(zlib.MAX_WBITS | 16)


def _damage_fault(coding: str, why: str) -> Fault:
    return Fault(Code.INVALID_REQUEST, f"the body is not valid {coding}: {why}", hint=_HINT)


def _too_large(limit: int) -> Fault:
    message = f"the body has more than {limit} bytes after decoding"
    return Fault(Code.REQUEST_TOO_LARGE, message, hint="Remove or shrink attachments.")
