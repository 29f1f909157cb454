"""An expression as text, in the one form that parses to the same expression, and completions for a filter."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import assert_never

from sightline.filters.expression import (
    AgeTerm,
    And,
    ContentTerm,
    DateTerm,
    Everything,
    Expression,
    FlagTerm,
    InContext,
    Latest,
    Not,
    NumberTerm,
    Or,
    OwnModel,
    OwnTopic,
    Term,
    TextTerm,
    TopicTerm,
)
from sightline.filters.fields import BY_NAME, FIELDS, FilterField, FilterScope, Kind, number_text, seconds_text
from sightline.filters.predicate import literal

_BARE = re.compile(r"[\w*?./@~-][\w*?./@~:,-]*", re.ASCII)
_SPOKEN: Mapping[str, str] = {'"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def write_expression(expression: Expression) -> str:
    """The text of a filter that means this; empty for everything."""
    return "" if expression == Everything() else _text(expression)


def _text(expression: Expression) -> str:
    match expression:
        case Everything():
            return "*"
        case Not(part=part):
            return f"!({_text(part)})" if isinstance(part, And | Or) else f"!{_text(part)}"
        case And(parts=parts):
            return " & ".join(f"({_text(part)})" if isinstance(part, Or) else _text(part) for part in parts)
        case Or(parts=parts):
            return " | ".join(map(_text, parts))
        case term:
            return _term(term)


def _term(term: Term) -> str:
    match term:
        case TextTerm(field=field, pattern=pattern):
            return f"{field}:{_value(pattern)}"
        case NumberTerm(field=field, operator=operator, number=number):
            is_time = BY_NAME[field].kind is Kind.SECONDS
            return f"{field}{operator}{seconds_text(number) if is_time else number_text(number)}"
        case FlagTerm(field=field):
            return field
        case ContentTerm(pattern=pattern):
            return f"text:{_quote(pattern)}"
        case AgeTerm(operator=operator, seconds=seconds):
            return f"age{operator}{seconds_text(seconds)}"
        case DateTerm(operator=operator, moment=moment):
            return f"date{operator}{moment}"
        case TopicTerm():
            return f"topic:{_quote(_path(term))}"
        case Latest(count=count):
            return f"r{count}"
        case OwnTopic(count=count):
            return "t" if count is None else f"t{count}"
        case OwnModel():
            return "m"
        case InContext(extra=extra):
            return f"o{extra}" if extra else "o"
        case unreachable:
            assert_never(unreachable)


def _value(pattern: str) -> str:
    return pattern if _BARE.fullmatch(pattern) else _quote(pattern)


def _quote(pattern: str) -> str:
    """Escapes of the pattern stay as they are; what would end the text, or break the line, gets one."""
    return f'"{"".join(_SPOKEN.get(letter, letter) for letter in pattern)}"'


def _path(term: TopicTerm) -> str:
    """A name that looks like a path, or like one with all below it, is kept from being read as one."""
    names = [re.sub("([/>])", r"\\\1", name) for name in term.names]
    if not term.has_below and names[-1].endswith("..."):
        names[-1] = f"{names[-1][:-1]}\\."
    return f"{'/' if term.is_path else ''}{'/'.join(names)}{'...' if term.has_below else ''}"


MOST = 50
_PARTING = " \t\n&|!()"
_USUAL: Mapping[Kind, tuple[str, ...]] = {
    Kind.YES_NO: ("yes", "no"),
    Kind.STATUS: ("ok", "error", "200", "400", "401", "429", "4xx", "5xx"),
    Kind.AGE: ("1h", "1d", "7d", "30d"),
    Kind.LATEST: ("20", "100"),
    Kind.CONTEXT: ("5",),
}


@dataclass(frozen=True, slots=True)
class Completion:
    """`text` replaces what is between `start` and the cursor."""

    text: str
    label: str
    help: str
    start: int


def completions(
    text: str,
    at: int,
    *,
    scope: FilterScope,
    known: Mapping[str, Sequence[str]] | None = None,
    first: Sequence[str] = (),
) -> list[Completion]:
    """Completions at the cursor; `known` are values that fields have had, `first` the fields to begin with."""
    start = term_start(text, at)
    begun = text[start:at]
    name, colon, rest = begun.partition(":")
    if not colon:
        return list(_fields(begun, start, scope, first))[:MOST]
    field = BY_NAME.get(name.lower())
    if field is None or scope not in field.scopes:
        return []
    return list(_values(field, rest.strip("\"'"), start, known or {}))[:MOST]


def term_start(text: str, at: int) -> int:
    """Where the term at the cursor begins; blanks within quotes part nothing."""
    quote, start = "", 0
    for index, letter in enumerate(text[:at]):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        elif letter in _PARTING:
            start = index + 1
    return start


def _fields(begun: str, start: int, scope: FilterScope, first: Sequence[str]) -> Iterator[Completion]:
    wanted, places = begun.lower(), {name: place for place, name in enumerate(first)}
    for field in sorted(FIELDS, key=lambda each: places.get(each.name, len(places))):
        if scope in field.scopes and any(name.startswith(wanted) for name in field.names):
            yield Completion(f"{field.name}:", field.name, field.meaning, start)


def _values(field: FilterField, begun: str, start: int, known: Mapping[str, Sequence[str]]) -> Iterator[Completion]:
    wanted = begun.lower()
    for value in (*field.values(), *_USUAL.get(field.kind, ())):
        if value.startswith(wanted):
            yield Completion(f"{field.name}:{value}", value, field.meaning, start)
    found = [value for value in _others(known.get(field.name, ())) if wanted in value.lower()]
    for value in sorted(found, key=lambda each: not each.lower().startswith(wanted)):
        yield Completion(write_expression(TextTerm(field.name, literal(value))), value, field.meaning, start)


def _others(values: Iterable[str]) -> list[str]:
    return [value for value in dict.fromkeys(values) if value]
