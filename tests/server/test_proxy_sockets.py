"""WebSockets and raw paths below TLS: OpenAI's own library with its defaults, as a child of `sightline run --tls`."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from websockets.sync.server import ServerConnection

from tests.contract.test_raw_sdks import FakeVendor
from tests.gateway_server import Served, served
from tests.raw_upstream import raw_upstream
from tests.socket_upstream import Play, SocketUpstream, answer_all, socket_upstream
from tests.tls_stage import vendors_in_front_of

KEY = "sk-secret-of-the-client"
RESPONSES = """
from openai import OpenAI
before = None
with OpenAI(max_retries=0).responses.connect() as connection:
    for _ in range(2):
        more = {} if before is None else {"previous_response_id": before}
        connection.response.create(model="gpt-5", input="hi", **more)
        for event in connection:
            if event.type == "response.completed":
                before = event.response.id
                print(event.response.output_text)
                break
"""
REALTIME = """
from openai import OpenAI
with OpenAI(max_retries=0).realtime.connect(model="gpt-realtime") as connection:
    print(connection.recv().type)
    connection.response.create()
    print(connection.recv_bytes().decode())
"""


@contextmanager
def staged(folder: Path, play: Play) -> Iterator[tuple[Served, SocketUpstream, dict[str, str]]]:
    """Sightline, a vendor that plays this, and the environment of a child."""
    with socket_upstream(play) as upstream, in_front_of(upstream.port, folder) as (server, variables):
        yield server, upstream, variables


@contextmanager
def in_front_of(port: int, folder: Path) -> Iterator[tuple[Served, dict[str, str]]]:
    """Sightline in front of a vendor that listens at this port, and the environment of a child."""
    with vendors_in_front_of(port, folder) as (way, trusted):
        with pytest.MonkeyPatch.context() as environment:
            for name in ("OPENAI_API_KEY", "NO_PROXY", "no_proxy", "SSL_CERT_FILE"):
                environment.delenv(name, raising=False)
            environment.setenv("HTTPS_PROXY", way)
            serving = served(folder, f'[network]\nca_file = "{trusted}"\n')
            server = serving.__enter__()
        try:
            status, opened = server.post("/api/proxy", json.dumps({"session": "s1"}).encode())
            assert status == 200, opened
            bundle = folder / "bundle.pem"
            bundle.write_text(trusted.read_text() + opened["certificate"])
            yield server, {
                "PATH": os.environ["PATH"],
                "OPENAI_API_KEY": KEY,
                "SSL_CERT_FILE": str(bundle),
                **dict.fromkeys(("HTTPS_PROXY", "https_proxy"), opened["url"]),
            }  # fmt: skip
        finally:
            serving.__exit__(None, None, None)
    kept = b"".join(path.read_bytes() for path in (folder / "data").rglob("*") if path.is_file())
    assert KEY.encode() not in kept


def run(script: str, variables: dict[str, str]) -> list[str]:
    """What a program says that was written by somebody who knows nothing of Sightline."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script],
        capture_output=True,
        env=variables,
        check=False,
        timeout=60,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def shown(server: Served) -> list[Any]:
    """The exchanges in their order."""
    lines = server.api("/api/exchanges")["exchanges"]
    return [server.api(f"/api/exchanges/{line['id']}") for line in reversed(lines)]


def test_responses_over_a_socket_below_tls_are_exchanges(tmp_path: Path) -> None:
    with staged(tmp_path, answer_all) as (server, upstream, variables):
        assert run(RESPONSES, variables) == ["answer number 1", "answer number 2"]
        assert upstream.closed.wait(30)
        found = shown(server)
        sent = [server.body(each["id"], "sent").decode() for each in found]
    assert sent == upstream.frames
    assert [(each["state"], each["transport"], each["session"]) for each in found] == [
        ("finished", "websocket", "s1")
    ] * 2
    assert json.loads(sent[1])["previous_response_id"] == "resp_1"
    (handshake,) = upstream.handshakes
    assert (handshake.path, handshake.headers["host"]) == ("/v1/responses", "api.openai.com")
    assert handshake.headers["authorization"] == f"Bearer {KEY}"


def test_a_realtime_session_below_tls_passes_as_it_is(tmp_path: Path) -> None:
    def play(connection: ServerConnection, upstream: SocketUpstream) -> None:
        connection.send(json.dumps({"type": "session.created", "event_id": "e1", "session": {"type": "realtime"}}))
        upstream.take(connection)
        connection.send(upstream.frames[-1])
        connection.recv(timeout=30)

    with staged(tmp_path, play) as (server, upstream, variables):
        said = run(REALTIME, variables)
        assert said == ["session.created", upstream.frames[0]]
        assert upstream.closed.wait(30)
        (found,) = shown(server)
    assert (found["state"], found["dialect"], found["session"]) == ("finished", "raw-http", "s1")
    assert upstream.handshakes[0].path == "/v1/realtime?model=gpt-realtime"
    assert upstream.handshakes[0].headers["authorization"] == f"Bearer {KEY}"


CONNECT = """
import os
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect
try:
    connect("wss://api.openai.com/v1/responses", additional_headers={"authorization": "Bearer sk-x"})
except InvalidStatus as error:
    print(error.response.status_code)
"""


@pytest.mark.parametrize(("answer", "status"), [
    (b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n", "403"),
    (b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n", "404"),
    (b"HTTP/1.0 501 Not Implemented\r\ncontent-length: 0\r\n\r\n", "426"),
])  # fmt: skip
def test_a_vendor_without_a_socket_gives_the_client_none(tmp_path: Path, answer: bytes, status: str) -> None:
    with (
        raw_upstream(lambda request: request.say(answer)) as vendor,
        in_front_of(vendor.port, tmp_path) as (_server, variables),
    ):
        assert run(CONNECT, variables) == [status]


FILES = """
from openai import OpenAI
with OpenAI(max_retries=0) as client:
    made = client.files.create(file=("batch.jsonl", b"{}"), purpose="batch")
    print(client.files.content(made.id).read().decode())
    print(client.batches.create(input_file_id=made.id, endpoint="/v1/responses", completion_window="24h").id)
    print(client.models.list().data)
"""


def test_raw_paths_below_tls_pass_and_are_on_record(tmp_path: Path) -> None:
    with raw_upstream(FakeVendor()) as vendor, in_front_of(vendor.port, tmp_path) as (server, variables):
        assert run(FILES, variables) == ["{}", "batch_1", "[]"]
        found = shown(server)
    assert [(each["raw"]["method"], each["raw"]["path"]) for each in found] == [
        ("POST", "/v1/files"),
        ("GET", "/v1/files/file_0/content"),
        ("POST", "/v1/batches"),
        ("GET", "/v1/models"),
    ]
    assert {(each["state"], each["transport"], each["provider"], each["session"]) for each in found} == {
        ("finished", "tls", "openai", "s1")
    }
