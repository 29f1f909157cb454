"""A folder as a user of evals has it: a suite of capitals, a provider that knows two of three, and fixed targets."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.recorded_folder import folder_of
from tests.eval_stage import CAPITALS, KNOWN, knows
from tests.upstream import Upstream

TARGETS = """
[evals.targets.all]
mock = "Paris, Rome and Madrid."
[evals.targets.none]
mock = "I do not know."
"""


@contextmanager
def eval_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Upstream]:
    """The folder, which is the one here."""
    with folder_of(tmp_path, monkeypatch) as upstream:
        upstream.script = [knows(upstream, KNOWN)]
        with (tmp_path / "sightline.toml").open("a") as file:
            file.write(TARGETS)
        (tmp_path / "capitals.eval.yaml").write_text(CAPITALS)
        monkeypatch.setenv("COLUMNS", "200")
        assert os.environ["ACME_API_KEY"]
        yield upstream
