"""Tokens of documents, sound and film: by the figures for a page or a second, in a band as wide as those leave it.

A file's pages and seconds are read from its bytes where they are told there, else guessed from its length.
"""

import binascii
import re
from collections.abc import Mapping
from typing import assert_never

from sightline.model.parts import FileId, Inline, Link, PlainText, Source
from sightline.tokens.estimate import Estimate, between
from sightline.tokens.text_count import TextCounter

Rate = tuple[float, float, float]

_PAGE: Mapping[str, Rate] = {"anthropic": (1000, 2200, 5000), "gemini": (250, 560, 1400)}
_ANY_PAGE: Rate = (0, 900, 4500)
_SECOND: Mapping[str, Rate] = {"gemini": (25, 32, 32)}
_ANY_SECOND: Rate = (7, 10, 25)
_SECOND_OF_FILM: Rate = (66, 263, 300)
_PAGES_OF_A_BYTE: Rate = (1 / 1_000_000, 1 / 60_000, 1 / 2_000)
_SECONDS_OF_A_BYTE: Rate = (1 / 48_000, 1 / 16_000, 1 / 1_000)
_SECONDS_OF_FILM_IN_A_BYTE: Rate = (1 / 4_000_000, 1 / 250_000, 1 / 20_000)
_AROUND = 50
_OUT_OF_SIGHT: Rate = (0, 2_000, 200_000)
_A_PAGE = re.compile(rb"/Type\s*/Page[^s]")


def count_media(source: Source, dialect: str, texts: TextCounter) -> Estimate:
    """Tokens of a file that is not a picture."""
    match source:
        case PlainText():
            return texts.count(source.text) + between(0, _AROUND / 4, _AROUND)
        case Inline():
            return _inline(source, dialect, texts)
        case Link() | FileId():
            return between(*_OUT_OF_SIGHT, "file of unknown size")
        case unreachable:
            assert_never(unreachable)


def _inline(source: Inline, dialect: str, texts: TextCounter) -> Estimate:
    data = _decode_base64(source.data)
    kind = source.media_type.partition("/")[0]
    if kind == "audio":
        return _times(_SECOND.get(dialect, _ANY_SECOND), _seconds(data), "seconds of sound")
    if kind == "video":
        return _times(_SECOND_OF_FILM, _scale(_SECONDS_OF_FILM_IN_A_BYTE, len(data)), "seconds of film")
    if source.media_type == "application/pdf":
        return _times(_PAGE.get(dialect, _ANY_PAGE), _pages(data), "pages")
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
