import random
from fractions import Fraction
from itertools import product

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from sightline.evals.core.statistics.paired import Permutation, permutation_test, sign_test
from tests.evals.core.chance import drawing

BEFORE = [0.2, 0.9, 0.4, 1.0, 0.65, 0.7, 0.1, 0.8]
AFTER = [0.5, 0.95, 0.4, 0.9, 0.85, 0.9, 0.6, 0.7]
DIFFERENCES = [after - before for before, after in zip(BEFORE, AFTER, strict=True)]


def test_few_sums_are_all_counted() -> None:
    assert permutation_test(DIFFERENCES, drawing()) == Permutation(0.140625, "exact")


def test_counting_every_sign_by_hand_gives_the_same() -> None:
    source = random.Random(2)
    differences = [source.uniform(-0.3, 0.5) for _ in range(9)]
    sums = [
        abs(sum(s * d for s, d in zip(signs, differences, strict=True)))
        for signs in product((1, -1), repeat=9)
    ]  # fmt: skip
    share = sum(each >= abs(sum(differences)) - 1e-12 for each in sums) / len(sums)
    assert permutation_test(differences, drawing()).p == pytest.approx(share)


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
        expected = stats.permutation_test(
            (after, before), difference, permutation_type="samples", n_resamples=numpy.inf, vectorized=False
        )
        ours = permutation_test([b - a for a, b in zip(before, after, strict=True)], drawing())
        assert ours.p == pytest.approx(expected.pvalue, rel=1e-9)
