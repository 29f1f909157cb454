"""A real MCP server, written with the official SDK: `sdk_server.py stdio` or `sdk_server.py http` (prints its port)."""

import asyncio
import base64
import os
import socket
import subprocess
import sys
import warnings
from functools import partial
from typing import Any

import anyio
import uvicorn
from mcp import MCPDeprecationWarning, MCPError
from mcp.server.mcpserver import Context, Image, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    EmbeddedResource,
    ResourceLink,
    SamplingMessage,
    TextContent,
    TextResourceContents,
    ToolAnnotations,
)

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
server = MCPServer("sdk", log_level="CRITICAL")
warnings.simplefilter("ignore", MCPDeprecationWarning)


def tell(word: str) -> None:
    """Say something to the test, past every protocol."""
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(os.environ["TELL"])
        line.sendall(f"{word}\n".encode())


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
def fail() -> str:
    """Always fails."""
    raise ToolError("there is nothing to be had")


@server.tool()
def environment() -> dict[str, str]:
    """The variables that this process has."""
    return dict(os.environ)


@server.tool(structured_output=False)
def everything() -> Any:
    """One part of each kind."""
    return CallToolResult(
        content=[
            TextContent(text="words"),
            Image(data=PIXEL, format="png").to_image_content(),
            AudioContent(data=base64.b64encode(b"ID3\x04 sound").decode(), mime_type="audio/mpeg"),
            EmbeddedResource(resource=TextResourceContents(uri="file:///a.txt", text="inside")),
            EmbeddedResource(
                resource=BlobResourceContents(uri="file:///b.bin", blob="AAEC", mime_type="application/x-thing")
            ),
            ResourceLink(name="c", uri="file:///c.txt", mime_type="text/plain", size=3),
        ],
        structured_content={"n": 1},
    )


@server.tool()
async def count(to: int, ctx: Context) -> str:
    """Count, and say how far it is."""
    await ctx.report_progress(1, to, "counting\x1b[2J")
    return f"counted to {to}"


@server.tool()
async def wait(ctx: Context) -> str:
    """Wait until the call is cancelled."""
    await ctx.report_progress(0, None, "waiting")
    try:
        await anyio.sleep_forever()
    finally:
        tell("cancelled")
    return ""


@server.tool()
async def grow(ctx: Context) -> str:
    """Offer one tool more."""
    server.add_tool(add, name="more")
    await ctx.session.send_tool_list_changed()
    await ctx.notify_tools_changed()
    return "grown"


@server.tool()
async def shrink(ctx: Context) -> str:
    """Offer one tool less."""
    server.remove_tool("fail")
    await ctx.session.send_tool_list_changed()
    return "shrunk"


@server.tool()
async def think(ctx: Context) -> str:
    """Ask the client for a model's answer, for a person's, and for its folders."""
    message = SamplingMessage(role="user", content=TextContent(text="hello"))
    said = []
    for question in (
        partial(ctx.session.create_message, messages=[message], max_tokens=1),
        partial(ctx.session.elicit_form, "who are you?", {"type": "object", "properties": {}}),
        ctx.session.list_roots,
    ):
        try:
            await question()
        except MCPError as error:
            said.append(str(error))
    return "; ".join(said)


@server.tool()
def breed() -> int:
    """Start a process that outlives its parent."""
    child = subprocess.Popen(["sleep", "1000"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return child.pid


def main(how: str) -> None:
    if how == "stdio":
        server.run("stdio")
        return
    listening = socket.create_server(("127.0.0.1", 0))
    sys.stdout.write(f"{listening.getsockname()[1]}\n")
    sys.stdout.flush()
    app = server.streamable_http_app(json_response="json" in sys.argv)
    config = uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1)
    asyncio.run(uvicorn.Server(config).serve(sockets=[listening]))


if __name__ == "__main__":
    main(sys.argv[1])
