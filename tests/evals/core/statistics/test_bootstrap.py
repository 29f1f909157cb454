import random
from itertools import chain, product

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from sightline.evals.core.statistics.intervals import bca_interval, bootstrap_interval, percentile_interval, within_work
from tests.evals.core.chance import drawing

VALUES = [0.2, 0.9, 0.4, 1.0, 0.65, 0.7, 0.1, 0.8]
GROUPS = ["a", "a", "b", "b", "b", "c", "d", "d"]


def test_the_same_chance_gives_the_same_interval() -> None:
    assert bootstrap_interval(VALUES, drawing()) == bootstrap_interval(VALUES, drawing())


def test_an_interval_lies_around_the_mean_and_within_the_values() -> None:
    for method in ("bca", "percentile"):
        interval = bootstrap_interval(VALUES, drawing(), method=method)
        assert interval is not None
        assert interval.method == method
        assert 0.1 < interval.low < 0.59375 < interval.high < 1.0


def test_groups_are_drawn_whole() -> None:
    asked: list[tuple[int, int]] = []

    def draw(below: int, count: int) -> list[int]:
        asked.append((below, count))
        return [place % below for place in range(count)]

    # Every group is drawn once each time, so every mean is the mean itself.
    interval = bootstrap_interval(VALUES, draw, groups=GROUPS, resamples=20, method="percentile")
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
    assert bca_interval([0.1, 0.2, 0.3], 0.9, [0.1, 0.2], 0.95) == percentile_interval([0.1, 0.2, 0.3], 0.95)


def test_means_that_do_not_depend_on_any_cluster_need_no_acceleration() -> None:
    means = [0.1, 0.2, 0.3, 0.4, 0.5]
    corrected, plain = bca_interval(means, 0.3, [0.3, 0.3], 0.95), percentile_interval(means, 0.95)
    assert (corrected.low, corrected.high) == pytest.approx((plain.low, plain.high))


def test_scipy_makes_the_same_intervals_of_the_same_means() -> None:
    source = random.Random(11)
    for count in (5, 12, 60):
        values = [source.random() ** 3 for _ in range(count)]
        without = [(sum(values) - value) / (count - 1) for value in values]
        for method, level in (("percentile", 0.95), ("BCa", 0.95), ("BCa", 0.8)):
            drawn = stats.bootstrap(
                (values,), numpy.mean, n_resamples=999, method=method, confidence_level=level, rng=1, vectorized=True
            )
            means = [float(mean) for mean in drawn.bootstrap_distribution]
            ours = (
                percentile_interval(means, level)
                if method == "percentile"
                else bca_interval(means, sum(values) / count, without, level)
            )
            assert (ours.low, ours.high) == pytest.approx(tuple(drawn.confidence_interval), rel=1e-9)


def test_intervals_hold_the_truth_about_as_often_as_they_say() -> None:
    source = random.Random(5)
    draw = drawing(6)
    held = 0
    for _ in range(120):
        interval = bootstrap_interval([source.random() for _ in range(30)], draw, level=0.9, resamples=200)
        assert interval is not None
        held += interval.holds(0.5)
    assert 96 <= held <= 118


@pytest.mark.parametrize("groups", [(), ("a", "a", "b", "c"), ("a", "b", "b", "b")])
def test_with_every_sample_drawn_once_the_interval_is_exact(groups: tuple[str, ...]) -> None:
    values = [0.1, 0.9, 0.35, 0.6]
    members = [[0], [1], [2], [3]] if not groups else [[n for n in range(4) if groups[n] == g] for g in set(groups)]
    every = list(product(members, repeat=len(members)))
    means = [numpy.mean([values[place] for place in chain(*drawn)]) for drawn in every]
    samples = iter(product(range(len(members)), repeat=len(members)))
    found = bootstrap_interval(
        values, lambda _below, _count: next(samples), groups=groups, method="percentile", resamples=len(every)
    )
    assert found is not None
    assert (found.low, found.high) == pytest.approx(tuple(numpy.quantile(means, (0.025, 0.975))))


def test_many_draws_come_to_the_interval_of_scipys() -> None:
    source = random.Random(21)
    values = [source.random() ** 2 for _ in range(40)]
    ours = bootstrap_interval(values, drawing(), resamples=20_000)
    theirs = stats.bootstrap((values,), numpy.mean, n_resamples=20_000, method="BCa", rng=3).confidence_interval
    assert ours is not None
    # An end drawn 20,000 times over is off by about sqrt(0.025 · 0.975 / 20,000) / density = 0.019 errors; both are.
    allowed = 4 * 2**0.5 * 0.019 * stats.sem(values)
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=allowed)


_GROUPED = st.lists(st.tuples(st.floats(0, 1), st.sampled_from(["", "", "a", "b"])), min_size=2, max_size=25)


@given(_GROUPED, st.sampled_from([0.5, 0.9, 0.95, 0.9999]))
@settings(max_examples=60)
def test_an_interval_has_its_ends_in_order_and_among_the_values(drawn: list[tuple[float, str]], level: float) -> None:
    values = [value for value, _ in drawn]
    found = bootstrap_interval(values, drawing(), groups=[group for _, group in drawn], level=level, resamples=50)
    if found is not None:
        assert min(values) - 1e-9 <= found.low <= found.high <= max(values) + 1e-9


def test_differences_too_small_for_their_powers_are_no_less_different() -> None:
    interval = bootstrap_interval([0.0, 1.6e-125, 0.0, 1.6e-125], drawing())
    assert interval is not None
    assert 0 <= interval.low <= interval.high <= 1.6e-125
