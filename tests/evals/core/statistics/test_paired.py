import random
from fractions import Fraction
from itertools import product

import numpy
import pytest
import scipy
from hypothesis import given, settings
from hypothesis import strategies as st

from sightline.evals.core.statistics.intervals import mean_of
from sightline.evals.core.statistics.paired import (
    Permutation,
    cases_needed,
    compare_pairs,
    least_p,
    permutation_test,
    sign_test,
    smallest_effect,
)
from tests.evals.core.chance import drawing


def test_thousands_of_cases_are_no_trouble() -> None:
    assert 0 < sign_test(1400, 1600) < 0.001
    assert sign_test(20_000, 20_400) == pytest.approx(scipy.stats.binomtest(20_000, 40_400).pvalue, rel=1e-9)


def test_five_cases_that_all_differ_alike_are_too_few() -> None:
    assert [least_p(units) for units in (0, 1, 5, 6)] == [1.0, 1.0, 0.0625, 0.03125]
    assert least_p(6) == sign_test(6, 0)


def test_it_is_mcnemars_exact_test() -> None:
    for wins, losses in ((0, 1), (4, 9), (30, 12), (200, 251)):
        assert sign_test(wins, losses) == pytest.approx(scipy.stats.binomtest(wins, wins + losses).pvalue, rel=1e-9)
        mcnemar = 2 * scipy.stats.binom.cdf(min(wins, losses), wins + losses, 0.5)
        assert sign_test(wins, losses) == pytest.approx(mcnemar, rel=1e-9)


@given(st.integers(0, 400), st.integers(0, 400))
def test_any_count_is_scipys(wins: int, losses: int) -> None:
    expected = scipy.stats.binomtest(wins, wins + losses).pvalue if wins + losses else 1.0
    assert sign_test(wins, losses) == sign_test(losses, wins) == pytest.approx(expected, rel=1e-9)


BEFORE = [0.2, 0.9, 0.4, 1.0, 0.65, 0.7, 0.1, 0.8]
AFTER = [0.5, 0.95, 0.4, 0.9, 0.85, 0.9, 0.6, 0.7]
DIFFERENCES = [after - before for before, after in zip(BEFORE, AFTER, strict=True)]


def test_few_sums_are_all_counted() -> None:
    assert permutation_test(DIFFERENCES, drawing()) == Permutation(0.140625, "exact")


def test_for_verdicts_it_is_the_sign_test() -> None:
    found = permutation_test([1.0] * 40 + [-1.0] * 22 + [0.0] * 100, drawing())
    assert found.method == "exact"
    assert found.p == pytest.approx(sign_test(40, 22))


def test_a_group_changes_its_sign_as_one() -> None:
    together = permutation_test([0.5] * 8, drawing(), groups=["a"] * 4 + ["b"] * 4)
    assert (together.p, permutation_test([0.5] * 8, drawing()).p) == (0.5, 2 / 256)


def counted(differences: list[Fraction]) -> Fraction:
    """The probability, with every sign tried and no rounding."""
    sums = [
        abs(sum(sign * each for sign, each in zip(signs, differences, strict=True)))
        for signs in product((1, -1), repeat=len(differences))
    ]
    return Fraction(sum(each >= abs(sum(differences)) for each in sums), len(sums))


def test_thirds_that_make_the_same_sum_are_a_tie() -> None:
    # 1 - 2/3 - 1/3 and its kind are nought only where thirds are not rounded.
    differences = [Fraction(each, 3) for each in (-3, 2, 2, 2, -1, 0, 0)]
    assert counted(differences) == Fraction(13, 16)
    assert permutation_test([float(each) for each in differences], drawing()) == Permutation(13 / 16, "exact")


@given(st.integers(1, 12), st.lists(st.integers(-12, 12), min_size=1, max_size=8))
@settings(max_examples=80)
def test_the_means_of_any_number_of_tries_are_counted_exactly(tries: int, passes: list[int]) -> None:
    differences = [Fraction(max(-tries, min(tries, each)), tries) for each in passes]
    # As they come about: one mean less another.
    told = [sum([1 / tries] * max(0, int(each * tries))) - float(max(0, -each)) for each in differences]
    assert permutation_test(told, drawing()).p == float(counted(differences))


