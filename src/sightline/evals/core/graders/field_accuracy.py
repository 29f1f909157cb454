"""The grader that compares fields of a structured answer with those that were expected."""

import math
import re
from collections.abc import Sequence
from datetime import date
from functools import lru_cache
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from sightline.catalog.reading import key
from sightline.errors import Fault
from sightline.evals.core.graders.expectation import (
    ABSENT,
    Absent,
    alike,
    describe_json,
    reference_data,
    steps_of,
    value_at,
)
from sightline.evals.core.graders.finding import GraderFinding, GradingSubject, finding_without_score
from sightline.evals.core.graders.grader import GraderReader, GraderTypes, plain_type
from sightline.evals.core.reading.document import Amount, Text
from sightline.evals.core.result import Check
from sightline.model.json import Json
from sightline.wire.jsontext import decode

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


_NUMBER = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)(?!,?\d)")
_FENCE = re.compile(r"```[a-zA-Z]*\s*\n?")


class FieldRule(msgspec.Struct, frozen=True, kw_only=True):
    """One field: its path, and when it is right."""

    path: Text
    match: Literal["exact", "numeric_tolerance", "date"] = "exact"
    required: bool = True
    weight: Amount = 1.0
    tolerance: Amount = 0.0
    relative: bool = False
    formats: Annotated[tuple[Text, ...], Meta(min_length=1)] = DEFAULT_FORMATS


class FieldsConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The fields that are compared, and how their results become one score."""

    fields: Annotated[
        tuple[FieldRule, ...], key(hint="Give a list of fields, each with a path and a match.", min_length=1)
    ]
    aggregation: Literal["weighted_average", "all_or_nothing"] = "weighted_average"


def _check_fields(config: FieldsConfig, reader: GraderReader) -> None:
    for index, field in enumerate(config.fields):
        if not steps_of(field.path):
            reader.tell(f"fields[{index}].path", f"{field.path!r} names no field", 'Write it as "lines[0].amount".')
        for each in field.formats:
            if not is_format(each):
                reader.tell(f"fields[{index}].formats", f"{each!r} is no format", "It needs YYYY, MM (or MMM) and DD.")


def _look(config: FieldsConfig, subject: GradingSubject) -> GraderFinding:
    """Compares each field; a field of which nothing is expected does not count."""
    expected = reference_data(subject.grading)
    if isinstance(expected, Absent):
        return finding_without_score("the case expects no structured value to compare with")
    found = _data(subject.text)
    if isinstance(found, Absent):
        checks = tuple(Check(each.path, False, "the answer is no JSON") for each in config.fields)
        return GraderFinding(score=0.0, checks=checks)
    return _weigh_fields(config, found, expected)


def _weigh_fields(config: FieldsConfig, found: Json, expected: Json) -> GraderFinding:
    checks, right, total = [], 0.0, 0.0
    left_out: list[Json] = []
    for each in config.fields:
        check = _check(each, value_at(found, each.path), value_at(expected, each.path))
        if check is None:
            left_out.append(each.path)
            continue
        checks.append(check)
        total += each.weight
        right += each.weight * check.passed
    if not checks:
        return finding_without_score("the case expects none of these fields")
    if config.aggregation == "all_or_nothing":
        score = float(all(check.passed for check in checks))
    elif total:
        score = right / total
    else:
        return finding_without_score("the fields that could be compared have no weight")
    return GraderFinding(score=score, checks=tuple(checks), details={"not_compared": left_out} if left_out else {})


def _check(field: FieldRule, found: Json | Absent, expected: Json | Absent) -> Check | None:
    """Whether a field is right, None where there is nothing to compare."""
    if isinstance(expected, Absent) or (isinstance(found, Absent) and not field.required):
        return None
    if isinstance(found, Absent):
        return Check(field.path, False, "missing")
    if field.match == "numeric_tolerance":
        return _numeric(field, found, expected)
    if field.match == "date":
        return _date(field, found, expected)
    held = alike(found, expected)
    return Check(field.path, held, "" if held else f"{describe_json(found)} instead of {describe_json(expected)}")


def _numeric(field: FieldRule, found: Json, expected: Json) -> Check:
    got, wanted = number_of(found), number_of(expected)
    if got is None or wanted is None:
        return Check(field.path, False, f"no number: {describe_json(found if got is None else expected)}")
    apart = abs(got - wanted)
    if field.relative and wanted:
        apart /= abs(wanted)
    return Check(field.path, apart <= field.tolerance, f"off by {apart:g}, {field.tolerance:g} is allowed")


def _date(field: FieldRule, found: Json, expected: Json) -> Check:
    got, wanted = day_of(str(found), field.formats), day_of(str(expected), field.formats)
    if got is None or wanted is None:
        return Check(field.path, False, f"no date: {describe_json(found if got is None else expected)}")
    return Check(field.path, got == wanted, "" if got == wanted else f"{got} instead of {wanted}")


def number_of(value: Json) -> float | None:
    """A value as a finite number; a text may go on after it, with a unit."""
    if isinstance(value, str) and (start := _NUMBER.match(value)):
        value = float(start[1])
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        return None


def _data(text: str) -> Json | Absent:
    """The JSON of an answer: all of it, or the object in it."""
    bare = _FENCE.sub("", text).strip()
    for each in (bare, bare[max(bare.find("{"), 0) : bare.rfind("}") + 1]):
        try:
            return decode(each)
        except Fault:
            continue
    return ABSENT


FIELD_TYPES: GraderTypes = {"field-accuracy": plain_type(FieldsConfig, _look, _check_fields)}
