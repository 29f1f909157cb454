"""What seed 002 and AgentV say of suites, tried through the command line."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from sightline.cli.program import main
from tests.cli.evals.eval_folder import eval_folder, run_reported
from tests.upstream import Upstream

Captured = pytest.CaptureFixture[str]
PASSES = "assertions: [{type: contains, value: Paris}]"


@pytest.fixture
def upstream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Upstream]:
    with eval_folder(tmp_path, monkeypatch) as upstream:
        (tmp_path / "rules.md").write_text("Be brief.\n")
        (tmp_path / "seed.toml").write_text(
            (tmp_path / "sightline.toml").read_text() + '[evals]\nfile_form = "seed"\n[evals.targets.xml]\n'
            'model = "acme/m"\nfile_form = "xml"\n'
        )
        yield upstream


def run(capsys: Captured, suite: str, *words: str) -> tuple[int, dict[str, object], str]:
    Path("s.eval.yaml").write_text(suite)
    return run_reported(capsys, "s.eval.yaml", *words)


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
        (("--target", "acme/m", "--config", "seed.toml"), FILES, SEED),
        (("--target", "xml", "--config", "seed.toml"), FILES, XML),
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
