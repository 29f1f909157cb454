"""How long a provider asks a client to wait, in seconds: said in headers, in words, or in its error object."""

import re
from collections.abc import Mapping
from typing import Final

from sightline.model.json import Json
from sightline.wire.retry_after import retry_after

_PIECE = r"\d{1,9}(?:\.\d{1,12})?\s?(?:ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?)"
_AGAIN = re.compile(
    rf"(?:try again|retry|wait)\s+(?:(?:in|after|for|at least)\s+)?({_PIECE}(?:(?:\s|,|and)*{_PIECE}){{0,3}})(?![a-z])",
    re.IGNORECASE | re.ASCII,
)
_EACH = re.compile(r"(\d+(?:\.\d+)?)\s?([a-z]+)", re.IGNORECASE | re.ASCII)
_UNITS: Final = (("ms", 0.001), ("mil", 0.001), ("s", 1.0), ("m", 60.0), ("h", 3600.0), ("d", 86400.0))
_FIELDS: Final = ("retry_after", "resets_in_seconds")


def wait_of(message: str, headers: Mapping[str, str], details: Json = None) -> float | None:
    """The seconds to wait, or None where nobody said.

    A header that names a time is read against the answer's own `date`; without one it says nothing, because the
    provider's clock is not ours.
    """
    asked = retry_after({name.lower(): value for name, value in headers.items()})
    if asked is not None:
        return asked
    if match := _AGAIN.search(message):
        return _seconds(match[1])
    return _field(details)


def _seconds(duration: str) -> float:
    """`7m12s`, `11.054s`, `28ms`, `1 hour and 5 minutes`: the sum of its pieces."""
    total = 0.0
    for piece in _EACH.finditer(duration):
        unit = piece[2].lower()
        total += float(piece[1]) * next(scale for start, scale in _UNITS if unit.startswith(start))
    return round(total, 9)


def _field(details: Json) -> float | None:
    if isinstance(details, dict):
        for name in _FIELDS:
            value = details.get(name)
            if type(value) in (int, float) and isinstance(value, int | float) and 0 <= value < 1e9:
                return float(value)
    return None
