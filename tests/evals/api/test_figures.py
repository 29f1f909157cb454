import pytest

from sightline.errors import Fault
from sightline.evals.api.showing import brief, compare_runs, figures, trend_of, whole, within
from sightline.evals.core.result import CaseObservation, CaseResult
from sightline.evals.core.run_state import CaseDone, CaseStarted, EvalBegan, EvalTaken, RunOptions
from sightline.evals.core.statistics.intervals import Interval
from sightline.evals.core.suite import Case, Suite
from sightline.evals.core.summary import summarize
from sightline.evals.core.target import TargetSpec
from sightline.evals.service.evaluation import RunSnapshot
from tests.evals.api.eval_desk import drawing
from tests.evals.core.rows import failed, fold_facts, row

BEGAN = EvalBegan(
    suite=Suite(name="demo", cases=(Case(id="a"), Case(id="b", tags=("slow",), group="g")), file="demo.yaml"),
    targets=(TargetSpec(name="a"), TargetSpec(name="z")),
    options=RunOptions(trials=2),
    at=5.0,
)


def test_what_has_no_result_waits_or_is_running() -> None:
    done = row("a", 1.0)
    standing = fold_facts([BEGAN, EvalTaken("here"), CaseStarted("a", "a"), CaseDone(done), CaseStarted("b", "z", 1)])
    shown = whole(RunSnapshot("e_1", "running", standing, 5), summarize(standing.results, drawing()), is_here=True)
    assert (shown.version, shown.why, shown.is_here, shown.done, shown.of) == (5, "", True, 1, 8)
    first, second = shown.matrix
    assert [trial.status for trial in first.cells[0].trials] == ["ok", "waiting"]
    assert (second.group, second.tags) == ("g", ("slow",))
    assert [trial.status for trial in second.cells[1].trials] == ["waiting", "running"]
    assert second.cells[1].trials[1].verdict is None


def test_what_is_not_known_is_not_nought() -> None:
    standing = fold_facts([BEGAN, EvalTaken("here"), CaseDone(failed("a", "broke\n off"))])
    shown = RunSnapshot("e_1", "interrupted", standing, 3)
    line = brief(shown, summarize(standing.results, drawing()))
    (told,) = line.summary
    assert (told.errors, told.mean, told.stderr, told.low, told.pass_rate) == (1, None, None, None, None)
    assert (told.cost, told.tokens, told.seconds) == (None, None, None)
    (trial, _) = whole(shown, (), is_here=False).matrix[0].cells[0].trials
    assert (trial.status, trial.reason) == ("execution_error", "broke off")


def test_the_interval_of_a_mean_of_scores_stays_between_0_and_1() -> None:
    assert within(Interval(-0.3, 1.4, 0.95, "t")) == (0.0, 1.0)
    assert within(None) == (None, None)
    told = figures(summarize([row("a", 1.0), row("b", 0.0)], drawing())[0])
    assert (told.low, told.high) == (0.0, 1.0)


NAMES = ("c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8")


def shown(run: str, *results: CaseResult, at: float = 1.0) -> RunSnapshot:
    targets = tuple(TargetSpec(name=name) for name in dict.fromkeys(each.target for each in results))
    suite = Suite(name="demo", cases=tuple(Case(id=name) for name in NAMES))
    began = EvalBegan(suite=suite, targets=targets or (TargetSpec(name="a"),), at=at)
    standing = fold_facts([began, EvalTaken(), *map(CaseDone, results)])
    return RunSnapshot(run, "ended", standing, standing.version)


def sent(case: str, score: float, exchange: str) -> CaseResult:
    return row(case, score, seen=CaseObservation(text="x", exchanges=(exchange,), request_sha256=exchange))


def test_the_second_run_is_measured_against_the_first() -> None:
    first = shown("e_1", *(sent(name, 0.0, f"x_{name}") for name in NAMES))
    second = shown("e_2", *(sent(name, 1.0, f"y_{name}") for name in NAMES[:7]), failed("c8"))
    told = compare_runs(first, second, ("", ""), drawing())
    assert (told.finding, told.wins, told.losses, told.ties, told.pairs) == ("better", 7, 0, 0, 7)
    assert (told.difference, told.mean_a, told.mean_b) == (1.0, 0.0, 1.0)
    assert told.test == "paired permutation test, exact"
    assert told.p == pytest.approx(2 / 2**7)
    assert told.passing is not None
    assert told.passing.wins == 7
    assert told.cases[0].flip == "now_passes"
    assert (told.cases[0].exchange_a, told.cases[0].exchange_b) == ("x_c1", "y_c1")
    assert told.cases[0].is_same_request is False
    assert (told.distributions.a, told.distributions.b) == ((0.0,) * 7, (1.0,) * 7)
    assert told.unpaired == ("c8",)
    assert told.bounds is not None
    assert [each.why for each in told.excluded] == ["error"]
    assert told.said[0].startswith("B scores 1 higher than A")


def test_inconclusive_comparison_is_reported() -> None:
    told = compare_runs(shown("e_1", row("c1", 1.0)), shown("e_2", row("c1", 0.0)), ("a", "a"), drawing())
    assert told.finding == "cannot_tell"
    assert "cannot tell" in told.said[0]
    nothing = compare_runs(shown("e_1", row("c1", 1.0)), shown("e_2", row("c2", 0.0)), ("", ""), drawing())
    assert (nothing.finding, nothing.p, nothing.test, nothing.wins, nothing.passing) == ("nothing", None, "", 0, None)
    assert (nothing.only_a, nothing.only_b) == (("c1",), ("c2",))


def test_intervals_and_bootstrap_test_are_given_when_available() -> None:
    scores = (0.11, 0.23, 0.37, 0.41, 0.53, 0.67, 0.71, 0.83)
    first = shown("e_1", *(row(name, score) for name, score in zip(NAMES, scores, strict=True)))
    second = shown("e_2", *(row(name, score / 2 + 0.2) for name, score in zip(NAMES, scores, strict=True)))
    told = compare_runs(first, second, ("", ""), drawing())
    assert told.low is not None
    assert told.high is not None
    assert told.bootstrap is not None
    assert told.low < told.difference < told.high  # type: ignore[operator]
    assert told.smallest is not None


def test_a_side_with_several_targets_has_to_be_named() -> None:
    two = shown("e_1", row("c1", 1.0), row("c1", 0.0, target="b"))
    with pytest.raises(Fault, match="e_1 has several targets: a, b") as caught:
        compare_runs(two, two, ("", "b"), drawing())
    assert caught.value.status == 400
    with pytest.raises(Fault, match="e_2 has no results yet"):
        compare_runs(two, shown("e_2"), ("a", ""), drawing())
    named = compare_runs(two, two, ("a", "b"), drawing())
    assert (named.a.target, named.b.target) == ("a", "b")
    assert "b scores" in named.said[0]


def test_runs_of_a_suite_follow_each_other() -> None:
    points = trend_of(
        [shown("e_2", row("c1", 0.0), at=2.0), shown("e_1", row("c1", 1.0)), shown("e_3", failed("c1"))], drawing()
    )
    assert [(point.run, point.mean) for point in points] == [("e_1", 1.0), ("e_3", None), ("e_2", 0.0)]
    assert (points[0].finding, points[0].change) == (None, "")
    assert points[2].finding in ("cannot_tell", "nothing")
