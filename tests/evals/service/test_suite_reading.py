import hashlib
from pathlib import Path

import pytest

from sightline.errors import Fault
from sightline.evals.service.suite_files import SuiteFiles, read_text, sound, suite_in
from tests.eval_stage import CAPITALS


def test_a_suite_is_read_with_its_files_and_knows_its_own_hash(tmp_path: Path) -> None:
    (tmp_path / "evals").mkdir()
    text = "tests:\n  - {id: a, criteria: x, input: [{role: user, content: [{type: file, value: note.md}]}]}\n"
    (tmp_path / "evals" / "s.yaml").write_text(text)
    files = SuiteFiles(tmp_path)
    missing = suite_in(files, "evals/s.yaml", {})
    assert [(each.severity, each.case) for each in missing.problems] == [("error", "a")]
    (tmp_path / "note.md").write_text("hello")
    suite = suite_in(files, "evals/s.yaml", {}).suite
    assert suite is not None
    assert (suite.file, suite.sha256) == ("evals/s.yaml", hashlib.sha256(text.encode()).hexdigest())


def test_graders_are_looked_at_and_what_a_suite_says_once_is_told_once(tmp_path: Path) -> None:
    text = """
assertions: [{type: contains}]
tests:
  - {id: a, criteria: x, input: hi}
  - {id: b, criteria: x, mode: conversation, turns: [{input: hi, assertions: [{type: regex, value: "("}]}]}
"""
    reading = read_text(SuiteFiles(tmp_path), "s.yaml", text.encode(), {})
    assert reading.suite is None
    assert len(reading.problems) == 2
    assert [each.place.line for each in reading.problems] == [2, 5]


def test_a_suite_that_must_be_sound_is_or_says_where_it_is_not(tmp_path: Path) -> None:
    files = SuiteFiles(tmp_path)
    assert sound(read_text(files, "s.yaml", CAPITALS.encode(), {}), "s.yaml").name == "capitals"
    with pytest.raises(Fault) as caught:
        sound(read_text(files, "s.yaml", b"tests: []\nname: 1\n", {}), "s.yaml")
    assert caught.value.message.startswith("s.yaml:1:")
    assert "and 1 more: `sightline eval validate s.yaml`" in caught.value.message
    assert caught.value.status == 422


def test_a_suite_that_is_not_there_is_a_fault(tmp_path: Path) -> None:
    with pytest.raises(Fault, match="there is no suite"):
        suite_in(SuiteFiles(tmp_path), "s.yaml", {})
