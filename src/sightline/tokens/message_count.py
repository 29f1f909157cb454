"""Tokens of the parts of a message and of the message around them."""

import binascii
import json
import re
from math import ceil, floor, sqrt
from typing import assert_never

from sightline.catalog.facts import Facts, ImageCost
from sightline.dialects.dialect import TokenRules
from sightline.model.json import Json
from sightline.model.message import Message
from sightline.model.parts import (
    Audio,
    CacheBreakpoint,
    Document,
    FileId,
    Image,
    Inline,
    Link,
    Opaque,
    Part,
    PlainText,
    Refusal,
    Source,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from sightline.tokens.estimate import NOTHING, Estimate, between, exactly
from sightline.tokens.text_count import TextCounter

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
    """Tokens of one picture. A size that is not known leaves everything open from the smallest to the largest."""
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
            return _exact(cost.base if detail == "low" else tiled)
        case "patches":
            patches = ceil(_patches(cost, size) * cost.factor)
            return between(min(patches, cost.base or patches), patches, patches + 1, "image formula")
        case "area":
            return _around(_area(cost, size))
        case "squares":
            squares = _squares(size) * cost.tile
            # Some endpoints count one square however large the picture is, others one more, for the whole of it.
            return between(cost.tile, squares, squares + (cost.tile if squares > cost.tile else 0), "image formula")
        case "flat":
            return _exact(cost.base)
        case unreachable:
            assert_never(unreachable)


def _exact(tokens: int) -> Estimate:
    return exactly(tokens, "image formula")


def _around(tokens: int) -> Estimate:
    """A formula that its provider calls an approximation."""
    return between(tokens * 0.95, tokens, tokens * 1.05 + 5, "image formula")


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


Rate = tuple[float, float, float]

_SECOND_OF_FILM: Rate = (66, 263, 300)
_PAGES_OF_A_BYTE: Rate = (1 / 1_000_000, 1 / 60_000, 1 / 2_000)
_SECONDS_OF_A_BYTE: Rate = (1 / 48_000, 1 / 16_000, 1 / 1_000)
_SECONDS_OF_FILM_IN_A_BYTE: Rate = (1 / 4_000_000, 1 / 250_000, 1 / 20_000)
_AROUND = 50
_OUT_OF_SIGHT: Rate = (0, 2_000, 200_000)
_A_PAGE = re.compile(rb"/Type\s*/Page[^s]")


def count_media(source: Source, rules: TokenRules, texts: TextCounter) -> Estimate:
    """Tokens of a file that is not a picture."""
    match source:
        case PlainText():
            return texts.count(source.text) + between(0, _AROUND / 4, _AROUND)
        case Inline():
            return _inline(source, rules, texts)
        case Link() | FileId():
            return between(*_OUT_OF_SIGHT, "file of unknown size")
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


def _scale(rate: Rate, amount: float) -> Rate:
    return rate[0] * amount, rate[1] * amount, rate[2] * amount


def _times(rate: Rate, amount: Rate, how: str) -> Estimate:
    return between(rate[0] * amount[0], rate[1] * amount[1], rate[2] * amount[2] + _AROUND, how)


def _pages(data: bytes) -> Rate:
    told = len(_A_PAGE.findall(data))
    if told:
        return told, told, told
    low, likely, high = _scale(_PAGES_OF_A_BYTE, len(data))
    return max(1, low), max(1, likely), max(1, high)


def _seconds(data: bytes) -> Rate:
    if data.startswith(b"RIFF") and data[8:12] == b"WAVE" and (rate := int.from_bytes(data[28:32], "little")):
        told = len(data) / rate
        return told, told, told
    return _scale(_SECONDS_OF_A_BYTE, len(data))


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


_ROLE = 1
_UNKNOWN_FRAME = (0, 4, 8)
_LETTERS_OF_A_SEALED_TOKEN = 4


class MessageCounter:
    """Counts messages for one model and one dialect."""

    def __init__(self, facts: Facts, rules: TokenRules, texts: TextCounter) -> None:
        self._facts = facts
        self._rules = rules
        self._texts = texts

    def message(self, message: Message) -> Estimate:
        """A message with what frames it."""
        total = self._frame(message)
        for part in message.parts:
            total += self.part(part)
        return total

    def part(self, part: Part) -> Estimate:
        """One part."""
        match part:
            case Text():
                return self._texts.count(part.text) + self._signature(part.signature)
            case Refusal():
                return self._texts.count(part.text)
            case Image():
                size = image_size(part.source.data) if isinstance(part.source, Inline) else None
                return count_image(self._facts.image, size, part.detail) + between(*self._rules.picture)
            case Document():
                described = self._texts.count(part.title or "") + self._texts.count(part.context or "")
                return count_media(part.source, self._rules, self._texts) + described
            case Audio():
                spoken = self._texts.count(part.transcript or "")
                return spoken if part.source is None else count_media(part.source, self._rules, self._texts) + spoken
            case Thinking():
                return self._thinking(part)
            case ToolCall():
                return self._call(part)
            case ToolResult():
                return self._result(part)
            case CacheBreakpoint():
                return NOTHING
            case Opaque():
                return self.json(part.value)
            case unreachable:
                assert_never(unreachable)

    def json(self, value: Json) -> Estimate:
        """A value that its provider turns into text in its own way: more or less its JSON."""
        written = self._texts.count(json.dumps(value, ensure_ascii=False))
        least, usual, most = self._rules.json_share
        return between(written.low * least, written.tokens * usual, written.high * most + 10, written.how)

    def _frame(self, message: Message) -> Estimate:
        facts = self._facts
        if message.role == "system" and not self._rules.frames_system:
            return between(0, 0, _UNKNOWN_FRAME[1])
        if facts.message_tokens is None:
            return between(*_UNKNOWN_FRAME)
        tokens = facts.message_tokens + _ROLE
        if message.role == "assistant":
            tokens += facts.assistant_tokens or 0
        calls = message.role == "tool" or any(isinstance(part, ToolCall | ToolResult) for part in message.parts)
        frame = exactly(tokens) if self._texts.frames_are_known and not calls else between(0, tokens, tokens + 2)
        if message.name is not None:
            frame += exactly(facts.name_tokens or 0) + self._texts.count(message.name)
        return frame

    def _thinking(self, part: Thinking) -> Estimate:
        """Earlier thoughts are sent, but which of them the provider keeps, and in which form, is its own affair."""
        read = self._texts.count(part.text or "\n\n".join(part.summary))
        sealed = self._signature(part.signature).high
        return between(0, read.tokens or sealed / 2, max(read.high, sealed) + 10, read.how)

    def _signature(self, signature: str | None) -> Estimate:
        """A seal may hold thoughts, which some endpoints count and some do not."""
        return between(0, 0, len(signature) / _LETTERS_OF_A_SEALED_TOKEN) if signature else NOTHING

    def _call(self, part: ToolCall) -> Estimate:
        said = self._texts.count(part.name) + self._texts.count(part.arguments)
        # The arguments are put into the provider's own form: JSON loses its braces and quotes in some, gains in others.
        said = between(said.low * 0.6, said.tokens, said.high * 1.25, said.how)
        return said + between(*self._rules.call) + self._signature(part.signature)

    def _result(self, part: ToolResult) -> Estimate:
        total = between(*self._rules.result)
        if part.structured is not None:
            total += self.json(part.structured)
        for inner in part.parts:
            total += self.part(inner)
        return total