def test_three_tries_of_many_cases_are_still_counted() -> None:
    found = permutation_test([1 / 3, -1 / 3, 2 / 3] * 40, drawing())
    assert found.method == "exact"


def test_scores_that_are_no_simple_fractions_tie_but_for_rounding() -> None:
    odd = [2**0.5 / 3, 3**0.5 / 5]
    differences = [odd[0], -odd[1], odd[1] - odd[0] + 1e-13, 0.25]
    fractions = [Fraction(each) for each in (*differences[:2], odd[1] - odd[0], 0.25)]
    nearly = [Fraction(round(each * 10**10)) for each in fractions]
    assert permutation_test(differences, drawing()).p == float(counted(nearly))
    # The parts would have to be too small for all of these together.
    assert permutation_test([1 / 997, 1 / 991, 1 / 983], drawing()) == Permutation(0.25, "exact")


def test_no_difference_is_no_surprise() -> None:
    assert permutation_test([0.0, 0.0], drawing()).p == 1.0
    assert permutation_test([0.1 + 0.2 - 0.3, 0.0], drawing()).p == 1.0


def test_many_sums_are_drawn_from_and_the_observed_one_counts() -> None:
    source = random.Random(4)
    alike = [source.gauss(0.0, 0.1) for _ in range(60)]
    apart = [source.gauss(0.2, 0.1) for _ in range(60)]
    found = permutation_test(apart, drawing(), resamples=499)
    assert found == Permutation(1 / 500, "monte_carlo", 499)
    assert permutation_test(alike, drawing(), resamples=499).p > 0.05


def test_scipy_agrees() -> None:
    def difference(one: object, other: object) -> object:
        return numpy.mean(one) - numpy.mean(other)

    source = random.Random(9)
    for count in (4, 7, 11):
        before = [round(source.random(), 2) for _ in range(count)]
        after = [round(source.random(), 2) for _ in range(count)]
        expected = scipy.stats.permutation_test(
            (after, before), difference, permutation_type="samples", n_resamples=numpy.inf, vectorized=False
        )
        ours = permutation_test([b - a for a, b in zip(before, after, strict=True)], drawing())
        assert ours.p == pytest.approx(expected.pvalue, rel=1e-9)


def test_half_the_effect_needs_four_times_the_cases() -> None:
    assert cases_needed(smallest_effect(0.05) * 1.0000001, 0.05, 100) == 100
    assert cases_needed(-smallest_effect(0.05) / 2, 0.05, 100) in (400, 401)


def test_smallest_effect_has_the_requested_power() -> None:
    for error in (0.05, 0.02, 0.3):
        found = scipy.stats.norm(smallest_effect(error), error).sf(scipy.stats.norm(0, error).isf(0.025))
        assert found == pytest.approx(0.8, rel=1e-9)


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
    strict, lenient = (compare_pairs(BEFORE, AFTER, drawing()), compare_pairs(BEFORE, AFTER, drawing(), tolerance=0.15))
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
    found = compare_pairs(before, after, drawing(), resamples=0)
    assert found is not None
    interval = found.difference.interval
    assert interval is not None
    expected = scipy.stats.ttest_rel(after, before).confidence_interval(0.95)
    assert (interval.low, interval.high) == pytest.approx(tuple(expected), rel=1e-9)


def test_groups_that_all_differ_alike_have_no_interval_and_need_no_more_cases() -> None:
    found = compare_pairs([0.0] * 4, [0.1, 0.3, 0.1, 0.3], drawing(), groups=["x", "x", "y", "y"])
    assert found is not None
    assert found.difference.value == pytest.approx(0.2)
    assert (found.difference.error, found.difference.interval) == (0.0, None)
    assert (found.bootstrap, found.smallest, found.needed) == (None, None, None)
