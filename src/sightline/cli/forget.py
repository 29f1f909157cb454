"""`sightline forget`: remove exchanges from the record, so that no file of it holds them any more."""

import argparse
import sys
from typing import TYPE_CHECKING

from sightline.cli.options import add_shared
from sightline.cli.terminal import harmless, is_terminal, many, say
from sightline.errors import Code, Fault

if TYPE_CHECKING:
    from sightline.exchange.recording.records import ForgetResult


def add_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `forget`."""
    command = commands.add_parser(
        "forget",
        help="remove recorded exchanges for good",
        description="Remove the exchanges that a filter matches from the record, its journal and its search index, so "
        "that no file contains them any more. Prints their number and size, and asks twice. It works with and without "
        "a running server. `id:*` matches every exchange.",
    )
    command.add_argument("--dry-run", action="store_true", help="only print what would be deleted")
    command.add_argument(
        "--copies",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="also delete runs and eval runs that hold copies, and the copies in chats (default)",
    )
    command.add_argument("--yes", action="store_true", help="do not ask")
    command.add_argument("--store", default="", metavar="URL", help="the record in PostgreSQL: postgresql://…")
    add_shared(command)
    command.add_argument("filter", nargs="+", metavar="FILTER", help="a filter")
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Say what will go, ask, and remove it."""
    from sightline.app.configuration import configuration
    from sightline.cli.program import EXIT_FAILED
    from sightline.cli.traffic import parse_filter

    configuration(arguments.config)  # first: plug-ins add fields to filters
    parse_filter(arguments.filter)  # what is wrong with it is said here, with its place
    if not " ".join(arguments.filter).strip():
        raise Fault(Code.USAGE, "the filter is empty", hint="`id:*` matches every exchange.")
    planned = _forget(arguments, is_dry_run=True)
    _describe(planned, arguments, "would be forgotten" if arguments.dry_run else "will be forgotten")
    if arguments.dry_run:
        return 0
    if planned.exchanges and not arguments.yes and not _confirm(planned):
        say("nothing was deleted")
        return EXIT_FAILED
    gone = _forget(arguments, is_dry_run=False)
    if gone.exchanges:
        say(f"{many(gone.exchanges, 'exchange')} forgotten, {size_of(gone.bytes)} freed")
    return 0


def _describe(planned: "ForgetResult", arguments: argparse.Namespace, verb: str) -> None:
    from sightline.exchange.recording.records import is_removable

    if not planned.exchanges:
        say("no recorded exchange matches")
    else:
        say(f"{many(planned.exchanges, 'exchange')} {verb}, {size_of(planned.bytes)}")
    if planned.under_way:
        say(f"note: {many(planned.under_way, 'exchange')} under way will stay")
    removable = [harmless(log) for log in planned.copies if is_removable(log)]
    chats = [harmless(log) for log in planned.copies if not is_removable(log)]
    if removable and arguments.copies:
        say(f"with all of {', '.join(removable)}, which {'hold' if len(removable) > 1 else 'holds'} copies")
    if chats and arguments.copies:
        say(f"with their texts in {', '.join(chats)}")
    if planned.copies and not arguments.copies:
        say(f"note: {', '.join([*removable, *chats])} hold copies and stay, because of --no-copies")


def _confirm(planned: "ForgetResult") -> bool:
    if not is_terminal(sys.stdin):
        raise Fault(Code.USAGE, "there is no terminal to ask at", hint="Add --yes to delete without confirmation.")
    count = planned.exchanges
    if _ask(f"Forget {many(count, 'exchange')}? [y/N] ").lower() not in ("y", "yes"):
        return False
    return _ask(f"This cannot be undone. Type {count} to go on: ") == str(count)


def _ask(question: str) -> str:
    say(question, end="")
    return sys.stdin.readline().strip()


def size_of(count: int) -> str:
    """A number of bytes for a person."""
    if count < 1000:
        return many(count, "byte")
    return f"{count / 1000:,.1f} kB" if count < 1_000_000 else f"{count / 1_000_000:,.1f} MB"


def _forget(arguments: argparse.Namespace, *, is_dry_run: bool) -> "ForgetResult":
    """Forget through the server of the data folder, so that its pages show it; else in the record itself."""
    import asyncio
    from functools import partial

    import msgspec

    from sightline.app.configuration import configuration, data_folder
    from sightline.app.engine import open_record
    from sightline.app.machine import SystemClock
    from sightline.app.running_server import call_server, find_server
    from sightline.chat.service.chats import erase_exchanges
    from sightline.cli.traffic import parse_filter
    from sightline.exchange.recording.records import ForgetResult, forget_exchanges

    server = None if arguments.store else find_server(data_folder(arguments.data))
    if server is not None:
        order = {"filter": " ".join(arguments.filter), "dry_run": is_dry_run, "copies": arguments.copies}
        return msgspec.json.decode(call_server(server, "POST", "/api/forget", order, timeout=None), type=ForgetResult)
    loaded, wanted = configuration(arguments.config), parse_filter(arguments.filter)

    async def forget() -> "ForgetResult":
        async with open_record(loaded, arguments.data, arguments.store) as store:
            found, _ = await forget_exchanges(
                store,
                wanted,
                now=SystemClock().now(),
                is_dry_run=is_dry_run,
                with_copies=arguments.copies,
                erase_chats=partial(erase_exchanges, store.logbook),
            )
            return found

    return asyncio.run(forget())
