"""What seed 002 and AgentV say of suites, tried through the command line."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from sightline.cli.program import main
from tests.cli.evals.eval_folder import eval_folder
from tests.upstream import Upstream

Captured = pytest.CaptureFixture[str]
PASSES = "assertions: [{type: contains, value: Paris}]"


@pytest.fixture
def upstream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Upstream]:
    with eval_folder(tmp_path, monkeypatch) as upstream:
        (tmp_path / "rules.md").write_text("Be brief.\n")
        (tmp_path / "seed.toml").write_text(
            (tmp_path / "sightline.toml").read_text() + '[evals]\nfile_form = "seed"\n[evals.targets.xml]\n'
            'model = "acme/m"\nfile_form = "xml"\n[evals.targets.plain]\nmodel = "acme/m"\n'
        )
        yield upstream


def run(capsys: Captured, suite: str, *words: str) -> tuple[int, dict[str, object], str]:
    Path("s.eval.yaml").write_text(suite)
    code = main(["eval", "run", "s.eval.yaml", "--json", *words])
    out, err = capsys.readouterr()
    assert out, err
    report: dict[str, object] = json.loads(out.splitlines()[-1])
    return code, report, err


FILES = f"""
tests:
  - id: a
    criteria: x
    input: [{{role: user, content: [{{type: file, value: rules.md}}, {{type: text, value: France?}}]}}]
    {PASSES}
"""
XML = '<file path="rules.md">\nBe brief.\n</file>\nFrance?'
SEED = "=== rules.md ===\nBe brief.\n\nFrance?"


@pytest.mark.parametrize(
    ("words", "suite", "sent"),
    [
        (("--target", "acme/m"), FILES, XML),
        (("--target", "acme/m", "--file-form", "seed"), FILES, SEED),
        (("--target", "acme/m"), "execution: {file_form: seed}" + FILES, SEED),
        (("--target", "acme/m", "--file-form", "xml"), "execution: {file_form: seed}" + FILES, XML),
        (("--target", "plain", "--config", "seed.toml"), FILES, SEED),
        (("--target", "acme/m", "--config", "seed.toml"), FILES, SEED),
        (("--target", "xml", "--config", "seed.toml"), FILES, XML),
        (("--target", "xml", "--config", "seed.toml"), "execution: {file_form: seed}" + FILES, SEED),
    ],
)
def test_how_files_stand_in_a_prompt_can_be_chosen(
    upstream: Upstream, capsys: Captured, words: tuple[str, ...], suite: str, sent: str
) -> None:
    run(capsys, suite, *words)
    assert upstream.seen[0].json()["messages"][-1]["content"] == sent
    main(["eval", "preview", "s.eval.yaml", "a", "--as", "wire", *words])
    assert json.loads(capsys.readouterr().out)["messages"][-1]["content"] == sent


def test_a_file_that_is_missing_is_an_error_of_its_case_alone(upstream: Upstream, capsys: Captured) -> None:
    suite = FILES + (
        "  - id: b\n    criteria: x\n    input: [{role: user, content: [{type: file, value: gone.md}]}]\n"
        f"    {PASSES}\n"
    )
    code, report, err = run(capsys, suite, "--target", "acme/m")
    assert (code, report["results"]) == (1, 2)
    assert 's.eval.yaml:9:56: error: there is no file "gone.md"' in err
    (failed,) = report["failed"]
    assert (failed["case"], failed["status"]) == ("b", "execution_error")
    assert "gone.md" in failed["reason"]
    assert len(upstream.seen) == 1
    assert main(["eval", "validate", "s.eval.yaml"]) == 1
    capsys.readouterr()
    assert main(["eval", "run", "s.eval.yaml", "--target", "acme/m", "--dry-run"]) == 1
    out = capsys.readouterr().out
    assert "there is no file 'gone.md'" in out
    assert main(["eval", "run", "s.eval.yaml", "--target", "acme/m", "--case", "b"]) == 1


def test_a_missing_file_of_tools_is_an_error_of_its_case_alone(upstream: Upstream, capsys: Captured) -> None:
    suite = FILES + f"  - {{id: b, criteria: x, input: France?, tools: gone.json, {PASSES}}}\n"
    code, report, err = run(capsys, suite, "--target", "acme/m")
    assert (code, report["results"], len(upstream.seen)) == (1, 2, 1)
    assert 'error: there is no file "gone.json"' in err
    (failed,) = report["failed"]
    assert (failed["case"], failed["status"]) == ("b", "execution_error")
    assert "gone.json" in failed["reason"]


def test_a_later_turn_with_a_missing_file_keeps_what_was_answered(upstream: Upstream, capsys: Captured) -> None:
    suite = """
tests:
  - id: a
    criteria: x
    mode: conversation
    turns: [{input: France?}, {input: [{type: file, value: gone.md}]}]
    assertions: [{type: contains, value: Paris}]
