import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sightline.evals.core.statistics.intervals import LEVEL, mean_of
from sightline.evals.core.statistics.paired import (
    compare_pairs,
    describe_difference,
    describe_excluded,
    describe_mean,
    finding_of,
    number,
    pluralize,
)
from tests.evals.core.chance import drawing


def said(before: list[float], after: list[float], groups: tuple[str, ...] = ()) -> tuple[str, str]:
    found = compare_pairs(before, after, drawing(), groups=groups)
    ends = (min(before + after), max(before + after))
    return finding_of(found), describe_difference(found, "A", "B", ends)


def test_numbers_are_short_and_never_minus_nought() -> None:
    assert [number(value) for value in (0.5, 1.0, -0.0001, 0.12345)] == ["0.5", "1", "0", "0.123"]
    assert (pluralize(1, "case"), pluralize(2, "case")) == ("1 case", "2 cases")


def test_mean_is_described_with_its_error_and_interval() -> None:
    assert describe_mean(mean_of([0.2, 0.9, 0.4, 1.0])) == (
        "Mean score 0.625 ± 0.193 (95 % interval 0.01 to 1), 4 cases."
    )
    assert "4 cases in 2 groups" in describe_mean(mean_of([0.2, 0.9, 0.4, 1.0], ["a", "a", "b", "b"]))


def test_a_mean_that_cannot_be_relied_on_says_so() -> None:
    assert describe_mean(None) == "No case has a score."
    assert describe_mean(mean_of([0.5])) == "Mean score 0.5, 1 case: too few to say how far off it may be."
    assert "say nothing about other cases" in describe_mean(mean_of([1.0, 1.0]))
    assert describe_mean(mean_of([0.0, 1.0, 0.0, 1.0], ["a", "a", "b", "b"])) == (
        "Every group scores 0.5 on average, 4 cases in 2 groups: that says nothing about other groups."
    )


def test_what_is_left_out_is_listed_with_how_far_it_could_move_the_mean() -> None:
    text = describe_excluded(["error", "not_graded", "not_graded"], (0.6, 0.9), "the mean score")
    assert text == (
        "3 results left out, and not counted as 0: 1 ended in an error, 2 could not be graded."
        " Had all of them failed, the mean score would be 0.6; had all passed, 0.9."
    )
    assert describe_excluded(["skipped"], None, "") == "1 result left out, and not counted as 0: 1 skipped."
    assert describe_excluded([], None, "") == ""


def test_clear_difference_is_described_with_its_direction() -> None:
    better = said([0.0] * 12, [0.9, 1.0] * 6)
    assert better[0] == "better"
    assert better[1].startswith("B scores 0.95 higher than A on 12 cases (95 % interval ")
    assert better[1].endswith(", p < 0.001: B is better.")
    assert said([0.9, 1.0] * 6, [0.0] * 12)[0] == "worse"


def test_a_difference_on_every_case_needs_no_interval() -> None:
    assert said([0.0] * 8, [1.0] * 8) == ("better", "B scores 1 higher than A on 8 cases, p = 0.008: B is better.")


def test_an_interval_that_holds_nought_cannot_tell_and_says_what_it_would_take() -> None:
    finding, text = said([0.2, 0.9, 0.4, 1.0, 0.65, 0.7, 0.1, 0.8], [0.5, 0.95, 0.4, 0.9, 0.85, 0.9, 0.6, 0.7])
    assert finding == "cannot_tell"
    assert "p = 0.141: the data cannot tell them apart. The interval holds 0." in text
    assert "would often be missed with so many cases; about " in text


def test_wins_that_losses_undo_are_the_same_on_average() -> None:
    finding, text = said([0.0, 1.0] * 4, [1.0, 0.0] * 4)
    assert finding == "cannot_tell"
    assert text.startswith("B and A score the same on average of 8 cases (")
    assert text.endswith("with so many cases.")


@pytest.mark.parametrize(
    ("before", "after", "groups", "few"),
    [
        ([0.0] * 5, [1.0] * 5, (), "Only 5 cases differ, too few"),
        ([0.0] * 40, [1.0] + [0.0] * 39, (), "Only 1 case differs, too few"),
        ([0.0] * 8, [1.0] * 8, ("x",) * 4 + ("y",) * 4, "Only 2 groups differ, too few"),
    ],
)
def test_too_few_differences_cannot_tell(
    before: list[float], after: list[float], groups: tuple[str, ...], few: str
) -> None:
    finding, text = said(before, after, groups)
    assert finding == "cannot_tell"
    assert few in text


@pytest.mark.parametrize(
    ("score", "reason"), [(1.0, "too easy"), (0.0, "too hard"), (0.5, "the data cannot tell them apart")]
)
def test_the_same_everywhere_says_whether_the_cases_are_to_blame(score: float, reason: str) -> None:
    finding, text = said([score] * 9, [score] * 9)
    assert finding == "cannot_tell"
    assert text.startswith("A and B score the same on each of 9 cases")
    assert reason in text


def test_no_common_case_is_no_comparison() -> None:
    assert finding_of(None) == "nothing"
    assert describe_difference(None, "A", "B", (0, 0)) == (
        "A and B have no graded case in common: nothing can be compared."
    )


def test_a_test_and_an_interval_that_disagree_decide_nothing() -> None:
    one_large = said([0.0] * 8, [0.02, 0.02, 0.02, 0.02, 0.02, 0.02, 0.02, 1.0])
    assert one_large[0] == "cannot_tell"
    assert "The exact test finds a difference, but the interval holds 0." in one_large[1]
    assert "too few" in said([0.0] * 5, [0.5, 0.6, 0.55, 0.5, 0.6])[1]
    narrow = said([0.0] * 7, [0.5, 0.5, 0.5, 0.5, 0.5, -0.05, -0.05])
    assert narrow[0] == "cannot_tell"
    assert "The interval leaves 0 out, but the exact test does not agree." in narrow[1]


_SCORES = st.sampled_from([0.0, 0.25, 1 / 3, 0.5, 0.9, 1.0])
_TRIPLES = st.tuples(_SCORES, _SCORES, st.sampled_from(["", "", "x", "y"]))


@given(st.lists(_TRIPLES, min_size=1, max_size=14))
@settings(max_examples=150)
def test_a_side_is_called_better_only_where_test_and_interval_say_so(
    drawn: list[tuple[float, float, str]],
) -> None:
    before, after = [each[0] for each in drawn], [each[1] for each in drawn]
    groups = [each[2] for each in drawn]
    found = compare_pairs(before, after, drawing(), groups=groups, resamples=0)
    assert found is not None
    finding = finding_of(found)
    interval = found.difference.interval
    is_clear = found.permutation.p <= 1 - LEVEL and not (interval is not None and interval.holds(0.0))
    assert (finding != "cannot_tell") == is_clear
    text = describe_difference(found, "A", "B", (min(before + after), max(before + after)))
    words = {"better": ": B is better.", "worse": ": B is worse.", "cannot_tell": "tell them apart"}
    assert [kind for kind, said in words.items() if said in text] == [finding]
    # Turned round, the same is said of the other.
    turned = finding_of(compare_pairs(after, before, drawing(), groups=groups, resamples=0))
    assert turned == {"better": "worse", "worse": "better"}.get(finding, finding)
