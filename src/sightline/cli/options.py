"""Options that several commands share, and the types of option values."""

import argparse
import math
import re
from collections.abc import Callable, Sequence
from datetime import datetime
from importlib import import_module
from typing import TYPE_CHECKING, TypeAlias

from sightline.cli.terminal import read
from sightline.errors import Code, Fault

if TYPE_CHECKING:
    from sightline.filters.expression import Expression

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
_MOST_WORKERS = 256
_FILE_NAME = re.compile(r"\S*(/\S*|\.[A-Za-z]\w{0,4})")
"""One word that contains a slash or ends like a file name."""


def add_shared(command: argparse.ArgumentParser) -> None:
    """Add `--config`, `--data` and `--log-level`."""
    command.add_argument("--config", metavar="FILE", help="configuration (default: ./sightline.toml, then the user's)")
    command.add_argument("--data", metavar="DIR", help="the data folder (or SIGHTLINE_DATA)")
    command.add_argument("--log-level", choices=("debug", "info"), default="info", help="debug shows tracebacks")


def finish(
    command: argparse.ArgumentParser, module: str, function: str, *, has_store: bool = False, has_apart: bool = False
) -> None:
    """Add the options that most commands have, and set what the command runs: a function of a module below `cli`."""
    if has_store:
        command.add_argument("--store", default="", metavar="URL", help="the record in PostgreSQL: postgresql://…")
    if has_apart:
        add_apart(command)
    add_shared(command)
    command.set_defaults(run=handler(module, function))


def handler(module: str, function: str) -> Callable[[argparse.Namespace], int]:
    """The function that runs a command. Its module is imported when it runs, so that help and usage errors appear at
    once."""

    def run(arguments: argparse.Namespace) -> int:
        code: int = getattr(import_module(f"sightline.cli.{module}"), function)(arguments)
        return code

    return run


def add_apart(command: argparse.ArgumentParser) -> None:
    """Add `--apart`, for commands whose requests a running server sends."""
    command.add_argument(
        "--apart", action="store_true", help="send from this process even if a server runs with this data folder"
    )


def _whole_number(least: int, most: float, problem: str) -> Callable[[str], int]:
    """The type of an option that takes a whole number within these bounds; `problem` is what is wrong with others."""

    def parse_number(text: str) -> int:
        if not text.isascii() or not text.isdecimal() or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"{text!r} {problem}")
        return int(text)

    return parse_number


count = _whole_number(1, math.inf, "is not a whole number of at least 1")
size = _whole_number(0, math.inf, "is not a whole number, 0 or more")
port = _whole_number(0, 65535, "is not a port from 0 to 65535")
_process_count = _whole_number(1, _MOST_WORKERS, f"is neither auto nor a number from 1 to {_MOST_WORKERS}")


def workers(text: str) -> int | str:
    """A number of processes, or `auto`."""
    return text if text == "auto" else _process_count(text)


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
    except (OSError, ValueError):  # too long for a name, or with characters that names cannot have
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
    return bool(arguments.tools or arguments.mcp or arguments.folder or arguments.builtin)


def refuse_without_tools(arguments: argparse.Namespace) -> None:
    """Raise a Fault for options that have no effect without tools."""
    if has_tools(arguments):
        return
    for name in _ONLY_WITH_TOOLS:
        if getattr(arguments, name):
            option = f"--{name.replace('_', '-')}"
            hint = "Name tools with --tools, --mcp, --folder or --builtin, or leave it out."
            raise Fault(Code.USAGE, f"{option} needs tools", hint=hint)


def parse_filter(words: Sequence[str]) -> "Expression":
    """Parse a filter from the command line; its words need no quotes."""
    from sightline.filters.fields import FilterScope  # imported late, so that help appears at once
    from sightline.filters.parsing import parse

    zone = datetime.now().astimezone().tzinfo
    assert zone is not None
    return parse(" ".join(words), scope=FilterScope.TRAFFIC, zone=zone)
