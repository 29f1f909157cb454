import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.errors import Fault
from sightline.evals.core.graders.command import checks_of, from_command, from_value, score_of
from sightline.evals.core.graders.finding import (
    CallAdded,
    CallPython,
    Execute,
    Executed,
    Grading,
    Judged,
    NeedFile,
    Returned,
)
from sightline.evals.core.graders.grade import add_grader, remove_grader
from sightline.evals.core.result import Check
from sightline.evals.core.suite import CaseMessage, FileSegment
from sightline.model.json import Json
from tests.grading_stage import BROKEN, seen, spec, told


def test_a_real_command_reads_the_case_and_says_its_score(tmp_path: Path) -> None:
    script = tmp_path / "grade.py"
    script.write_text(
        "import json, sys\n"
        "case = json.load(sys.stdin)\n"
        "good = case['output'] == case['config']['wanted']\n"
        "json.dump({'score': 0.9 if good else 0, 'assertions': [{'text': 'is it', 'passed': good}]}, sys.stdout)\n"
    )
    grader = spec("code_grader", command=[sys.executable, str(script)], wanted="café \udc00")
    (step,) = seen(grader, "café \udc00", answers=[BROKEN]).steps
    assert isinstance(step, Execute)
    ended = subprocess.run(step.argv, input=step.stdin, capture_output=True, check=True)
    score = seen(grader, "café \udc00", answers=[Executed(code=0, stdout=ended.stdout)]).score
    assert (score.score, score.verdict, score.checks[0].passed) == (0.9, "pass", True)


def test_a_command_is_run_as_the_suite_says() -> None:
    grader = spec(
        "code-grader", command="python grade.py | tail -1", cwd="tools", timeout_seconds=5, config={"a": 1}, b=2,
        target={"max_calls": 3},
    )  # fmt: skip
    (step,) = seen(grader, answers=[BROKEN]).steps
    assert isinstance(step, Execute)
    assert (step.argv, step.cwd, step.timeout) == (("sh", "-lc", "python grade.py | tail -1"), "tools", 5.0)
    assert step.proxy_calls == 3
    assert json.loads(step.stdin)["config"] == {"a": 1, "b": 2}


@pytest.mark.parametrize(("target", "calls"), [(True, 50), (False, None), ({}, 50)])
def test_a_command_may_call_a_model_where_the_suite_lets_it(target: object, calls: int | None) -> None:
    (step,) = seen(spec("code-grader", script=["x"], target=target), answers=[BROKEN]).steps
    assert step.proxy_calls == calls


def test_judge_usage_of_a_command_counts_towards_the_grade() -> None:
    judged = (Judged(text="a", cost=0.1, exchange="x_1"), Judged(text="b", cost=0.2, exchange="x_2"))
    ended = Executed(code=0, stdout=b'{"score": 1}', seconds=3.0, judged=judged)
    score = seen(spec("code-grader", command=["x"], target=True), answers=[ended]).score
    assert score.cost == pytest.approx(0.3)
    assert (score.seconds, score.exchanges) == (3.0, ("x_1", "x_2"))


def test_a_command_that_cannot_be_run_is_not_graded() -> None:
    score = seen(spec("code-grader", command=["x"]), answers=[BROKEN]).score
    assert (score.verdict, score.reason) == ("not_graded", "the command failed: nobody is there")


def test_a_function_is_called_with_the_case() -> None:
    grader = spec("code-grader", python="grade.py:is_short")
    result = seen(grader, "hi", answers=[Returned(value={"score": 0.5}, seconds=0.1)])
    (step,) = result.steps
    assert isinstance(step, CallPython)
    assert (step.path, step.function, step.payload["output"]) == ("grade.py", "is_short", "hi")
    assert (result.score.score, result.score.seconds) == (0.5, 0.1)
    assert seen(grader, answers=[BROKEN]).score.reason == "grade.py:is_short failed: nobody is there"


