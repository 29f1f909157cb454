"""`sightline serve`: runs the gateway and its page until a signal ends it."""

import argparse
import asyncio
import logging
import signal
import sys

from sightline.app.configuration import Configuration, configuration
from sightline.app.engine import is_installed
from sightline.app.server import open_server
from sightline.app.workers import count_workers, why_alone
from sightline.cli.program import EXIT_INTERRUPTED
from sightline.cli.terminal import open_page, say, write
from sightline.errors import Code, Fault
from sightline.filters.expression import Expression
from sightline.filters.fields import FilterScope
from sightline.filters.parsing import parse
from sightline.platform.processes import allow_many_files, new_loop
from sightline.server.listener import bind_sockets, is_loopback, settle_down


def run(arguments: argparse.Namespace) -> int:
    """Listen, print the address, and serve until a signal arrives."""

    async def serve() -> int:
        async with open_server(
            loaded,
            arguments.data,
            host=host,
            port=port,
            store=arguments.store,
            replay=wanted,
            fast=arguments.fast,
            has_recorder=True,
            workers=workers,
        ) as (server, link):
            write(f"{link}\n".encode(), ends_line=False)
            if workers > 1:
                say(f"{workers} workers serve clients, this process among them.")
            if wanted is None:
                say(_describe_embedded(loaded))
            if not arguments.no_open:
                open_page(link)
            settle_down()
            await server.run_on(sockets)
        return EXIT_INTERRUPTED if server.asked_by is signal.SIGINT else 0

    loaded = configuration(arguments.config)  # first, because plug-ins add fields to filters
    wanted = _recordings(arguments)
    configured = loaded.settings.server
    host = arguments.host or configured.host
    logging.basicConfig(stream=sys.stderr, level=arguments.log_level.upper(), format="%(levelname)s: %(message)s")
    logging.getLogger("asyncio").setLevel(logging.WARNING)
    allow_many_files()
    workers = 1 if wanted is not None else _count_workers(arguments.workers or configured.workers, loaded)
    sockets = bind_sockets(host, configured.port if arguments.port is None else arguments.port)
    try:
        port = sockets[0].getsockname()[1]
        if not is_loopback(host):
            say(f"warning: {host} can be reached by other machines, and the gateway requires no token")
        with asyncio.Runner(loop_factory=new_loop) as runner:
            return runner.run(serve())
    finally:
        for each in sockets:
            each.close()


def _recordings(arguments: argparse.Namespace) -> Expression | None:
    """The filter for the exchanges that clients are answered from; None to send to providers."""
    if arguments.replay is not None:
        if arguments.workers is not None:
            hint = "Leave one of them out: one process answers from the record."
            raise Fault(Code.USAGE, "--workers cannot be used with --replay", hint=hint)
        return parse(arguments.replay, scope=FilterScope.TRAFFIC)
    if arguments.fast:
        raise Fault(Code.USAGE, "--fast needs --replay", hint="A provider's answer has no recorded delays.")
    return None


def _count_workers(wanted: int | str, loaded: Configuration) -> int:
    """How many processes serve clients. If only one can, the user is told why."""
    count = count_workers(wanted)
    if why := why_alone(count, loaded.settings.network.max_connections):
        say(f"note: one process serves clients: {why}")
        return 1
    return count


def _describe_embedded(loaded: Configuration) -> str:
    """One line about the embedded model: whether it is installed, and when it answers."""
    if url := loaded.settings.local.url:
        return f"The embedded model is the one at {url}."
    if not is_installed():
        return "The embedded model is not installed; everything else works. `sightline local install` installs it."
    return "The embedded model answers if no key is set; it starts with its first request."
