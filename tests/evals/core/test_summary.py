import pytest

from sightline.evals.core.comparison import TrendRun, trend_points
from sightline.evals.core.result import CaseObservation, CaseResult, CaseScore, Score
from sightline.evals.core.statistics.intervals import wilson_interval
from sightline.evals.core.summary import Amount, TargetSummary, amount_of, costs_of, summarize
from sightline.model.reply import Usage
from tests.evals.core.chance import drawing
from tests.evals.core.rows import failed, row


def one(results: list[CaseResult]) -> TargetSummary:
    (summary,) = summarize(results, drawing())
    return summary


def test_cases_tried_once_have_wilsons_interval() -> None:
    summary = one([row(f"c{n}", 1.0 if n < 7 else 0.0) for n in range(20)])
    assert (summary.cases, summary.results, summary.passed, summary.failed) == (20, 20, 7, 13)
    assert summary.pass_rate == 0.35
    assert summary.pass_interval == wilson_interval(7, 20)
    assert summary.score is not None
    assert summary.score.value == 0.35
    assert summary.score_bootstrap is not None
    assert summary.tries == ()


def test_cases_of_two_suites_may_have_the_same_name() -> None:
    score = Score(name="g", type="equals", verdict="pass", score=1.0)
    summary = one([row("x", 1.0, scores=(score,)), row("x", 0.0, suite="other", scores=(score,))])
    assert (summary.cases, summary.results, summary.passed, summary.failed) == (2, 2, 1, 1)
    assert summary.tries == ()
    assert summary.graders[0].mean is not None
    assert summary.graders[0].mean.count == 2


def test_grouped_cases_and_several_tries_have_students_interval() -> None:
    grouped = one([row("a", 1.0, group="g"), row("b", 0.0, group="g"), row("c", 1.0), row("d", 1.0)])
    assert grouped.pass_interval is not None
    assert grouped.pass_interval.method == "t"
    tried = one([row(case, score, trial=n) for case, scores in TRIES.items() for n, score in enumerate(scores)])
    assert tried.pass_interval is not None
    assert tried.pass_interval.method == "t"
    assert tried.pass_rate == 0.5
    assert [(each.k, each.any.value, each.all.value) for each in tried.tries] == [(2, 0.75, 0.25)]


TRIES = {"a": (1.0, 1.0), "b": (1.0, 0.0), "c": (0.0, 0.0), "d": (1.0, 0.0)}


def test_groups_that_all_pass_keep_an_interval() -> None:
    summary = one([row("a", 1.0, group="g"), row("b", 1.0, group="g"), row("c", 1.0, group="h")])
    assert summary.pass_interval == wilson_interval(2, 2)
    even = one([row(case, score, trial=n) for case in "ab" for n, score in enumerate((1.0, 0.0))])
    assert (even.pass_rate, even.pass_interval) == (0.5, None)


def test_errors_and_ungraded_answers_are_reported_and_excluded_from_score() -> None:
    summary = one([row("a", 1.0), row("b", 0.5), failed("c"), row("d", None)])
    assert summary.score is not None
    assert summary.score.value == 0.75
    assert [(each.case, each.why) for each in summary.excluded] == [("c", "error"), ("d", "not_graded")]
    assert (summary.count_excluded("error"), summary.count_excluded("skipped")) == (1, 0)
    assert summary.bounds == (0.375, 0.875)
    assert summary.said[1] == (
        "2 results left out, and not counted as 0: 1 ended in an error, 1 could not be graded."
        " Had all of them failed, the mean score would be 0.375; had all passed, 0.875."
    )


def test_a_run_of_errors_has_no_mean() -> None:
    summary = one([failed("a"), failed("b")])
    assert (summary.score, summary.pass_rate, summary.pass_interval, summary.score_bootstrap) == (None,) * 4
    assert summary.said[0] == "No case has a score."
    assert summary.bounds == (0.0, 1.0)
    assert summary.seconds is None


def test_what_is_not_known_is_counted_apart_from_nought() -> None:
    told = CaseObservation(usage=Usage(input_tokens=10, output_tokens=3), cost=0.5, seconds=2.0)
    partly = CaseObservation(usage=Usage(input_tokens=5), seconds=4.0)
    summary = one([row("a", 1.0, seen=told), row("b", 1.0, seen=partly), row("c", 1.0)])
    assert summary.input_tokens == Amount(None, 2, 1, 15)
    assert summary.output_tokens == Amount(None, 1, 2, 3)
    assert summary.cost == Amount(None, 1, 2, 0.5)
    assert summary.seconds is not None
    assert (summary.seconds.mean, summary.seconds.median, summary.seconds.total) == (3.0, 3.0, 6.0)
    assert summary.seconds.p95 == pytest.approx(3.9)


def test_a_case_that_was_not_sent_has_no_tokens_and_no_cost_to_be_known() -> None:
    told = CaseObservation(usage=Usage(input_tokens=10, output_tokens=3))
    unsent = CaseObservation(requests=0, cost=0.0, error="there is no file")
    lost = row("b", None, verdict="not_graded", status="execution_error", seen=unsent)
    summary = one([row("a", 1.0, seen=told), lost])
    assert (summary.input_tokens, summary.output_tokens) == (Amount(10, 1, 0, 10), Amount(3, 1, 0, 3))
    assert summary.cost == Amount(None, 0, 1, 0.0)
    unknown = row(
        "b", None, verdict="not_graded", status="execution_error", seen=CaseObservation(requests=0, error="lost")
    )
    assert one([unknown]).cost == Amount(None, 0, 1, 0.0)


