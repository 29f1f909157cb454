"""What some terms come down to, told once for the predicate and for SQL."""

from collections.abc import Mapping
from typing import assert_never

from sightline.filters.expression import (
    Aged,
    Counted,
    Dated,
    Expression,
    Marked,
    Named,
    Operator,
    both,
    either,
    negated,
)

_REFUSED = Counted("status", ">=", 400)
_STATES: Mapping[str, Expression] = {
    "error": either(Named("state", "failed"), _REFUSED),
    "ok": both(Named("state", "finished"), negated(_REFUSED)),
}
_OLDER: Mapping[str, Operator] = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def meaning(term: Aged | Dated | Marked, now: float) -> Expression:
    """The same in terms of `state`, `status` and `at`, the time of day at which it came; a mark that is a field of its
    own stays."""
    match term:
        case Marked(field=field):
            return _STATES.get(field, term)
        case Aged(operator=operator, seconds=seconds):
            return Counted("at", _OLDER[operator], now - seconds)
        case Dated():
            return _dated(term)
        case unreachable:
            assert_never(unreachable)


def _dated(term: Dated) -> Expression:
    since, before = Counted("at", ">=", term.since), Counted("at", "<", term.until)
    match term.operator:
        case "=":
            return both(since, before)
        case "<":
            return Counted("at", "<", term.since)
        case "<=":
            return before
        case ">":
            return Counted("at", ">=", term.until)
        case ">=":
            return since
        case unreachable:
            assert_never(unreachable)
