"""Decoding of content codings: gzip, deflate, brotli and zstd, up to a maximum size.

A few bytes can expand to gigabytes, so the output is counted while it is produced.
"""

import zlib
from typing import Protocol

import brotli  # type: ignore[import-untyped]
import zstandard

from sightline.errors import Code, Fault

LIMIT = 64 * 1024 * 1024
_CHUNK_BYTES = 1024
"""How many bytes are decoded at a time: a zstd block of a few bytes may expand to 128 KiB."""

_LARGEST_WINDOW = 1 << 27
_PORTION = 1 << 16
_HINT = "Send the body as it is, or with Content-Encoding gzip, deflate, br or zstd and all of its bytes."

READABLE = frozenset({"gzip", "x-gzip", "deflate", "br", "zstd", "identity"})
"""The codings that can be decoded."""


class _Decompressor(Protocol):
    @property
    def eof(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes, /) -> bytes: ...


def decode_body(data: bytes, codings: str, limit: int = LIMIT) -> bytes:
    """The body decoded from this Content-Encoding. Raises a Fault if it is truncated, damaged or too large."""
    for name in reversed([name for each in codings.split(",") if (name := each.strip().lower())]):
        undoing = ContentDecoder(name, limit)
        data = undoing.feed(data)
        if not undoing.is_whole:
            raise _damage_fault(name, "it ends too early")
    if len(data) > limit:
        raise _too_large(limit)
    return data


class ContentDecoder:
    """Decodes one coding while bytes arrive. `is_whole` is whether the bytes so far could be the complete body."""

    def __init__(self, coding: str, limit: int = LIMIT) -> None:
        if coding not in READABLE:
            hint = "Send the body without a coding, or with gzip, deflate, br or zstd."
            raise Fault(Code.INVALID_REQUEST, f"the content coding {coding!r} is not known", hint=hint, status=415)
        self._coding = coding
        self._limit = limit
        self._size = 0
        self._undoing: _Decompressor | None = None
        self._head = b""

    @property
    def is_whole(self) -> bool:
        """Whether nothing has begun that has not ended."""
        return self._undoing is None and not self._head

    def feed(self, data: bytes) -> bytes:
        """Decode the next bytes."""
        if self._coding == "identity":
            return data
        out: list[bytes] = []
        data, self._head = self._head + data, b""
        if self._undoing is None and self._coding == "deflate" and len(data) < 2:
            self._head = data  # the first two bytes show which of its two forms it has
            return b""
        for start in range(0, len(data), _CHUNK_BYTES):
            self._take(data[start : start + _CHUNK_BYTES], out)
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
                # Another member may follow; gzip and zstd both allow it.
                piece, self._undoing = self._undoing.unused_data, None


class _Brotli:
    """A brotli decoder. One byte may expand to 16 MiB, so the output is taken in portions, and stops just above the
    limit, which the caller then refuses."""

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


def _begin_decoding(coding: str, head: bytes, limit: int) -> _Decompressor:
    if coding == "br":
        return _Brotli(limit)
    if coding == "zstd":
        return zstandard.ZstdDecompressor(max_window_size=_LARGEST_WINDOW).decompressobj()
    if coding == "deflate":
        # The standard asks for zlib's frame around it; many send it bare.
        is_framed = head[0] & 0x0F == 8 and int.from_bytes(head[:2], "big") % 31 == 0
        return zlib.decompressobj(zlib.MAX_WBITS if is_framed else -zlib.MAX_WBITS)
    return zlib.decompressobj(zlib.MAX_WBITS | 16)


def _damage_fault(coding: str, why: str) -> Fault:
    return Fault(Code.INVALID_REQUEST, f"the body is not valid {coding}: {why}", hint=_HINT)


def _too_large(limit: int) -> Fault:
    message = f"the body has more than {limit} bytes after decoding"
    return Fault(Code.REQUEST_TOO_LARGE, message, hint="Remove or shrink attachments.")
