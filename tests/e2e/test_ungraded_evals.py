"""A grader that could not run never turns into a pass: whatever passes beside it, wherever it is, in every export."""

import json
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.cli.evals.eval_folder import eval_folder, run_reported

Captured = pytest.CaptureFixture[str]

PASSES = "{type: contains, value: Paris}"
NOBODY = "{type: llm-grader, name: judge, target: nobody, prompt: Is it good?}"
UNABLE = {
    "an unreachable judge": NOBODY,
    "garbage from a judge": "{type: llm-grader, name: judge, target: garbage, prompt: Is it good?}",
    "a missing program": "{type: code-grader, name: judge, command: [no-such-program-here]}",
    "a program that crashes": "{type: code-grader, name: judge, command: [sh, -c, 'echo broken >&2; exit 3']}",
    "a missing file of a function": "{type: code-grader, name: judge, python: 'missing.py:grade'}",
    "an unknown cost": "{type: cost, name: judge, budget: 1}",
    "a composite's member": f"{{type: composite, name: judge, assertions: [{PASSES}, {NOBODY}]}}",
    "a composite that a program decides": (
        "{type: composite, name: judge,"
        """ aggregator: {type: code-grader, path: 'echo "{\\"score\\": 1}"'},"""
        f" assertions: [{PASSES}, {NOBODY}]}}"
    ),
    "a negated one": "{type: llm-grader, name: judge, target: nobody, prompt: Is it bad?, negate: true}",
    "a required one without weight": NOBODY.replace("name: judge", "name: judge, weight: 0, required: true"),
}
TARGETS = """
[providers.nowhere]
dialect = "openai-chat"
base_url = "http://127.0.0.1:1/v1"
request_max_retries = 0
stream_max_retries = 0
[evals.targets.nobody]
model = "nowhere/x"
[evals.targets.garbage]
mock = "I would rather not say."
[evals.targets.program]
cli = { words = ["echo", "Paris"] }
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with eval_folder(tmp_path, monkeypatch, TARGETS):
        yield tmp_path


def run(folder: Path, capsys: Captured, suite: str, *words: str) -> tuple[int, dict[str, object]]:
    (folder / "s.eval.yaml").write_text(suite)
    code, report, _ = run_reported(capsys, "s.eval.yaml", "--target", "program", *words)
    return code, report


@pytest.mark.parametrize("grader", UNABLE.values(), ids=UNABLE)
def test_what_could_not_run_is_no_pass(folder: Path, capsys: Captured, grader: str) -> None:
    suite = f"tests:\n  - id: a\n    criteria: x\n    input: hi\n    assertions: [{PASSES}, {grader}]\n"
    code, report = run(folder, capsys, suite)
    assert code == 1
    assert (report["passed"], report["not_graded"]) == (False, 1)
    assert [(each["verdict"], each["status"]) for each in report["failed"]] == [("not_graded", "not_graded")]
    (target,) = report["targets"]
    assert (target["passed"], target["failed"], target["pass_rate"]) == (0, 0, None)


def test_every_export_tells_it_apart_from_a_pass(folder: Path, capsys: Captured) -> None:
    suite = f"tests:\n  - id: a\n    criteria: x\n    input: hi\n    assertions: [{PASSES}, {NOBODY}]\n"
    code, _ = run(folder, capsys, suite, "--output", "out")
    assert code == 1
    line = json.loads((folder / "out/results.jsonl").read_text())
    assert (line["status"], line["verdict"], line["score"]) == ("not_graded", "not_graded", None)
    row = json.loads((folder / "out/index.jsonl").read_text())
    assert (row["execution_status"], row["score"], row["failure_stage"]) == ("execution_error", 0, "evaluator")
    tests = ElementTree.parse(folder / "out/junit.xml").getroot().find("testsuite")
    assert (tests.get("tests"), tests.get("errors"), tests.get("failures")) == ("1", "1", "0")
    (summary,) = json.loads((folder / "out/summary.json").read_text())
    assert (summary["passed"], [each["why"] for each in summary["excluded"]]) == (0, ["not_graded"])
