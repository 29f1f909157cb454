"""Tokens of images, documents, audio and video, by the formulas that providers publish.

The pages and seconds of a file, and the size of an image, are read from its first bytes if they are there, and
otherwise guessed from its length. Nothing is decoded.
"""

import binascii
import re
from math import ceil, floor, sqrt
from typing import assert_never

from sightline.catalog.facts import ImageCost
from sightline.dialects.dialect import Band, TokenRules
from sightline.model.parts import FileId, Inline, Link, PlainText, Source
from sightline.tokens.estimate import Estimate, between, exactly
from sightline.tokens.text_count import TextCounter

_SECOND_OF_FILM: Band = (66, 263, 300)
_PAGES_OF_A_BYTE: Band = (1 / 1_000_000, 1 / 60_000, 1 / 2_000)
_SECONDS_OF_A_BYTE: Band = (1 / 48_000, 1 / 16_000, 1 / 1_000)
_SECONDS_OF_FILM_IN_A_BYTE: Band = (1 / 4_000_000, 1 / 250_000, 1 / 20_000)
_AROUND = 50
_UNKNOWN_FILE: Band = (0, 2_000, 200_000)
_A_PAGE = re.compile(rb"/Type\s*/Page[^s]")


def count_media(source: Source, rules: TokenRules, texts: TextCounter) -> Estimate:
    """Tokens of a file that is not an image."""
    match source:
        case PlainText():
            return texts.count(source.text) + between(0, _AROUND / 4, _AROUND)
        case Inline():
            return _inline(source, rules, texts)
        case Link() | FileId():
            return between(*_UNKNOWN_FILE, "file of unknown size")
        case unreachable:
            assert_never(unreachable)


def _inline(source: Inline, rules: TokenRules, texts: TextCounter) -> Estimate:
    data = _decode_base64(source.data)
    kind = source.media_type.partition("/")[0]
    if kind == "audio":
        return _times(rules.second, _seconds(data), "seconds of sound")
    if kind == "video":
        return _times(_SECOND_OF_FILM, _scale(_SECONDS_OF_FILM_IN_A_BYTE, len(data)), "seconds of film")
    if source.media_type == "application/pdf":
        return _times(rules.page, _pages(data), "pages")
    return texts.count(data.decode("utf-8", "replace")) + between(0, _AROUND / 4, _AROUND)


def _decode_base64(data: str) -> bytes:
    try:
        return binascii.a2b_base64(data.replace("-", "+").replace("_", "/") + "==")
    except (binascii.Error, ValueError):
        return data.encode("utf-8", "replace")


def _scale(rate: Band, amount: float) -> Band:
    return rate[0] * amount, rate[1] * amount, rate[2] * amount


def _times(rate: Band, amount: Band, how: str) -> Estimate:
    return between(rate[0] * amount[0], rate[1] * amount[1], rate[2] * amount[2] + _AROUND, how)


def _pages(data: bytes) -> Band:
    amount = len(_A_PAGE.findall(data))
    if amount:
        return amount, amount, amount
    low, likely, high = _scale(_PAGES_OF_A_BYTE, len(data))
    return max(1, low), max(1, likely), max(1, high)


def _seconds(data: bytes) -> Band:
    if data.startswith(b"RIFF") and data[8:12] == b"WAVE" and (rate := int.from_bytes(data[28:32], "little")):
        amount = len(data) / rate
        return amount, amount, amount
    return _scale(_SECONDS_OF_A_BYTE, len(data))


Size = tuple[float, float]

_SQUARE = 2048
_SHORT_SIDE = 768
_TILE = 512
_SMALL = 384
_CROP = 768
_LEAST_CROP = 256
_UNKNOWN = (85, 1000, 6000)
_SMALLEST: Size = (32, 32)
_USUAL: Size = (1024, 768)
_LARGEST: Size = (8000, 8000)


