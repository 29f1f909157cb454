"""Tools for a model: the public functions of this file.

The hints become the schema that the model is told, the docstrings its descriptions. What a function returns is what the
model gets; what it prints is shown to you as its progress.
"""

import asyncio
import struct
import zlib
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Literal

METRES = {"mm": 0.001, "cm": 0.01, "m": 1.0, "km": 1000.0, "in": 0.0254, "ft": 0.3048, "mi": 1609.344}
Unit = Literal["mm", "cm", "m", "km", "in", "ft", "mi"]


@dataclass
class Length:
    """A length with its unit; a tool that returns one returns a JSON object."""

    amount: float
    unit: Unit


def convert(length: Length, to: Unit) -> Length:
    """Convert a length to another unit."""
    return Length(round(length.amount * METRES[length.unit] / METRES[to], 6), to)


def days_between(first: date, last: date) -> int:
    """Count the days from one date to another.

    Args:
        first: the earlier date, such as 2026-03-01
        last: the later one
    """
    if last < first:
        raise ValueError(f"{last} is before {first}")  # the model is told, and can try again
    return (last - first).days


async def count_down(seconds: Annotated[int, "how long to wait, at most 10"]) -> str:
    """Wait for some seconds."""
    for left in range(min(seconds, 10), 0, -1):
        print(f"{left} s left")
        await asyncio.sleep(1)
    return "The time is over."


def bar_chart(values: dict[str, float]) -> list[str | bytes]:
    """Draw a bar chart of positive numbers, for the model to look at."""
    height, width, top = 100, 30, max([1.0, *values.values()])
    bars = [round(height * value / top) for value in values.values()]
    rows = [
        b"\0" + b"".join((b"\x20" if height - y <= bar else b"\xf0") * width for bar in bars) for y in range(height)
    ]
    return [f"From left to right: {', '.join(values)}.", _png(b"".join(rows), width * len(bars), height)]


def _png(rows: bytes, width: int, height: int) -> bytes:
    """A grey picture. Its name begins with an underscore, so it is no tool."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


PARALLEL = [convert, days_between, bar_chart]  # these may run beside others
