import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import pytest

from tests.gateway_server import served
from tests.shared_servers import free_port, has_ended

PROGRAM = [sys.executable, "-c", "from sightline.cli import main; raise SystemExit(main())"]


def words(folder: Path, port: int) -> list[str]:
    """`sightline chat` with everything of its own."""
    config = folder / "chat.toml"
    config.write_text(f"[server]\nport = {port}\n")
    return [*PROGRAM, "chat", "--no-open", "--config", str(config), "--data", str(folder / "data")]


@contextmanager
def begun(command: list[str]) -> Iterator["subprocess.Popen[str]"]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SIGHTLINE_")}
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as running:
        try:
            yield running
        finally:
            running.kill()


def link_of(running: "subprocess.Popen[str]") -> str:
    return running.stdout.readline().strip()


def connected(link: str) -> socket.socket:
    at = urlsplit(link)
    return socket.create_connection((at.hostname or "", at.port or 0), timeout=30)


@pytest.mark.parametrize(("sent", "status"), [(signal.SIGTERM, 0), (signal.SIGHUP, 0), (signal.SIGINT, 130)])
def test_where_no_server_runs_one_is_started_and_ends_with_the_command(
    tmp_path: Path, sent: signal.Signals, status: int
) -> None:
    with begun(words(tmp_path, 0)) as running:
        link = link_of(running)
        assert link.startswith("http://127.0.0.1:")
        assert "/?token=" in link
        assert link.endswith("#/chat")
        assert "until Ctrl-C" in running.stderr.readline()
        with connected(link) as connection:
            running.send_signal(sent)
            assert running.wait(30) == status
            assert has_ended(connection)


def test_a_server_of_ones_own_is_only_shown(tmp_path: Path) -> None:
    with served(tmp_path, "") as server, begun(words(tmp_path, int(server.url.rpartition(":")[2]))) as running:
        assert link_of(running) == f"{server.url}/?token={server.token}#/chat"
        assert running.wait(30) == 0
        assert running.stderr.read() == ""
        assert server.api("/api/health")["status"] == "ok"


def test_a_server_that_was_started_for_another_stays_as_long_as_the_chat_is_open(tmp_path: Path) -> None:
    command = words(tmp_path, free_port())
    with begun(command) as first:
        link = link_of(first)
        with begun(command) as second:
            assert link_of(second) == link
            assert "until Ctrl-C" in second.stderr.readline()
            first.kill()
            first.wait(30)
            with connected(link) as connection:
                second.send_signal(signal.SIGTERM)
                assert second.wait(30) == 0
                assert has_ended(connection)


def test_the_options_of_the_command_are_its_own(tmp_path: Path) -> None:
    with begun([*PROGRAM, "chat", "--port", "1"]) as running:
        _, err = running.communicate(timeout=30)
    assert running.returncode == 2
    assert "error[usage]" in err


def test_instructions_are_kept_above_all_topics(tmp_path: Path) -> None:
    rules = tmp_path / "rules.md"
    rules.write_text("Use metres.\n")
    with begun([*words(tmp_path, 0), "--instructions", str(rules)]) as running:
        link = urlsplit(link_of(running))
        token = link.query.removeprefix("token=")
        request = Request(f"http://{link.netloc}/api/chat/topics", headers={"authorization": f"Bearer {token}"})
        with urlopen(request) as answer:
            topics = json.load(answer)
        assert [each["instructions"] for each in topics if each["id"] == ""] == ["Use metres."]
        running.send_signal(signal.SIGTERM)
        assert running.wait(30) == 0