def test_assertion_function_receives_a_reduced_payload() -> None:
    grader = spec("inline-assert", python="checks.py:polite")
    result = seen(grader, "hi", Grading(question="say hi"), [Returned(value=0.6)])
    (step,) = result.steps
    assert isinstance(step, CallPython)
    assert set(step.payload) == {"input", "output", "expected_output", "criteria", "metadata"}
    assert (result.score.score, result.score.checks[0].text, result.score.checks[0].passed) == (
        0.6, "polite is content", True,
    )  # fmt: skip
    assert seen(grader, "hi", answers=[Returned(value=False)]).score.checks[0].text == "returns true"
    assert seen(grader, "hi", answers=[Returned(value="?")]).score.verdict == "not_graded"


def test_an_assertion_whose_reference_cannot_be_read_is_not_graded() -> None:
    grading = Grading(expected=(CaseMessage(role="assistant", segments=(FileSegment("a.md"),)),))
    result = seen(spec("inline-assert", python="a.py:f"), "hi", grading, [BROKEN])
    assert (result.steps, result.score.reason) == ([NeedFile("a.md")], "nobody is there")


def test_invalid_configuration_is_reported() -> None:
    assert told(spec("code-grader")) == [("", "one thing to run is expected")]
    assert told(spec("code-grader", command=["a"], python="a.py:f")) == [("command", "one thing to run is expected")]
    assert told(spec("code-grader", command=[])) == [
        ("command", "command must be text or a list, each text, not an empty list")
    ]
    assert told(spec("code-grader", python="a.py")) == [("python", "python must be a file and a function, not text")]
    assert told(spec("code-grader", command=["a"], target="x")) == [
        ("target", "target must be true or false or a mapping, not text")
    ]
    assert told(spec("code-grader", command=["a"], preprocessors=[])) == [
        ("preprocessors", "there are no preprocessors here")
    ]
    assert told(spec("code-grader", command=["a"], comand="b")) == [("comand", "'comand' is passed on as it is")]
    assert told(spec("inline-assert", value="x")) == [
        ("value", 'the grader inline-assert has no key "value"'),
        ("", 'the grader inline-assert lacks the key "python"'),
    ]


def test_a_command_says_its_score_with_what_it_looked_at() -> None:
    found = from_command(
        Executed(
            code=0,
            stdout=b'{"score": 0.5, "assertions": [{"text": "a", "passed": true, "evidence": "e"}, '
            b'{"text": "b", "passed": false}], "reasoning": "so", "details": {"n": 1}}\n',
            seconds=0.2,
        )
    )
    assert (found.score, found.reason, found.details, found.spent.seconds) == (0.5, "so", {"n": 1}, 0.2)
    assert found.checks == (Check("a", True, "e"), Check("b", False))


@pytest.mark.parametrize(
    ("ended", "score", "text"),
    [
        (Executed(code=0, stdout=b"looks fine"), 1.0, "looks fine"),
        (Executed(code=0), 1.0, "exit 0"),
        (Executed(code=0, stdout=b'"fine"'), 1.0, '"fine"'),
        (Executed(code=1, stdout=b"too long"), 0.0, "too long"),
        (Executed(code=3), 0.0, "exit 3"),
    ],
)
def test_plain_words_are_judged_by_the_exit_code(ended: Executed, score: float, text: str) -> None:
    found = from_command(ended)
    assert (found.score, found.checks[0].text) == (score, text)


