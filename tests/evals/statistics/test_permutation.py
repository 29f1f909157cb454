import random
from itertools import product

import pytest

from sightline.evals.statistics.permutation import Permutation, permutation_test
from sightline.evals.statistics.sign_test import sign_test
from tests.evals.chance import drawing

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
    stats = pytest.importorskip("scipy.stats")
    numpy = pytest.importorskip("numpy")

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
