from sightline.evals.api.figures import brief, figures, whole, within
from sightline.evals.core.options import RunOptions
from sightline.evals.core.run_state import CaseDone, CaseStarted, EvalBegan, EvalTaken, fold_facts
from sightline.evals.core.statistics.intervals import Interval
from sightline.evals.core.suite import Case, Suite
from sightline.evals.core.summary import summarize
from sightline.evals.core.target import TargetSpec
from sightline.evals.service.evaluation import RunSnapshot
from tests.evals.api.eval_desk import drawing
from tests.evals.core.rows import failed, row

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
