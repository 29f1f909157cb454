import json
from pathlib import Path

import pytest

from sightline.cli.program import main

Captured = pytest.CaptureFixture[str]


def test_sound_suites_are_told_to_be(folder: Path, capsys: Captured) -> None:
    (folder / "odd.yaml").write_text("name: Big Name\ntests: [{id: a, criteria: x, input: hi}]")
    assert main(["eval", "validate", "capitals.eval.yaml", "odd.yaml"]) == 0
    first, *rest = capsys.readouterr().out.splitlines()
    assert first == "capitals.eval.yaml: 3 cases, nothing wrong"
    assert rest[0].startswith("odd.yaml:1:7: warning: ")
    assert rest[-1] == "odd.yaml: 1 case, nothing wrong, 1 warning"


def test_problems_have_a_place_and_a_suggestion_and_the_exit_code_is_1(folder: Path, capsys: Captured) -> None:
    (folder / "bad.yaml").write_text(
        "tests:\n  - id: a\n    criteria: x\n    input: hi\n    assertions: [{type: contain}]\n"
    )
    assert main(["eval", "validate", "bad.yaml"]) == 1
    where, hint, last = capsys.readouterr().out.splitlines()
    assert where.startswith("bad.yaml:5:")
    assert "contains" in hint
    assert last == "bad.yaml: 1 problem"


def test_a_program_gets_one_object_for_each_suite(folder: Path, capsys: Captured) -> None:
    (folder / "bad.yaml").write_text("tests: []")
    assert main(["eval", "validate", "--json", "bad.yaml", "capitals.eval.yaml"]) == 1
    bad, good = map(json.loads, capsys.readouterr().out.splitlines())
    assert (bad["ok"], bad["cases"], good["ok"], good["cases"], good["problems"]) == (False, None, True, 3, [])
    (problem,) = bad["problems"]
    assert (problem["file"], problem["line"], problem["severity"]) == ("bad.yaml", 1, "error")
    assert problem["suggestion"]