def test_cached_answers_cost_nothing_and_skipped_cases_say_nothing() -> None:
    seen = CaseObservation(usage=Usage(input_tokens=10, output_tokens=3), cost=0.5, seconds=2.0)
    skipped = row("c", None, verdict="skip", status="skipped")
    summary = one([row("a", 1.0, seen=seen, cached=True), row("b", 1.0, seen=seen), skipped])
    assert summary.cached == 1
    assert summary.cost == Amount(0.5, 1, 0, 0.5)
    assert summary.input_tokens == Amount(20, 2, 0, 20)
    assert summary.seconds is not None
    assert summary.seconds.total == 2.0


def test_graders_are_summed_up_over_cases_and_turns() -> None:
    inner = Score(name="judge", type="llm-grader", verdict="pass", score=1.0, cost=0.01)
    exact = Score(name="exact", type="equals", verdict="fail", score=0.0)
    lost = Score(name="judge", type="llm-grader", verdict="not_graded", usage=Usage(input_tokens=1))
    mute = Score(name="exact", type="equals", verdict="pass")
    both = Score(name="both", type="composite", verdict="pass", score=0.8, scores=(inner,))
    first = row("a", 1.0, scores=(exact, both))
    second = row("b", 1.0, scores=(mute, lost))
    talk = CaseResult(
        case="c",
        target="a",
        status="ok",
        score=CaseScore(verdict="pass", score=1.0, turns=(CaseScore(verdict="pass", score=1.0, scores=(inner,)),)),
        observation=CaseObservation(),
    )
    summary = one([first, second, talk])
    shown = {each.name: (each.graded, each.passes, each.not_graded) for each in summary.graders}
    assert shown == {"exact": (2, 1, 0), "both": (1, 1, 0), "judge": (1, 1, 1)}
    assert summary.graders[0].mean is not None
    assert (summary.graders[0].mean.value, summary.graders[0].mean.count) == (0.0, 1)
    assert summary.grading_cost == Amount(None, 2, 1, 0.02)


def test_each_target_has_its_summary() -> None:
    found = summarize([row("a", 1.0, target="x"), row("a", 0.0, target="y"), row("a", 0.6, target="y")], drawing())
    assert [(each.target, each.pass_rate, each.results) for each in found] == [("x", 1.0, 1), ("y", 1.0, 1)]


def test_number_of_unknown_costs_is_reported() -> None:
    told = CaseObservation(cost=0.5)
    asked = Score(name="judge", type="llm-grader", verdict="pass", score=1.0, exchanges=("x",))
    summary = one([row("a", 1.0, seen=told), row("b", 1.0, scores=(asked,))])
    assert summary.said[-2:] == ("What 1 of 2 answers cost is not known.", "What 1 of 1 judgement cost is not known.")
    assert amount_of(()) == Amount(0.0, 0, 0, 0.0)  # nothing was asked
    assert amount_of((1.0, 2.0)) + amount_of((4.0,)) == amount_of((1.0, 2.0, 4.0))
    assert amount_of((1.0, None)) + amount_of((4.0,)) == amount_of((1.0, None, 4.0))


@pytest.mark.parametrize(("cached", "spent"), [(False, 8.5), (True, 7.5)])
def test_a_result_cost_its_answer_and_its_judges_also_those_inside_others(cached: bool, spent: float) -> None:
    def score(cost: float | None, *inner: Score) -> Score:
        return Score(name="n", type="t", verdict="pass", cost=cost, scores=inner)

    turn = CaseScore(verdict="pass", scores=(score(4.0),))
    told = CaseScore(verdict="pass", scores=(score(1.0, score(0.5)), score(None, score(2.0))), turns=(turn,))
    result = CaseResult(
        case="a", target="t", status="ok", score=told, observation=CaseObservation(cost=1.0), cached=cached
    )
    assert amount_of(costs_of(result)).total == spent
    assert costs_of(row("b", None, verdict="skip", status="skipped")) == ()


def test_runs_follow_each_other_by_their_time() -> None:
    later = TrendRun("r2", 20.0, (row("x", 1.0), row("new", 0.0)))
    earlier = TrendRun("r1", 10.0, (row("x", 1.0),))
    points = list(trend_points([later, earlier], drawing()))
    assert [point.run for point in points] == ["r1", "r2"]
    assert points[0].change is None


def test_a_new_hard_case_is_no_loss() -> None:
    earlier = TrendRun("r1", 10.0, tuple(row(f"c{n}", 1.0) for n in range(8)))
    later = TrendRun("r2", 20.0, (*earlier.results, row("new", 0.0)))
    _, point = trend_points([earlier, later], drawing())
    assert point.summary.score is not None
    assert point.summary.score.value < 1
    assert point.change is not None
    assert point.change.scores is not None
    assert point.change.scores.difference.value == 0
    assert point.change.only_after == ("new",)
    assert "r1 and r2 score the same" in point.change.said[0]


def test_a_target_is_compared_with_the_last_run_that_had_it() -> None:
    runs = [
        TrendRun("r1", 1.0, (row("x", 0.0), row("x", 1.0, target="b"))),
        TrendRun("r2", 2.0, (row("x", 0.5, target="b"),)),
        TrendRun("r3", 3.0, (row("x", 1.0),)),
    ]
    points = [(each.target, each.run, each.change and each.change.before) for each in trend_points(runs, drawing())]
    assert points == [("a", "r1", None), ("b", "r1", None), ("b", "r2", "r1"), ("a", "r3", "r1")]
