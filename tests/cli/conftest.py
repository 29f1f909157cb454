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
