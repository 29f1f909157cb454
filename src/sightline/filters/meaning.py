"""What some terms come down to, told once for the predicate and for SQL."""

from collections.abc import Mapping
from typing import assert_never

from sightline.filters.expression import (
    AgeTerm,
    DateTerm,
    Expression,
    FlagTerm,
    NumberTerm,
    Operator,
    TextTerm,
    both,
    either,
    negate,
)

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
    since, before = NumberTerm("at", ">=", term.since), NumberTerm("at", "<", term.until)
    match term.operator:
        case "=":
            return both(since, before)
        case "<":
            return NumberTerm("at", "<", term.since)
        case "<=":
            return before
        case ">":
            return NumberTerm("at", ">=", term.until)
        case ">=":
            return since
        case unreachable:
            assert_never(unreachable)
