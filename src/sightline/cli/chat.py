"""`sightline chat`: the chat in a browser, on the running server or on one that it starts."""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sightline.cli.options import add_shared, instructions_in
from sightline.cli.terminal import say, write
from sightline.errors import Code, Fault

if TYPE_CHECKING:
    from threading import Event

    from sightline.cli.shared_server import SharedServer

PLACE = "#/chat"
_PATIENCE = 10


def add_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `chat`."""
    command = commands.add_parser(
        "chat",
        help="open the chat in a browser",
        description="Open the chat of the server that runs with this data folder. Where none runs, one is started and "
        "ends with Ctrl-C. The link to the page is printed.",
    )
    command.add_argument(
        "--instructions",
        metavar="TEXT|FILE",
        help="your instructions for every topic, after the system prompt; stored until you change them",
    )
    command.add_argument("--no-open", action="store_true", help="print the link without opening a browser")
    command.add_argument("--apart", action="store_true", help="start a new server even if one is running")
    add_shared(command)
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Find or start a server, open the page, and stay as long as the server needs this process."""
    import os

    from sightline.app.configuration import configuration, data_folder
    from sightline.cli.run import config_option, refuse_without_locks
    from sightline.cli.serve import open_page

    refuse_without_locks()
    from sightline.cli.shared_server import is_in_use, share_server

    loaded = configuration(arguments.config)
    at, folder = loaded.settings.server, data_folder(arguments.data).absolute()
    is_shared = is_in_use(folder)
    options = ["--log-level", arguments.log_level, *config_option(loaded)]
    with (
        _end_on_signal() as stop,
        share_server(
            at.host, 0 if arguments.apart else at.port, folder, options=options, environment=os.environ
        ) as server,
    ):
        if arguments.instructions is not None:
            _instruct(server, instructions_in(arguments.instructions))
        link = f"{server.link}{PLACE}"
        write(f"{link}\n".encode(), ends_line=False)
        if not arguments.no_open:
            open_page(link)
        if server.is_new or is_shared:  # else the user started the server, and it stays up by itself
            say("The chat runs until Ctrl-C.")
            stop.wait()
    return 0


def _instruct(server: "SharedServer", text: str) -> None:
    """Set the instructions of the root topic."""
    import http.client
    import json
    from urllib.parse import urlsplit

    at = urlsplit(server.url)
    connection = http.client.HTTPConnection(str(at.hostname), at.port, timeout=_PATIENCE)
    headers = {"authorization": f"Bearer {server.token}", "content-type": "application/json"}
    try:
        connection.request("PUT", "/api/chat/topics", json.dumps({"instructions": text}), headers)
        answer = connection.getresponse()
        status, reply = answer.status, answer.read()
    except OSError as error:
        hint = "Is the server still running? Try again."
        raise Fault(Code.NETWORK, f"the server did not accept the instructions: {error}", hint=hint) from None
    finally:
        connection.close()
    if status >= http.client.BAD_REQUEST:
        hint = "Does the running server have the same version?"
        raise Fault(Code.USAGE, f"the server refused the instructions: {reply.decode(errors='replace')}", hint=hint)


@contextmanager
def _end_on_signal() -> "Iterator[Event]":
    """An event that is set when a signal asks the program to end. Ctrl-C interrupts it as usual."""
    import signal
    import threading

    stop = threading.Event()
    wanted = (signal.SIGTERM, signal.SIGHUP)
    before = {each: signal.signal(each, lambda _number, _frame: stop.set()) for each in wanted}
    try:
        yield stop
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
