"""How large a picture is, from the first bytes of its file. The picture itself is never decoded."""

import binascii

_HEAD = 65_536
_JPEG_HEAD = 1_400_000
_JPEG_MARKERS = 10_000
_LONGEST_SIDE = 65_535
_LARGEST_AREA = 400_000_000
_JPEG_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}


def image_size(data: str) -> tuple[int, int] | None:
    """Width and height of a base64-coded PNG, JPEG, GIF or WebP; None where the bytes do not tell."""
    head = _bytes(data[:_HEAD])
    if head.startswith(b"\xff\xd8"):
        return _jpeg(head) or _jpeg(_bytes(data[:_JPEG_HEAD]))
    if head.startswith(b"\x89PNG\r\n\x1a\n") and len(head) >= 24:
        return _sides(int.from_bytes(head[16:20]), int.from_bytes(head[20:24]))
    if head.startswith((b"GIF87a", b"GIF89a")) and len(head) >= 10:
        return _sides(int.from_bytes(head[6:8], "little"), int.from_bytes(head[8:10], "little"))
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP" and len(head) >= 30:
        return _webp(head)
    return None


def _bytes(data: str) -> bytes:
    """As much of it as is base64 of either alphabet."""
    plain = data.replace("-", "+").replace("_", "/").replace("\n", "").replace("\r", "").rstrip("=")
    whole = plain[: len(plain) // 4 * 4]
    rest = plain[len(whole) :]
    padded = whole + (rest + "=" * (4 - len(rest)) if len(rest) > 1 else "")
    try:
        return binascii.a2b_base64(padded)
    except (binascii.Error, ValueError):
        return b""


def _sides(width: int, height: int) -> tuple[int, int] | None:
    """Sides that a picture can have: no provider takes one that is larger, and a damaged file may say anything."""
    is_possible = 0 < width <= _LONGEST_SIDE and 0 < height <= _LONGEST_SIDE and width * height <= _LARGEST_AREA
    return (width, height) if is_possible else None


def _jpeg(head: bytes) -> tuple[int, int] | None:
    at = 2
    for _ in range(_JPEG_MARKERS):
        if at + 9 > len(head) or head[at] != 0xFF:
            return None
        marker = head[at + 1]
        if marker in _JPEG_FRAMES:
            return _sides(int.from_bytes(head[at + 7 : at + 9]), int.from_bytes(head[at + 5 : at + 7]))
        if marker == 0xFF:
            at += 1
        else:
            at += 2 + max(2, int.from_bytes(head[at + 2 : at + 4]))
    return None


def _webp(head: bytes) -> tuple[int, int] | None:
    kind = head[12:16]
    if kind == b"VP8X":
        return _sides(1 + int.from_bytes(head[24:27], "little"), 1 + int.from_bytes(head[27:30], "little"))
    if kind == b"VP8L":
        bits = int.from_bytes(head[21:25], "little")
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    if kind == b"VP8 ":
        return _sides(
            int.from_bytes(head[26:28], "little") & 0x3FFF,
            int.from_bytes(head[28:30], "little") & 0x3FFF,
        )
    return None