"""
    code, report, _ = run(capsys, suite, "--target", "acme/m", "--jsonl", "out.jsonl")
    assert (code, len(upstream.seen)) == (1, 1)
    result = json.loads(Path("out.jsonl").read_text())["result"]
    assert (result["status"], [turn.get("text", "") for turn in result["turns"]]) == ("execution_error", ["Paris", ""])
    assert report["not_graded"] == 0


def test_dependents_are_skipped_only_after_execution_errors(upstream: Upstream, capsys: Captured) -> None:
    suite = """
tests:
  - {id: fails, criteria: x, input: hi, assertions: [{type: contains, value: nothing like this}]}
  - {id: ungraded, criteria: x, input: hi, assertions: [{type: code-grader, command: [no-such-program]}]}
  - {id: after, criteria: x, input: hi, depends_on: [fails, ungraded], assertions: [{type: contains, value: Paris}]}
  - {id: broken, criteria: x, input: [{role: user, content: [{type: file, value: gone.md}]}], assertions: [x]}
  - {id: skipped, criteria: x, input: hi, depends_on: [broken], assertions: [{type: contains, value: Paris}]}
  - {id: refused, criteria: x, input: hi, depends_on: [broken], on_dependency_failure: fail, assertions: [x]}
  - {id: later, criteria: x, input: hi, depends_on: [refused], assertions: [{type: contains, value: Paris}]}
  - {id: last, criteria: x, input: hi, depends_on: [skipped], assertions: [{type: contains, value: Paris}]}
"""
    _, report, _ = run(capsys, suite, "--target", "all")
    found = {each["case"]: each["status"] for each in report["failed"]}
    assert found == {
        "fails": "quality_failure",
        "ungraded": "not_graded",
        "broken": "execution_error",
        "skipped": "skipped",
        "refused": "quality_failure",
        "later": "skipped",
        "last": "skipped",
    }


def test_a_program_that_grades_reads_the_input_among_the_messages(upstream: Upstream, capsys: Captured) -> None:
    Path("grade.py").write_text(
        "def grade(case):\n"
        "    roles = [each['role'] for each in case['messages']]\n"
        "    events = [each['type'] for each in case['trace']['events']]\n"
        "    trace = [each['role'] for each in case['trace']['messages']]\n"
        "    return {'score': 1, 'details': {'roles': roles, 'trace': trace, 'events': events}}\n"
    )
    suite = """
tests:
  - id: a
    criteria: x
    input: [{role: system, content: Be brief.}, {role: user, content: hi}]
    assertions: [{type: code-grader, name: g, python: 'grade.py:grade'}]
  - id: b
    criteria: x
    mode: conversation
    turns: [{input: one}, {input: two}]
    assertions: [{type: code-grader, name: g, python: 'grade.py:grade'}]
"""
    code, _, _ = run(capsys, suite, "--target", "all", "--jsonl", "out.jsonl")
    assert code == 0
    lines = [json.loads(line)["result"]["score"]["scores"][0] for line in Path("out.jsonl").read_text().splitlines()]
    assert lines[0]["details"] == {
        "roles": ["system", "user", "assistant"],
        "trace": ["system", "user", "assistant"],
        "events": ["message", "message", "message", "final_response"],
    }
    assert lines[1]["details"]["roles"] == ["user", "assistant", "user", "assistant"]


def test_a_window_keeps_the_answer_before(upstream: Upstream, capsys: Captured) -> None:
    suite = """
tests:
  - id: a
    criteria: x
    mode: conversation
    window_size: 1
    input: [{role: system, content: Be brief.}]
    turns: [{input: France?}, {input: Italy?}, {input: France again?}]
    assertions: [{type: contains, value: Paris}]
"""
    run(capsys, suite, "--target", "acme/m")
    roles = [[each["role"] for each in seen.json()["messages"]] for seen in upstream.seen]
    assert roles == [["system", "user"], ["system", "assistant", "user"], ["system", "assistant", "user"]]


@pytest.mark.parametrize(
    ("provider", "instead"),
    [
        ("vscode", "provider: cli"),
        ("copilot-cli", "command: copilot"),
        ("pi-cli", "command: pi"),
        ("replay", 'replay = "'),
        ("transcript", "sightline eval make"),
        ("agentv", "provider: openai"),
    ],
)
def test_providers_of_agentv_that_are_not_here_say_what_to_use_instead(
    upstream: Upstream, capsys: Captured, provider: str, instead: str
) -> None:
    Path(".agentv").mkdir()
    Path(".agentv/targets.yaml").write_text(f"targets: [{{name: other, provider: {provider}}}]\n")
    Path("s.eval.yaml").write_text(FILES)
    assert main(["eval", "run", "s.eval.yaml", "--target", "other"]) == 2
    err = capsys.readouterr().err
    assert f'"{provider}" cannot be asked here' in err
    assert instead in err
