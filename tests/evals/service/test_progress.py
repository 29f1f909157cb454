from sightline.evals.core.facts import CaseDone, EvalBegan
from sightline.evals.core.observation import CaseObservation
from sightline.evals.core.options import RunOptions
from sightline.evals.core.result import CaseResult, Status
from sightline.evals.core.run_state import EvalState
from sightline.evals.core.score import CaseScore, Verdict
from sightline.evals.core.suite import Case, Suite
from sightline.evals.core.target import TargetSpec
from sightline.evals.service.progress import Meter
from sightline.evals.service.target import Spending
from tests.fake_clock import FakeClock


def result(trial: int, status: Status = "ok", verdict: Verdict = "pass", *, cached: bool = False) -> CaseResult:
    score = CaseScore(verdict=verdict)
    return CaseResult(
        case="a", target="t", trial=trial, status=status, score=score, observation=CaseObservation(), cached=cached
    )


def test_the_time_that_is_left_is_told_by_the_rate_of_this_process() -> None:
    began = EvalBegan(
        suite=Suite(name="s", cases=(Case(id="a"),)),
        targets=(TargetSpec(name="t", mock=""),),
        options=RunOptions(trials=10),
    )
    standing = EvalState(began)
    for trial in (0, 1):
        standing.add(CaseDone(result(trial)))
    clock, purse = FakeClock(), Spending([0.5, None])
    meter = Meter("e_1", standing, purse, clock.monotonic)
    first = meter.progress()
    assert (first.done, first.of, first.rate, first.left_s, first.passed, first.last) == (2, 10, 0.0, None, 2, None)
    clock.time += 2
    for trial, (status, verdict) in enumerate(
        [("quality_failure", "fail"), ("execution_error", "not_graded"), ("ok", "not_graded"), ("skipped", "skip")], 2
    ):
        told = meter.add(result(trial, status, verdict))  # type: ignore[arg-type]
    told = meter.add(result(6, "ok", "skip", cached=True))
    assert (told.done, told.failed, told.errors, told.not_graded, told.skipped, told.cached) == (7, 1, 1, 1, 2, 1)
    assert (told.rate, told.left_s, told.seconds, told.cost, told.cost_unknown) == (2.5, 1.2, 2, 0.5, 1)
    assert told.last is not None
