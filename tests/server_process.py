"""The whole program in a process of its own, which can be killed."""

import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.gateway_server import Served

PROGRAM = [sys.executable, "-c", "from sightline.cli import main; raise SystemExit(main())"]
SERVING = """
import asyncio, sys
from sightline.app.configuration import configuration
from sightline.app.server import open_server
from sightline.server.listener import bind_sockets

async def main(config, folder, port):
    sockets = bind_sockets("127.0.0.1", int(port))
    port = sockets[0].getsockname()[1]
    async with open_server(configuration(config), folder, host="127.0.0.1", port=port) as (listening, link):
        print(link, flush=True)
        await listening.run_on(sockets)

asyncio.run(main(*sys.argv[1:]))
"""


def start(command: Sequence[str], **how: Any) -> tuple["subprocess.Popen[str]", Served]:
    """A command whose first line is the link of its server, and that server."""
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **how)
    assert child.stdout is not None
    link = re.fullmatch(r"(http://127\.0\.0\.1:\d+)/\?token=([\w-]{22,})\n", child.stdout.readline())
    if link is None:
        child.kill()
        raise AssertionError(child.communicate())
    return child, Served(link[1], link[2], None)  # type: ignore[arg-type]


def start_alone(folder: Path, port: int = 0, **how: Any) -> tuple["subprocess.Popen[str]", Served]:
    """A server with the configuration and the data of this folder, in one process."""
    return start(
        [sys.executable, "-c", SERVING, str(folder / "sightline.toml"), str(folder / "data"), str(port)], **how
    )
