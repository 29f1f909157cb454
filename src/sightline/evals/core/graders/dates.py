"""Days as people write them, by formats such as `DD.MM.YYYY`; hours and time zones are read over."""

import re
from collections.abc import Sequence
from datetime import date
from functools import lru_cache

DEFAULT_FORMATS = (
    "YYYY-MM-DDTHH:mm:ssZ",
    "YYYY-MM-DDTHH:mm:ss",
    "YYYY-MM-DD",
    "DD-MMM-YYYY",
    "MM/DD/YYYY",
    "DD/MM/YYYY",
    "MM-DD-YYYY",
    "DD-MM-YYYY",
)
"""In this order: where a date can be read in two ways, the month is first."""

ALWAYS = DEFAULT_FORMATS[:3]
"""Those that can be read in one way only."""

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_TOKEN = re.compile(r"YYYY|MMMM|MMM|MM|M|DD|D|HH|mm|ss|Z")
_AS_PATTERN = {
    "YYYY": r"(?P<year>\d{4})",
    "MMMM": r"(?P<name>[A-Za-z]{3,9})",
    "MMM": r"(?P<name>[A-Za-z]{3,9})",
    "MM": r"(?P<month>\d{1,2})",
    "M": r"(?P<month>\d{1,2})",
    "DD": r"(?P<day>\d{1,2})",
    "D": r"(?P<day>\d{1,2})",
    "HH": r"\d{1,2}",
    "mm": r"\d{2}",
    "ss": r"\d{2}(?:\.\d{1,9})?",
    "Z": r"(?:Z|[+-]\d{2}:?\d{2})",
}


def day_of(text: str, formats: Sequence[str]) -> date | None:
    """The day that a text names in the first format that it fits."""
    for each in (*formats, *ALWAYS):
        found = _pattern(each).fullmatch(text.strip())
        if found is not None and (day := _day(found.groupdict())) is not None:
            return day
    return None


def is_format(text: str) -> bool:
    """Whether a format names a year, a month and a day, once each."""
    tokens = _TOKEN.findall(text)
    return [sum(token[0] == letter for token in tokens) for letter in "YMD"] == [1, 1, 1]


@lru_cache(maxsize=128)
def _pattern(text: str) -> re.Pattern[str]:
    pieces, end = [], 0
    for token in _TOKEN.finditer(text):
        pieces += [re.escape(text[end : token.start()]), _AS_PATTERN[token[0]]]
        end = token.end()
    return re.compile("".join([*pieces, re.escape(text[end:])]))


def _day(found: dict[str, str]) -> date | None:
    name = found.get("name", "")
    if name and name[:3].lower() not in _MONTHS:
        return None
    month = _MONTHS.index(name[:3].lower()) + 1 if name else int(found["month"])
    try:
        return date(int(found["year"]), month, int(found["day"]))
    except ValueError:
        return None
