"""The terms of a filter as values, how they are joined, and what some of them mean in simpler terms.

The functions `both`, `either` and `negate` keep an expression in its one simple form: no needless nesting, and no part
without a meaning. The parser makes all of its expressions with them.
"""

from collections.abc import Mapping
from typing import Literal, TypeAlias, assert_never

import msgspec

Operator: TypeAlias = Literal["=", "<", "<=", ">", ">="]


class Everything(msgspec.Struct, frozen=True, tag="everything"):
    """No condition at all."""


class TextTerm(msgspec.Struct, frozen=True, tag="named"):
    """A text field, or one of several texts, fits a pattern as a whole; see `pattern` for what that is."""

    field: str
    pattern: str


class NumberTerm(msgspec.Struct, frozen=True, tag="counted"):
    """A number compares so; seconds where the field is a time. What has no such number does not match."""

    field: str
    operator: Operator
    number: float


class FlagTerm(msgspec.Struct, frozen=True, tag="marked"):
    """A field that is either so or not is so."""

    field: str


class ContentTerm(msgspec.Struct, frozen=True, tag="said"):
    """The pattern occurs somewhere in what was said."""

    pattern: str


class AgeTerm(msgspec.Struct, frozen=True, tag="aged"):
    """The seconds since it came compare so."""

    operator: Literal["<", "<=", ">", ">="]
    seconds: float


class DateTerm(msgspec.Struct, frozen=True, tag="dated"):
    """It came on, before or after a day or a minute: `moment` as it is written, from `since` to just before `until`."""

    operator: Operator
    moment: str
    since: float
    until: float


class TopicTerm(msgspec.Struct, frozen=True, tag="filed"):
    """It belongs to a topic: one with this name, or, where `is_path`, at exactly these names from the top down;
    `has_below` takes in all topics under it."""

    names: tuple[str, ...]
    is_path: bool = False
    has_below: bool = False


class Latest(msgspec.Struct, frozen=True, tag="latest"):
    """Among the newest `count` of the whole list."""

    count: int


class OwnTopic(msgspec.Struct, frozen=True, tag="own_topic"):
    """In the topic at hand; with a `count`, among the newest so many of it."""

    count: int | None = None


class OwnModel(msgspec.Struct, frozen=True, tag="own_model"):
    """With the model at hand."""


class InContext(msgspec.Struct, frozen=True, tag="in_context"):
    """Among what is sent along with the next question, or the newest `extra` of what is just not."""

    extra: int = 0


class Not(msgspec.Struct, frozen=True, tag="not"):
    """The part does not hold."""

    part: "Expression"


class And(msgspec.Struct, frozen=True, tag="and"):
    """All parts hold; there are at least two."""

    parts: tuple["Expression", ...]


class Or(msgspec.Struct, frozen=True, tag="or"):
    """At least one part holds; there are at least two."""

    parts: tuple["Expression", ...]


SetTerm: TypeAlias = Latest | OwnTopic | OwnModel | InContext
"""A term that cannot be answered by looking at one thing alone."""

Term: TypeAlias = TextTerm | NumberTerm | FlagTerm | ContentTerm | AgeTerm | DateTerm | TopicTerm | SetTerm

Expression: TypeAlias = Everything | Term | Not | And | Or

EVERYTHING = Everything()


def both(*parts: Expression) -> Expression:
    """All of these."""
    flat = [each for part in parts for each in (part.parts if isinstance(part, And) else (part,))]
    parts = tuple(each for each in flat if each != EVERYTHING)
    if len(parts) > 1:
        return And(parts)
    return parts[0] if parts else EVERYTHING


def either(*parts: Expression) -> Expression:
    """At least one of these."""
    flat = tuple(each for part in parts for each in (part.parts if isinstance(part, Or) else (part,)))
    if EVERYTHING in flat:
        return EVERYTHING
    return Or(flat) if len(flat) > 1 else flat[0]


def negate(part: Expression) -> Expression:
    """The opposite."""
    return part.part if isinstance(part, Not) else Not(part)


def set_terms(expression: Expression) -> tuple[SetTerm, ...]:
    """The terms in it that need the whole list, from left to right."""
    match expression:
        case Not(part=part):
            return set_terms(part)
        case And(parts=parts) | Or(parts=parts):
            return tuple(term for part in parts for term in set_terms(part))
        case Latest() | OwnTopic() | OwnModel() | InContext():
            return (expression,)
        case (
            Everything() | TextTerm() | NumberTerm() | FlagTerm() | ContentTerm() | AgeTerm() | DateTerm() | TopicTerm()
        ):
            return ()
        case unreachable:
            assert_never(unreachable)


_REFUSED = NumberTerm("status", ">=", 400)
_STATES: Mapping[str, Expression] = {
    "error": either(TextTerm("state", "failed"), _REFUSED),
    "ok": both(TextTerm("state", "finished"), negate(_REFUSED)),
}
_OLDER: Mapping[str, Operator] = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def meaning(term: AgeTerm | DateTerm | FlagTerm, now: float) -> Expression:
    """The same in terms of `state`, `status` and `at`, the time of day at which it came; a mark that is a field of its
    own stays."""
    match term:
        case FlagTerm(field=field):
            return _STATES.get(field, term)
        case AgeTerm(operator=operator, seconds=seconds):
            return NumberTerm("at", _OLDER[operator], now - seconds)
        case DateTerm():
            return _range_of_date(term)
        case unreachable:
            assert_never(unreachable)


def _range_of_date(term: DateTerm) -> Expression:
    meanings: Mapping[Operator, Expression] = {
        "=": both(NumberTerm("at", ">=", term.since), NumberTerm("at", "<", term.until)),
        "<": NumberTerm("at", "<", term.since),
        "<=": NumberTerm("at", "<", term.until),
        ">": NumberTerm("at", ">=", term.until),
        ">=": NumberTerm("at", ">=", term.since),
    }
    return meanings[term.operator]
