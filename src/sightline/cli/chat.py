"""`sightline chat`: the chat in a browser, on the server that runs already or on one that is started for it."""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sightline.cli.options import add_shared
from sightline.cli.terminal import say, write

if TYPE_CHECKING:
    from threading import Event

PLACE = "#/chat"


def add_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """`chat` and its options."""
    command = commands.add_parser(
        "chat",
        help="open the chat in a browser",
        description="Open the chat of the server that runs with this data folder. Where none runs, one is started and "
        "ends with Ctrl-C. The link to the page is printed.",
    )
    command.add_argument("--no-open", action="store_true", help="print the link, and open no browser")
    command.add_argument("--apart", action="store_true", help="start a server of its own, also where one runs already")
    add_shared(command)
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Find or start a server, show the page, and stay as long as the server needs somebody to stay."""
    import os

    from sightline.build.configured import configuration, data_folder
    from sightline.cli.browser import open_page
    from sightline.cli.run import config_option, refuse_without_locks

    refuse_without_locks()
    from sightline.cli.shared_server import is_in_use, shared_server

    loaded = configuration(arguments.config)
    at, folder = loaded.settings.server, data_folder(arguments.data).absolute()
    is_shared = is_in_use(folder)
    options = ["--log-level", arguments.log_level, *config_option(loaded)]
    with (
        _asked_to_end() as asked,
        shared_server(
            at.host, 0 if arguments.apart else at.port, folder, options=options, environment=os.environ
        ) as server,
    ):
        link = f"{server.link}{PLACE}"
        write(f"{link}\n".encode(), ends_line=False)
        if not arguments.no_open:
            open_page(link)
        if server.is_new or is_shared:  # else the server is somebody's own, and stays by itself
            say("The chat is there until Ctrl-C.")
            asked.wait()
    return 0


@contextmanager
def _asked_to_end() -> "Iterator[Event]":
    """Set once a signal asks the program to end. Ctrl-C interrupts it, as everywhere."""
    import signal
    import threading

    asked = threading.Event()
    wanted = (signal.SIGTERM, signal.SIGHUP)
    before = {each: signal.signal(each, lambda _number, _frame: asked.set()) for each in wanted}
    try:
        yield asked
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
