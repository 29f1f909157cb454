import asyncio
import os
import signal
import socket
import stat
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sightline.cli import terminal
from sightline.cli.program import main
from tests.background import upstream_in_background
from tests.http_call import call
from tests.server_process import PROGRAM, start
from tests.upstream import chunk, head, pieces


@contextmanager
def serving(folder: Path, *words: str, config: str = "") -> Iterator[tuple["subprocess.Popen[str]", str, str]]:
    """The program, its address and its token."""
    (folder / "sightline.toml").write_text(config)
    command = [*PROGRAM, *words, "--port", "0", "--no-open", "--data", str(folder / "data")]
    environment = {**os.environ, "XDG_CONFIG_HOME": str(folder)}
    child, server = start(command, stderr=subprocess.PIPE, cwd=folder, env=environment)
    with child:
        try:
            yield child, server.url, server.token
        finally:
            child.kill()


@pytest.mark.parametrize("words", [[], ["serve"]])
def test_it_prints_one_link_and_one_line_and_ends_in_order(tmp_path: Path, words: list[str]) -> None:
    with serving(tmp_path, *words) as (child, address, _token):
        assert call("GET", f"{address}/api/health").json()["status"] == "ok"
        child.send_signal(signal.SIGTERM)
        out, err = child.communicate(timeout=60)
    assert child.returncode == 0
    assert out == ""
    assert len(err.splitlines()) == 1
    assert "embedded model" in err


def test_the_token_is_the_owners_alone_and_the_same_after_a_restart(tmp_path: Path) -> None:
    tokens = []
    for _ in range(2):
        with serving(tmp_path) as (child, address, token):
            assert call("GET", f"{address}/api/health").status == 200
            tokens.append(token)
            child.send_signal(signal.SIGINT)
            child.communicate(timeout=60)
            assert child.returncode == 130
    assert tokens[0] == tokens[1]
    assert stat.S_IMODE((tmp_path / "data" / "token").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "data").stat().st_mode) == 0o700


def test_a_stream_finishes_before_the_end(tmp_path: Path) -> None:
    with upstream_in_background() as upstream:
        gate = asyncio.Event()
        event = b'data: {"choices":[{"index":0,"delta":{"content":"%s"}}]}\n\n'
        upstream.script = [
            pieces(head(200, [("Content-Type", "text/event-stream")]), chunk(event % b"a"), gate,
                   chunk(b"data: [DONE]\n\n"), chunk(b""))
        ]  # fmt: skip
        config = f'[providers.acme]\nbase_url = "{upstream.url}/v1"\n'
        with serving(tmp_path, config=config) as (child, address, _token):
            request = urllib.request.Request(
                f"{address}/p/acme/v1/chat/completions",
                b'{"model":"m","stream":true,"messages":[]}',
                {"authorization": "Bearer own-key-123"},
            )
            with urllib.request.urlopen(request, timeout=20) as answer:
                assert b'"a"' in answer.readline()
                child.send_signal(signal.SIGTERM)
                upstream._loop.call_soon_threadsafe(gate.set)
                assert b"[DONE]" in answer.read()
            child.communicate(timeout=60)
            assert child.returncode == 0


def test_a_port_in_use_is_one_line_with_a_hint(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["serve", "--port", str(port), "--no-open", "--data", str(tmp_path)]) == 2
    first, second = capsys.readouterr().err.splitlines()
    assert first == f"error[config]: the port {port} of 127.0.0.1 is in use"
    assert "--port" in second


@pytest.mark.parametrize("port", ["x", "-1", "65536"])
def test_a_port_is_a_number(port: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--port", port]) == 2
    assert f"argument --port: {port!r} is not a port from 0 to 65535" in capsys.readouterr().err


@pytest.mark.parametrize("count", ["0", "257", "many", "-1"])
def test_workers_are_a_number_or_auto(count: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", f"--workers={count}"]) == 2
    assert f"argument --workers: {count!r} is neither auto nor a number from 1 to 256" in capsys.readouterr().err


def test_workers_answer_nothing_from_the_record(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--replay", "", "--workers", "2", "--data", str(tmp_path)]) == 2
    assert "error[usage]: --workers cannot be used with --replay" in capsys.readouterr().err


def test_another_host_is_warned_of(tmp_path: Path) -> None:
    command = [*PROGRAM, "--host", "0.0.0.0", "--port", "0", "--no-open", "--data", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path) as child:
        assert child.stdout.readline().startswith("http://127.0.0.1:"), "an address that a browser can open"
        child.kill()
        _, err = child.communicate(timeout=60)
    assert err.startswith("warning: 0.0.0.0 can be reached by other machines")


@pytest.mark.parametrize(
    "words",
    [["serve", "--port", "0", "--no-open", "--store"], ["traffic", "--store"], ["runs", "--store"]],
)
def test_a_record_in_postgresql_without_its_driver_is_one_line(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "asyncpg", None)
    monkeypatch.setenv("SIGHTLINE_DATA", str(tmp_path / "data"))
    assert main([*words, "postgresql://127.0.0.1/none"]) == 2
    error, hint = capfd.readouterr().err.splitlines()
    assert error == "error[config]: a record in PostgreSQL needs the driver asyncpg, which is not installed"
    assert "pip install 'sightline[postgresql]'" in hint


def test_a_browser_is_opened_only_where_a_person_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr(terminal, "is_terminal", lambda _stream: False)
    terminal.open_page("http://127.0.0.1/")
    assert opened == []
    monkeypatch.setattr(terminal, "is_terminal", lambda _stream: True)
    monkeypatch.setattr("threading.Thread.start", lambda self: self.run())
    terminal.open_page("http://127.0.0.1/")
    assert opened == ["http://127.0.0.1/"]
