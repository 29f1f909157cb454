import json
import subprocess
import sys
from pathlib import Path

import pytest

from sightline.evals.core.graders.finding import Grading
from sightline.evals.core.graders.steps import CallPython, Execute, Executed, Judged, NeedFile, Returned
from sightline.evals.core.suite import CaseMessage, FileSegment
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


def test_what_models_took_that_a_command_asked_is_what_the_grade_took() -> None:
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


def test_an_assertion_is_a_function_that_is_told_little() -> None:
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


def test_what_is_wrong_is_told() -> None:
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
