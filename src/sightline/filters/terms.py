"""Splits the text of a filter into pieces with positions, and reads one term from its pieces, checked against its
field."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import tzinfo
from typing import Literal, TypeAlias
from unicodedata import east_asian_width

from sightline.catalog.problem import likely, nearest, quote_word
from sightline.errors import Code, Fault
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
from sightline.filters.fields import UNITS, FilterField, Kind, number, parse_date, seconds
from sightline.filters.predicate import canonical, fits, literal, pattern_characters

Sign: TypeAlias = Literal[":", "=", "!=", "<", "<=", ">", ">="]

_WORD = re.compile(r"""[^\s&|+!()'":<>=]+""")
_SIGN = re.compile(r"\s*(?::?(<=|>=|<>|=>|=<|==|!=|<|>|=)|:)")
_SIGNS: Mapping[str, Sign] = {
    ":": ":",
    "=": "=",
    "==": "=",
    "!=": "!=",
    "<>": "!=",
    "<": "<",
    "<=": "<=",
    "=<": "<=",
    ">": ">",
    ">=": ">=",
    "=>": ">=",
}
_ENDS = frozenset("&|+!()")
_QUOTES = frozenset("'\"")
_SPOKEN = {"n": "\n", "t": "\t", "r": "\r"}
_SHOWN = 72


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of the text and its position. In a value, escapes are still those of a pattern: `\\*` is a star that is
    not a wildcard."""

    text: str
    start: int
    end: int


@dataclass(slots=True)
class Source:
    """The text of a filter and the position up to which it has been read."""

    text: str
    place: int = field(default=0)
    kind: str = field(default="filter")
    """What messages call the text that a mistake is in."""

    def wrong(self, start: int, end: int, message: str, hint: str) -> Fault:
        """The fault for a mistake in this part of the text."""
        return Fault(
            Code.USAGE,
            f"{self.kind}, column {start + 1}: {message}",
            hint=f"{hint}\n{_point_at(self.text, start, max(end, start + 1))}",
            details={"column": start + 1, "length": max(end - start, 1)},
        )

    def skip_space(self) -> None:
        """Move to the next character that is not blank."""
        while self.next.isspace():
            self.place += 1

    @property
    def next(self) -> str:
        """The next character; empty at the end."""
        return self.text[self.place : self.place + 1]

    def take(self, characters: str) -> Piece | None:
        """Take one of these characters if it comes next; a doubled & or | counts as one. None if it does not."""
        start = self.place
        if not self.next or self.next not in characters:
            return None
        self.place += 2 if self.text[start : start + 2] == self.next * 2 and self.next in "&|" else 1
        return Piece(self.text[start], start, self.place)

    def word(self) -> Piece | None:
        """A name, or a letter with what is attached to it; None if there is none."""
        found = _WORD.match(self.text, self.place)
        return None if found is None else self._advance(found.group(), found.start(), found.end())

    def sign(self) -> Sign | None:
        """A comparison sign, possibly after blanks and with a colon before it; None if there is none."""
        found = _SIGN.match(self.text, self.place)
        if found is None:
            return None
        self.place = found.end()
        return _SIGNS[found[1] or ":"]

    @property
    def is_at_quote(self) -> bool:
        """Whether a quote comes next."""
        return self.next in _QUOTES

    def value(self) -> Piece | None:
        """What a field is compared with: quoted, or up to a blank or a sign that joins terms. None if there is
        nothing."""
        return self._read_quoted() if self.is_at_quote else self._bare()

    def _read_quoted(self) -> Piece:
        start, quote = self.place, self.next
        pieces: list[str] = []
        at = start + 1
        while at < len(self.text):
            if self.text[at] == quote:
                return self._advance("".join(pieces), start, at + 1)
            piece, at = self._character(at)
            pieces.append(piece)
        raise self.wrong(start, start + 1, f"the quote {quote} is not closed", f"Put a {quote} behind the words.")

    def _bare(self) -> Piece | None:
        start = at = self.place
        pieces: list[str] = []
        while at < len(self.text) and not self.text[at].isspace() and self.text[at] not in _ENDS:
            piece, at = self._character(at)
            pieces.append(piece)
        return self._advance("".join(pieces), start, at) if pieces else None

    def _character(self, at: int) -> tuple[str, int]:
        """The character at this position as part of a pattern, and the position of the next one."""
        character, escaped = self.text[at], self.text[at + 1 : at + 2]
        if character != "\\":
            return character, at + 1
        if escaped in _SPOKEN:
            return _SPOKEN[escaped], at + 2
        # Before any other character a backslash is literal, as in a Windows path.
        if not escaped or escaped.isalnum():
            return "\\\\", at + 1
        return f"\\{escaped}", at + 2

    def _advance(self, text: str, start: int, end: int) -> Piece:
        self.place = end
        return Piece(text, start, end)


def _point_at(text: str, start: int, end: int) -> str:
    """The text with a line of carets below it; only the part around the mistake if it is long."""
    left = max(0, start - _SHOWN // 2) if len(text) > _SHOWN else 0
    right = min(len(text), left + _SHOWN)
    before, within = _safe(text[left:start]), _safe(text[start : min(end, right)])
    opening, closing = "…" * (left > 0), "…" * (right < len(text))
    line = f"{opening}{before}{within}{_safe(text[min(end, right) : right])}{closing}"
    return f"  {line}\n  {' ' * _width(opening + before)}{'^' * max(1, _width(within))}"


def _safe(text: str) -> str:
    return "".join(character if character.isprintable() else " " for character in text)


def _width(text: str) -> int:
    return sum(2 if east_asian_width(character) in "WF" else 1 for character in text)


_ORDERING = ("<", "<=", ">", ">=")
_YES = ("yes", "true", "on", "1")
_NO = ("no", "false", "off", "0")
_CLASS = re.compile(r"([1-5])xx", re.IGNORECASE)
_MOST = 10**9


@dataclass(frozen=True, slots=True)
class FieldComparison:
    """A field as it was named, how it is compared, and with what."""

    source: Source
    field: FilterField
    name: Piece
    sign: Sign
    value: Piece
    zone: tzinfo

    @property
    def operator(self) -> Operator:
        """The operator without the negation of the sign."""
        match self.sign:
            case ":" | "=" | "!=":
                return "="
            case sign:
                return sign

    def bad_value(self, message: str, hint: str) -> Fault:
        """The fault for a mistake in the value."""
        return self.source.wrong(self.value.start, self.value.end, message, hint)

    def bad_sign(self, message: str, hint: str) -> Fault:
        """The fault for a mistake in the comparison as a whole."""
        return self.source.wrong(self.name.start, self.value.end, message, hint)


def term(comparison: FieldComparison) -> Expression:
    """The expression for the comparison."""
    meant = _READERS[comparison.field.kind](comparison)
    return negate(meant) if comparison.sign == "!=" else meant


def _refuse_ordering(comparison: FieldComparison, what: str) -> None:
    if comparison.sign in _ORDERING:
        name = comparison.name.text
        message = f"{comparison.sign} compares numbers and times, and {quote_word(name)} is {what}"
        raise comparison.bad_sign(message, f"Write {name}:{comparison.value.text or 'value'}.")


def _text_term(comparison: FieldComparison) -> Expression:
    _refuse_ordering(comparison, "a text")
    pattern, field = canonical(comparison.value.text), comparison.field
    if (choices := field.values()) and pattern and not any(fits(pattern, choice) for choice in choices):
        raise comparison.bad_value(
            f"there is no {field.name} {quote_word(comparison.value.text)}", nearest(comparison.value.text, choices)
        )
    return TextTerm(field.name, pattern)


def _content_term(comparison: FieldComparison) -> Expression:
    _refuse_ordering(comparison, "a text")
    pattern = canonical(comparison.value.text, "*")
    if not pattern:
        raise comparison.bad_value("there are no words to look for", 'Write them in the quotes: text:"some words".')
    return ContentTerm(pattern)


def _topic_term(comparison: FieldComparison) -> Expression:
    _refuse_ordering(comparison, "a topic")
    path, has_below = comparison.value.text, False
    if [*pattern_characters(path, ".")][-3:] == [(".", True)] * 3:
        path, has_below = path[:-3], True
    names, is_path = _path(path.strip())
    if not names:
        raise comparison.bad_value("there is no name of a topic", "Write t'name', t'A > B' or t'name...'.")
    return TopicTerm(names, is_path=is_path, has_below=has_below)


def _path(text: str) -> tuple[tuple[str, ...], bool]:
    """The names in a path, and whether it is a path."""
    divider = "/" if text.startswith("/") else ">"
    names = [""]
    is_path = divider == "/"
    for character, is_special in pattern_characters(text, f"{divider}*?"):
        if is_special and character == divider:
            names.append("")
            is_path = True
        else:
            names[-1] += character if is_special else literal(character)
    return tuple(name for each in names if (name := canonical(each).strip())), is_path


def _number_term(comparison: FieldComparison) -> Expression:
    value = number(comparison.value.text)
    if value is None:
        unit = "50k, 1.5m" if comparison.field.kind is Kind.NUMBER else "0.10, $2"
        raise comparison.bad_value(
            f"{quote_word(comparison.value.text)} is no number", f"Write a number such as {unit}.{_SEPARATOR_HINT}"
        )
    return NumberTerm(comparison.field.name, comparison.operator, value)


def _duration_term(comparison: FieldComparison) -> Expression:
    value = seconds(comparison.value.text, "s")
    if value is None:
        raise _no_time(comparison)
    return NumberTerm(comparison.field.name, comparison.operator, value)


def _no_time(comparison: FieldComparison) -> Fault:
    return comparison.bad_value(
        f"{quote_word(comparison.value.text)} is no length of time",
        f"Write a number with one of the units {UNITS}, such as 7d or 1h30m.{_SEPARATOR_HINT}",
    )


def _age_term(comparison: FieldComparison) -> Expression:
    name = comparison.name.text
    if "-" in comparison.value.text:  # it is meant as a date
        if name.lower() == comparison.field.letter:
            return _date_term(comparison)
        raise comparison.bad_value("an age is a length of time, not a date", f"Write date>{comparison.value.text}.")
    value = seconds(comparison.value.text, "d")
    if value is None:
        raise _no_time(comparison)
    match comparison.sign:
        case ":":
            return AgeTerm("<=", value)
        case "=" | "!=":
            hint = f"Write {name}<{comparison.value.text} or {name}>{comparison.value.text}."
            raise comparison.bad_sign("nothing is exactly that old", hint)
        case sign:
            return AgeTerm(sign, value)


def _date_term(comparison: FieldComparison) -> Expression:
    found = parse_date(comparison.operator, comparison.value.text, comparison.zone)
    if found is None:
        hint = "Write 2026-01-31 or 2026-01-31T15:30; a length of time goes with age, as in age<7d."
        raise comparison.bad_value(f"{quote_word(comparison.value.text)} is no date", hint)
    return found


def _status(comparison: FieldComparison) -> Expression:
    word = comparison.value.text.lower()
    kind = _CLASS.fullmatch(word)
    if comparison.sign not in _ORDERING:
        if word in ("ok", "error"):
            return FlagTerm(word)
        if kind is not None:
            lowest = int(kind[1]) * 100
            return both(NumberTerm("status", ">=", lowest), NumberTerm("status", "<", lowest + 100))
    value = number(word)
    if value is None:
        hint = likely(word, ("ok", "error")) or "Write status:ok, status:error, status:429, status:4xx or status>=500."
        raise comparison.bad_value(f"{quote_word(comparison.value.text)} is no status", hint)
    return NumberTerm("status", comparison.operator, value)


def _flag_term(comparison: FieldComparison) -> Expression:
    name = comparison.name.text
    _refuse_ordering(comparison, "either so or not")
    word = comparison.value.text.lower()
    if word in _YES:
        return FlagTerm(comparison.field.name)
    if word in _NO:
        return negate(FlagTerm(comparison.field.name))
    raise comparison.bad_value(
        f"{quote_word(name)} is either so or not", f"Write {name} or !{name}; the codes of errors are in fault."
    )


def _count(comparison: FieldComparison) -> int:
    _refuse_ordering(comparison, "a count")
    return count(comparison.source, comparison.value)


def count(source: Source, piece: Piece) -> int:
    """The count in this piece. Raises a Fault if it is not one."""
    if not re.fullmatch("[0-9]{1,10}", piece.text) or int(piece.text) > _MOST:
        message = f"{quote_word(piece.text)} is no count"
        raise source.wrong(piece.start, piece.end, message, f"Write a whole number, as in r20.{_SEPARATOR_HINT}")
    return int(piece.text)


_SEPARATOR_HINT = " Terms are parted by a blank or &."
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
    Kind.LATEST: lambda comparison: Latest(_count(comparison)),
    Kind.CONTEXT: lambda comparison: InContext(_count(comparison)),
}
