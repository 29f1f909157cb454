import pytest

from sightline.errors import Code, Fault
from sightline.evals.core.statistics.intervals import Interval, upper


def test_an_interval_holds_its_ends() -> None:
    interval = Interval(0.1, 0.3, 0.95, "t")
    assert [interval.holds(value) for value in (0.0, 0.1, 0.2, 0.3, 0.31)] == [False, True, True, True, False]


def test_a_level_leaves_half_of_the_rest_above() -> None:
    assert upper(0.95) == pytest.approx(0.975)


@pytest.mark.parametrize("level", [0.0, 0.4, 1.0, 95, float("nan")])
def test_a_level_that_is_no_share_is_refused_with_an_example(level: float) -> None:
    with pytest.raises(Fault) as caught:
        upper(level)
    assert caught.value.code is Code.USAGE
    assert "0.95" in caught.value.hint
