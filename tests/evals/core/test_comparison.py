import pytest

from sightline.errors import Fault
from sightline.evals.core.comparison import GraderPair, RunComparison, choose_target, compare
from sightline.evals.core.result import CaseObservation, CaseResult, Score
from tests.evals.core.chance import drawing
from tests.evals.core.rows import failed, row


def rows(scores: dict[str, float], target: str = "a") -> list[CaseResult]:
    return [row(case, score, target=target) for case, score in scores.items()]


def compared(before: list[CaseResult], after: list[CaseResult], tolerance: float = 0.0) -> RunComparison:
    names = ("the first", "the second")
    return compare(before, after, drawing(), targets=("a", "a"), names=names, tolerance=tolerance)


def test_a_better_run_is_found_better() -> None:
    found = compared(rows({f"c{n}": 0.0 for n in range(9)}), rows({f"c{n}": 1.0 for n in range(9)}))
    assert found.finding == "better"
    assert found.said == ("the second scores 1 higher than the first on 9 cases, p = 0.004: the second is better.",)
    assert {pair.flip for pair in found.pairs} == {"now_passes"}
    assert (found.before_mean, found.after_mean, found.gain) == (0.0, 1.0, 1.0)
    assert found.verdicts is not None
    assert found.verdicts.sign_p == 2 / 2**9


def test_cases_are_matched_by_name_and_tries_are_averaged() -> None:
    before = [row("x", 0.2), row("x", 0.6, trial=1), row("y", 0.9)]
    after = [row("y", 0.9), row("x", 0.8)]
    found = compared(before, after)
    assert [(pair.case, pair.outcome) for pair in found.pairs] == [("x", "win"), ("y", "tie")]
    assert found.pairs[0].difference == pytest.approx(0.4)
    assert found.pairs[0].flip == ""


def test_cases_of_several_suites_with_the_same_name_are_compared_with_their_own_suite() -> None:
    before = [
        row("greeting", 0.0, suite="first"),
        row("greeting", 1.0, suite="second"),
        row("other", 1.0, suite="first"),
    ]
    after = [
        row("other", 1.0, suite="first"),
        row("greeting", 1.0, suite="second"),
        row("greeting", 1.0, suite="first"),
    ]
    found = compared(before, after)
    assert [(pair.case, pair.difference) for pair in found.pairs] == [
        ("first: greeting", 1.0),
        ("second: greeting", 0.0),
        ("other", 0.0),
    ]


def test_cases_are_matched_by_name_if_their_suites_have_different_names() -> None:
    found = compared([row("x", 0.2, suite="before it was renamed")], [row("x", 0.6, suite="renamed")])
    assert [pair.case for pair in found.pairs] == ["x"]


def test_a_case_that_now_fails_is_marked() -> None:
    found = compared(rows({"x": 1.0, "y": 1.0}), rows({"x": 0.2, "y": 0.9}))
    assert [(pair.flip, pair.outcome) for pair in found.pairs] == [("now_fails", "loss"), ("", "loss")]
    assert found.gain is None


def test_a_tolerance_makes_small_differences_ties() -> None:
    found = compared(rows({"x": 0.5}), rows({"x": 0.55}), tolerance=0.1)
    assert found.pairs[0].outcome == "tie"
    assert found.scores is not None
    assert (found.scores.ties, found.scores.difference.value) == (1, pytest.approx(0.05))


def test_cases_of_one_side_only_are_listed() -> None:
    found = compared(rows({"x": 1.0, "old": 1.0}), rows({"x": 1.0} | {f"n{n}": 1.0 for n in range(6)}))
    assert found.only_before == ("old",)
    assert found.only_after == ("n0", "n1", "n2", "n3", "n4", "n5")
    assert found.said[1:] == (
        "Only the first has old: not compared.",
        "Only the second has n0, n1, n2, n3, n4, …: not compared.",
    )


