"""A server that is killed without a word: what a client saw complete is on record after a restart, whichever way it
came, and what was under way is there as interrupted."""

import json
import os
import signal
import socket
import ssl
import subprocess
from base64 import b64encode
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from websockets.sync.client import connect
from websockets.sync.server import ServerConnection

from tests.gateway_server import Served
from tests.raw_upstream import RawRequest, head, raw_upstream
from tests.server_process import start_alone
from tests.socket_upstream import SocketUpstream, events, socket_upstream
from tests.tls_stage import vendors_in_front_of

ASK = {"type": "response.create", "model": "gpt-5", "input": "hi", "store": False}
CONFIG = """
[network]
ca_file = "{trusted}"
[providers.acme]
dialect = "openai-chat"
base_url = "{raw}/v1"
[providers.sockets]
dialect = "openai-responses"
base_url = "{sockets}"
"""


@contextmanager
def started(folder: Path, way: str) -> Iterator[tuple[Served, "subprocess.Popen[str]"]]:
    """The program in a process of its own, with this proxy on its way out."""
    child, server = start_alone(folder, env={**os.environ, "HTTPS_PROXY": way, "NO_PROXY": "127.0.0.1"})
    with child:
        try:
            yield server, child
        finally:
            child.kill()


def play(connection: ServerConnection, upstream: SocketUpstream) -> None:
    """Answers the first request, and the second only begins."""
    upstream.take(connection)
    for frame in events("resp_1", "all of it"):
        connection.send(frame)
    upstream.take(connection)
    connection.send(events("resp_2", "never")[0])
    upstream.take(connection)


def handle(request: RawRequest) -> None:
    """Answers a path, or only begins to."""
    if "whole" in request.target:
        request.answer(200, b'{"said": "all of it"}', ("content-type", "application/json"))
        return
    request.say(head(200, ("content-length", "1000"), ("content-type", "text/plain")) + b"the beginning")
    request.talk.recv(1)


def ask(wire: socket.socket, host: str, path: str) -> tuple[str, bytes]:
    """The exchange of an answer, and as much of the answer as comes at once."""
    wire.sendall(f"GET {path} HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer k\r\n\r\n".encode())
    with wire.makefile("rb") as stream:
        lines = []
        while line := stream.readline().strip().decode().lower():
            lines.append(line.partition(": "))
        named = {name: value for name, _, value in lines}
        return named["x-sightline-exchange"], stream.read(21 if "whole" in path else 13)


def reach(server: Served, stack: ExitStack) -> socket.socket:
    at = urlsplit(server.url)
    return stack.enter_context(socket.create_connection((at.hostname or "", at.port or 0), timeout=60))


def reach_below_tls(server: Served, folder: Path, stack: ExitStack) -> socket.socket:
    """A connection to the vendor's own host, which is opened on its way."""
    status, opened = server.post("/api/proxy", b'{"session": "killed"}')
    assert status == 200, opened
    proxy = urlsplit(opened["url"])
    wire = stack.enter_context(socket.create_connection((proxy.hostname or "", proxy.port or 0), timeout=60))
    login = b64encode(f"{proxy.username}:{proxy.password}".encode()).decode()
    wire.sendall(f"CONNECT api.openai.com:443 HTTP/1.1\r\nproxy-authorization: Basic {login}\r\n\r\n".encode())
    said = b""
    while b"\r\n\r\n" not in said:
        said += wire.recv(4096)
    assert said.startswith(b"HTTP/1.1 200 "), said
    bundle = folder / "bundle.pem"
    bundle.write_text(opened["certificate"])
    context = ssl.create_default_context(cafile=str(bundle))
    return stack.enter_context(context.wrap_socket(wire, server_hostname="api.openai.com"))


def speak(server: Served, stack: ExitStack) -> list[str]:
    """One whole response over a socket, and the beginning of another; what came of the first."""
    made = stack.enter_context(connect(server.url.replace("http", "ws") + "/p/sockets/s/socket/v1/responses"))
    made.send(json.dumps(ASK))
    frames: list[str] = []
    while not frames or json.loads(frames[-1])["type"] != "response.completed":
        frames.append(str(made.recv(timeout=60)))
    made.send(json.dumps({**ASK, "input": "again"}))
    assert json.loads(made.recv(timeout=60))["type"] == "response.created"
    return frames


def test_what_a_client_saw_complete_is_on_record_however_it_came(tmp_path: Path) -> None:
    with ExitStack() as stack:
        raw = stack.enter_context(raw_upstream(handle))
        sockets = stack.enter_context(socket_upstream(play))
        way, trusted = stack.enter_context(vendors_in_front_of(raw.port, tmp_path))
        config = CONFIG.format(trusted=trusted, raw=raw.url, sockets=sockets.url)
        (tmp_path / "sightline.toml").write_text(config)
        found: dict[str, Any] = {}
        with started(tmp_path, way) as (server, child), ExitStack() as clients:
            host = urlsplit(server.url).netloc
            for name, wire, prefix, at in (
                ("raw", reach(server, clients), "/p/acme", host),
                ("tls", reach_below_tls(server, tmp_path, clients), "", "api.openai.com"),
            ):
                found[f"{name} whole"], told = ask(wire, at, f"{prefix}/v1/files/whole")
                assert told == b'{"said": "all of it"}'
                found[f"{name} begun"], told = ask(wire, at, f"{prefix}/v1/files/begun")
                assert told == b"the beginning"
            frames = speak(server, clients)
            child.send_signal(signal.SIGKILL)
            child.wait(60)
        with started(tmp_path, way) as (server, _):
            views = {name: server.api(f"/api/exchanges/{exchange}") for name, exchange in found.items()}
            for name in ("raw", "tls"):
                assert views[f"{name} whole"]["state"] == "finished"
                assert server.body(found[f"{name} whole"], "reply") == b'{"said": "all of it"}'
                begun = views[f"{name} begun"]
                assert (begun["state"], begun["fault"]["code"]) == ("failed", "interrupted")
            listed = server.api("/api/exchanges?filter=session:socket")["exchanges"]
            assert [(each["state"], each.get("fault")) for each in reversed(listed)] == [
                ("finished", None), ("failed", "interrupted"),
            ]  # fmt: skip
            kept = server.body(listed[-1]["id"], "reply").decode()
            assert all(frame in kept for frame in frames)
