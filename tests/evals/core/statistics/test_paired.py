import random

import pytest
from scipy import stats

from sightline.evals.core.statistics.intervals import mean_of
from sightline.evals.core.statistics.paired import compare_pairs
from tests.evals.core.chance import drawing

BEFORE = [0.2, 0.9, 0.4, 1.0, 0.65, 0.7, 0.1, 0.8]
AFTER = [0.5, 0.95, 0.4, 0.9, 0.85, 0.9, 0.6, 0.7]


def test_the_difference_is_that_of_pairs() -> None:
    found = compare_pairs(BEFORE, AFTER, drawing())
    assert found is not None
    assert found.difference == mean_of([b - a for a, b in zip(BEFORE, AFTER, strict=True)])
    assert (found.wins, found.losses, found.ties, found.differing) == (5, 2, 1, 7)
    assert found.permutation.p == 0.140625
    assert found.sign_p == pytest.approx(0.453125)
    assert found.bootstrap is not None
    assert found.bootstrap.method == "bca"


def test_a_tolerance_makes_ties_and_moves_nothing_else() -> None:
    strict, lenient = compare_pairs(BEFORE, AFTER, drawing()), compare_pairs(BEFORE, AFTER, drawing(), tolerance=0.15)
    assert strict is not None
    assert lenient is not None
    assert (lenient.wins, lenient.losses, lenient.ties) == (4, 0, 4)
    assert lenient.difference == strict.difference
    assert lenient.permutation == strict.permutation


def test_the_last_digits_of_a_computation_are_no_difference() -> None:
    found = compare_pairs([0.3, 0.5], [0.1 + 0.2, 0.5], drawing())
    assert found is not None
    assert (found.wins, found.losses, found.ties, found.differing) == (0, 0, 2, 0)
    assert found.difference.value == 0


def test_groups_make_the_error_larger() -> None:
    before, after = [0.0] * 8, [1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0]
    alone, grouped = (
        compare_pairs(before, after, drawing()),
        compare_pairs(before, after, drawing(), groups=["x"] * 4 + ["y"] * 4),
    )
    assert alone is not None
    assert grouped is not None
    assert alone.difference.error is not None
    assert grouped.difference.error is not None
    assert grouped.difference.error > 2 * alone.difference.error
    assert grouped.differing == 1


def test_it_tells_how_many_cases_the_seen_difference_needs() -> None:
    found = compare_pairs(BEFORE, AFTER, drawing())
    assert found is not None
    assert found.smallest is not None
    assert found.needed is not None
    ratio = found.smallest / found.difference.value
    assert found.needed == pytest.approx(8 * ratio**2, abs=1)


def test_a_difference_of_nought_on_average_needs_no_number_of_cases() -> None:
    found = compare_pairs([0.0, 1.0], [1.0, 0.0], drawing())
    assert found is not None
    assert found.smallest is not None
    assert found.needed is None


def test_one_pair_has_no_error_and_no_pair_has_nothing() -> None:
    found = compare_pairs([0.0], [1.0], drawing())
    assert found is not None
    assert (found.difference.error, found.smallest, found.needed, found.bootstrap) == (None, None, None, None)
    assert compare_pairs([], [], drawing()) is None


@pytest.mark.parametrize("count", [2, 3, 8, 150])
def test_scipy_agrees_on_the_paired_interval(count: int) -> None:
    source = random.Random(count)
    before = [source.random() for _ in range(count)]
    after = [source.random() for _ in range(count)]
    for level in (0.8, 0.95, 0.99):
        found = compare_pairs(before, after, drawing(), level=level, resamples=0)
        assert found is not None
        interval = found.difference.interval
        assert interval is not None
        expected = stats.ttest_rel(after, before).confidence_interval(level)
        assert (interval.low, interval.high) == pytest.approx(tuple(expected), rel=1e-9)


def test_groups_that_all_differ_alike_have_no_interval_and_need_no_more_cases() -> None:
    found = compare_pairs([0.0] * 4, [0.1, 0.3, 0.1, 0.3], drawing(), groups=["x", "x", "y", "y"])
    assert found is not None
    assert found.difference.value == pytest.approx(0.2)
    assert (found.difference.error, found.difference.interval) == (0.0, None)
    assert (found.bootstrap, found.smallest, found.needed) == (None, None, None)