def test_what_one_side_could_not_grade_is_no_pair_and_bounds_the_difference() -> None:
    before = rows({"x": 0.5, "y": 1.0, "z": 0.25})
    after = [row("x", 0.5), row("y", None, reason="no JSON"), failed("z")]
    found = compared(before, after)
    assert found.unpaired == ("y", "z")
    assert [(each.case, each.why) for each in found.excluded] == [("y", "not_graded"), ("z", "error")]
    assert found.bounds == pytest.approx((-1.25 / 3, 0.75 / 3))
    assert found.said[-1] == (
        "2 results left out, and not counted as 0: 1 ended in an error, 1 could not be graded."
        " Had all of it gone against the second, the difference would be -0.417; for it, +0.250."
    )


def test_an_exclusion_of_a_case_that_the_other_side_lacks_has_no_bounds() -> None:
    found = compared([*rows({"x": 1.0}), failed("old")], rows({"x": 1.0}))
    assert found.bounds is None
    assert found.said[-1] == "1 result left out, and not counted as 0: 1 ended in an error."


def test_nothing_in_common_says_so() -> None:
    found = compared(rows({"x": 1.0}), rows({"y": 1.0}))
    assert (found.finding, found.scores, found.before_mean, found.after_mean) == ("nothing", None, None, None)
    assert "no graded case in common" in found.said[0]


def test_groups_count_as_one() -> None:
    before = [row(f"c{n}", 0.0, group="g") for n in range(8)]
    after = [row(f"c{n}", 1.0, group="g") for n in range(8)]
    assert compared(before, after).finding == "cannot_tell"


def test_two_targets_of_one_run_can_be_compared() -> None:
    run = rows({"x": 0.0}) + rows({"x": 1.0}, "b")
    found = compare(run, run, drawing(), targets=("a", "b"), names=("old", "new"))
    assert (found.before, found.after, found.targets) == ("old", "new", ("a", "b"))


def test_which_target_is_meant_has_to_be_clear() -> None:
    run = rows({"x": 0.0}, "small") + rows({"x": 1.0}, "large")
    assert choose_target(run, "large", "A", "--target-a") == "large"
    assert choose_target(rows({"x": 0.0}, "small"), "", "A", "--target-a") == "small"
    with pytest.raises(Fault, match="A has several targets: small, large") as caught:
        choose_target(run, "", "A", "--target-a")
    assert (caught.value.status, caught.value.hint) == (400, "Say which with --target-a.")
    with pytest.raises(Fault, match="B has no results yet") as caught:
        choose_target([], "", "B", "--target-b")
    assert caught.value.status == 409
    with pytest.raises(Fault, match='the run has no target "larg"') as caught:
        compare(run, run, drawing(), targets=("small", "larg"), names=("A", "B"))
    assert "large" in caught.value.hint


def test_pairs_tell_what_each_grader_gave_and_whether_request_and_answer_are_the_same() -> None:
    exact = Score(name="exact", type="equals", verdict="pass", score=1.0)
    wrong = Score(name="exact", type="equals", verdict="fail", score=0.0)
    judge = Score(name="judge", type="llm-grader", verdict="not_graded")
    asked = CaseObservation(text="4", request_sha256="abc")
    before = [row("x", 1.0, scores=(exact, judge), seen=asked), row("y", 1.0)]
    after = [row("x", 0.0, scores=(wrong,), seen=CaseObservation(text="5", request_sha256="abc")), row("y", 1.0)]
    first, second = compared(before, after).pairs
    assert first.graders == (GraderPair("exact", 1.0, 0.0), GraderPair("judge", None, None))
    assert (first.is_same_request, first.is_same_answer) == (True, False)
    assert (second.is_same_request, second.is_same_answer) == (None, True)


def test_a_try_without_a_score_leaves_open_whether_a_case_flipped() -> None:
    tried = [row("a", 1.0), row("a", None, trial=1)]
    found = compared([row("a", 0.0)], tried)
    assert [(pair.flip, pair.outcome) for pair in found.pairs] == [("", "win")]
    again = compared(tried, [row("a", 0.0)])
    assert [pair.flip for pair in again.pairs] == [""]
