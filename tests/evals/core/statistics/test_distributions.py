import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from sightline.evals.core.statistics.intervals import normal_cdf, normal_quantile, t_cdf, t_quantile

# Figures of scipy 1.17.1.
STUDENT = [
    (1, 0.975, 12.706204736174694),
    (2, 0.975, 4.302652729749462),
    (3, 0.995, 5.840909309733355),
    (4, 0.9, 1.533206274058944),
    (7, 0.975, 2.364624251592784),
    (30, 0.95, 1.697260886593957),
    (119, 0.975, 1.9800998764569397),
    (999, 0.995, 2.5807596372676365),
    (2000, 0.975, 1.9611508260994377),
    (1_000_000, 0.9, 1.281552412129939),
]


@pytest.mark.parametrize(("freedom", "probability", "expected"), STUDENT)
def test_student_quantiles_are_the_known_ones(freedom: int, probability: float, expected: float) -> None:
    assert t_quantile(probability, freedom) == pytest.approx(expected, rel=1e-10)
    assert t_quantile(1 - probability, freedom) == pytest.approx(-expected, rel=1e-10)


def test_the_middle_is_nought() -> None:
    assert t_quantile(0.5, 9) == 0
    assert t_cdf(0.0, 4) == normal_cdf(0.0) == 0.5


@pytest.mark.parametrize("freedom", [1, 2, 3, 10, 51])
def test_a_quantile_leads_back_to_its_share(freedom: int) -> None:
    for probability in (0.01, 0.3, 0.6, 0.9, 0.999):
        assert t_cdf(t_quantile(probability, freedom), freedom) == pytest.approx(probability, abs=1e-12)


def test_normal_quantiles_are_the_known_ones() -> None:
    assert normal_quantile(0.975) == pytest.approx(1.959963984540054, abs=1e-12)
    assert normal_quantile(0.8) == pytest.approx(0.8416212335729143, abs=1e-12)


def test_scipy_agrees_to_nine_digits() -> None:
    shares = (0.00001, 0.005, 0.025, 0.5, 0.5001, 0.6, 0.9, 0.95, 0.975, 0.995, 0.9995, 0.99995)
    for share in shares:
        assert normal_quantile(share) == pytest.approx(stats.norm.ppf(share), rel=1e-9, abs=1e-12)
        for freedom in (*range(1, 40), 100, 999, 1999, 2000, 2001, 50_000, 10**7):
            assert t_quantile(share, freedom) == pytest.approx(stats.t.ppf(share, freedom), rel=1e-9, abs=1e-12)
    for freedom in (1, 2, 5, 8, 100, 1001):
        for value in (-30.0, -2.0, 0.1, 1.0, 4.5):
            assert t_cdf(value, freedom) == pytest.approx(stats.t.cdf(value, freedom), abs=1e-13)


@given(st.floats(0.00005, 0.99995), st.integers(1, 10**9))
def test_every_quantile_that_an_interval_may_ask_for_is_scipys(share: float, freedom: int) -> None:
    assert t_quantile(share, freedom) == pytest.approx(stats.t.ppf(share, freedom), rel=1e-8, abs=1e-9)
    assert normal_quantile(share) == pytest.approx(stats.norm.ppf(share), rel=1e-8, abs=1e-9)
