import json

import pytest

from sightline.evals.core.graders.finding import Grading
from sightline.evals.core.graders.steps import Execute, Executed, FileContent, NeedFile
from tests.grading_stage import BROKEN, problems, says, seen, spec, told, words

HALF = says({"score": 0.5})
GRADING = Grading(criteria="Name the capital.")


@pytest.mark.parametrize("prompt", ["file://prompts/judge.md", "prompts/judge.md"])
def test_a_prompt_may_stand_in_a_file(prompt: str) -> None:
    grader = spec("llm-grader", prompt=prompt)
    result = seen(grader, "Paris", GRADING, [FileContent(b"Judge {{ output }}"), HALF])
    assert result.steps[0] == NeedFile("prompts/judge.md")
    assert words(result.steps[1]).startswith("Judge <block-1 output>")
    assert seen(grader, "Paris", GRADING, [FileContent(None)]).score.reason == "there is no file prompts/judge.md"


def test_a_prompt_may_be_written_by_a_command() -> None:
    grader = spec("llm-grader", prompt={"command": ["python", "prompt.py"], "config": {"a": 1}})
    result = seen(grader, "Paris", GRADING, [Executed(code=0, stdout=b"Look at this.\n"), HALF])
    step, judge = result.steps
    assert words(judge) == "Look at this."
    assert isinstance(step, Execute)
    assert (step.argv, json.loads(step.stdin)["config"]) == (("python", "prompt.py"), {"a": 1})
    assert words(judge) == "Look at this."
    for answer, reason in (
        (BROKEN, "nobody is there"),
        (Executed(code=1, stdout=b"x"), "the command of the prompt ended with 1"),
        (Executed(code=0), "its prompt is empty"),
    ):
        assert seen(grader, "Paris", GRADING, [answer]).score.reason == reason


def test_a_command_that_writes_a_prompt_gets_the_graders_own_fields() -> None:
    grader = spec("llm-grader", prompt={"command": ["x"]}, config={"a": 1}, tone="kind")
    (step,) = seen(grader, "Paris", GRADING, [BROKEN]).steps
    assert isinstance(step, Execute)
    assert json.loads(step.stdin)["config"] == {"a": 1, "tone": "kind"}


def test_what_is_wrong_is_told() -> None:
    assert told(spec("llm-grader", criteria="be kind")) == [("criteria", 'the grader llm-grader has no key "criteria"')]
    assert told(spec("llm-grader", prompt=5)) == [("prompt", "prompt must be text or a mapping, not 5")]
    assert told(spec("llm-grader", prompt={"comand": ["x"]})) == [
        ("prompt.comand", 'prompt has no key "comand"'),
        ("prompt", 'prompt lacks the key "command"'),
    ]


@pytest.mark.parametrize(
    ("prompt", "suggestion"),
    [
        ("prompts/judge.md", "Write file://prompts/judge.md to say so."),
        ("Look at {{ outputs }} in {{ output }}", 'Did you mean "output"?'),
    ],
)
def test_what_may_be_meant_otherwise_is_a_warning(prompt: str, suggestion: str) -> None:
    ((severity, said),) = [(each.severity, each.suggestion) for each in problems(spec("llm-grader", prompt=prompt))]
    assert (severity, said) == ("warning", suggestion)
