"""Options that several commands have, and the types of option values."""

import argparse
import math
import re
from typing import TYPE_CHECKING

from sightline.cli.terminal import read
from sightline.errors import Code, Fault

if TYPE_CHECKING:
    from sightline.agent.core.limits import RunLimits
    from sightline.app.configuration import Configuration
    from sightline.app.tools import ToolsWanted


_FILE_NAME = re.compile(r"\S*(/\S*|\.[A-Za-z]\w{0,4})")
"""One word that contains a slash or ends like a file name."""


def add_shared(command: argparse.ArgumentParser) -> None:
    """Add `--config`, `--data` and `--log-level`."""
    command.add_argument("--config", metavar="FILE", help="configuration (default: ./sightline.toml, then the user's)")
    command.add_argument("--data", metavar="DIR", help="the data folder (or SIGHTLINE_DATA)")
    command.add_argument("--log-level", choices=("debug", "info"), default="info", help="debug shows tracebacks")


def add_session(command: argparse.ArgumentParser) -> None:
    """Add the name of a session, `--json`, `--store` and the shared options, for commands that read a session."""
    command.add_argument("--json", action="store_true", help="print one JSON object")
    command.add_argument("--store", default="", metavar="URL", help="the record in PostgreSQL: postgresql://…")
    add_shared(command)
    command.add_argument("session", nargs="?", default="", metavar="SESSION", help="the name of a session")


def add_apart(command: argparse.ArgumentParser) -> None:
    """Add `--apart`, for commands whose requests a running server sends."""
    command.add_argument(
        "--apart", action="store_true", help="send from this process even if a server runs with this data folder"
    )


def count(text: str) -> int:
    """A whole number of at least 1."""
    if not text.isascii() or not text.isdigit() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)


def number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number")
    return value


def amount(text: str) -> float:
    """A number above 0."""
    value = number(text)
    if value <= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not above 0")
    return value


def instructions_in(given: str | None, otherwise: str = "") -> str:
    """The text of an option that takes a text or a file name; `otherwise` if it is not given."""
    if given is None:
        return otherwise
    from pathlib import Path

    try:
        is_file = Path(given).is_file()
    except (OSError, ValueError):  # too long for a name, or with characters that no name has
        is_file = False
    if not is_file:
        if _FILE_NAME.fullmatch(given):
            raise Fault(Code.USAGE, f"{given}: there is no such file", hint="Name a file, or write the text itself.")
        return given
    try:
        return read(given).decode("utf-8-sig").strip()
    except UnicodeDecodeError as error:
        raise Fault(Code.USAGE, f"{given} is not UTF-8 text (byte {error.start})", hint="Save it as UTF-8.") from None


_ONLY_WITH_TOOLS = (
    "hooks", "max_requests", "max_tool_calls", "max_tokens_total", "max_cost", "max_seconds", "yes", "confirm",
)  # fmt: skip


def add_tool_options(command: argparse.ArgumentParser) -> None:
    add_tool_sources(command)
    limits = command.add_argument_group("limits of a run with tools")
    limits.add_argument("--max-requests", type=count, metavar="N", help="requests to the model (default: 50)")
    limits.add_argument("--max-tool-calls", type=count, metavar="N", help="calls that are run")
    limits.add_argument("--max-tokens-total", type=count, metavar="N", help="tokens of all requests and answers")
    limits.add_argument("--max-cost", type=amount, metavar="USD", help="US dollars; the model's prices must be known")
    limits.add_argument("--max-seconds", type=amount, metavar="S", help="seconds")


def add_tool_sources(command: argparse.ArgumentParser) -> None:
    """Add the options for tools and approval."""
    tools = command.add_argument_group("tools")
    tools.add_argument(
        "--tools",
        action="append",
        default=[],
        metavar="FILE|NAME",
        help="a Python file, or a toolset of the configuration; repeatable",
    )
    tools.add_argument(
        "--mcp", action="append", default=[], metavar="CONFIG", help="a file that names MCP servers; repeatable"
    )
    tools.add_argument(
        "--folder", default="", metavar="DIR", help="a folder for the built-in tools (default: the current one)"
    )
    tools.add_argument(
        "--builtin",
        default="",
        metavar="NAMES",
        help="built-in tools, separated by commas (default with --folder: those that only read)",
    )
    tools.add_argument("--hooks", action="append", default=[], metavar="FILE", help="hooks of the run; repeatable")
    approval = tools.add_mutually_exclusive_group()
    approval.add_argument("--yes", action="store_true", help="run every call without asking")
    approval.add_argument("--confirm", action="store_true", help="ask about every call, even if a rule allows it")


def has_tools(arguments: argparse.Namespace) -> bool:
    """Whether tools were named."""
    return bool(arguments.tools or arguments.mcp or arguments.folder or arguments.builtin)


def refuse_without_tools(arguments: argparse.Namespace) -> None:
    """Refuse options that mean nothing without tools."""
    if has_tools(arguments):
        return
    for name in _ONLY_WITH_TOOLS:
        if getattr(arguments, name):
            option = f"--{name.replace('_', '-')}"
            hint = "Name tools with --tools, --mcp, --folder or --builtin, or leave it out."
            raise Fault(Code.USAGE, f"{option} needs tools", hint=hint)


def tools_in(arguments: argparse.Namespace, loaded: "Configuration") -> "ToolsWanted":
    """The tools that the options name."""
    from sightline.app.tools import parse_tools

    return parse_tools(
        loaded,
        tools=arguments.tools,
        mcp=arguments.mcp,
        folder=arguments.folder,
        builtin=[name.strip() for name in arguments.builtin.split(",") if name.strip()],
        hooks=arguments.hooks,
    )


def limits_in(arguments: argparse.Namespace, *, is_asked: bool) -> "RunLimits":
    """The limits of the run; `is_asked` if the user is asked when one is reached."""
    from sightline.agent.core.limits import RunLimits

    return RunLimits(
        requests=arguments.max_requests or RunLimits().requests,
        tool_calls=arguments.max_tool_calls,
        tokens=arguments.max_tokens_total,
        cost=arguments.max_cost,
        seconds=arguments.max_seconds,
        behaviour="confirm" if is_asked else "stop",
    )
