from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats import proportion

from sightline.errors import Code, Fault
from sightline.evals.core.statistics.intervals import pass_at_k, pass_hat_k, usable_ks, wilson_interval


def test_a_share_has_wilsons_interval() -> None:
    interval = wilson_interval(7, 20)
    assert (interval.low, interval.high) == pytest.approx((0.18119182410108203, 0.5671457233147638), rel=1e-12)


def test_where_all_or_none_pass_the_interval_does_not_collapse() -> None:
    everything, nothing = wilson_interval(20, 20), wilson_interval(0, 5, 0.99)
    assert (everything.low, everything.high) == pytest.approx((0.8388748419471804, 1.0))
    assert (nothing.low, nothing.high) == pytest.approx((0.0, 0.5702583210270094))
    assert everything.high == 1.0
    assert nothing.low == 0.0


def test_any_and_all_of_k_tries_are_what_counting_all_choices_gives() -> None:
    for trials in range(1, 8):
        for passes in range(trials + 1):
            tries = [number < passes for number in range(trials)]
            for k in range(1, trials + 1):
                chosen = list(combinations(tries, k))
                assert pass_at_k(passes, trials, k) == pytest.approx(sum(map(any, chosen)) / len(chosen))
                assert pass_hat_k(passes, trials, k) == pytest.approx(sum(map(all, chosen)) / len(chosen))


@pytest.mark.parametrize("k", [0, 4])
def test_more_tries_than_there_were_cannot_be_spoken_of(k: int) -> None:
    for estimate in (pass_at_k, pass_hat_k):
        with pytest.raises(Fault) as caught:
            estimate(1, 3, k)
        assert caught.value.code is Code.USAGE
        assert "--trials" in caught.value.hint


def test_the_case_with_the_fewest_tries_bounds_k() -> None:
    assert usable_ks([3, 2, 5]) == (1, 2)
    assert usable_ks([]) == ()


def test_statsmodels_agrees() -> None:
    for count in (1, 3, 17, 400):
        for passes in (0, 1, count // 2, count):
            for level in (0.8, 0.95, 0.99):
                ours = wilson_interval(passes, count, level)
                low, high = proportion.proportion_confint(passes, count, 1 - level, method="wilson")
                assert (ours.low, ours.high) == pytest.approx((low, high), rel=1e-9, abs=1e-12)


@given(st.integers(1, 10**7), st.floats(0, 1), st.floats(0.5, 0.9999))
def test_any_share_of_any_count_is_statsmodels(count: int, share: float, level: float) -> None:
    passes = round(share * count)
    ours = wilson_interval(passes, count, level)
    low, high = proportion.proportion_confint(passes, count, 1 - level, method="wilson")
    assert (ours.low, ours.high) == pytest.approx((low, high), rel=1e-7, abs=1e-12)
    assert 0 <= ours.low <= passes / count <= ours.high <= 1
