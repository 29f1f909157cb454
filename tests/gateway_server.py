"""The whole program behind a port: gateway, relay and record, in a thread of its own."""

import asyncio
import contextlib
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from sightline.app.configuration import configuration
from sightline.app.server import open_server
from sightline.errors import Fault
from sightline.platform.processes import new_loop
from sightline.server.listener import ListeningServer, bind_sockets
from tests.http_call import call
from tests.shared_servers import free_port


@dataclass(frozen=True, slots=True)
class Served:
    """`url` is where it listens; `listening` can be asked to end, and `ended` is set once it has."""

    url: str
    token: str
    listening: ListeningServer
    ended: threading.Event = field(default_factory=threading.Event)

    def api(self, path: str) -> Any:
        """What the API says."""
        return json.loads(self.data(path))

    def post(self, path: str, body: bytes = b"{}") -> tuple[int, Any]:
        """What the API says to an order: status, JSON."""
        json_type = {"content-type": "application/json"}
        answer = call("POST", self.url + path, body, token=self.token, headers=json_type)
        return answer.status, answer.json()

    def body(self, exchange: str, of: str) -> bytes:
        """A body of the record."""
        return self.data(f"/api/exchanges/{exchange}/body?of={of}")

    def data(self, path: str) -> bytes:
        """What the API says, byte for byte."""
        answer = call("GET", self.url + path, token=self.token)
        assert answer.status == 200, answer
        return answer.body


_usual_ports: list[int] = []


@contextmanager
def usual_port() -> Iterator[None]:
    """Until the end, servers come to the same port if it is free: a browser has the scripts of its pages compiled."""
    _usual_ports.append(free_port())
    try:
        yield
    finally:
        _usual_ports.clear()


def _bind(port: int) -> list[socket.socket]:
    for usual in [] if port else _usual_ports:
        with contextlib.suppress(Fault):
            return bind_sockets("127.0.0.1", usual)
    return bind_sockets("127.0.0.1", port)


@contextmanager
def served(folder: Path, config: str, port: int = 0) -> Iterator[Served]:
    """Sightline with this configuration, and its data in this folder; on any free port if none is named."""
    file = folder / "sightline.toml"
    file.write_text(config)
    loaded = configuration(str(file))
    ready, given_up = threading.Event(), threading.Event()
    made: list[Served] = []

    async def serve() -> None:
        sockets = _bind(port)
        own = sockets[0].getsockname()[1]
        async with open_server(loaded, str(folder / "data"), host="127.0.0.1", port=own) as (listening, link):
            parts = urlsplit(link)
            made.append(Served(f"http://{parts.netloc}", parse_qs(parts.query)["token"][0], listening))
            ready.set()
            if not given_up.is_set():
                await listening.run_on(sockets)

    def run() -> None:
        try:
            with asyncio.Runner(loop_factory=new_loop) as runner:
                runner.run(serve())
        finally:
            ready.set()  # also where it could not begin: nobody waits for it then
            if made:
                made[0].ended.set()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        assert ready.wait(60)
        assert made
        yield made[0]
    finally:
        given_up.set()  # one that begins later than it is waited for does not stay
        if made:
            made[0].listening.end()
        thread.join(60)
        assert not thread.is_alive()
