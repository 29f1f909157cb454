"""What stands on screen, row by row."""

import pytest

from sightline.chat.core.facts import PairsHandled
from sightline.chat.service.views import Rows
from tests.chat.core.stage import answered, history_of, ids, view_of


def rows_of(left_out: str, *, limit: int = 100) -> Rows:
    history = history_of(*(answered(name) for name in "abcdef"))
    history.apply(PairsHandled(tuple(left_out), "out"))
    return Rows(view_of(history, limit=limit))


@pytest.mark.parametrize("left_out", ["", "a", "c", "f", "ab", "cd", "ef", "ace", "bdf", "abcdef"])
def test_pairs_that_were_left_out_stand_where_they_stood(left_out: str) -> None:
    rows = rows_of(left_out)
    assert rows.total == 6
    assert ids(rows.slice(0, 100)) == "abcdef"
    assert ids(rows.slice(2, 3)) == "cde"
    assert ids(rows.slice(5, 3)) == "f"
    assert rows.slice(6, 3) == []
    assert [rows.place(name) for name in "abcdef"] == list(range(6))
    assert rows.place("nobody") is None


@pytest.mark.parametrize(("left_out", "limit", "start"), [("", 100, 2), ("c", 100, 1), ("f", 70, 2), ("", 20, 6)])
def test_the_boundary_is_the_row_of_the_first_that_goes_along(left_out: str, limit: int, start: int) -> None:
    assert rows_of(left_out, limit=limit).start == start
