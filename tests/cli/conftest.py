import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tool_desk import ToolDesk, tool_desk


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ToolDesk]:
    with tool_desk(tmp_path) as made:
        monkeypatch.chdir(tmp_path)
        for name, value in made.environment.items():
            monkeypatch.setenv(name, value)
        yield made


@pytest.fixture
def variables(tmp_path: Path) -> dict[str, str]:
    """An environment without anybody's keys, logins and temporary files."""
    for name in ("home", "temporary"):
        (tmp_path / name).mkdir()
    own = {"HOME": str(tmp_path / "home"), "TMPDIR": str(tmp_path / "temporary")}
    return {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "PYTHONUNBUFFERED": "1", **own}
