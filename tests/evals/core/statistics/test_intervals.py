import random
from collections.abc import Sequence
from itertools import chain, combinations, product

import numpy
import pytest
import scipy
from hypothesis import given, settings
from hypothesis import strategies as st

from sightline.evals.core.statistics.intervals import (
    Interval,
    Mean,
    bca_interval,
    bootstrap_interval,
    clusters_of,
    mean_of,
    pass_at_k,
    pass_hat_k,
    percentile_interval,
    quantile_of,
    resample_means,
    sums_of,
    t_cdf,
    t_quantile,
    wilson_interval,
    within_work,
)
from tests.evals.core.chance import drawing


def test_an_interval_holds_its_ends() -> None:
    interval = Interval(0.1, 0.3, 0.95, "t")
    assert [interval.holds(value) for value in (0.0, 0.1, 0.2, 0.3, 0.31)] == [False, True, True, True, False]


def test_the_middle_is_nought() -> None:
    assert t_quantile(0.5, 9) == 0
    assert t_cdf(0.0, 4) == 0.5


def test_scipy_agrees_to_nine_digits() -> None:
    shares = (0.00001, 0.005, 0.025, 0.5, 0.5001, 0.6, 0.9, 0.95, 0.975, 0.995, 0.9995, 0.99995)
    for share in shares:
        for freedom in (*range(1, 40), 100, 999, 1999, 2000, 2001, 50_000, 10**7):
            assert t_quantile(share, freedom) == pytest.approx(scipy.stats.t.ppf(share, freedom), rel=1e-9, abs=1e-12)
    for freedom in (1, 2, 5, 8, 100, 1001):
        for value in (-30.0, -2.0, 0.1, 1.0, 4.5):
            assert t_cdf(value, freedom) == pytest.approx(scipy.stats.t.cdf(value, freedom), abs=1e-13)


@given(st.floats(0.00005, 0.99995), st.integers(1, 10**9))
def test_every_quantile_that_an_interval_may_ask_for_is_scipys(share: float, freedom: int) -> None:
    assert t_quantile(share, freedom) == pytest.approx(scipy.stats.t.ppf(share, freedom), rel=1e-8, abs=1e-9)


def test_values_of_a_group_stand_together_and_the_others_alone() -> None:
    assert clusters_of(["a", "", "b", "a", ""], 5) == [[0, 3], [1], [2], [4]]


def test_without_groups_every_value_is_its_own_cluster() -> None:
    assert clusters_of((), 3) == [[0], [1], [2]]


def test_clusters_have_sums_and_sizes() -> None:
    assert sums_of([1.0, 2.0, 4.0], ["x", "y", "x"]) == ([5.0, 2.0], [2, 1])


def mean_with_interval(values: Sequence[float], groups: Sequence[str] = ()) -> tuple[Mean, Interval]:
    mean = mean_of(values, groups)
    assert mean is not None
    assert mean.interval is not None
    return mean, mean.interval


VALUES = [0.2, 0.9, 0.4, 1.0, 0.65, 0.7, 0.1, 0.8]
GROUPS = ["a", "a", "b", "b", "b", "c", "d", "d"]


def test_a_mean_has_the_error_of_its_sample_and_students_interval() -> None:
    mean, interval = mean_with_interval(VALUES)
    assert (mean.value, mean.count, mean.clusters) == (0.59375, 8, 8)
    assert mean.error == pytest.approx(0.11589615887878744, rel=1e-12)
    assert (interval.low, interval.high) == pytest.approx((0.3196991320487689, 0.8678008679512311), rel=1e-9)


def test_cases_of_a_group_are_not_counted_as_independent() -> None:
    mean, interval = mean_with_interval(VALUES, GROUPS)
    assert mean.clusters == 4
    assert mean.error == pytest.approx(0.06017823, abs=1e-8)
    assert (interval.low, interval.high) == pytest.approx((0.40223602, 0.78526398), abs=1e-8)


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


def test_scipy_agrees_on_the_mean() -> None:
    source = random.Random(3)
    for count in (2, 5, 40, 300):
        values = [source.random() for _ in range(count)]
        mean, interval = mean_with_interval(values)
        assert mean.error == pytest.approx(scipy.stats.sem(values), rel=1e-12)
        expected = scipy.stats.t.interval(0.95, count - 1, mean.value, scipy.stats.sem(values))
        assert (interval.low, interval.high) == pytest.approx(expected, rel=1e-9)


