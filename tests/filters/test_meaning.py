import pytest

from sightline.filters.expression import (
    AgeTerm,
    And,
    DateTerm,
    Expression,
    FlagTerm,
    Not,
    NumberTerm,
    Operator,
    Or,
    TextTerm,
)
from sightline.filters.meaning import meaning


def test_an_error_is_a_failure_or_a_bad_status() -> None:
    assert meaning(FlagTerm("error"), 0) == Or((TextTerm("state", "failed"), NumberTerm("status", ">=", 400)))


def test_ok_is_finished_without_a_bad_status() -> None:
    assert meaning(FlagTerm("ok"), 0) == And((TextTerm("state", "finished"), Not(NumberTerm("status", ">=", 400))))


def test_any_other_mark_stands_for_itself() -> None:
    assert meaning(FlagTerm("stream"), 0) == FlagTerm("stream")


@pytest.mark.parametrize(("older", "earlier"), [("<", ">"), ("<=", ">="), (">", "<"), (">=", "<=")])
def test_older_is_earlier(older: str, earlier: str) -> None:
    assert meaning(AgeTerm(older, 60), 1000) == NumberTerm("at", earlier, 940)


@pytest.mark.parametrize(
    ("operator", "meant"),
    [
        ("=", And((NumberTerm("at", ">=", 10), NumberTerm("at", "<", 20)))),
        ("<", NumberTerm("at", "<", 10)),
        ("<=", NumberTerm("at", "<", 20)),
        (">", NumberTerm("at", ">=", 20)),
        (">=", NumberTerm("at", ">=", 10)),
    ],
)
def test_a_day_is_from_its_start_to_its_end(operator: Operator, meant: Expression) -> None:
    assert meaning(DateTerm(operator, "a day", 10, 20), 0) == meant
