"""An expression as text, in the one form that reads back to the same expression."""

import re
from collections.abc import Mapping
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
from sightline.filters.fields import BY_NAME, Kind
from sightline.filters.values import number_text, seconds_text

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