def count_image(cost: ImageCost | None, size: tuple[int, int] | None, detail: str | None = None) -> Estimate:
    """Tokens of one image. If its size is unknown, the band goes from the smallest to the largest possible size."""
    if cost is None:
        return between(*_UNKNOWN, "image")
    if size is not None:
        return _by_formula(cost, size, detail)
    small, usual, large = (_by_formula(cost, guess, detail) for guess in (_SMALLEST, _USUAL, _LARGEST))
    return between(small.low, usual.tokens, max(usual.high, large.high), "image of unknown size")


def _by_formula(cost: ImageCost, size: Size, detail: str | None) -> Estimate:
    match cost.kind:
        case "tiles":
            tiled = cost.base + cost.tile * _tiles(size)
            return exactly(cost.base if detail == "low" else tiled, "image formula")
        case "patches":
            patches = ceil(_patches(cost, size) * cost.factor)
            return between(min(patches, cost.base or patches), patches, patches + 1, "image formula")
        case "area":  # the provider calls it an approximation
            tokens = _area(cost, size)
            return between(tokens * 0.95, tokens, tokens * 1.05 + 5, "image formula")
        case "squares":
            squares = _squares(size) * cost.tile
            # Some endpoints count one square however large the image is, others one more for the whole image.
            return between(cost.tile, squares, squares + (cost.tile if squares > cost.tile else 0), "image formula")
        case "flat":
            return exactly(cost.base, "image formula")
        case unreachable:
            assert_never(unreachable)


def _fit_within(size: Size, longest: float) -> Size:
    width, height = size
    shrink = min(1.0, longest / max(width, height))
    return width * shrink, height * shrink


def _tiles(size: Size) -> int:
    width, height = _fit_within(size, _SQUARE)
    shrink = min(1.0, _SHORT_SIDE / min(width, height))
    return _grid((width * shrink, height * shrink), _TILE)


def _grid(size: Size, side: int) -> int:
    return max(1, ceil(round(size[0], 6) / side)) * max(1, ceil(round(size[1], 6) / side))


def _patches(cost: ImageCost, size: Size) -> int:
    width, height = _fit_within(size, cost.longest) if cost.longest else size
    patches = _grid((width, height), cost.patch)
    if not cost.limit or patches <= cost.limit:
        return patches
    shrink = sqrt(cost.patch**2 * cost.limit / (width * height))
    across, down = width * shrink / cost.patch, height * shrink / cost.patch
    shrink *= min(max(1, floor(across)) / across, max(1, floor(down)) / down)
    return min(cost.limit, _grid((width * shrink, height * shrink), cost.patch))


def _area(cost: ImageCost, size: Size) -> int:
    width, height = _fit_within(size, cost.longest) if cost.longest else size
    tokens = ceil(width * height / cost.divisor)
    return min(tokens, cost.limit) if cost.limit else tokens


def _squares(size: Size) -> int:
    width, height = size
    if width <= _SMALL and height <= _SMALL:
        return 1
    crop = min(_CROP, max(_LEAST_CROP, floor(min(width, height) / 1.5)))
    return ceil(width / crop) * ceil(height / crop)


_HEAD = 65_536
_JPEG_HEAD = 1_400_000
_JPEG_MARKERS = 10_000
_LONGEST_SIDE = 65_535
_LARGEST_AREA = 400_000_000
_JPEG_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}


def image_size(data: str) -> tuple[int, int] | None:
    """Width and height of a base64-encoded PNG, JPEG, GIF or WebP; None if they cannot be read."""
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
    """Decode as much of the data as is base64 of either alphabet."""
    plain = data.replace("-", "+").replace("_", "/").replace("\n", "").replace("\r", "").rstrip("=")
    whole = plain[: len(plain) // 4 * 4]
    rest = plain[len(whole) :]
    padded = whole + (rest + "=" * (4 - len(rest)) if len(rest) > 1 else "")
    try:
        return binascii.a2b_base64(padded)
    except (binascii.Error, ValueError):
        return b""


def _sides(width: int, height: int) -> tuple[int, int] | None:
    """The size, or None if no image can have it: no provider accepts a larger one, and damaged files contain
    anything."""
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
        width, height = int.from_bytes(head[26:28], "little"), int.from_bytes(head[28:30], "little")
        return _sides(width & 0x3FFF, height & 0x3FFF)
    return None
