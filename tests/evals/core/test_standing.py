import pytest

from sightline.errors import Fault
from sightline.evals.core.options import RunOptions
from sightline.evals.core.result import CaseObservation, CaseResult, CaseScore, Status, Verdict
from sightline.evals.core.run_state import (
    CaseDone,
    CaseStarted,
    EvalBegan,
    EvalEnded,
    EvalState,
    EvalTaken,
    Reopened,
    fold_facts,
    has_passed,
)
from sightline.evals.core.suite import Case, Execution, Suite
from sightline.evals.core.target import TargetSpec

BEGAN = EvalBegan(
    suite=Suite(name="s", cases=(Case(id="a"), Case(id="b", execution=Execution(targets=("y",))))),
    targets=(TargetSpec(name="x", mock=""), TargetSpec(name="y", mock="")),
    options=RunOptions(trials=2),
)


def done(case: str, target: str, trial: int = 0, status: Status = "ok", verdict: Verdict = "pass") -> CaseDone:
    score = CaseScore(verdict=verdict)
    return CaseDone(
        CaseResult(case=case, target=target, trial=trial, status=status, score=score, observation=CaseObservation())
    )


def test_a_run_is_cases_times_targets_times_trials() -> None:
    standing = EvalState(BEGAN)
    assert standing.keys == (
        ("a", "x", 0), ("a", "x", 1), ("a", "y", 0), ("a", "y", 1), ("b", "y", 0), ("b", "y", 1),
    )  # fmt: skip
    assert (standing.left, standing.done, standing.results) == (standing.keys, 0, ())


def test_what_is_done_is_not_left_and_the_order_is_that_of_the_suite() -> None:
    standing = fold_facts(
        [BEGAN, EvalTaken("p"), CaseStarted("b", "y", 1), CaseStarted("a", "x", 0), done("b", "y", 1), done("a", "x")]
    )
    assert [result.key for result in standing.results] == [("a", "x", 0), ("b", "y", 1)]
    assert standing.left == (("a", "x", 1), ("a", "y", 0), ("a", "y", 1), ("b", "y", 0))
    assert (standing.by, standing.running, standing.version, standing.done) == ("p", (), 6, 2)
    assert standing.result(("a", "x", 0)) == standing.results[0]
    assert standing.result(("a", "y", 0)) is None


def test_what_a_process_had_begun_is_begun_anew_by_the_next() -> None:
    standing = fold_facts([BEGAN, EvalTaken("p"), CaseStarted("a", "x", 0)])
    assert standing.running == (("a", "x", 0),)
    standing.add(EvalTaken("q"))
    assert (standing.running, standing.by, standing.ended) == ((), "q", None)


def test_how_it_was_left_is_known_until_it_is_taken_up() -> None:
    standing = fold_facts([BEGAN, EvalTaken("p"), CaseStarted("a", "x", 0), EvalEnded("stopped")])
    assert (standing.ended, standing.running) == ("stopped", ())
    standing.add(EvalTaken("q"))
    assert standing.ended is None


def test_what_is_to_be_run_again_has_no_result_until_it_has() -> None:
    standing = fold_facts([BEGAN, done("a", "x", verdict="fail"), done("a", "y"), EvalEnded("stopped")])
    standing.add(Reopened((("a", "x", 0), ("a", "x", 1))))
    assert ("a", "x", 0) in standing.left
    assert standing.done == 1
    standing.add(done("a", "x"))
    assert standing.failed == ()


@pytest.mark.parametrize(
    ("status", "verdict", "passed"),
    [
        ("ok", "pass", True),
        ("ok", "skip", True),
        ("ok", "not_graded", False),
        ("quality_failure", "fail", False),
        ("execution_error", "not_graded", False),
        ("skipped", "skip", False),
    ],
)
def test_what_did_not_pass_can_be_run_again(status: Status, verdict: Verdict, passed: bool) -> None:
    fact = done("a", "x", status=status, verdict=verdict)
    assert has_passed(fact.result) is passed
    assert fold_facts([BEGAN, fact]).failed == (() if passed else (("a", "x", 0),))


def test_cases_are_chosen_by_name_on_one_target_or_on_all() -> None:
    standing = EvalState(BEGAN)
    assert standing.keys_of(["a"], "y") == (("a", "y", 0), ("a", "y", 1))
    assert len(standing.keys_of(["a"])) == 4
    with pytest.raises(Fault, match="no case b on x"):
        standing.keys_of(["b"], "x")
    with pytest.raises(Fault, match=r"no case c$") as caught:
        standing.keys_of(["a", "c"])
    assert caught.value.status == 404


@pytest.mark.parametrize("facts", [[], [EvalTaken("p")]])
def test_a_log_that_does_not_begin_is_no_run(facts: list[EvalTaken]) -> None:
    with pytest.raises(Fault, match="does not begin as one"):
        fold_facts(facts)