# The figures are those of statsmodels 0.15: OLS(values, ones).fit(cov_type="cluster", use_t=True), with use_correction.
# Its correction for few groups is C/(C-1) · (n-1)/(n-k), and a mean has one parameter: k = 1.
@pytest.mark.parametrize(
    ("sizes", "error", "low", "high"),
    [
        ((1, 1), 0.23490517555736218, -2.2718309427169165, 3.69767556572089),
        ((4, 1), 0.18554823612805058, -1.9859855888697737, 2.7292421644884195),
        ((3, 3), 0.11268904983653187, -0.9924255677988676, 1.8712747096970672),
        ((1, 1, 1, 30), 0.013982766326417397, 0.20961622134074448, 0.2986150274070494),
        ((2, 5, 9, 1, 7), 0.08456847463265205, 0.347837620368941, 0.817437075264682),
        ((1,) * 50, 0.045658909762343214, 0.4489547801155134, 0.6324648089409601),
        ((8,) * 40, 0.0282378540642183, 0.3827983442517176, 0.4970312462857526),
    ],
)
def test_statsmodels_agrees_on_groups_of_any_size(
    sizes: tuple[int, ...], error: float, low: float, high: float
) -> None:
    source = random.Random(len(sizes))
    groups = [number for number, size in enumerate(sizes) for _ in range(size)]
    values = [min(1.0, source.random() * (1 + group % 3) / 2) for group in groups]
    order = source.sample(range(len(groups)), len(groups))
    clustered, interval = mean_with_interval(
        [values[place] for place in order], [f"g{groups[place]}" for place in order]
    )
    assert clustered.error == pytest.approx(error, rel=1e-9)
    assert (interval.low, interval.high) == pytest.approx((low, high), rel=1e-9)


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


def test_the_same_chance_gives_the_same_interval() -> None:
    assert bootstrap_interval(VALUES, drawing()) == bootstrap_interval(VALUES, drawing())


def test_an_interval_lies_around_the_mean_and_within_the_values() -> None:
    interval = bootstrap_interval(VALUES, drawing())
    assert interval is not None
    assert interval.method == "bca"
    assert 0.1 < interval.low < 0.59375 < interval.high < 1.0


def test_groups_are_drawn_whole() -> None:
    asked: list[tuple[int, int]] = []

    def draw(below: int, count: int) -> list[int]:
        asked.append((below, count))
        return [place % below for place in range(count)]

    # Every group is drawn once each time, so every mean is the mean itself.
    interval = bootstrap_interval(VALUES, draw, groups=GROUPS, resamples=20)
    assert interval is not None
    assert (interval.low, interval.high) == pytest.approx((0.59375, 0.59375))
    assert asked == [(4, 4)] * 20


@pytest.mark.parametrize(
    ("values", "groups"),
    [([0.3], ()), ([0.2, 0.4], ("a", "a")), ([1.0, 1.0, 1.0], ()), ([0.1, 0.3, 0.1, 0.3], ("a", "a", "b", "b"))],
)
def test_values_that_leave_nothing_to_draw_have_no_interval(values: list[float], groups: tuple[str, ...]) -> None:
    assert bootstrap_interval(values, drawing(), groups=groups) is None


def test_no_samples_are_no_interval_and_large_ones_are_fewer() -> None:
    assert bootstrap_interval(VALUES, drawing(), resamples=0) is None
    assert [within_work(2000, units) for units in (10, 1000, 100_000)] == [2000, 1000, 499]


def test_means_that_lie_all_on_one_side_get_the_plain_interval() -> None:
    assert bca_interval([0.1, 0.2, 0.3], 0.9, [0.1, 0.2]) == percentile_interval([0.1, 0.2, 0.3])


def test_means_that_do_not_depend_on_any_cluster_need_no_acceleration() -> None:
    means = [0.1, 0.2, 0.3, 0.4, 0.5]
    corrected, plain = bca_interval(means, 0.3, [0.3, 0.3]), percentile_interval(means)
    assert (corrected.low, corrected.high) == pytest.approx((plain.low, plain.high))


