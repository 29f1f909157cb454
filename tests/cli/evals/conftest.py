from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.evals.eval_folder import eval_folder
from tests.upstream import Upstream


@pytest.fixture
def upstream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Upstream]:
    with eval_folder(tmp_path, monkeypatch) as upstream:
        yield upstream


@pytest.fixture
def folder(upstream: Upstream, tmp_path: Path) -> Path:
    """The folder with its upstream running."""
    return tmp_path
