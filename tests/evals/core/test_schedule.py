from sightline.evals.core.options import RunOptions
from sightline.evals.core.result import CaseObservation, CaseResult, CaseScore, Status, Verdict
from sightline.evals.core.run_state import NOT_RUN, CaseDone, EvalBegan, EvalFact, EvalState, Key, Schedule
from sightline.evals.core.suite import Case, Execution, Suite, Trials
from sightline.evals.core.target import TargetSpec

CASES = (
    Case(id="c", depends_on=("a", "b")),
    Case(id="a"),
    Case(id="b", depends_on=("a",)),
)


def began(*cases: Case, targets: tuple[str, ...] = ("x",), **options: object) -> EvalBegan:
    return EvalBegan(
        suite=Suite(name="s", cases=cases or CASES),
        targets=tuple(TargetSpec(name=name, mock="") for name in targets),
        options=RunOptions(**options),  # type: ignore[arg-type]
    )


def done(key: Key, verdict: Verdict = "pass", status: Status = "ok", code: str = "") -> EvalFact:
    score, seen = CaseScore(verdict=verdict), CaseObservation(error_code=code)
    return CaseDone(CaseResult(case=key[0], target=key[1], trial=key[2], status=status, score=score, observation=seen))


def all_that_can(schedule: Schedule, target: str = "x") -> list[Key]:
    found = []
    while (key := schedule.next(target)) is not None:
        found.append(key)
    return found


def test_cases_wait_for_those_that_they_depend_on() -> None:
    standing = EvalState(began())
    schedule = Schedule(standing)
    for name in ("a", "b", "c"):
        assert all_that_can(schedule) == [(name, "x", 0)]
        assert not schedule.is_over("x")
        standing.add(done((name, "x", 0)))
        schedule.finish((name, "x", 0))
    assert schedule.is_over("x")


def test_targets_do_not_wait_for_each_other() -> None:
    schedule = Schedule(EvalState(began(Case(id="a"), targets=("x", "y"))))
    assert all_that_can(schedule, "y") == [("a", "y", 0)]
    schedule.finish(("a", "y", 0))
    assert (schedule.is_over("y"), schedule.is_over("x")) == (True, False)


def test_a_trial_depends_on_the_same_trial_or_on_the_last() -> None:
    once = Case(id="b", execution=Execution(trials=Trials(count=1)))
    twice = Case(id="a", depends_on=("b",), execution=Execution(trials=Trials(count=2)))
    schedule = Schedule(EvalState(began(once, twice)))
    assert all_that_can(schedule) == [("b", "x", 0)]
    schedule.finish(("b", "x", 0))
    assert all_that_can(schedule) == [("a", "x", 0), ("a", "x", 1)]


def test_what_has_a_result_is_not_waited_for() -> None:
    standing = EvalState(began())
    standing.add(done(("a", "x", 0)))
    assert all_that_can(Schedule(standing)) == [("b", "x", 0)]


def test_failures_are_those_of_the_cases_that_it_depends_on() -> None:
    standing = EvalState(began())
    schedule = Schedule(standing)
    standing.add(done(("a", "x", 0), "not_graded", "execution_error"))
    assert schedule.failures(("b", "x", 0)) == ("a",)
    assert schedule.failures(("c", "x", 0)) == ("a",)
    standing.add(done(("b", "x", 0), "skip", "skipped"))
    assert schedule.failures(("c", "x", 0)) == ("a", "b")
    standing.add(done(("b", "x", 0), "fail", "quality_failure", NOT_RUN))
    assert schedule.failures(("c", "x", 0)) == ("a", "b")


def test_a_case_that_was_answered_and_failed_stops_nobody() -> None:
    standing = EvalState(began())
    schedule = Schedule(standing)
    standing.add(done(("a", "x", 0), "fail", "quality_failure"))
    standing.add(done(("b", "x", 0), "not_graded", "not_graded"))
    assert schedule.failures(("c", "x", 0)) == ()
    assert schedule.failures(("a", "x", 0)) == ()


def test_a_case_that_is_not_run_on_a_target_keeps_nobody_there_waiting() -> None:
    elsewhere = Case(id="a", execution=Execution(targets=("y",)))
    schedule = Schedule(EvalState(began(elsewhere, Case(id="b", depends_on=("a",)), targets=("x", "y"))))
    assert all_that_can(schedule, "x") == [("b", "x", 0)]
    assert all_that_can(schedule, "y") == [("a", "y", 0)]
