"""What a filter takes from a whole list, for the terms that ask for a thing's place among the others."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar, assert_never

from sightline.filters.expression import (
    EVERYTHING,
    And,
    Expression,
    InContext,
    Latest,
    Not,
    Or,
    OwnModel,
    OwnTopic,
    SetTerm,
    both,
    either,
    negate,
    set_terms,
)
from sightline.filters.pattern import fits, literal
from sightline.filters.predicate import FilterSubject, matches

S = TypeVar("S", bound=FilterSubject)


@dataclass(frozen=True, slots=True)
class Context(Generic[S]):
    """What a filter is used in: the time of day, the topic and the model at hand, and how many of the newest of some
    things would go along with the next question."""

    now: float
    topic: tuple[str, ...] = ()
    model: str = ""
    fitting: Callable[[Sequence[S]], int] = len


def select(expression: Expression, subjects: Sequence[S], *, context: Context[S]) -> list[S]:
    """The things that the filter takes, in their order, which is from the oldest to the newest.

    What goes along depends on what is shown, so the terms about it are answered last: without them there is a first
    list, its newest part goes along, and with that known the whole filter is answered.
    """
    terms = set_terms(expression)
    members: dict[SetTerm, frozenset[int]] = {
        term: _members(term, subjects, context) for term in terms if not isinstance(term, InContext)
    }
    if len(members) < len(set(terms)):
        shown = _matching_indexes(without_context(expression), subjects, context.now, members)
        fitting = context.fitting([subjects[index] for index in shown])
        split = len(shown) - max(0, min(fitting, len(shown)))
        for term in terms:
            if isinstance(term, InContext):
                members[term] = frozenset(shown[max(0, split - term.extra) :])
    return [subjects[index] for index in _matching_indexes(expression, subjects, context.now, members)]


def without_context(expression: Expression) -> Expression:
    """The expression as if it said nothing of what goes along."""
    return _without_context(expression) or EVERYTHING


def _matching_indexes(
    expression: Expression, subjects: Sequence[S], now: float, members: Mapping[SetTerm, frozenset[int]]
) -> list[int]:
    def holds(index: int) -> bool:
        return matches(expression, subjects[index], now=now, belongs=lambda term: index in members[term])

    return [index for index in range(len(subjects)) if holds(index)]


def _members(term: Latest | OwnTopic | OwnModel, subjects: Sequence[S], context: Context[S]) -> frozenset[int]:
    """The places in the list for which the term holds."""
    match term:
        case Latest(count=count):
            return frozenset(_newest(range(len(subjects)), count))
        case OwnTopic(count=count):
            own = [index for index, subject in enumerate(subjects) if subject.value("topic") == context.topic]
            return frozenset(own if count is None else _newest(own, count))
        case OwnModel():
            model = literal(context.model)
            return frozenset(i for i, each in enumerate(subjects) if fits(model, str(each.value("model") or "")))
        case unreachable:
            assert_never(unreachable)


def _newest(places: Sequence[int], count: int) -> Sequence[int]:
    return places[max(0, len(places) - count) :]


def _without_context(expression: Expression) -> Expression | None:
    """The expression as if it said nothing of what goes along; None if it says nothing else."""
    match expression:
        case InContext():
            return None
        case Not(part=part):
            rest = _without_context(part)
            return None if rest is None else negate(rest)
        case And(parts=parts) | Or(parts=parts):
            kept = [rest for part in parts if (rest := _without_context(part)) is not None]
            join = both if isinstance(expression, And) else either
            return join(*kept) if kept else None
        case _:
            return expression
