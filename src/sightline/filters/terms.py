"""One term from its pieces: a field, a sign of comparison and a value, each checked against what the field is."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import tzinfo

from sightline.catalog.problem import likely, nearest, quote_word
from sightline.errors import Fault
from sightline.filters.expression import (
    AgeTerm,
    ContentTerm,
    Expression,
    FlagTerm,
    InContext,
    Latest,
    NumberTerm,
    Operator,
    TextTerm,
    TopicTerm,
    both,
    negate,
)
from sightline.filters.fields import FilterField, Kind
from sightline.filters.pattern import canonical, fits, letters, literal
from sightline.filters.source import Piece, Sign, Source
from sightline.filters.values import UNITS, is_date_like, number, parse_date, seconds

_ORDERING = ("<", "<=", ">", ">=")
_YES = ("yes", "true", "on", "1")
_NO = ("no", "false", "off", "0")
_CLASS = re.compile(r"([1-5])xx", re.IGNORECASE)
_MOST = 10**9


@dataclass(frozen=True, slots=True)
class FieldComparison:
    """A field as it was called, how it is compared, and with what."""

    source: Source
    field: FilterField
    name: Piece
    sign: Sign
    value: Piece
    zone: tzinfo

    @property
    def operator(self) -> Operator:
        """The sign, as far as it is told of the opposite."""
        match self.sign:
            case ":" | "=" | "!=":
                return "="
            case sign:
                return sign

    def bad_value(self, message: str, hint: str) -> Fault:
        """The value is the mistake."""
        return self.source.wrong(self.value.start, self.value.end, message, hint)

    def bad_sign(self, message: str, hint: str) -> Fault:
        """The comparison as a whole is the mistake."""
        return self.source.wrong(self.name.start, self.value.end, message, hint)


def term(asked: FieldComparison) -> Expression:
    """What the comparison says."""
    meant = _READERS[asked.field.kind](asked)
    return negate(meant) if asked.sign == "!=" else meant


def _refuse_ordering(asked: FieldComparison, what: str) -> None:
    if asked.sign in _ORDERING:
        name = asked.name.text
        message = f"{asked.sign} compares numbers and times, and {quote_word(name)} is {what}"
        raise asked.bad_sign(message, f"Write {name}:{asked.value.text or 'value'}.")


def _text_term(asked: FieldComparison) -> Expression:
    _refuse_ordering(asked, "a text")
    pattern, field = canonical(asked.value.text), asked.field
    if (choices := field.values()) and pattern and not any(fits(pattern, choice) for choice in choices):
        raise asked.bad_value(
            f"there is no {field.name} {quote_word(asked.value.text)}", nearest(asked.value.text, choices)
        )
    return TextTerm(field.name, pattern)


def _content_term(asked: FieldComparison) -> Expression:
    _refuse_ordering(asked, "a text")
    pattern = canonical(asked.value.text, "*")
    if not pattern:
        raise asked.bad_value("there are no words to look for", 'Write them in the quotes: text:"some words".')
    return ContentTerm(pattern)


def _topic_term(asked: FieldComparison) -> Expression:
    _refuse_ordering(asked, "a topic")
    path, has_below = asked.value.text, False
    if [*letters(path, ".")][-3:] == [(".", True)] * 3:
        path, has_below = path[:-3], True
    names, is_path = _path(path.strip())
    if not names:
        raise asked.bad_value("there is no name of a topic", "Write t'name', t'A > B' or t'name...'.")
    return TopicTerm(names, is_path=is_path, has_below=has_below)


def _path(text: str) -> tuple[tuple[str, ...], bool]:
    """The names in a path, and whether it is one."""
    divider = "/" if text.startswith("/") else ">"
    names = [""]
    is_path = divider == "/"
    for letter, is_special in letters(text, f"{divider}*?"):
        if is_special and letter == divider:
            names.append("")
            is_path = True
        else:
            names[-1] += letter if is_special else literal(letter)
    return tuple(name for each in names if (name := canonical(each).strip())), is_path


def _number_term(asked: FieldComparison) -> Expression:
    value = number(asked.value.text)
    if value is None:
        unit = "50k, 1.5m" if asked.field.kind is Kind.NUMBER else "0.10, $2"
        raise asked.bad_value(f"{quote_word(asked.value.text)} is no number", f"Write a number such as {unit}.{_GLUED}")
    return NumberTerm(asked.field.name, asked.operator, value)


def _duration_term(asked: FieldComparison) -> Expression:
    value = seconds(asked.value.text, "s")
    if value is None:
        raise _no_time(asked)
    return NumberTerm(asked.field.name, asked.operator, value)


def _no_time(asked: FieldComparison) -> Fault:
    return asked.bad_value(
        f"{quote_word(asked.value.text)} is no length of time",
        f"Write a number with one of the units {UNITS}, such as 7d or 1h30m.{_GLUED}",
    )


def _age_term(asked: FieldComparison) -> Expression:
    name = asked.name.text
    if is_date_like(asked.value.text):
        if name.lower() == asked.field.letter:
            return _date_term(asked)
        raise asked.bad_value("an age is a length of time, not a date", f"Write date>{asked.value.text}.")
    value = seconds(asked.value.text, "d")
    if value is None:
        raise _no_time(asked)
    match asked.sign:
        case ":":
            return AgeTerm("<=", value)
        case "=" | "!=":
            hint = f"Write {name}<{asked.value.text} or {name}>{asked.value.text}."
            raise asked.bad_sign("nothing is exactly that old", hint)
        case sign:
            return AgeTerm(sign, value)


def _date_term(asked: FieldComparison) -> Expression:
    found = parse_date(asked.operator, asked.value.text, asked.zone)
    if found is None:
        hint = "Write 2026-01-31 or 2026-01-31T15:30; a length of time goes with age, as in age<7d."
        raise asked.bad_value(f"{quote_word(asked.value.text)} is no date", hint)
    return found


def _status(asked: FieldComparison) -> Expression:
    word = asked.value.text.lower()
    kind = _CLASS.fullmatch(word)
    if asked.sign not in _ORDERING:
        if word in ("ok", "error"):
            return FlagTerm(word)
        if kind is not None:
            lowest = int(kind[1]) * 100
            return both(NumberTerm("status", ">=", lowest), NumberTerm("status", "<", lowest + 100))
    value = number(word)
    if value is None:
        hint = likely(word, ("ok", "error")) or "Write status:ok, status:error, status:429, status:4xx or status>=500."
        raise asked.bad_value(f"{quote_word(asked.value.text)} is no status", hint)
    return NumberTerm("status", asked.operator, value)


def _flag_term(asked: FieldComparison) -> Expression:
    name = asked.name.text
    _refuse_ordering(asked, "either so or not")
    word = asked.value.text.lower()
    if word in _YES:
        return FlagTerm(asked.field.name)
    if word in _NO:
        return negate(FlagTerm(asked.field.name))
    raise asked.bad_value(
        f"{quote_word(name)} is either so or not", f"Write {name} or !{name}; the codes of errors are in fault."
    )


def _latest(asked: FieldComparison) -> Expression:
    return Latest(_count(asked))


def _in_context(asked: FieldComparison) -> Expression:
    return InContext(_count(asked))


def _count(asked: FieldComparison) -> int:
    _refuse_ordering(asked, "a count")
    return count(asked.source, asked.value)


def count(source: Source, piece: Piece) -> int:
    """How many."""
    if not re.fullmatch("[0-9]{1,10}", piece.text) or int(piece.text) > _MOST:
        message = f"{quote_word(piece.text)} is no count"
        raise source.wrong(piece.start, piece.end, message, f"Write a whole number, as in r20.{_GLUED}")
    return int(piece.text)


_GLUED = " Terms are parted by a blank or &."
_READERS: Mapping[Kind, Callable[[FieldComparison], Expression]] = {
    Kind.TEXT: _text_term,
    Kind.WORDS: _content_term,
    Kind.TOPIC: _topic_term,
    Kind.NUMBER: _number_term,
    Kind.MONEY: _number_term,
    Kind.SECONDS: _duration_term,
    Kind.STATUS: _status,
    Kind.YES_NO: _flag_term,
    Kind.AGE: _age_term,
    Kind.DATE: _date_term,
    Kind.LATEST: _latest,
    Kind.CONTEXT: _in_context,
}
