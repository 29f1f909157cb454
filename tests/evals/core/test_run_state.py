import pytest

from sightline.errors import Fault
from sightline.evals.core.result import CaseObservation, CaseResult, CaseScore, Check, Score, Status, ToolUse, Verdict
from sightline.evals.core.run_state import (
    NOT_RUN,
    CaseDone,
    CaseStarted,
    EvalBegan,
    EvalEnded,
    EvalFact,
    EvalState,
    EvalTaken,
    Key,
    Reopened,
    RunOptions,
    Schedule,
    has_passed,
    read,
    result_of,
    write,
)
from sightline.evals.core.suite import (
    CallSegment,
    Case,
    CaseMessage,
    CaseTurn,
    Execution,
    FileSegment,
    GraderSpec,
    ImageSegment,
    Suite,
    TextSegment,
    Trials,
)
from sightline.evals.core.target import CommandSpec, TargetSpec
from sightline.model.parts import Text, ToolCall
from sightline.model.request import Message
from tests.evals.core.rows import fold_facts

MESSAGE = CaseMessage(
    role="user",
    segments=(TextSegment("a"), FileSegment("f.md", "d/f.md"), ImageSegment("p.png"), CallSegment("t", {"x": [1]})),
)
BEGAN = EvalBegan(
    suite=Suite(
        name="s",
        cases=(
            Case(
                id="a",
                messages=(MESSAGE,),
                turns=(CaseTurn(messages=(MESSAGE,)),),
                graders=(GraderSpec(type="contains", config={"value": "x"}),),
                expected_value={"k": None},
            ),
        ),
    ),
    targets=(TargetSpec(name="t", model="m", cli=CommandSpec(command=("a", "b"))),),
    judges=(TargetSpec(name="j", mock="yes"),),
    options=RunOptions(trials=2, tags=("x",)),
    files={"d/f.md": "00"},
    at=1.5,
)
SCORE = CaseScore(
    verdict="pass",
    score=1.0,
    scores=(Score(name="n", type="contains", verdict="pass", score=1.0, checks=(Check("c", True),)),),
    turns=(CaseScore(verdict="skip"),),
)


def done(text: str) -> CaseDone:
    observation = CaseObservation(
        messages=(Message("assistant", (Text(text), ToolCall("1", "t", "{}"))),),
        text=text,
        tools=(ToolUse(name="t", arguments={}),),
    )
    return CaseDone(CaseResult(case="a", target="t", status="ok", score=SCORE, observation=observation))


@pytest.mark.parametrize(
    "fact",
    [
        BEGAN,
        EvalTaken("here:1"),
        CaseStarted("a", "t", 1),
        done("Paris ü"),
        done("half a character: \ud83d"),
        Reopened((("a", "t", 0),)),
        EvalEnded("budget"),
    ],
)
def test_a_fact_is_read_as_it_was_written(fact: EvalFact) -> None:
    assert read(write(fact)) == fact


@pytest.mark.parametrize("data", [b'{"kind":"eval_moved"}', b'{"kind":"case_done"}', b'{"kind":"reopened","keys":[1]}'])
def test_fact_of_another_version_is_reported_as_such(data: bytes) -> None:
    with pytest.raises(Fault, match="not a fact of a run of evals") as caught:
        read(data)
    assert "another version" in caught.value.hint.lower()


BEGAN_RUN = EvalBegan(
    suite=Suite(name="s", cases=(Case(id="a"), Case(id="b", execution=Execution(targets=("y",))))),
    targets=(TargetSpec(name="x", mock=""), TargetSpec(name="y", mock="")),
    options=RunOptions(trials=2),
)


def case_done(
    case: str, target: str, trial: int = 0, status: Status = "ok", verdict: Verdict = "pass", code: str = ""
) -> CaseDone:
    score, seen = CaseScore(verdict=verdict), CaseObservation(error_code=code)
    return CaseDone(CaseResult(case=case, target=target, trial=trial, status=status, score=score, observation=seen))


def test_a_run_is_cases_times_targets_times_trials() -> None:
    standing = EvalState(BEGAN_RUN)
    assert standing.keys == (
        ("a", "x", 0), ("a", "x", 1), ("a", "y", 0), ("a", "y", 1), ("b", "y", 0), ("b", "y", 1),
    )  # fmt: skip
    assert (standing.left, standing.done, standing.results) == (standing.keys, 0, ())


def test_what_is_done_is_not_left_and_the_order_is_that_of_the_suite() -> None:
    standing = fold_facts(
        [
            BEGAN_RUN,
            EvalTaken("p"),
            CaseStarted("b", "y", 1),
            CaseStarted("a", "x", 0),
            case_done("b", "y", 1),
            case_done("a", "x"),
        ]
    )
    assert [result.key for result in standing.results] == [("a", "x", 0), ("b", "y", 1)]
    assert standing.left == (("a", "x", 1), ("a", "y", 0), ("a", "y", 1), ("b", "y", 0))
    assert (standing.by, standing.running, standing.version, standing.done) == ("p", (), 6, 2)
    assert standing.result(("a", "x", 0)) == standing.results[0]
    assert standing.result(("a", "y", 0)) is None


