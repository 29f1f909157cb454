"""One term from its pieces: a field, a sign of comparison and a value, each checked against what the field is."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import tzinfo

from sightline.catalog.problem import likely, nearest, quoted
from sightline.errors import Fault
from sightline.filters.expression import (
    Aged,
    Counted,
    Expression,
    Filed,
    InContext,
    Latest,
    Marked,
    Named,
    Operator,
    Said,
    both,
    negated,
)
from sightline.filters.fields import Field, Kind
from sightline.filters.pattern import canonical, fits, letters, literal
from sightline.filters.source import Piece, Sign, Source
from sightline.filters.values import UNITS, dated, is_date_like, number, seconds

_ORDERING = ("<", "<=", ">", ">=")
_YES = ("yes", "true", "on", "1")
_NO = ("no", "false", "off", "0")
_CLASS = re.compile(r"([1-5])xx", re.IGNORECASE)
_MOST = 10**9


@dataclass(frozen=True, slots=True)
class Comparison:
    """A field as it was called, how it is compared, and with what."""

    source: Source
    field: Field
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


def term(asked: Comparison) -> Expression:
    """What the comparison says."""
    meant = _READERS[asked.field.kind](asked)
    return negated(meant) if asked.sign == "!=" else meant


def _unordered(asked: Comparison, what: str) -> None:
    if asked.sign in _ORDERING:
        name = asked.name.text
        message = f"{asked.sign} compares numbers and times, and {quoted(name)} is {what}"
        raise asked.bad_sign(message, f"Write {name}:{asked.value.text or 'value'}.")


def _named(asked: Comparison) -> Expression:
    _unordered(asked, "a text")
    pattern, field = canonical(asked.value.text), asked.field
    if field.choices and pattern and not any(fits(pattern, choice) for choice in field.choices):
        raise asked.bad_value(
            f"there is no {field.name} {quoted(asked.value.text)}", nearest(asked.value.text, field.choices)
        )
    return Named(field.name, pattern)


def _said(asked: Comparison) -> Expression:
    _unordered(asked, "a text")
    pattern = canonical(asked.value.text, "*")
    if not pattern:
        raise asked.bad_value("there are no words to look for", 'Write them in the quotes: text:"some words".')
    return Said(pattern)


def _filed(asked: Comparison) -> Expression:
    _unordered(asked, "a topic")
    path, has_below = asked.value.text, False
    if [*letters(path, ".")][-3:] == [(".", True)] * 3:
        path, has_below = path[:-3], True
    names, is_path = _path(path.strip())
    if not names:
        raise asked.bad_value("there is no name of a topic", "Write t'name', t'A > B' or t'name...'.")
    return Filed(names, is_path=is_path, has_below=has_below)


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


def _counted(asked: Comparison) -> Expression:
    value = number(asked.value.text)
    if value is None:
        unit = "50k, 1.5m" if asked.field.kind is Kind.NUMBER else "0.10, $2"
        raise asked.bad_value(f"{quoted(asked.value.text)} is no number", f"Write a number such as {unit}.{_GLUED}")
    return Counted(asked.field.name, asked.operator, value)


def _lasted(asked: Comparison) -> Expression:
    value = seconds(asked.value.text, "s")
    if value is None:
        raise _no_time(asked)
    return Counted(asked.field.name, asked.operator, value)


def _no_time(asked: Comparison) -> Fault:
    return asked.bad_value(
        f"{quoted(asked.value.text)} is no length of time",
        f"Write a number with one of the units {UNITS}, such as 7d or 1h30m.{_GLUED}",
    )


def _aged(asked: Comparison) -> Expression:
    name = asked.name.text
    if is_date_like(asked.value.text):
        if name.lower() == asked.field.letter:
            return _dated(asked)
        raise asked.bad_value("an age is a length of time, not a date", f"Write date>{asked.value.text}.")
    value = seconds(asked.value.text, "d")
    if value is None:
        raise _no_time(asked)
    match asked.sign:
        case ":":
            return Aged("<=", value)
        case "=" | "!=":
            hint = f"Write {name}<{asked.value.text} or {name}>{asked.value.text}."
            raise asked.bad_sign("nothing is exactly that old", hint)
        case sign:
            return Aged(sign, value)


def _dated(asked: Comparison) -> Expression:
    found = dated(asked.operator, asked.value.text, asked.zone)
    if found is None:
        hint = "Write 2026-01-31 or 2026-01-31T15:30; a length of time goes with age, as in age<7d."
        raise asked.bad_value(f"{quoted(asked.value.text)} is no date", hint)
    return found


def _status(asked: Comparison) -> Expression:
    word = asked.value.text.lower()
    kind = _CLASS.fullmatch(word)
    if asked.sign not in _ORDERING:
        if word in ("ok", "error"):
            return Marked(word)
        if kind is not None:
            lowest = int(kind[1]) * 100
            return both(Counted("status", ">=", lowest), Counted("status", "<", lowest + 100))
    value = number(word)
    if value is None:
        hint = likely(word, ("ok", "error")) or "Write status:ok, status:error, status:429, status:4xx or status>=500."
        raise asked.bad_value(f"{quoted(asked.value.text)} is no status", hint)
    return Counted("status", asked.operator, value)


def _marked(asked: Comparison) -> Expression:
    name = asked.name.text
    _unordered(asked, "either so or not")
    word = asked.value.text.lower()
    if word in _YES:
        return Marked(asked.field.name)
    if word in _NO:
        return negated(Marked(asked.field.name))
    raise asked.bad_value(
        f"{quoted(name)} is either so or not", f"Write {name} or !{name}; the codes of errors are in fault."
    )


def _latest(asked: Comparison) -> Expression:
    return Latest(_count(asked))


def _in_context(asked: Comparison) -> Expression:
    return InContext(_count(asked))


def _count(asked: Comparison) -> int:
    _unordered(asked, "a count")
    return count(asked.source, asked.value)


def count(source: Source, piece: Piece) -> int:
    """How many."""
    if not re.fullmatch("[0-9]{1,10}", piece.text) or int(piece.text) > _MOST:
        message = f"{quoted(piece.text)} is no count"
        raise source.wrong(piece.start, piece.end, message, f"Write a whole number, as in r20.{_GLUED}")
    return int(piece.text)


_GLUED = " Terms are parted by a blank or &."
_READERS: Mapping[Kind, Callable[[Comparison], Expression]] = {
    Kind.TEXT: _named,
    Kind.WORDS: _said,
    Kind.TOPIC: _filed,
    Kind.NUMBER: _counted,
    Kind.MONEY: _counted,
    Kind.SECONDS: _lasted,
    Kind.STATUS: _status,
    Kind.YES_NO: _marked,
    Kind.AGE: _aged,
    Kind.DATE: _dated,
    Kind.LATEST: _latest,
    Kind.CONTEXT: _in_context,
}
