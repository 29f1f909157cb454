import fcntl
import json
import os
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from sightline.cli.shared_server import SharedServer, hold_session, is_in_use
from sightline.errors import Code, Fault
from sightline.exchange.interception.core.rules import Rules
from sightline.exchange.remote_relay import RunningServer
from sightline.filters.predicate import Known
from tests.background import handling
from tests.gateway_server import served
from tests.http_call import call
from tests.person import Person
from tests.shared_servers import free_port, has_ended, sharing

ROOT = Path(__file__).parents[2]


def health(server: SharedServer) -> Any:
    return call("GET", f"{server.url}/api/health").json()


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


def test_server_with_another_data_folder_is_not_reused(tmp_path: Path) -> None:
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

    with handling(Handler) as other, sharing(tmp_path, int(other.rpartition(":")[2])) as server:
        assert server.url != other
    assert len(heard) == 1
    assert server.token not in heard[0]


def test_client_arriving_during_shutdown_waits_and_gets_a_new_server(tmp_path: Path) -> None:
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


def test_unusable_folder_is_reported(tmp_path: Path) -> None:
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


class Api:
    """The part of the API that is asked, as it is documented; it can be broken."""

    def __init__(self) -> None:
        self.rules: Any = [{"filter": "model:x", "action": "pass"}]
        self.mode = "rules"
        self.status = 200
        self.tokens: set[str | None] = set()
        self.asked: list[str] = []
        self.url = ""

    def answer(self, method: str, path: str, value: Any) -> Any:
        if path == "/api/rules":
            self.asked.append(method)
            if method == "PUT":
                self.rules = value
            return self.rules
        if method == "PUT":
            self.mode = value["mode"]
        return {"mode": self.mode}


@contextmanager
def serving(api: Api) -> Iterator[None]:
    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            data = self.rfile.read(int(self.headers.get("content-length") or 0))
            api.tokens.add(self.headers.get("authorization"))
            said = json.dumps(api.answer(self.command, self.path, json.loads(data or "null"))).encode()
            self.send_response(api.status)
            self.send_header("content-length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

        def do_GET(self) -> None:
            self._answer()

        def do_PUT(self) -> None:
            self._answer()

    with handling(Handler) as api.url:
        yield


def test_session_rule_comes_first_while_the_client_runs(tmp_path: Path) -> None:
    api = Api()
    before = list(api.rules)
    with serving(api):
        with hold_session(RunningServer(api.url, "secret"), "a * b'\"c", tmp_path):
            assert api.rules[1:] == before
            rule, _ = Rules.of(api.rules).decide(Known({"session": "a * b'\"c"}), "request", now=0.0)
            assert (rule.action, rule.phase, rule.timeout_s) == ("hold", "request", None)
            assert Rules.of(api.rules).decide(Known({"session": "a x b'\"c"}), "request", now=0.0)[0] is None
            api.rules.append({"filter": "model:y"})
        assert api.rules == [*before, {"filter": "model:y"}]
    assert api.tokens == {"Bearer secret"}


def test_a_rule_that_was_left_behind_is_not_put_there_twice(tmp_path: Path) -> None:
    api = Api()
    with (
        serving(api),
        hold_session(RunningServer(api.url, "t"), "s", tmp_path),
        hold_session(RunningServer(api.url, "t"), "s", tmp_path),
    ):
        assert len(api.rules) == 2


def test_of_runs_that_begin_at_once_none_loses_its_rule(tmp_path: Path) -> None:
    api = Api()
    names = [f"s{number}" for number in range(8)]
    begin, begun, seen = threading.Barrier(8), threading.Barrier(9), threading.Barrier(9)

    def held(name: str) -> None:
        begin.wait()
        with hold_session(RunningServer(api.url, "t"), name, tmp_path):
            begun.wait()
            seen.wait()

    with serving(api):
        before = list(api.rules)
        runs = [threading.Thread(target=held, args=(name,)) for name in names]
        for run in runs:
            run.start()
        begun.wait()
        assert sorted(rule["filter"] for rule in api.rules[:-1]) == [f"session:{name}" for name in names]
        seen.wait()
        for run in runs:
            run.join()
        assert api.rules == before
    assert api.asked == ["GET", "PUT"] * 16


def test_where_interception_is_off_the_rules_are_switched_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    api = Api()
    api.mode = "off"
    with serving(api), hold_session(RunningServer(api.url, "t"), "s", tmp_path):
        assert api.mode == "rules"
    assert "interception was off" in capsys.readouterr().err


@pytest.mark.parametrize("broken", [{"status": 404}, {"rules": {"a": 1}}])
def test_server_without_rule_support_is_reported_before_the_client_starts(
    tmp_path: Path, broken: dict[str, Any]
) -> None:
    api = Api()
    for name, value in broken.items():
        setattr(api, name, value)
    with (
        serving(api),
        pytest.raises(Fault, match="does not accept a rule") as caught,
        hold_session(RunningServer(api.url, "t"), "s", tmp_path),
    ):
        raise AssertionError
    assert "server is older" in caught.value.hint


def test_a_server_that_is_gone_at_the_end_does_not_change_how_the_command_ended(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    api = Api()
    with serving(api):
        holding = hold_session(RunningServer(api.url, "t"), "s", tmp_path)
        holding.__enter__()
    holding.__exit__(None, None, None)
    assert "is still there" in capsys.readouterr().err


def test_link_of_each_held_request_of_the_session_is_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}]}).encode()
    asking: list[threading.Thread] = []

    def ask(session: str) -> None:
        call("POST", f"{server.url}/p/acme/s/{session}/v1/chat/completions", body)

    with served(tmp_path, '[providers.acme]\nbase_url = "http://127.0.0.1:9/v1"\n') as server:
        person = Person(server)
        with hold_session(RunningServer(server.url, server.token), "mine", tmp_path / "data"):
            rules = person.get("/api/rules")
            person.put("/api/rules", [*rules, {"filter": "session:other", "action": "hold", "phase": "request"}])
            with person.listening() as facts:
                for session in ("other", "mine"):
                    asking.append(threading.Thread(target=ask, args=(session,)))
                    asking[-1].start()
                    while facts.get(timeout=60)["kind"] != "held":
                        pass
            first, second = person.get("/api/holds")
            told = ""
            while second not in told:
                told += capsys.readouterr().err
            for each in (first, second):
                assert person.ask("POST", f"/api/exchanges/{each}/drop", {})[0] == 200
        for thread in asking:
            thread.join(60)
    assert f"note: held until you decide: {server.url}/?token={server.token}#/x/{second}\n" in told
    assert first not in told
