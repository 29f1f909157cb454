"""`sightline context`: what fills the context of a client's session."""

import argparse
import shutil
import sys
from typing import TYPE_CHECKING

from sightline.cli.options import add_session
from sightline.cli.terminal import harmless, is_terminal, write

if TYPE_CHECKING:
    from sightline.workbench.context import ContextRow, ContextShown

_WIDTH_IN_A_PIPE = 100
_MOST_TOOLS = 12


def add_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `context`."""
    command = commands.add_parser(
        "context",
        help="show what fills the context of a session",
        description="Show what the latest request of a session is made of: tokens by kind of content, by tool and by "
        "MCP server, the model's window and what would still fit. Without a session, the latest request of any client.",
    )
    add_session(command)
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print it."""
    import asyncio

    import msgspec

    shown = asyncio.run(_measure(arguments))
    if arguments.json:
        write(msgspec.json.encode(shown) + b"\n")
    else:
        width = shutil.get_terminal_size().columns if is_terminal(sys.stdout) else _WIDTH_IN_A_PIPE
        write(_page(shown, width).encode())
    return 0


async def _measure(arguments: argparse.Namespace) -> "ContextShown":
    from sightline.app.configuration import configuration
    from sightline.app.engine import open_viewer
    from sightline.app.machine import SystemClock
    from sightline.workbench.context import ContextMeter

    async with open_viewer(configuration(arguments.config), arguments.data, arguments.store) as viewer:
        return await ContextMeter(viewer, SystemClock().now).measure(arguments.session)


def _page(shown: "ContextShown", width: int) -> str:
    of_window = f" of {shown.window:,} ({shown.tokens / shown.window:.0%})" if shown.window else ""
    head = f"{harmless(shown.model)}  {shown.tokens:,} tokens{of_window}"
    if shown.counted is not None:
        head += f", counted {shown.counted:,}"
        head += f", {shown.cached:,} from the cache" if shown.cached else ""
    named = f"session {harmless(shown.session)}, " if shown.session else ""
    lines = [head, f"{named}{harmless(shown.client) or 'no client'}, request {shown.exchange}", ""]
    lines += _rows(shown.kinds, shown.tokens, width)
    if shown.free is not None:
        reserve = f" beside {shown.reserve:,} for the reply" if shown.reserve else ""
        lines += ["", f"{shown.free:,} tokens would still fit{reserve}"]
    if shown.servers:
        lines += ["", "MCP servers", *_rows(shown.servers, shown.tokens, width)]
    if shown.tools:
        more = len(shown.tools) - _MOST_TOOLS
        lines += ["", "Tools", *_rows(shown.tools[:_MOST_TOOLS], shown.tokens, width)]
        lines += [f"  and {more} more"] if more > 0 else []
    return "\n".join(lines) + "\n"


def _rows(rows: "tuple[ContextRow, ...]", whole: int, width: int) -> list[str]:
    """A line for each: its name, its tokens and share, and a bar as long as its share of the largest."""
    names = [harmless(row.name) + (f" ({row.count})" if row.count > 1 else "") for row in rows]
    broad = min(max(map(len, names), default=0), 40)
    largest = max((row.tokens + row.results for row in rows), default=0) or 1
    room = max(width - broad - 26, 10)
    lines = []
    for name, row in zip(names, rows, strict=True):
        taken = row.tokens + row.results
        bar = "█" * max(round(room * taken / largest), 1 if taken else 0)
        lines.append(f"  {name[:broad]:{broad}}  {taken:>9,}  {taken / (whole or 1):>5.1%}  {bar}".rstrip())
    return lines
