"""`sightline forget`: removes exchanges from the record, so that none of its files contains them any more."""

import argparse
import asyncio
from functools import partial

import msgspec

from sightline.app.configuration import configuration, data_folder
from sightline.app.engine import open_record
from sightline.app.machine import SystemClock
from sightline.app.running_server import call_server, find_server
from sightline.chat.service.chats import erase_exchanges
from sightline.cli.options import parse_filter
from sightline.cli.program import EXIT_FAILED
from sightline.cli.terminal import ask, confirm, harmless, many, say, size_of
from sightline.errors import Code, Fault
from sightline.exchange.recording.records import ForgetResult, forget_exchanges, is_removable


def run(arguments: argparse.Namespace) -> int:
    configuration(arguments.config)  # first, because plug-ins add fields to filters
    parse_filter(arguments.filter)  # reports a mistake here, with its place
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


def _describe(planned: ForgetResult, arguments: argparse.Namespace, verb: str) -> None:
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


def _confirm(planned: ForgetResult) -> bool:
    count, hint = planned.exchanges, "Add --yes to delete without confirmation."
    if not confirm(f"Forget {many(count, 'exchange')}?", hint):
        return False
    return ask(f"This cannot be undone. Type {count} to go on: ", hint) == str(count)


def _forget(arguments: argparse.Namespace, *, is_dry_run: bool) -> ForgetResult:
    """Forget through the server of the data folder, so that its pages show it; without a server, in the record
    itself."""
    server = None if arguments.store else find_server(data_folder(arguments.data))
    if server is not None:
        order = {"filter": " ".join(arguments.filter), "dry_run": is_dry_run, "copies": arguments.copies}
        return msgspec.json.decode(call_server(server, "POST", "/api/forget", order, timeout=None), type=ForgetResult)
    loaded, wanted = configuration(arguments.config), parse_filter(arguments.filter)

    async def forget() -> ForgetResult:
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
