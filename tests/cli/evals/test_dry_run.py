import json
from pathlib import Path

import pytest

from sightline.cli.program import main
from tests.upstream import Upstream

Captured = pytest.CaptureFixture[str]


def test_each_case_is_told_with_what_it_would_send(upstream: Upstream, folder: Path, capsys: Captured) -> None:
    words = ["eval", "run", "capitals.eval.yaml", "--target", "acme/m", "--target", "all", "--trials", "2"]
    assert main([*words, "--dry-run", "--json"]) == 0
    first, second, *_ = map(json.loads, capsys.readouterr().out.splitlines())
    assert (first["case"], first["target"], first["trials"], first["turns"]) == ("france", "acme/m", 2, 1)
    assert (first["tokens"] > 5, len(first["request"])) == (True, 16)
    assert (second["target"], second["tokens"], second["request"]) == ("all", None, "")
    assert not upstream.seen


def test_a_case_that_could_not_be_sent_is_told(folder: Path, capsys: Captured) -> None:
    suite = folder / "s.yaml"
    suite.write_text("tests: [{id: a, criteria: x, input: [{role: user, content: [{type: image, value: a.png}]}]}]")
    (folder / "a.png").write_text("no picture")
    assert main(["eval", "run", "s.yaml", "--target", "all", "--dry-run"]) == 1
    assert "a.png is no picture" in capsys.readouterr().out
