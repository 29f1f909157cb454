"""A real server with workers, in processes of its own, and clients that keep their connections."""

import http.client
import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic, sleep
from typing import Any
from urllib.parse import urlsplit

from tests.background import upstream_in_background
from tests.gateway_server import Served
from tests.person import Person
from tests.server_process import PROGRAM, start
from tests.upstream import Upstream, says

REPLY: dict[str, Any] = {
    "id": "c", "object": "chat.completion", "model": "m",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Good morning"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7},
}  # fmt: skip
CONFIG = '[providers.acme]\ndialect = "openai-chat"\nbase_url = "{url}/v1"\n'
PATH = "/p/acme/v1/chat/completions"


def asked(words: str, **more: Any) -> bytes:
    return json.dumps({"model": "m", "messages": [{"role": "user", "content": words}], **more}).encode()


def delta(words: str) -> bytes:
    """An event of a stream."""
    choice = {"index": 0, "delta": {"content": words}, "finish_reason": None}
    chunk = {"id": "c", "object": "chat.completion.chunk", "model": "m", "choices": [choice]}
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


class Client:
    """A client with one connection, which it keeps."""

    def __init__(self, url: str) -> None:
        at = urlsplit(url)
        self.connection = http.client.HTTPConnection(str(at.hostname), at.port, timeout=60)

    def send(self, body: bytes) -> http.client.HTTPResponse:
        """The head of an answer."""
        self.connection.request("POST", PATH, body, {"content-type": "application/json"})
        return self.connection.getresponse()

    def ask(self, words: str) -> tuple[int, str]:
        """The status of a whole answer, and its exchange."""
        answer = self.send(asked(words))
        answer.read()
        return answer.status, str(answer.headers["x-sightline-exchange"])


@dataclass
class WorkerStage:
    """`server` is the main process, `person` its user."""

    process: "subprocess.Popen[str]"
    server: Served
    person: Person
    upstream: Upstream
    folder: Path
    _clients: list[Client] = field(default_factory=list)

    def worker(self, *, other_than: int = 0) -> int:
        """The process of the worker, as soon as there is one that serves."""
        deadline = monotonic() + 60
        while monotonic() < deadline:
            found = [each for each in self.children() if each != other_than]
            if found and self.server.api("/api/about")["workers"] == 2:
                return found[0]
            sleep(0.02)
        raise AssertionError("there is no worker")

    def children(self, program: bytes = b"sightline.app.worker") -> list[int]:
        """The processes of this kind that the server has."""
        return children_of(self.process, program)

    def clients(self, count: int) -> list[Client]:
        """Clients that have connected one after another, so that each process has its share."""
        made = [Client(self.server.url) for _ in range(count)]
        self._clients += made
        for client in made:
            client.connection.connect()
        return made

    def leave(self) -> None:
        """Close the connections of all clients."""
        for client in self._clients:
            client.connection.close()
        self._clients.clear()

    def end(self) -> int:
        """Ask the server to end, and wait for it."""
        self.process.send_signal(signal.SIGTERM)
        self.process.communicate(timeout=60)
        return self.process.returncode

    def kill(self) -> None:
        """End the main process as the system does when it has no memory left."""
        self.process.kill()
        self.process.communicate()


def command_of(process: int) -> bytes:
    """What a process runs; nothing if it is gone."""
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return b""


def children_of(process: "subprocess.Popen[str]", program: bytes) -> list[int]:
    """The processes of this kind that a process has."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return [child for child in map(int, children) if program in command_of(child)]


def wait_until_ended(process: int) -> None:
    """Return once a process is gone, or is only waited for."""
    deadline = monotonic() + 60
    while command_of(process):
        assert monotonic() < deadline
        sleep(0.01)


@contextmanager
def workers(folder: Path, *words: str, config: str = CONFIG) -> Iterator[WorkerStage]:
    """A server with two workers, whose provider says good morning."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SIGHTLINE_")}
    with ExitStack() as stack:
        upstream = stack.enter_context(upstream_in_background())
        upstream.script = [says(REPLY)]
        file = folder / "sightline.toml"
        file.write_text(config.format(url=upstream.url))
        command = [*PROGRAM, "serve", "--no-open", "--port", "0", "--config", str(file), "--data", str(folder / "data")]
        process, server = start([*command, "--workers", "2", *words], env=environment)
        try:
            stage = WorkerStage(process, server, Person(server), upstream, folder)
            stack.callback(stage.leave)
            yield stage
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
                try:
                    process.communicate(timeout=60)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.communicate()
            process.stdout.close()
