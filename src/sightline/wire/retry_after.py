"""How long a response's headers ask the client to wait, given in seconds or as a date."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

_NUMBER = re.compile(r"\d{1,300}(?:\.\d{1,20})?", re.ASCII)
LONGEST = 40 * 86_400.0
"""No wait is longer than forty days, whatever the header asks for."""


def retry_after(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """The seconds in `retry-after-ms` or `retry-after`, or None if there is neither. Header names are in lower case.

    A date is compared with the response's own `date`, because the provider's clock is not ours; `now` is used if there
    is none.
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
    """The wait if it is plausible, otherwise None. A wait that ends in the past is 0."""
    return max(0.0, seconds) if seconds <= LONGEST else None


def http_date(value: str) -> float | None:
    """The Unix time of a date in any of HTTP's formats; None if it is not a date."""
    try:
        return timestamp(parsedate_to_datetime(value.strip()))
    except (ValueError, IndexError, OverflowError):
        return None


def timestamp(moment: datetime) -> float:
    """The Unix time of a datetime; without a time zone it is taken as UTC."""
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
