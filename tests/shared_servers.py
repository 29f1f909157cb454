"""Servers that runs share, as tests use them."""

import contextlib
import os
import random
import socket
from contextlib import AbstractContextManager
from pathlib import Path

from sightline.cli.shared_server import SharedServer, share_server


def sharing(folder: Path, port: int, *options: str) -> AbstractContextManager[SharedServer]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SIGHTLINE_")}
    return share_server("127.0.0.1", port, folder, options=options, environment=environment)


def free_port() -> int:
    """A port that nobody has, from a range out of which the system gives none to others meanwhile."""
    for port in random.sample(range(20_000, 30_000), 100):
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise AssertionError("no port is free")


def has_ended(connection: socket.socket) -> bool:
    """Wait until the server at the other end hangs up; one that it has not taken yet is reset."""
    with contextlib.suppress(ConnectionResetError):
        return connection.recv(1) == b""
    return True
