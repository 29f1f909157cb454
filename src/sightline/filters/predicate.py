"""Whether an expression holds for one thing."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from operator import eq, ge, gt, le, lt
from typing import Protocol, TypeAlias, assert_never

from sightline.errors import Code, Fault
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
    Operator,
    Or,
    OwnModel,
    OwnTopic,
    SetTerm,
    TextTerm,
    TopicTerm,
)
from sightline.filters.fields import SUMS
from sightline.filters.meaning import meaning
from sightline.filters.pattern import fits, occurs

Value: TypeAlias = str | float | bool | tuple[str, ...] | None

_COMPARED: Mapping[Operator, Callable[[float, float], bool]] = {"=": eq, "<": lt, "<=": le, ">": gt, ">=": ge}


class FilterSubject(Protocol):
    """A thing with fields.

    Their names are those of `fields.FIELDS`, and `at`, the time of day at which it came. A field that it does not have
    is None, and so is a number that is not known (a status while there is none). `tool` is a tuple of names, `topic`
    the names of the topics from the top down to its own. `tokens`, `ok` and `error` are never asked for: they follow
    from others.
    """

    def value(self, name: str) -> Value:
        """The value of a field."""
        ...

    def says(self, pattern: str) -> bool:
        """Whether the pattern occurs in what was said; `pattern.occurs` knows how."""
        ...


@dataclass(frozen=True, slots=True)
class Known:
    """A subject made of what is at hand."""

    values: Mapping[str, Value] = field(default_factory=dict)
    text: str = ""

    def value(self, name: str) -> Value:
        """The value of a field."""
        return self.values.get(name)

    def says(self, pattern: str) -> bool:
        """Whether the pattern occurs in the text."""
        return occurs(pattern, self.text)


def alone(term: SetTerm) -> bool:
    """Nothing is known about the list that a thing stands in."""
    what = type(term).__name__
    raise Fault(
        Code.USAGE,
        f"the filter asks for a place in a list ({what}), and here things are looked at one by one",
        hint="Leave out the terms r, o, bare t and bare m.",
    )


def matches(
    expression: Expression, subject: FilterSubject, *, now: float, belongs: Callable[[SetTerm], bool] = alone
) -> bool:
    """Whether the expression holds. `belongs` answers for the terms that need the whole list."""
    match expression:
        case Everything():
            return True
        case Not(part=part):
            return not matches(part, subject, now=now, belongs=belongs)
        case And(parts=parts):
            return all(matches(part, subject, now=now, belongs=belongs) for part in parts)
        case Or(parts=parts):
            return any(matches(part, subject, now=now, belongs=belongs) for part in parts)
        case Latest() | OwnTopic() | OwnModel() | InContext():
            return belongs(expression)
        case AgeTerm() | DateTerm() | FlagTerm():
            meant = meaning(expression, now)
            if isinstance(meant, FlagTerm):
                return subject.value(meant.field) is True
            return matches(meant, subject, now=now)
        case ContentTerm(pattern=pattern):
            return subject.says(pattern)
        case TextTerm(field=name, pattern=pattern):
            return _is_named(subject.value(name), pattern)
        case NumberTerm(field=name, operator=operator, number=number):
            counted = _number(subject, name)
            return counted is not None and _COMPARED[operator](counted, number)
        case TopicTerm():
            return is_filed(expression, _path(subject))
        case unreachable:
            assert_never(unreachable)


def is_filed(term: TopicTerm, path: tuple[str, ...]) -> bool:
    """Whether a topic with these names from the top down is one that the term means."""
    if not term.is_path:
        candidates = path if term.has_below else path[-1:]
        return any(fits(term.names[0], name) for name in candidates)
    asked = len(term.names)
    if len(path) < asked or (len(path) > asked and not term.has_below):
        return False
    return all(fits(pattern, name) for pattern, name in zip(term.names, path, strict=False))


def _is_named(value: Value, pattern: str) -> bool:
    names = value if isinstance(value, tuple) else (value,) if isinstance(value, str) else ()
    return any(fits(pattern, name) for name in names) if pattern else not any(names)


def _number(subject: FilterSubject, name: str) -> float | None:
    values = [subject.value(part) for part in SUMS.get(name, (name,))]
    known = [value for value in values if isinstance(value, int | float)]
    return sum(known) if known else None


def _path(subject: FilterSubject) -> tuple[str, ...]:
    value = subject.value("topic")
    return value if isinstance(value, tuple) else ()
