"""`sightline serve`: the gateway and its page, until a signal ends it."""

import argparse
import sys
from typing import TYPE_CHECKING

from sightline.cli.options import add_shared
from sightline.cli.terminal import is_terminal, say, write
from sightline.errors import Code, Fault

if TYPE_CHECKING:
    from sightline.app.configuration import Configuration
    from sightline.filters.expression import Expression

_INTERRUPTED = 130


def add_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `serve`."""
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
    add_shared(command)
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Listen, print the address, and serve until a signal comes."""
    import asyncio
    import signal

    from sightline.app.configuration import configuration
    from sightline.app.server import open_server
    from sightline.server.listener import allow_many_files, bind_sockets, is_loopback, new_loop, settle_down

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
        ) as (server, link):
            write(f"{link}\n".encode(), ends_line=False)
            if wanted is None:
                say(_about_local(loaded))
            if not arguments.no_open:
                open_page(link)
            settle_down()
            await server.run_on(sockets)
        return _INTERRUPTED if server.asked_by is signal.SIGINT else 0

    wanted = _recordings(arguments)
    loaded = configuration(arguments.config)
    configured = loaded.settings.server
    host = arguments.host or configured.host
    _log(arguments.log_level)
    allow_many_files()
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

    has_screen = sys.platform in ("darwin", "win32") or any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY")))
    if has_screen and is_terminal(sys.stdout):
        threading.Thread(target=webbrowser.open, args=(link,), daemon=True).start()


def _recordings(arguments: argparse.Namespace) -> "Expression | None":
    """The exchanges that clients are answered from; None to send to providers."""
    from sightline.filters.fields import FilterScope
    from sightline.filters.parsing import parse

    if arguments.replay is not None:
        return parse(arguments.replay, scope=FilterScope.TRAFFIC)
    if arguments.fast:
        raise Fault(Code.USAGE, "--fast needs --replay", hint="A provider's answer has no recorded delays.")
    return None


def _port(text: str) -> int:
    """A port, or 0."""
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port from 0 to 65535")
    return int(text)


def _about_local(loaded: "Configuration") -> str:
    """One line about the embedded model: whether it is installed, and when it answers."""
    from sightline.app.engine import is_installed

    if url := loaded.settings.local.url:
        return f"The embedded model is the one at {url}."
    if not is_installed():
        return "The embedded model is not installed; everything else works. `make local` shows why."
    return "The embedded model answers if no key is set; it starts with its first request."


def _log(level: str) -> None:
    """Log requests to stderr."""
    import logging

    logging.basicConfig(stream=sys.stderr, level=level.upper(), format="%(levelname)s: %(message)s")
    logging.getLogger("asyncio").setLevel(logging.WARNING)
