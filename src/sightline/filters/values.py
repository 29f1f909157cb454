"""Numbers, times and dates as people write them in filters, read and written."""

import re
from collections.abc import Mapping
from datetime import datetime, timedelta, tzinfo
from decimal import Decimal

from sightline.filters.expression import DateTerm, Operator

_NUMBER = re.compile(r"(-?)\$?(\d{1,30}(?:_\d{1,30})*(?:\.\d{1,30})?|\.\d{1,30})([a-z]?)\$?", re.ASCII)
_TIME = re.compile(r"(\d{1,30}(?:\.\d{1,30})?|\.\d{1,30})([a-z]+)", re.ASCII)
_BARE = re.compile(r"\d{1,30}(?:\.\d{1,30})?|\.\d{1,30}", re.ASCII)
_MOMENT = re.compile(r"(\d{4}|\d{2})-(\d{1,2})-(\d{1,2})(?:t(\d{1,2}):(\d{2}))?", re.ASCII)

_TIMES: Mapping[str, int] = {"": 1, "k": 1000, "m": 1_000_000}
_DAY = 86400
_UNITS: Mapping[str, Decimal] = {
    "ms": Decimal("0.001"),
    "s": Decimal(1),
    "m": Decimal(60),
    "min": Decimal(60),
    "h": Decimal(3600),
    "d": Decimal(_DAY),
    "w": Decimal(7 * _DAY),
    "mo": Decimal(30 * _DAY),
    "y": Decimal(365 * _DAY),
}
UNITS = ", ".join(_UNITS)
_MOST = 10**15
_EXACT = Decimal("0.000000001")
_FIRST_YEAR, _LAST_YEAR = 1970, 2999


def number(text: str) -> float | None:
    """`50k`, `1.5m`, `$0.10`, `1_000`; None for what is no number."""
    found = _NUMBER.fullmatch(text.lower())
    if found is None or found[3] not in _TIMES:
        return None
    return _within_bounds(Decimal(found[1] + found[2].replace("_", "")) * _TIMES[found[3]])


def seconds(text: str, unit: str) -> float | None:
    """`7d`, `6mo`, `1h30m`, `500ms`; a number alone is in this unit. None for what is no such time."""
    text = text.lower()
    if _BARE.fullmatch(text):
        return _within_bounds(Decimal(text) * _UNITS[unit])
    total, place = Decimal(0), 0
    while place < len(text):
        found = _TIME.match(text, place)
        if found is None or found[2] not in _UNITS:
            return None
        total += Decimal(found[1]) * _UNITS[found[2]]
        place = found.end()
    return _within_bounds(total) if place else None


def parse_date(operator: Operator, text: str, zone: tzinfo) -> DateTerm | None:
    """`2026-01-31`, `26-01-31` or `2026-01-31T15:30`, in this zone; None for what is no date."""
    found = _MOMENT.fullmatch(text.lower())
    if found is None:
        return None
    year = int(found[1]) + (2000 if len(found[1]) == 2 else 0)
    if not _FIRST_YEAR <= year <= _LAST_YEAR:
        return None
    try:
        since = datetime(year, int(found[2]), int(found[3]), int(found[4] or 0), int(found[5] or 0), tzinfo=zone)
    except ValueError:
        return None
    moment = since.strftime("%Y-%m-%d" if found[4] is None else "%Y-%m-%dT%H:%M")
    until = since + (timedelta(days=1) if found[4] is None else timedelta(minutes=1))
    return DateTerm(operator, moment, since.timestamp(), until.timestamp())


def is_date_like(text: str) -> bool:
    """Whether a date was meant rather than a time."""
    return "-" in text


def number_text(value: float) -> str:
    """The number as it is read again."""
    digits = format(Decimal(repr(value)), "f")
    return digits.rstrip("0").rstrip(".") if "." in digits else digits


def seconds_text(value: float) -> str:
    """The time as it is read again, in days, hours, minutes and seconds."""
    rest, pieces = Decimal(repr(value)), ""
    for unit in ("d", "h", "min"):
        count, rest = divmod(rest, _UNITS[unit])
        pieces += f"{count:f}{unit}" if count else ""
    return f"{pieces}{number_text(float(rest))}s" if rest or not pieces else pieces


def _within_bounds(value: Decimal) -> float | None:
    return float(value.quantize(_EXACT)) if abs(value) <= _MOST else None
