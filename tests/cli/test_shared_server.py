import fcntl
import json
import os
import socket
import stat
import subprocess
import sys
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from sightline.cli.shared_server import SharedServer, is_in_use
from sightline.errors import Code, Fault
from tests.gateway_server import served
from tests.shared_servers import free_port, has_ended, sharing

ROOT = Path(__file__).parents[2]


def health(server: SharedServer) -> Any:
    with urllib.request.urlopen(f"{server.url}/api/health", timeout=60) as answer:
        return json.loads(answer.read())


def is_listening(port: int) -> bool:
    with socket.socket() as trying:
        return trying.connect_ex(("127.0.0.1", port)) == 0


def test_a_server_is_started_where_none_runs_and_ends_with_its_only_user(tmp_path: Path) -> None:
    port, folder = free_port(), tmp_path / "data"
    with sharing(folder, port) as server:
        assert (server.url, server.is_new) == (f"http://127.0.0.1:{port}", True)
        assert server.link.endswith(f"/?token={(folder / 'token').read_text().strip()}")
        assert health(server)["status"] == "ok"
    assert not is_listening(port)
    assert all(not stat.S_IMODE(path.stat().st_mode) & 0o077 for path in folder.glob("run.*"))


STARTER = """
import sys
from pathlib import Path
from tests.shared_servers import sharing
with sharing(Path(sys.argv[1]), int(sys.argv[2])) as server:
    print(server.is_new, flush=True)
    input()
"""


def test_the_second_user_shares_it_and_keeps_it(tmp_path: Path) -> None:
    port = free_port()
    command = [sys.executable, "-c", STARTER, str(tmp_path), str(port)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as starter:
        assert starter.stdout is not None
        assert starter.stdout.readline() == b"True\n"
        with sharing(tmp_path, port) as server:
            assert (server.url, server.is_new) == (f"http://127.0.0.1:{port}", False)
            starter.communicate(b"\n", timeout=60)  # it leaves, and does not wait for others
            assert starter.returncode == 0
            assert health(server)["status"] == "ok"
            connection = socket.create_connection(("127.0.0.1", port), timeout=60)
        with connection:
            assert has_ended(connection)


def test_a_server_that_runs_already_is_used_and_left_alone(tmp_path: Path) -> None:
    with served(tmp_path, "") as running:
        port = int(running.url.rpartition(":")[2])
        with sharing(tmp_path / "data", port) as server:
            assert (server.url, server.token, server.is_new) == (running.url, running.token, False)
        assert running.api("/api/exchanges")["exchanges"] == []


def test_a_server_of_somebody_else_is_not_trusted(tmp_path: Path) -> None:
    with served(tmp_path, "") as foreign:
        port = int(foreign.url.rpartition(":")[2])
        with sharing(tmp_path / "other", port) as server:
            assert server.is_new
            assert server.url != foreign.url
            assert health(server)["status"] == "ok"


@pytest.mark.parametrize("said", [b'{"proof": "0"}', b'{"proof": 1}', b"[]", b"<html>"])
def test_what_only_looks_like_a_server_of_ours_hears_no_token(tmp_path: Path, said: bytes) -> None:
    heard: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            heard.append(f"{self.path}\n{self.headers}")
            self.send_response(200)
            self.end_headers()
            self.wfile.write(said)

        def log_message(self, *_: object) -> None:
            """Tests are quiet."""

    with HTTPServer(("127.0.0.1", 0), Handler) as other:
        thread = threading.Thread(target=other.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        with sharing(tmp_path, other.server_address[1]) as server:
            assert server.url != f"http://127.0.0.1:{other.server_address[1]}"
        other.shutdown()
        thread.join()
    assert len(heard) == 1
    assert server.token not in heard[0]


def test_whoever_comes_while_it_ends_waits_and_gets_a_new_one(tmp_path: Path) -> None:
    port = free_port()
    tmp_path.joinpath("run.lock").touch()
    ending = os.open(tmp_path / "run.lock", os.O_RDWR)
    fcntl.flock(ending, fcntl.LOCK_EX)  # as a server does that has begun to end
    entered = threading.Event()

    def use() -> None:
        with sharing(tmp_path, port) as server:
            assert server.is_new
            entered.set()

    thread = threading.Thread(target=use)
    thread.start()
    assert not entered.is_set()
    os.close(ending)
    thread.join(60)
    assert entered.is_set()


def test_a_server_that_does_not_start_says_why(tmp_path: Path) -> None:
    with pytest.raises(Fault, match=r"did not start: .*--nonsense") as caught, sharing(tmp_path, 0, "--nonsense"):
        raise AssertionError
    assert caught.value.code is Code.CONFIG
    assert "sightline" in caught.value.hint


def test_a_folder_that_cannot_be_used_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Fault) as caught, sharing(tmp_path / "file", 0):
        raise AssertionError
    assert caught.value.code is Code.CONFIG


def test_a_user_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    port = free_port()
    with pytest.raises(ZeroDivisionError), sharing(tmp_path, port):
        raise ZeroDivisionError
    assert not is_listening(port)


def test_whether_runs_share_a_server_is_seen_from_outside(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    assert not is_in_use(folder)
    with sharing(folder, 0):
        assert is_in_use(folder)
    assert not is_in_use(folder)