def test_scipy_makes_the_same_intervals_of_the_same_means() -> None:
    source = random.Random(11)
    for count in (5, 12, 60):
        values = [source.random() ** 3 for _ in range(count)]
        without = [(sum(values) - value) / (count - 1) for value in values]
        for method in ("percentile", "BCa"):
            drawn = scipy.stats.bootstrap((values,), numpy.mean, n_resamples=999, method=method, rng=1, vectorized=True)
            means = [float(mean) for mean in drawn.bootstrap_distribution]
            ours = (
                percentile_interval(means)
                if method == "percentile"
                else bca_interval(means, sum(values) / count, without)
            )
            assert (ours.low, ours.high) == pytest.approx(tuple(drawn.confidence_interval), rel=1e-9)


def test_intervals_hold_the_truth_about_as_often_as_they_say() -> None:
    source = random.Random(5)
    draw = drawing(6)
    held = 0
    for _ in range(120):
        interval = bootstrap_interval([source.random() for _ in range(30)], draw, resamples=200)
        assert interval is not None
        held += interval.holds(0.5)
    assert 106 <= held <= 119


@pytest.mark.parametrize("groups", [(), ("a", "a", "b", "c"), ("a", "b", "b", "b")])
def test_with_every_sample_drawn_once_the_interval_is_exact(groups: tuple[str, ...]) -> None:
    values = [0.1, 0.9, 0.35, 0.6]
    members = [[0], [1], [2], [3]] if not groups else [[n for n in range(4) if groups[n] == g] for g in set(groups)]
    every = list(product(members, repeat=len(members)))
    means = [numpy.mean([values[place] for place in chain(*drawn)]) for drawn in every]
    samples = iter(product(range(len(members)), repeat=len(members)))
    drawn_means = resample_means(*sums_of(values, groups), lambda _below, _count: next(samples), len(every))
    found = percentile_interval(drawn_means)
    assert (found.low, found.high) == pytest.approx(tuple(numpy.quantile(means, (0.025, 0.975))))


def test_many_draws_come_to_the_interval_of_scipys() -> None:
    source = random.Random(21)
    values = [source.random() ** 2 for _ in range(40)]
    ours = bootstrap_interval(values, drawing(), resamples=20_000)
    theirs = scipy.stats.bootstrap((values,), numpy.mean, n_resamples=20_000, method="BCa", rng=3).confidence_interval
    assert ours is not None
    # An end drawn 20,000 times over is off by about sqrt(0.025 · 0.975 / 20,000) / density = 0.019 errors; both are.
    allowed = 4 * 2**0.5 * 0.019 * scipy.stats.sem(values)
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=allowed)


_GROUPED = st.lists(st.tuples(st.floats(0, 1), st.sampled_from(["", "", "a", "b"])), min_size=2, max_size=25)


@given(_GROUPED)
@settings(max_examples=60)
def test_an_interval_has_its_ends_in_order_and_among_the_values(drawn: list[tuple[float, str]]) -> None:
    values = [value for value, _ in drawn]
    found = bootstrap_interval(values, drawing(), groups=[group for _, group in drawn], resamples=50)
    if found is not None:
        assert min(values) - 1e-9 <= found.low <= found.high <= max(values) + 1e-9


def test_differences_too_small_for_their_powers_are_no_less_different() -> None:
    interval = bootstrap_interval([0.0, 1.6e-125, 0.0, 1.6e-125], drawing())
    assert interval is not None
    assert 0 <= interval.low <= interval.high <= 1.6e-125


def test_where_all_or_none_pass_the_interval_does_not_collapse() -> None:
    everything, nothing = wilson_interval(20, 20), wilson_interval(0, 5)
    assert (everything.low, everything.high) == pytest.approx((0.8388748419471804, 1.0))
    assert (nothing.low, nothing.high) == pytest.approx((0.0, 0.4344824645))
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


@given(st.integers(1, 10**7), st.floats(0, 1))
def test_any_share_of_any_count_is_scipys(count: int, share: float) -> None:
    passes = round(share * count)
    ours = wilson_interval(passes, count)
    low, high = scipy.stats.binomtest(passes, count).proportion_ci(0.95, method="wilson")
    assert (ours.low, ours.high) == pytest.approx((low, high), rel=1e-7, abs=1e-12)
    assert 0 <= ours.low <= passes / count <= ours.high <= 1
