import pytest
from statsmodels.stats import power

from sightline.evals.core.statistics.paired import cases_needed, smallest_effect


def test_the_smallest_effect_is_nearly_three_errors() -> None:
    assert smallest_effect(0.05) == pytest.approx(0.14007926090564843, rel=1e-12)


def test_half_the_effect_needs_four_times_the_cases() -> None:
    assert cases_needed(smallest_effect(0.05) * 1.0000001, 0.05, 100) == 100
    assert cases_needed(-smallest_effect(0.05) / 2, 0.05, 100) in (400, 401)


def test_statsmodels_finds_the_power_that_was_asked_for() -> None:
    for error, count, level, wanted in ((0.05, 100, 0.95, 0.8), (0.02, 40, 0.9, 0.9), (0.3, 12, 0.99, 0.95)):
        deviation = error * count**0.5
        effect = smallest_effect(error, level, wanted)
        # Its figure counts the far tail too, which is next to nothing.
        assert power.normal_power(effect / deviation, count, 1 - level) == pytest.approx(wanted, abs=1e-5)
