"""What a case expects, as text for a judge and as a value to compare with; and the grader that compares fields of a
structured answer with the expected value."""

import json
import math
import re
from collections.abc import Generator, Iterable, Sequence
from datetime import date
from functools import lru_cache
from typing import Annotated, Literal, assert_never

import msgspec
from msgspec import Meta

from sightline.catalog.reading import key
from sightline.errors import Fault
from sightline.evals.core.graders.finding import (
    Answer,
    GraderFinding,
    Grading,
    GradingSubject,
    Step,
    file_text,
    finding_without_score,
    weighted_mean,
)
from sightline.evals.core.graders.grader import GraderReader, GraderTypes, plain_type
from sightline.evals.core.reading.document import Amount
from sightline.evals.core.reading.document import Text as NonEmpty
from sightline.evals.core.result import Check, ToolUse
from sightline.evals.core.suite import CallSegment, CaseMessage, FileSegment, ImageSegment, Segment, TextSegment
from sightline.model.json import Json
from sightline.model.parts import (
    Audio,
    CacheBreakpoint,
    Document,
    Image,
    Opaque,
    Part,
    PlainText,
    Refusal,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from sightline.model.request import Message
from sightline.wire.jsontext import decode, encode

_STEP = re.compile(r"\.|\[|\]")


class Absent:
    """The type of `ABSENT`, the result of a path that leads nowhere. Null is a value."""


ABSENT = Absent()


def alike(one: Json, other: Json) -> bool:
    """Whether two values are equal: 1 equals 1.0, but true does not equal 1."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(alike(value, other[key]) for key, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(alike(a, b) for a, b in zip(one, other, strict=True))
    return isinstance(one, bool) is isinstance(other, bool) and one == other


def describe_json(value: Json) -> str:
    match value:
        case None:
            return "nothing"
        case dict():
            return "an object"
        case list():
            return "a list" if value else "an empty list"
        case str():
            return repr(value if len(value) <= 40 else f"{value[:40]}…") if value.strip() else "an empty text"
        case bool():
            return str(value).lower()
        case _:
            return str(value)


def steps_of(path: str) -> tuple[str, ...]:
    """The steps of a path such as `lines[0].amount`."""
    return tuple(step for step in _STEP.split(path) if step)


def value_at(value: Json, path: str) -> Json | Absent:
    for step in steps_of(path):
        if isinstance(value, list) and step.isdecimal() and int(step) < len(value):
            value = value[int(step)]
        elif isinstance(value, dict) and step in value:
            value = value[step]
        else:
            return ABSENT
    return value


LONGEST_RESULT = 8_000


def pretty(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


def compact(value: Json) -> str:
    return encode(value).decode()


def shorten(text: str, most: int = LONGEST_RESULT) -> str:
    """The text, or its beginning and end with the number of characters left out between them."""
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half} characters left out …]\n{text[-half:]}"


def describe_calls(tools: Iterable[ToolUse]) -> str:
    """Each tool call with its arguments and result."""
    lines = []
    for use in tools:
        arguments = use.arguments if isinstance(use.arguments, str) else compact(use.arguments)
        came = "failed" if use.is_error else "answered"
        lines.append(f"- {use.name} {shorten(arguments)}\n  {came}: {shorten(use.result)}")
    return "\n".join(lines)


def has_rounds(messages: Sequence[Message]) -> bool:
    """Whether these messages contain more than the text of one answer."""
    return any(message.role != "assistant" for message in messages) or any(
        isinstance(part, ToolCall | ToolResult) for message in messages for part in message.parts
    )


def transcript(messages: Iterable[Message]) -> str:
    """A conversation, message by message, with its calls and their results."""
    blocks = [f"{message.role}: {words}" for message in messages if (words := words_of(message.parts))]
    return "\n\n".join(blocks)


def words_of(parts: Iterable[Part]) -> str:
    """The readable text of parts, one per line."""
    return "\n".join(words for part in parts if (words := _words(part)))


def _words(part: Part) -> str:
    match part:
        case Text(text=text) | Refusal(text=text):
            return text
        case ToolCall(name=name, arguments=arguments):
            return f"[calls {name} with {shorten(arguments)}]"
        case ToolResult(parts=inner, structured=structured, is_error=is_error):
            words = compact(structured) if structured is not None else words_of(inner)
            return f"[the tool {'failed' if is_error else 'answered'}: {shorten(words)}]"
        case Image():
            return "[an image]"
        case Document(source=PlainText(text=text), title=title):
            return f"[a document {title or ''}]\n{text}"
        case Document(title=title):
            return f"[a document {title or ''}]"
        case Audio(transcript=spoken):
            return spoken or "[sound]"
        case Thinking() | CacheBreakpoint() | Opaque():
            return ""
        case unreachable:
            assert_never(unreachable)


def reference_data(grading: Grading) -> Json | Absent:
    """The expected value: that of the suite, or the last expected assistant message that is JSON; otherwise
    `ABSENT`."""
    if isinstance(grading.expected_value, dict | list):
        return grading.expected_value
    texts = [plain_text(message) for message in grading.expected if message.role == "assistant"]
    if isinstance(grading.expected_value, str):
        texts.append(grading.expected_value)
    for text in reversed(texts):
        try:
            return decode(text)
        except Fault:
            continue
    return ABSENT


def reference_text(grading: Grading) -> Generator[Step, Answer, str]:
    """The reference answer: the text of one message, or several messages with their roles. Files are asked for."""
    if not grading.expected:
        value = grading.expected_value
        return value if isinstance(value, str) else "" if value is None else pretty(value)
    blocks = []
    for message in grading.expected:
        texts: list[str] = []
        for segment in message.segments:
            texts += [(yield from _expectation_words(segment))]
        blocks.append((message.role, "\n".join(texts).strip()))
    if len(blocks) == 1:
        return blocks[0][1]
    return "\n\n".join(f"{role}:\n{text}" for role, text in blocks)


def plain_text(message: CaseMessage) -> str:
    """The text of a message, without the content of files."""
    return "\n".join(segment.text for segment in message.segments if isinstance(segment, TextSegment))


def _expectation_words(segment: Segment) -> Generator[Step, Answer, str]:
    match segment:
        case TextSegment(text=text):
            return text
        case FileSegment(path=path, resolved=resolved):
            content = yield from file_text(resolved or path)
            return f"{path}:\n{content}"
        case ImageSegment(path=path):
            return f"[image {path}]"
        case CallSegment(name=name, arguments=arguments):
            return f"[calls {name} with {pretty(arguments)}]"
        case unreachable:
            assert_never(unreachable)


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
"""Tried in this order: if a date is ambiguous, the month comes first."""

ALWAYS = DEFAULT_FORMATS[:3]
"""The unambiguous formats, which are always tried."""

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
    """The date of a text, by the first format that it matches; None if it matches none."""
    for each in (*formats, *ALWAYS):
        found = _pattern(each).fullmatch(text.strip())
        if found is not None and (day := _day(found.groupdict())) is not None:
            return day
    return None


def is_format(text: str) -> bool:
    """Whether a format contains a year, a month and a day, once each."""
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
    path: NonEmpty
    match: Literal["exact", "numeric_tolerance", "date"] = "exact"
    required: bool = True
    weight: Amount = 1.0
    tolerance: Amount = 0.0
    relative: bool = False
    formats: Annotated[tuple[NonEmpty, ...], Meta(min_length=1)] = DEFAULT_FORMATS


class FieldsConfig(msgspec.Struct, frozen=True, kw_only=True):
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


def _compare_fields(config: FieldsConfig, subject: GradingSubject) -> GraderFinding:
    """Compare each field; a field without an expected value is not counted."""
    expected = reference_data(subject.grading)
    if isinstance(expected, Absent):
        return finding_without_score("the case expects no structured value to compare with")
    found = _data(subject.text)
    if isinstance(found, Absent):
        checks = tuple(Check(each.path, False, "the answer is no JSON") for each in config.fields)
        return GraderFinding(score=0.0, checks=checks)
    return _weigh_fields(config, found, expected)


def _weigh_fields(config: FieldsConfig, found: Json, expected: Json) -> GraderFinding:
    checks: list[Check] = []
    weights: list[float] = []
    left_out: list[Json] = []
    for each in config.fields:
        check = _check(each, value_at(found, each.path), value_at(expected, each.path))
        if check is None:
            left_out.append(each.path)
            continue
        checks.append(check)
        weights.append(each.weight)
    if not checks:
        return finding_without_score("the case expects none of these fields")
    passed = [float(check.passed) for check in checks]
    score = min(passed) if config.aggregation == "all_or_nothing" else weighted_mean(zip(passed, weights, strict=True))
    if score is None:
        return finding_without_score("the fields that could be compared have no weight")
    return GraderFinding(score=score, checks=tuple(checks), details={"not_compared": left_out} if left_out else {})


def _check(field: FieldRule, found: Json | Absent, expected: Json | Absent) -> Check | None:
    """Compare one field. None if there is nothing to compare."""
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
    """A value as a finite number; None if it is not one. A text may continue after the number, with a unit."""
    if isinstance(value, str) and (start := _NUMBER.match(value)):
        value = float(start[1])
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        return None


def _data(text: str) -> Json | Absent:
    """The JSON of an answer: the whole answer, or the object in it. `ABSENT` if there is none."""
    bare = _FENCE.sub("", text).strip()
    for each in (bare, bare[max(bare.find("{"), 0) : bare.rfind("}") + 1]):
        try:
            return decode(each)
        except Fault:
            continue
    return ABSENT


FIELD_TYPES: GraderTypes = {"field-accuracy": plain_type(FieldsConfig, _compare_fields, _check_fields)}
