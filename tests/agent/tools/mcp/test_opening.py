import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sightline.agent.tools.mcp.config import open_mcp_file
from sightline.errors import Code, Fault
from tests.agent.tools.mcp.stage import hostile, names


def test_the_servers_of_a_file_are_opened(tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    file.write_text(json.dumps({"mcpServers": {"it": hostile("Server", env={})}}))

    async def story() -> list[str]:
        tools = await open_mcp_file(file, environment={"PATH": os.environ["PATH"]})
        found = names(tools)
        await tools.close()
        await tools.close()
        return found

    assert asyncio.run(story()) == ["it__go"]


def test_a_file_that_is_not_there_is_a_fault(tmp_path: Path) -> None:
    with pytest.raises(Fault, match=r"none\.json cannot be read") as raised:
        asyncio.run(open_mcp_file(tmp_path / "none.json", environment={}))
    assert raised.value.code is Code.CONFIG
    assert raised.value.hint


@pytest.mark.parametrize("module", ["sightline.agent.tools.mcp.config", "sightline.cli.program"])
def test_the_sdk_is_not_loaded_before_it_is_needed(module: str) -> None:
    script = f"import sys, {module}; sys.exit(any(name.split('.')[0] in ('mcp', 'anyio') for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
