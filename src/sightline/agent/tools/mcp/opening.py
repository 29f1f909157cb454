"""Opening the servers of a configuration. Nothing of the SDK is loaded before one is opened."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from sightline.agent.tools.mcp.config import parse_config
from sightline.agent.tools.mcp.limits import USUAL, Bounds
from sightline.agent.tools.mcp.network import McpNetwork
from sightline.errors import Code, Fault

if TYPE_CHECKING:
    from sightline.agent.tools.mcp.mcp_tools import McpTools


async def open_mcp_file(
    file: Path, *, environment: Mapping[str, str], call_timeout: float = USUAL.call_s, network: McpNetwork | None = None
) -> "McpTools":
    """The tools of the servers that a file names; commands run in the file's folder."""
    text, folder = _read(file)
    return await open_mcp_text(
        text, where=str(file), folder=folder, environment=environment, call_timeout=call_timeout, network=network
    )


async def open_mcp_text(
    text: bytes,
    *,
    where: str,
    folder: Path,
    environment: Mapping[str, str],
    call_timeout: float = USUAL.call_s,
    bounds: Bounds = USUAL,
    network: McpNetwork | None = None,
) -> "McpTools":
    """The tools of the servers that a text names. `where` is what a person knows the text by."""
    found = parse_config(text, where=where, folder=folder, environment=environment)
    # Loading the SDK takes the better part of a second.
    from sightline.agent.tools.mcp.mcp_tools import McpTools

    tools = McpTools(found, msgspec.structs.replace(bounds, call_s=call_timeout), environment, network or McpNetwork())
    has_started = False
    try:
        await tools.start()
        has_started = True
    finally:
        if not has_started:
            await tools.close()
    return tools


def _read(file: Path) -> tuple[bytes, Path]:
    try:
        return file.read_bytes(), file.absolute().parent
    except OSError as error:
        hint = "Name a file with MCP servers in it, such as .mcp.json."
        raise Fault(Code.CONFIG, f"{file} cannot be read: {error.strerror}", hint=hint) from error
