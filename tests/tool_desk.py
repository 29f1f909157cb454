"""A folder with a configuration, tools that leave traces, and a provider that plays a script: for runs."""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.background import upstream_in_background
from tests.upstream import Upstream

KEY = "sk-planted-1234567890"
TOOLS = '''
import os
from pathlib import Path

def add(a: int, b: int) -> int:
    """Add two numbers."""
    with Path("traces").open("a") as file:
        file.write(f"add {a} {b}\\n")
    return a + b

def wait(name: str) -> str:
    """Wait until somebody writes into the pipe of this name."""
    with Path("traces").open("a") as file:
        file.write(f"wait {name}\\n")
    print(f"waiting for {name}")
    return Path(name).read_text()
'''
MARKS = """
from mcp.server.mcpserver import MCPServer

server = MCPServer("marks")

@server.tool()
def mark(tags: set[str]) -> str:
    return ", ".join(sorted(tags))

server.run("stdio")
"""


def marks_in(folder: Path) -> Path:
    """The configuration of a server whose tool takes a set, which not every provider has a schema for."""
    (folder / "marks.py").write_text(MARKS)
    servers = {"marks": {"command": sys.executable, "args": [str(folder / "marks.py")]}}
    (folder / "marks.json").write_text(json.dumps({"mcpServers": servers}))
    return folder / "marks.json"


@dataclass
class ToolDesk:
    """`url` may be anybody's; `traces` are the calls that ran."""

    folder: Path
    upstream: Upstream
    environment: dict[str, str]

    @property
    def traces(self) -> list[str]:
        file = self.folder / "traces"
        return file.read_text().splitlines() if file.exists() else []

    def pipe(self, name: str = "gate") -> Path:
        """A pipe: whoever opens it to write waits until the tool reads."""
        os.mkfifo(self.folder / name)
        return self.folder / name


@contextmanager
def tool_desk(folder: Path) -> Iterator[ToolDesk]:
    """The desk while it stands."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("SIGHTLINE_") and not name.endswith(("_API_KEY", "_proxy", "_PROXY"))
    }
    for name in ("VISUAL", "EDITOR"):
        kept.pop(name, None)
    with upstream_in_background() as upstream:
        (folder / "tools.py").write_text(TOOLS)
        (folder / "sightline.toml").write_text(
            f'[ask]\nmodel = "acme/m"\n[providers.acme]\nbase_url = "{upstream.url}/v1"\nkey_env = "ACME_KEY"\n'
            '[models."m"]\nproviders = ["acme"]\nprices = { input = 1.0, output = 2.0 }\n'
            '[tools.sums]\npython = "tools.py"\nallow = ["add"]\n'
        )
        environment = {
            **kept,
            "ACME_KEY": KEY,
            "SIGHTLINE_DATA": str(folder / "data"),
            "XDG_CONFIG_HOME": str(folder / "config"),
        }
        yield ToolDesk(folder, upstream, environment)
