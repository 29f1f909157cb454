import pytest

from sightline.filters.expression import Aged, And, Counted, Dated, Expression, Marked, Named, Not, Operator, Or
from sightline.filters.meaning import meaning


def test_an_error_is_a_failure_or_a_bad_status() -> None:
    assert meaning(Marked("error"), 0) == Or((Named("state", "failed"), Counted("status", ">=", 400)))


def test_ok_is_finished_without_a_bad_status() -> None:
    assert meaning(Marked("ok"), 0) == And((Named("state", "finished"), Not(Counted("status", ">=", 400))))


def test_any_other_mark_stands_for_itself() -> None:
    assert meaning(Marked("stream"), 0) == Marked("stream")


@pytest.mark.parametrize(("older", "earlier"), [("<", ">"), ("<=", ">="), (">", "<"), (">=", "<=")])
def test_older_is_earlier(older: str, earlier: str) -> None:
    assert meaning(Aged(older, 60), 1000) == Counted("at", earlier, 940)


@pytest.mark.parametrize(
    ("operator", "meant"),
    [
        ("=", And((Counted("at", ">=", 10), Counted("at", "<", 20)))),
        ("<", Counted("at", "<", 10)),
        ("<=", Counted("at", "<", 20)),
        (">", Counted("at", ">=", 20)),
        (">=", Counted("at", ">=", 10)),
    ],
)
def test_a_day_is_from_its_start_to_its_end(operator: Operator, meant: Expression) -> None:
    assert meaning(Dated(operator, "a day", 10, 20), 0) == meant