def test_what_a_process_had_begun_is_begun_anew_by_the_next() -> None:
    standing = fold_facts([BEGAN_RUN, EvalTaken("p"), CaseStarted("a", "x", 0)])
    assert standing.running == (("a", "x", 0),)
    standing.add(EvalTaken("q"))
    assert (standing.running, standing.by, standing.ended) == ((), "q", None)


def test_how_it_was_left_is_known_until_it_is_taken_up() -> None:
    standing = fold_facts([BEGAN_RUN, EvalTaken("p"), CaseStarted("a", "x", 0), EvalEnded("stopped")])
    assert (standing.ended, standing.running) == ("stopped", ())
    standing.add(EvalTaken("q"))
    assert standing.ended is None


def test_what_is_to_be_run_again_has_no_result_until_it_has() -> None:
    standing = fold_facts([BEGAN_RUN, case_done("a", "x", verdict="fail"), case_done("a", "y"), EvalEnded("stopped")])
    standing.add(Reopened((("a", "x", 0), ("a", "x", 1))))
    assert ("a", "x", 0) in standing.left
    assert standing.done == 1
    standing.add(case_done("a", "x"))
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
    fact = case_done("a", "x", status=status, verdict=verdict)
    assert has_passed(fact.result) is passed
    assert fold_facts([BEGAN_RUN, fact]).failed == (() if passed else (("a", "x", 0),))


@pytest.mark.parametrize(
    ("verdict", "error", "status"),
    [
        ("pass", "", "ok"),
        ("skip", "", "ok"),
        ("fail", "", "quality_failure"),
        ("not_graded", "", "not_graded"),
        ("not_graded", "it broke", "execution_error"),
    ],
)
def test_status_of_a_result_follows_from_its_answer_and_its_score(verdict: Verdict, error: str, status: Status) -> None:
    case, score, seen = Case(id="a", group="g", tags=("x",)), CaseScore(verdict=verdict), CaseObservation(error=error)
    result = result_of(Suite(name="s"), case, ("a", "t", 1), score, seen)
    assert (result.status, result.key, result.suite, result.group) == (status, ("a", "t", 1), "s", "g")
    assert result_of(Suite(name="s"), case, ("a", "t", 1), score, seen, status="skipped").status == "skipped"


def test_cases_are_chosen_by_name_on_one_target_or_on_all() -> None:
    standing = EvalState(BEGAN_RUN)
    assert standing.keys_of(["a"], "y") == (("a", "y", 0), ("a", "y", 1))
    assert len(standing.keys_of(["a"])) == 4
    with pytest.raises(Fault, match="no case b on x"):
        standing.keys_of(["b"], "x")
    with pytest.raises(Fault, match=r"no case c$") as caught:
        standing.keys_of(["a", "c"])
    assert caught.value.status == 404


CASES = (Case(id="c", depends_on=("a", "b")), Case(id="a"), Case(id="b", depends_on=("a",)))


def began(*cases: Case, targets: tuple[str, ...] = ("x",), **options: object) -> EvalBegan:
    return EvalBegan(
        suite=Suite(name="s", cases=cases or CASES),
        targets=tuple(TargetSpec(name=name, mock="") for name in targets),
        options=RunOptions(**options),  # type: ignore[arg-type]
    )


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
        standing.add(case_done(name, "x"))
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
    standing.add(case_done("a", "x"))
    assert all_that_can(Schedule(standing)) == [("b", "x", 0)]


def test_failures_are_those_of_the_cases_that_it_depends_on() -> None:
    standing = EvalState(began())
    schedule = Schedule(standing)
    standing.add(case_done("a", "x", status="execution_error", verdict="not_graded"))
    assert schedule.failures(("b", "x", 0)) == ("a",)
    assert schedule.failures(("c", "x", 0)) == ("a",)
    standing.add(case_done("b", "x", status="skipped", verdict="skip"))
    assert schedule.failures(("c", "x", 0)) == ("a", "b")
    standing.add(case_done("b", "x", status="quality_failure", verdict="fail", code=NOT_RUN))
    assert schedule.failures(("c", "x", 0)) == ("a", "b")


def test_failed_or_ungraded_case_does_not_block_its_dependents() -> None:
    standing = EvalState(began())
    schedule = Schedule(standing)
    standing.add(case_done("a", "x", status="quality_failure", verdict="fail"))
    standing.add(case_done("b", "x", status="not_graded", verdict="not_graded"))
    assert schedule.failures(("c", "x", 0)) == ()
    assert schedule.failures(("a", "x", 0)) == ()


def test_case_not_run_on_a_target_does_not_block_its_dependents_there() -> None:
    elsewhere = Case(id="a", execution=Execution(targets=("y",)))
    schedule = Schedule(EvalState(began(elsewhere, Case(id="b", depends_on=("a",)), targets=("x", "y"))))
    assert all_that_can(schedule, "x") == [("b", "x", 0)]
    assert all_that_can(schedule, "y") == [("a", "y", 0)]
