import json
import os
import resource
import signal
from pathlib import Path

import pytest

from sightline.cli.evals.exporting import NAMES, Exports
from sightline.errors import Fault
from tests.cli.evals.test_report import standing
from tests.evals.core.rows import row


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


def test_a_look_at_a_place_leaves_nothing_there_and_what_was_there_stays(tmp_path: Path) -> None:
    (tmp_path / "r.xml").write_text("of yesterday")
    exports = Exports(str(tmp_path / "out"), str(tmp_path / "r.jsonl"), str(tmp_path / "r.xml"))
    exports.check()
    assert not (tmp_path / "r.jsonl").exists()
    assert not list((tmp_path / "out").iterdir())
    assert (tmp_path / "r.xml").read_text() == "of yesterday"


def test_a_file_is_whole_or_as_it_was(tmp_path: Path) -> None:
    """As on a disk that is full, which a limit of the system is like."""
    place = tmp_path / "r.jsonl"
    place.write_text("of yesterday")
    exports = Exports(jsonl=str(place))
    exports.add(standing(row("c1", 1.0)))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64, limits[1]))
    try:
        with pytest.raises(Fault) as caught:
            exports.write()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, before)
    assert str(place) in caught.value.message
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [("r.jsonl", "of yesterday")]


def test_a_pipe_is_written_to_and_a_link_is_followed(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    (tmp_path / "there").mkdir()
    (tmp_path / "r.xml").symlink_to(tmp_path / "there" / "r.xml")
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        exports = Exports(jsonl=str(pipe), junit=str(tmp_path / "r.xml"))
        exports.check()
        exports.add(standing(row("c1", 1.0)))
        exports.write()
        assert json.loads(os.read(reader, 65536))["case"] == "c1"
    finally:
        os.close(reader)
    assert pipe.is_fifo()
    assert (tmp_path / "r.xml").is_symlink()
    assert b"c1" in (tmp_path / "there" / "r.xml").read_bytes()


def test_a_form_that_nobody_wants_is_not_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unwanted(*_words: object, **_more: object) -> bytes:
        raise AssertionError

    monkeypatch.setattr("sightline.cli.evals.exporting.to_junit", unwanted)
    exports = Exports(jsonl=str(tmp_path / "r.jsonl"))
    exports.add(standing(row("c1", 1.0)))
    exports.write()
    monkeypatch.setattr("sightline.cli.evals.exporting.to_jsonl", unwanted)
    Exports().write()
    assert [each.name for each in tmp_path.iterdir()] == ["r.jsonl"]
