"""The terms of a filter as values, how they are combined, and the meaning of some in simpler terms.

The functions `both`, `either` and `negate` keep an expression in its canonical form: no needless nesting, and no
redundant parts. The parser builds all of its expressions with them.
"""

from collections.abc import Iterator, Mapping
from typing import Literal, TypeAlias, assert_never

import msgspec

Operator: TypeAlias = Literal["=", "<", "<=", ">", ">="]


class Everything(msgspec.Struct, frozen=True, tag="everything"):
    """Matches everything."""


class TextTerm(msgspec.Struct, frozen=True, tag="named"):
    """A text field, or one of several texts, matches a pattern as a whole; see `predicate` for patterns."""

    field: str
    pattern: str


class NumberTerm(msgspec.Struct, frozen=True, tag="counted"):
    """A number compares this way, in seconds if the field is a time. A subject without the number does not match."""

    field: str
    operator: Operator
    number: float


class FlagTerm(msgspec.Struct, frozen=True, tag="marked"):
    """A yes-or-no field is set."""

    field: str


class ContentTerm(msgspec.Struct, frozen=True, tag="said"):
    """The pattern occurs somewhere in the message texts."""

    pattern: str


class AgeTerm(msgspec.Struct, frozen=True, tag="aged"):
    """The seconds since arrival compare this way."""

    operator: Literal["<", "<=", ">", ">="]
    seconds: float


class DateTerm(msgspec.Struct, frozen=True, tag="dated"):
    """Arrived on, before or after a day or a minute: `moment` as it is written, from `since` to just before `until`."""

    operator: Operator
    moment: str
    since: float
    until: float


class TopicTerm(msgspec.Struct, frozen=True, tag="filed"):
    """Belongs to a topic: one with this name or, with `is_path`, one with exactly these names from the top down;
    `has_below` includes all topics under it."""

    names: tuple[str, ...]
    is_path: bool = False
    has_below: bool = False


class Latest(msgspec.Struct, frozen=True, tag="latest"):
    """Among the newest `count` of the whole list."""

    count: int


class OwnTopic(msgspec.Struct, frozen=True, tag="own_topic"):
    """In the current topic; with a `count`, among its newest ones."""

    count: int | None = None


class OwnModel(msgspec.Struct, frozen=True, tag="own_model"):
    """With the current model."""


class InContext(msgspec.Struct, frozen=True, tag="in_context"):
    """Among what is sent with the next question, or the newest `extra` of what is not."""

    extra: int = 0


class Not(msgspec.Struct, frozen=True, tag="not"):
    """The part does not match."""

    part: "Expression"


class And(msgspec.Struct, frozen=True, tag="and"):
    """All parts match; there are at least two."""

    parts: tuple["Expression", ...]


class Or(msgspec.Struct, frozen=True, tag="or"):
    """At least one part matches; there are at least two."""

    parts: tuple["Expression", ...]


SetTerm: TypeAlias = Latest | OwnTopic | OwnModel | InContext
"""A term that cannot be decided from one subject alone."""

Term: TypeAlias = TextTerm | NumberTerm | FlagTerm | ContentTerm | AgeTerm | DateTerm | TopicTerm | SetTerm

Expression: TypeAlias = Everything | Term | Not | And | Or

EVERYTHING = Everything()


def both(*parts: Expression) -> Expression:
    """The conjunction of these parts."""
    flat = [each for part in parts for each in (part.parts if isinstance(part, And) else (part,))]
    parts = tuple(each for each in flat if each != EVERYTHING)
    if len(parts) > 1:
        return And(parts)
    return parts[0] if parts else EVERYTHING


def either(*parts: Expression) -> Expression:
    """The disjunction of these parts."""
    flat = tuple(each for part in parts for each in (part.parts if isinstance(part, Or) else (part,)))
    if EVERYTHING in flat:
        return EVERYTHING
    return Or(flat) if len(flat) > 1 else flat[0]


def negate(part: Expression) -> Expression:
    """The negation of the part."""
    return part.part if isinstance(part, Not) else Not(part)


def terms_of(expression: Expression) -> Iterator[Term | Everything]:
    """The terms in the expression from left to right, including negated ones."""
    match expression:
        case Not(part=part):
            yield from terms_of(part)
        case And(parts=parts) | Or(parts=parts):
            for part in parts:
                yield from terms_of(part)
        case term:
            yield term


def set_terms(expression: Expression) -> tuple[SetTerm, ...]:
    """The terms in the expression that need the whole list, from left to right."""
    return tuple(term for term in terms_of(expression) if isinstance(term, SetTerm))


_REFUSED = NumberTerm("status", ">=", 400)
_STATES: Mapping[str, Expression] = {
    "error": either(TextTerm("state", "failed"), _REFUSED),
    "ok": both(TextTerm("state", "finished"), negate(_REFUSED)),
}
_OLDER: Mapping[str, Operator] = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def meaning(term: AgeTerm | DateTerm | FlagTerm, now: float) -> Expression:
    """The same in terms of `state`, `status` and `at`, the Unix time of arrival. A flag that is a field of its own
    stays."""
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
