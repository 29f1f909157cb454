import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats import contingency_tables as tables

from sightline.evals.core.statistics.paired import least_p, sign_test


@pytest.mark.parametrize(
    ("wins", "losses", "p"), [(3, 10, 0.09228515625), (10, 3, 0.09228515625), (8, 0, 0.0078125), (2, 9, 0.0654296875)]
)
def test_probabilities_are_exact(wins: int, losses: int, p: float) -> None:
    assert sign_test(wins, losses) == p


def test_an_even_count_and_no_count_say_nothing() -> None:
    assert sign_test(5, 5) == sign_test(0, 0) == 1.0


def test_thousands_of_cases_are_no_trouble() -> None:
    assert 0 < sign_test(1400, 1600) < 0.001
    assert sign_test(20_000, 20_400) == pytest.approx(stats.binomtest(20_000, 40_400).pvalue, rel=1e-9)


def test_five_cases_that_all_differ_alike_are_too_few() -> None:
    assert [least_p(units) for units in (0, 1, 5, 6)] == [1.0, 1.0, 0.0625, 0.03125]
    assert least_p(6) == sign_test(6, 0)


def test_scipy_and_statsmodels_agree() -> None:
    for wins, losses in ((0, 1), (4, 9), (30, 12), (200, 251)):
        assert sign_test(wins, losses) == pytest.approx(stats.binomtest(wins, wins + losses).pvalue, rel=1e-9)
        mcnemar = tables.mcnemar([[11, wins], [losses, 3]], exact=True)
        assert sign_test(wins, losses) == pytest.approx(mcnemar.pvalue, rel=1e-9)


@given(st.integers(0, 400), st.integers(0, 400))
def test_any_count_is_scipys(wins: int, losses: int) -> None:
    expected = stats.binomtest(wins, wins + losses).pvalue if wins + losses else 1.0
    assert sign_test(wins, losses) == sign_test(losses, wins) == pytest.approx(expected, rel=1e-9)
