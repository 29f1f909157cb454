import random

import pytest

from sightline.evals.statistics.bootstrap import bca_interval, bootstrap_interval, percentile_interval, within_work
from tests.evals.chance import drawing

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


@pytest.mark.parametrize(("values", "groups"), [([0.3], ()), ([0.2, 0.4], ("a", "a")), ([1.0, 1.0, 1.0], ())])
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
    stats = pytest.importorskip("scipy.stats")
    numpy = pytest.importorskip("numpy")
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
