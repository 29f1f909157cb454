import random

import pytest
import statsmodels.api as models
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from sightline.evals.core.statistics.intervals import Mean, mean_of, quantile_of

VALUES = [0.2, 0.9, 0.4, 1.0, 0.65, 0.7, 0.1, 0.8]
GROUPS = ["a", "a", "b", "b", "b", "c", "d", "d"]


def test_a_mean_has_the_error_of_its_sample_and_students_interval() -> None:
    mean = mean_of(VALUES)
    assert mean is not None
    assert mean.interval is not None
    assert (mean.value, mean.count, mean.clusters) == (0.59375, 8, 8)
    assert mean.error == pytest.approx(0.11589615887878744, rel=1e-12)
    assert (mean.interval.low, mean.interval.high) == pytest.approx((0.3196991320487689, 0.8678008679512311), rel=1e-9)


def test_cases_of_a_group_are_not_counted_as_independent() -> None:
    mean = mean_of(VALUES, GROUPS)
    assert mean is not None
    assert mean.interval is not None
    assert mean.clusters == 4
    assert mean.error == pytest.approx(0.06017823, abs=1e-8)
    assert (mean.interval.low, mean.interval.high) == pytest.approx((0.40223602, 0.78526398), abs=1e-8)


def test_groups_of_one_change_nothing() -> None:
    assert mean_of(VALUES, list("abcdefgh")) == mean_of(VALUES)


def test_the_same_answer_ten_times_is_no_better_known_than_once() -> None:
    once, often = mean_of([0.0, 1.0, 1.0]), mean_of([0.0, 1.0, 1.0] * 10, ["x", "y", "z"] * 10)
    assert once is not None
    assert often is not None
    assert often.error == pytest.approx(once.error)


def test_nothing_has_no_mean() -> None:
    assert mean_of([]) is None


def test_one_value_and_one_group_have_no_error() -> None:
    assert mean_of([0.4]) == Mean(value=0.4, count=1, clusters=1)
    assert mean_of([0.2, 0.6], ["a", "a"]) == Mean(value=0.4, count=2, clusters=1)


def test_values_that_do_not_differ_have_no_interval() -> None:
    assert mean_of([1.0, 1.0, 1.0]) == Mean(value=1.0, count=3, clusters=3, error=0.0)


def test_quantiles_lie_between_values_in_proportion() -> None:
    assert [quantile_of(VALUES, share) for share in (0.05, 0.5, 0.95)] == pytest.approx([0.135, 0.675, 0.965])
    assert quantile_of([3.0], 0.95) == 3.0


def test_scipy_and_statsmodels_agree() -> None:
    source = random.Random(3)
    for count in (2, 5, 40, 300):
        values = [source.random() for _ in range(count)]
        mean = mean_of(values, level=0.9)
        assert mean is not None
        assert mean.interval is not None
        assert mean.error == pytest.approx(stats.sem(values), rel=1e-12)
        expected = stats.t.interval(0.9, count - 1, mean.value, stats.sem(values))
        assert (mean.interval.low, mean.interval.high) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("sizes", [(1, 1), (4, 1), (3, 3), (1, 1, 1, 30), (2, 5, 9, 1, 7), (1,) * 50, (8,) * 40])
def test_statsmodels_agrees_on_groups_of_any_size(sizes: tuple[int, ...]) -> None:
    source = random.Random(len(sizes))
    groups = [number for number, size in enumerate(sizes) for _ in range(size)]
    values = [min(1.0, source.random() * (1 + group % 3) / 2) for group in groups]
    order = source.sample(range(len(groups)), len(groups))
    clustered = mean_of([values[place] for place in order], [f"g{groups[place]}" for place in order])
    # Its correction for few groups is C/(C-1) · (n-1)/(n-k), and a mean has one parameter: k = 1.
    fitted = models.OLS(values, [1.0] * len(values)).fit(
        cov_type="cluster", cov_kwds={"groups": groups, "use_correction": True}, use_t=True
    )
    assert clustered is not None
    assert clustered.interval is not None
    assert clustered.error == pytest.approx(float(fitted.bse[0]), rel=1e-9)
    low, high = fitted.conf_int()[0]
    assert (clustered.interval.low, clustered.interval.high) == pytest.approx((low, high), rel=1e-9)


@given(st.lists(st.tuples(st.floats(0, 1), st.sampled_from(["", "a", "b", "c"])), min_size=1, max_size=40))
def test_a_mean_lies_in_its_interval_and_an_interval_has_a_width(drawn: list[tuple[float, str]]) -> None:
    mean = mean_of([value for value, _ in drawn], [group for _, group in drawn])
    assert mean is not None
    assert (mean.error is None) == (mean.clusters == 1)
    assert (mean.interval is None) == (not mean.error)
    if mean.interval is not None:
        assert mean.interval.low < mean.value < mean.interval.high


def test_groups_whose_means_do_not_differ_have_no_interval() -> None:
    # Zero width would say that the mean is known exactly.
    for values in ([0.0, 1.0, 0.0, 1.0], [0.1, 0.3, 0.1, 0.3]):
        mean = mean_of(values, ["a", "a", "b", "b"])
        assert mean is not None
        assert (mean.error, mean.interval) == (0.0, None)


def test_a_hundred_thousand_values_are_no_trouble() -> None:
    source = random.Random(1)
    values = [source.random() for _ in range(100_000)]
    mean = mean_of(values)
    assert mean is not None
    assert mean.error == pytest.approx(stats.sem(values), rel=1e-9)
