import io
import json
import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from sightline.cli import main
from tests.background import upstream_in_background
from tests.chat.api.http_stage import CONFIG, spoken
from tests.gateway_server import served
from tests.http_call import call
from tests.server_process import PROGRAM
from tests.shared_servers import free_port, has_ended
from tests.upstream import answer, streams


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
        topics = call("GET", f"http://{link.netloc}/api/chat/topics", token=token).json()
        assert [each["instructions"] for each in topics if each["id"] == ""] == ["Use metres."]
        running.send_signal(signal.SIGTERM)
        assert running.wait(30) == 0


def test_chats_are_made_asked_shown_forked_named_and_deleted_by_the_command(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "chats.toml"

    def run(*words: str, status: int = 0, stdin: str = "") -> tuple[str, str]:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        assert main(["chat", *words, "--config", str(config), "--data", str(tmp_path / "data")]) == status
        return capfd.readouterr()

    with upstream_in_background() as upstream, served(tmp_path, CONFIG.format(url=upstream.url)):
        config.write_text("")
        upstream.script = [streams(*spoken("By train, ", "of course."))]
        chat = run("new", "Holiday plans")[0].strip()
        assert (
            run("send", "holiday", "-", "-m", "acme/large", stdin="How do we get there?")[0] == "By train, of course."
        )
        assert run("send", chat, "And back?")[0] == "By train, of course."
        assert len(upstream.seen[-1].json()["messages"]) == 3, "with what was said before"
        shown = run("show", "Holiday plans")[0]
        assert "#1  acme/large" in shown
        assert "> How do we get there?\n\nBy train, of course.\n" in shown
        fork = run("fork", "Holiday plans", "1", "--name", "Other way")[0].strip()
        assert [json.loads(line)["user_text"] for line in run("show", fork, "--json")[0].splitlines()] == [
            "How do we get there?"
        ]
        assert [json.loads(line)["id"] for line in run("list", "and", "back", "--json")[0].splitlines()] == [chat]
        run("rename", chat, "Other day")
        assert "2 chats are called 'other'" in run("show", "other", status=2)[1]
        assert "there is no pair '9'" in run("fork", chat, "9", status=2)[1]
        assert "there is no terminal" in run("delete", chat, status=2)[1]
        said = run("delete", "Other day", "--yes")[1]
        assert "Other day: 2 pairs, 2 requests in the record will be deleted for good" in said
        assert "deleted, with 2 requests" in said
        assert "Other day" not in run("list")[0]
        upstream.script = [answer(401, b'{"error": {"message": "broken", "type": "auth"}}', [])]
        assert "broken" in run("send", fork, "Again?", status=3)[1]