@pytest.mark.parametrize(
    ("ended", "reason"),
    [
        (Executed(code=1, stderr=b"Traceback"), "the command ended with 1: Traceback"),
        (Executed(code=2, stdout=b'{"score": 1}'), 'the command ended with 2: {"score": 1}'),
        (Executed(code=-9), "the command was ended by signal 9"),
        (Executed(code=137), "the command was ended by signal 9"),
        (Executed(code=0, stdout=b"0.2"), 'an object is expected, not 0.2: write {"score": …}'),
        (Executed(code=0, stdout=b"false"), 'an object is expected, not false: write {"score": …}'),
        (Executed(code=0, stdout=b'{"score": 50}'), "a score from 0 to 1 is expected, not 50"),
        (Executed(code=0, stdout=b"{}"), "a score from 0 to 1 is expected, not nothing"),
        (Executed(code=0, stdout=b'{"score": "1"}'), "a score from 0 to 1 is expected, not '1'"),
        (
            Executed(code=0, stdout=b'{"assertions": [{"text": "a"}]}'),
            "its assertions are not a list of {text, passed}",
        ),
        (Executed(code=0, stdout=b'{"score": 1, "assertions": 5}'), "its assertions are not a list of {text, passed}"),
    ],
)
def test_unreadable_command_output_is_not_graded(ended: Executed, reason: str) -> None:
    found = from_command(ended)
    assert (found.score, found.reason) == (None, reason)


@pytest.mark.parametrize(
    "said",
    [b'loading the model\n{"score": 0}', b'{"score": 0.', b'{"score": NaN}', b'{"score": 0} {"score": 1}', b"[1"],
)
def test_a_verdict_that_cannot_be_read_is_no_plain_words_that_pass(said: bytes) -> None:
    found = from_command(Executed(code=0, stdout=said))
    assert found.score is None
    assert found.reason.startswith("its output is no JSON alone")


def test_without_a_score_it_is_the_part_of_assertions_that_held() -> None:
    value: Json = {"assertions": [{"text": "a", "passed": True}, {"text": "b", "passed": False}]}
    assert from_value(value).score == 0.5


@pytest.mark.parametrize(("value", "score"), [(True, 1.0), (False, 0.0), (0.25, 0.25), (1, 1.0), ({"score": 0}, 0.0)])
def test_a_function_may_return_a_truth_a_score_or_an_object(value: Json, score: float) -> None:
    assert from_value(value).score == score


def test_a_function_that_returns_something_else_is_not_graded() -> None:
    assert from_value("good").reason == "a score is expected, not 'good'"


def test_verdict_may_be_given_separately_from_the_score() -> None:
    assert from_value({"score": 1, "verdict": "fail"}).passed is False
    assert from_value({"score": 0, "verdict": "pass"}).passed is True
    assert from_value({"score": 0, "verdict": "maybe", "reason": "r", "metadata": {"a": 1}}).passed is None


def test_assertions_are_all_or_none() -> None:
    assert checks_of("x") is None
    assert checks_of([]) == ()


@given(st.floats() | st.integers() | st.booleans() | st.text())
def test_a_score_is_from_0_to_1_or_none(value: Json) -> None:
    score = score_of(value)
    assert score is None or 0 <= score <= 1


def test_a_score_that_is_off_by_a_rounding_is_one() -> None:
    assert score_of(1.0000000001) == 1.0


async def _never(_payload: object, _seconds: float) -> Json:
    raise AssertionError("only the step is looked at")


def test_a_grader_that_was_added_gets_its_own_keys_and_is_asked_for_a_score() -> None:
    add_grader("plain-words", _never)
    try:
        graded = seen(
            spec("plain_words", jargon=["synergy"], timeout_seconds=5), "Hi", answers=[Returned(value={"score": 0.5})]
        )
        (step,) = graded.steps
        assert isinstance(step, CallAdded)
        assert (step.call, step.timeout) == (_never, 5)
        assert (step.payload["config"], step.payload["output"]) == ({"jargon": ["synergy"]}, "Hi")
        assert graded.score.score == 0.5
        failed = seen(spec("plain-words"), "Hi", answers=[BROKEN]).score
        assert (failed.verdict, failed.reason) == ("not_graded", BROKEN.fault.message)
    finally:
        remove_grader("plain-words")


@pytest.mark.parametrize(
    ("name", "words"), [("rubrics", "built in"), ("rubric", "built in"), ("a_b", "not a valid grader type")]
)
def test_a_grader_with_a_name_that_is_taken_or_cannot_be_written_is_refused(name: str, words: str) -> None:
    with pytest.raises(Fault, match=words):
        add_grader(name, _never)
