import json
from pathlib import Path

import pytest

from sightline.cli.evals.exporting import NAMES, Exports
from sightline.errors import Fault
from tests.cli.evals.test_report import standing
from tests.evals.rows import row


def test_every_form_holds_the_results_of_all_runs(tmp_path: Path) -> None:
    exports = Exports(str(tmp_path / "out"), str(tmp_path / "r.jsonl"), str(tmp_path / "r.xml"))
    exports.check()
    exports.add(standing(row("c1", 1.0)))
    exports.add(standing(row("c2", 0.0)))
    exports.write()
    assert sorted(each.name for each in (tmp_path / "out").iterdir()) == sorted(NAMES)
    assert (tmp_path / "r.jsonl").read_bytes() == (tmp_path / "out/results.jsonl").read_bytes()
    assert (tmp_path / "r.xml").read_bytes() == (tmp_path / "out/junit.xml").read_bytes()
    rows = [json.loads(line) for line in (tmp_path / "out/index.jsonl").read_text().splitlines()]
    assert [each["test_id"] for each in rows] == ["c1", "c2"]
    (summary,) = json.loads((tmp_path / "out/summary.json").read_text())
    assert (summary["target"], summary["passed"]) == ("a", 1)


def test_without_a_place_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    exports = Exports()
    exports.check()
    exports.write()
    assert not list(tmp_path.iterdir())


def test_a_place_that_cannot_be_written_is_told_before_anything_is_asked(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Fault):
        Exports(jsonl=str(tmp_path / "file" / "r.jsonl")).check()
    with pytest.raises(Fault):
        Exports(junit=str(tmp_path)).write()
