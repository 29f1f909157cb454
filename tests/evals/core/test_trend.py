from sightline.evals.core.summary import TrendRun, trends
from tests.evals.core.chance import drawing
from tests.evals.core.rows import row


def test_runs_follow_each_other_by_their_time() -> None:
    later = TrendRun("r2", 20.0, (row("x", 1.0), row("new", 0.0)))
    earlier = TrendRun("r1", 10.0, (row("x", 1.0),))
    (trend,) = trends([later, earlier], drawing())
    assert [point.run for point in trend.points] == ["r1", "r2"]
    assert trend.points[0].change is None


def test_a_new_hard_case_is_no_loss() -> None:
    earlier = TrendRun("r1", 10.0, tuple(row(f"c{n}", 1.0) for n in range(8)))
    later = TrendRun("r2", 20.0, (*earlier.results, row("new", 0.0)))
    (trend,) = trends([earlier, later], drawing())
    point = trend.points[1]
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
    first, second = trends(runs, drawing())
    assert (first.target, [point.run for point in first.points]) == ("a", ["r1", "r3"])
    assert first.points[1].change is not None
    assert first.points[1].change.before == "r1"
    assert [point.run for point in second.points] == ["r1", "r2"]


def test_no_runs_have_no_trend() -> None:
    assert trends([], drawing()) == ()
