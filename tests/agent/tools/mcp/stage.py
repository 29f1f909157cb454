"""What the tests of MCP servers stand on: real servers as child processes, and a line past every protocol."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from sightline.agent.core.steps import RunnableCall
from sightline.agent.core.tool import ToolOutcome
from sightline.agent.tools.mcp.config import McpContext, McpNetwork, ServerLimits, open_mcp_file
from sightline.agent.tools.mcp.mcp_tools import McpTools

HERE = Path(__file__).parent
SDK_SERVER = str(HERE / "sdk_server.py")
HOSTILE = str(HERE / "hostile.py")
QUICK = ServerLimits(start_s=120, list_s=120, call_s=120, close_s=1, spacing_s=0, notice_s=1)
"""Nothing here is met unless a test shortens it: a slow machine is no reason to fail."""


class Ear:
    """Hears what servers tell past their protocol, a word at a time."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._words: asyncio.Queue[str] = asyncio.Queue()

    async def word(self) -> str:
        return await self._words.get()

    async def heard(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async for line in reader:
            self._words.put_nowait(line.decode().strip())
        writer.close()


@asynccontextmanager
async def listening() -> AsyncIterator[Ear]:
    # A socket's path may not be long, and pytest's folders are.
    with TemporaryDirectory() as folder:
        ear = Ear(f"{folder}/ear")
        async with await asyncio.start_unix_server(ear.heard, ear.path):
            yield ear


def sdk(ear: Ear | None = None, **more: Any) -> dict[str, Any]:
    """The official SDK's server on stdio, as a configuration has it."""
    env = {"TELL": ear.path} if ear else {}
    return {"command": sys.executable, "args": [SDK_SERVER, "stdio"], "env": env, **more}


def hostile(*how: str, ear: Ear | None = None, **more: Any) -> dict[str, Any]:
    """A server that means no good."""
    env = {"TELL": ear.path} if ear else {}
    return {"command": sys.executable, "args": [HOSTILE, *how], "env": env, **more}


@asynccontextmanager
async def sdk_over_http(*how: str, ear: Ear | None = None) -> AsyncIterator[str]:
    """The official SDK's server over HTTP; its address."""
    env = {**os.environ, "TELL": ear.path if ear else ""}
    process = await asyncio.create_subprocess_exec(
        sys.executable, SDK_SERVER, "http", *how, stdout=asyncio.subprocess.PIPE, env=env
    )
    try:
        port = int(await process.stdout.readline())
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


@asynccontextmanager
async def using(
    servers: dict[str, Any],
    bounds: ServerLimits = QUICK,
    environment: dict[str, str] | None = None,
    network: McpNetwork = McpNetwork(),  # noqa: B008 - frozen
) -> AsyncIterator[McpTools]:
    """The tools of these servers, closed in the end."""
    context = McpContext({"PATH": os.environ["PATH"], **(environment or {})}, bounds, network)
    with TemporaryDirectory() as folder:
        file = Path(folder) / "mcp.json"
        file.write_text(json.dumps({"mcpServers": servers}))
        tools = await open_mcp_file(file, context)
        try:
            yield tools
        finally:
            await tools.close()


def quiet(_: str) -> None:
    """For a call whose progress does not matter."""


async def used(tools: McpTools, name: str, progress: Callable[[str], None] = quiet, **arguments: Any) -> ToolOutcome:
    """What came of a call."""
    return await tools.use(RunnableCall(key="k", id="i", name=name, arguments=arguments), progress)


def names(tools: McpTools) -> list[str]:
    return [definition.name for definition in tools.definitions]
