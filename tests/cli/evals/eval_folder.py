"""A folder as a user of evals has it: a suite of capitals, a provider that knows two of three, and fixed targets."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sightline.cli.program import main
from tests.cli.recorded_folder import folder_of
from tests.eval_stage import CAPITALS, KNOWN, knows
from tests.upstream import Upstream

TARGETS = """
[evals.targets.all]
mock = "Paris, Rome and Madrid."
[evals.targets.none]
mock = "I do not know."
"""


def run_reported(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, object], str]:
    """`eval run --json`: its exit code, its report, and what it says beside."""
    code = main(["eval", "run", *words, "--json"])
    out, err = capsys.readouterr()
    assert out, err
    report: dict[str, object] = json.loads(out.splitlines()[-1])
    return code, report, err


@contextmanager
def eval_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: str = "") -> Iterator[Upstream]:
    """The folder, which is the one here. `more` is further configuration."""
    with folder_of(tmp_path, monkeypatch) as upstream:
        upstream.script = [knows(upstream, KNOWN)]
        with (tmp_path / "sightline.toml").open("a") as file:
            file.write(TARGETS + more)
        (tmp_path / "capitals.eval.yaml").write_text(CAPITALS)
        monkeypatch.setenv("COLUMNS", "200")
        assert os.environ["ACME_API_KEY"]
        yield upstream
