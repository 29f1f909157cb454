"""How long an answer's headers ask a client to wait, and the two forms in which they tell a time."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

_NUMBER = re.compile(r"\d{1,300}(?:\.\d{1,20})?", re.ASCII)
LONGEST = 40 * 86_400.0
"""No wait is longer than forty days, whatever was asked for."""


def retry_after(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """The seconds in `retry-after-ms` or `retry-after`, or None where none is given. Names are in lower case.

    A date is read against the answer's own `date`, because the provider's clock is not ours; `now` replaces it.
    """
    if "retry-after" not in headers and "retry-after-ms" not in headers:
        return None
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        value = headers.get(name, "").strip()
        if _NUMBER.fullmatch(value):
            return min(float(value) / unit, LONGEST)
    until, sent = http_date(headers.get("retry-after", "")), http_date(headers.get("date", ""))
    start = now if sent is None else sent
    return None if until is None or start is None else min(max(0.0, until - start), LONGEST)


def plausible(seconds: float) -> float | None:
    """A wait that can be meant; one that lies in the past is over."""
    return max(0.0, seconds) if seconds <= LONGEST else None


def http_date(value: str) -> float | None:
    """The seconds since 1970 of a date in any of HTTP's spellings."""
    try:
        return timestamp(parsedate_to_datetime(value.strip()))
    except (ValueError, IndexError, OverflowError):
        return None


def timestamp(moment: datetime) -> float:
    """The seconds since 1970; a time that names no zone is of no zone's hours."""
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
