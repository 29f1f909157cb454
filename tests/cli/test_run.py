import json
import os
import signal
import socket
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from sightline.cli.program import main
from tests.background import upstream_in_background
from tests.gateway_server import served
from tests.server_process import PROGRAM
from tests.shared_servers import has_ended
from tests.upstream import says

REPLY = {
    "id": "c1",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello."}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5},
}
ASK = """
import openai
with openai.OpenAI(max_retries=0) as sdk:
    said = sdk.chat.completions.create(model="m", messages=[{"role": "user", "content": "Hi"}])
print(said.choices[0].message.content)
"""


@pytest.fixture
def words(tmp_path: Path) -> list[str]:
    """`sightline run` on a free port, with everything of its own."""
    config = tmp_path / "sightline.toml"
    config.write_text("[server]\nport = 0\n")
    return [*PROGRAM, "run", "--config", str(config), "--data", str(tmp_path / "data")]


def done(command: list[str], variables: dict[str, str], given: bytes = b"") -> "subprocess.CompletedProcess[bytes]":
    return subprocess.run(command, input=given, capture_output=True, env=variables, timeout=60, check=False)


def on_record(folder: Path) -> list[Any]:
    with served(folder, "") as gateway:
        return gateway.api("/api/exchanges")["exchanges"]


# --- passing through --------------------------------------------------------------------------------


def test_streams_and_the_status_are_the_commands_own(
    words: list[str], variables: dict[str, str], tmp_path: Path
) -> None:
    script = "tr a-z A-Z; echo beside >&2; exit 7"
    ended = done([*words, "--", "sh", "-c", script], variables, b"hello")
    assert (ended.returncode, ended.stdout, ended.stderr) == (7, b"HELLO", b"beside\n")
    assert list((tmp_path / "temporary").iterdir()) == []


def test_command_killed_by_a_signal_exits_with_128_plus_signal(words: list[str], variables: dict[str, str]) -> None:
    assert done([*words, "sh", "-c", "kill -9 $$"], variables).returncode == 128 + 9


@contextmanager
def begun(command: list[str], variables: dict[str, str], **how: Any) -> Iterator["subprocess.Popen[bytes]"]:
    with subprocess.Popen(command, env=variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE, **how) as running:
        try:
            yield running
        finally:
            running.kill()


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1])
def test_signals_reach_the_command(words: list[str], variables: dict[str, str], sent: signal.Signals) -> None:
    waiting = (
        "import signal, sys\n"
        f"signal.signal({int(sent)}, lambda *_: sys.exit(5))\n"
        "print('ready')\nwhile True: signal.pause()\n"
    )
    # Without a terminal of its own, as under a supervisor.
    with begun([*words, "--", sys.executable, "-c", waiting], variables, start_new_session=True) as running:
        assert running.stdout.readline() == b"ready\n"
        running.send_signal(sent)
        assert running.wait(30) == 5


def test_ctrl_c_at_a_terminal_reaches_the_command_once(words: list[str], variables: dict[str, str]) -> None:
    counting = (
        "import signal, sys\nheard = []\n"
        "signal.signal(signal.SIGINT, lambda *_: (heard.append(1), print('heard', flush=True)))\n"
        "print('ready', flush=True)\nsys.stdin.readline()\nsys.exit(len(heard))\n"
    )
    at_terminal = (
        "import os, fcntl, sys, termios\nos.setsid()\nfcntl.ioctl(0, termios.TIOCSCTTY, 0)\n"
        "os.execvp(sys.argv[1], sys.argv[1:])\n"
    )
    terminal, end = os.openpty()
    settings = termios.tcgetattr(end)
    settings[3] &= ~termios.ECHO
    termios.tcsetattr(end, termios.TCSANOW, settings)
    command = [sys.executable, "-c", at_terminal, *words, "--session", "mine", "--", sys.executable, "-c", counting]
    with (
        os.fdopen(terminal, "rb+", buffering=0) as screen,
        subprocess.Popen(command, env=variables, stdin=end, stdout=end, stderr=end) as running,
    ):
        os.close(end)
        seen = _seen(screen, b"ready")
        assert b"Sightline records this as session mine: http://127.0.0.1:" in seen
        screen.write(b"\x03")
        _seen(screen, b"heard")
        screen.write(b"\n")
        assert running.wait(30) == 1


def _seen(screen: Any, awaited: bytes) -> bytes:
    seen = b""
    while awaited not in seen:
        seen += screen.read(1000)
    return seen


# --- whose server, which provider -------------------------------------------------------------------


def test_a_script_with_an_sdk_is_recorded_as_a_session(
    words: list[str], variables: dict[str, str], tmp_path: Path
) -> None:
    with upstream_in_background() as upstream:
        upstream.script = [says(REPLY)]
        with (tmp_path / "sightline.toml").open("a") as config:
            config.write(
                f'[providers.acme]\ndialect = "openai-chat"\nbase_url = "{upstream.url}/v1"\n'
                '[[routes]]\nmodel = "m"\nprovider = "acme"\n'
            )
        variables |= {"OPENAI_API_KEY": "sk-own-key-of-the-client"}
        ended = done([*words, "--session", "my task", "--tag", "nightly", "--", sys.executable, "-c", ASK], variables)
        assert (ended.returncode, ended.stdout) == (0, b"Hello.\n"), ended.stderr
        assert upstream.seen[0].header("authorization") == "Bearer sk-own-key-of-the-client"
    (line,) = on_record(tmp_path)
    assert (line["session"], line["provider"], line["state"]) == ("my task#nightly", "acme", "finished")
    assert line["tag"] == "nightly"


def test_without_any_key_the_embedded_model_answers(
    words: list[str], variables: dict[str, str], tmp_path: Path
) -> None:
    with upstream_in_background() as model:
        model.script = [says(REPLY)]
        with (tmp_path / "sightline.toml").open("a") as config:
            config.write(f'[local]\nurl = "{model.url}"\n')
        ended = done([*words, "--", sys.executable, "-c", ASK], variables)
        assert (ended.returncode, ended.stdout) == (0, b"Hello.\n"), ended.stderr
    (line,) = on_record(tmp_path)
    assert line["provider"] == "local"
    assert line["session"].startswith("python")


def test_where_the_environment_sends_clients_their_requests_still_go(
    words: list[str], variables: dict[str, str]
) -> None:
    with upstream_in_background() as upstream:
        upstream.script = [says(REPLY)]
        variables |= {"OPENAI_API_KEY": "sk-1", "OPENAI_BASE_URL": f"{upstream.url}/corp/v1"}
        ended = done([*words, "--", sys.executable, "-c", ASK], variables)
        assert (ended.returncode, ended.stdout) == (0, b"Hello.\n"), ended.stderr
        assert upstream.seen[0].target == "/corp/v1/chat/completions"


def test_running_server_is_used_and_overridden_variables_are_noted(
    words: list[str], variables: dict[str, str], tmp_path: Path
) -> None:
    show = ["--session", "s1", "--", "sh", "-c", "echo $ANTHROPIC_BASE_URL"]
    with served(tmp_path, "") as running:
        variables |= {"SIGHTLINE_SERVER_PORT": running.url.rpartition(":")[2]}
        ended = done([*words, *show], variables)
        assert (ended.stdout.decode(), ended.stderr) == (f"{running.url}/s/s1\n", b"")
        told = done([*words, *show], variables | {"OPENAI_BASE_URL": "https://me:secret@corp.example/v1"}).stderr
        assert b"https://corp.example/v1" in told
        assert b"secret" not in told
        nested = done([*words, *show], variables | {"OPENAI_BASE_URL": f"{running.url}/s/outer/v1"})
        assert nested.stderr == b""
        assert running.api("/api/exchanges")["exchanges"] == []


def test_the_server_ends_even_where_the_run_is_killed(words: list[str], variables: dict[str, str]) -> None:
    show = "import os, sys; print(os.environ['ANTHROPIC_BASE_URL'], flush=True); sys.stdin.read()"
    with begun([*words, "--", sys.executable, "-c", show], variables) as running:
        port = int(running.stdout.readline().decode().split(":")[2].partition("/")[0])
        with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
            running.kill()
            assert has_ended(connection)


def test_a_known_client_gets_what_it_needs_besides(words: list[str], variables: dict[str, str], tmp_path: Path) -> None:
    codex = tmp_path / "bin" / "codex"
    codex.parent.mkdir()
    codex.write_text('#!/bin/sh\nprintf "%s\\n" "$@"; cat "$GEMINI_CLI_HOME/.gemini/"*\n')
    codex.chmod(0o755)
    variables["PATH"] = f"{codex.parent}{os.pathsep}{variables['PATH']}"
    mine = tmp_path / "home" / ".gemini" / "mine"
    mine.parent.mkdir()
    mine.write_text("of the user\n")
    lines = done([*words, "--", "codex", "exec", "--session", "x"], variables).stdout.decode().splitlines()
    assert lines[:2] == ["-c", 'model_provider="sightline"']
    assert lines[-5:-1] == ["exec", "--session", "x", "of the user"]
    assert json.loads(lines[-1])["security"]["auth"]["selectedType"] == "gemini-api-key"
    assert any(line.startswith("model_providers.sightline.base_url=") and "/s/codex-" in line for line in lines)


def test_codex_signed_in_with_chatgpt_finds_a_server_that_knows_where_to_go(
    words: list[str], variables: dict[str, str], tmp_path: Path
) -> None:
    codex = tmp_path / "bin" / "codex"
    codex.parent.mkdir()
    asking = "print(urllib.request.urlopen(json.loads(sys.argv[2].partition('=')[2]) + '/models').read().decode())"
    codex.write_text(f"#!{sys.executable}\nimport json, sys, urllib.request\n{asking}\n")
    codex.chmod(0o755)
    variables["PATH"] = f"{codex.parent}{os.pathsep}{variables['PATH']}"
    login = tmp_path / "home" / ".codex" / "auth.json"
    login.parent.mkdir()
    login.write_text('{"tokens": {"access_token": "t"}}')
    ended = done([*words, "--", "codex"], variables)
    assert json.loads(ended.stdout)["object"] == "list", ended
    assert ended.stderr == b""


# --- wrong usage ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "there is no command"),
        (["--"], "there is no command"),
        (["--", "no-such-command-here"], "'no-such-command-here' cannot be found"),
        (["--", __file__], "test_run.py' is not executable"),
        (["--session", "..", "--", "true"], "cannot be the name"),
        (["--session", " ", "--", "true"], "cannot be the name"),
        (["--session", "a\nb", "--", "true"], "cannot be the name"),
        (["--session", "a" * 101, "--", "true"], "cannot be the name"),
        (["--tag", "a#b", "--", "true"], "cannot be a tag"),
    ],
)
def test_wrong_usage_starts_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], told: str
) -> None:
    assert main(["run", "--data", str(tmp_path / "data"), *arguments]) == 2
    error, hint = capsys.readouterr().err.splitlines()
    assert error.startswith("error[usage]: ")
    assert told in error
    assert hint.startswith("hint: ")
    assert not (tmp_path / "data").exists()


def test_unexecutable_file_is_reported(words: list[str], variables: dict[str, str], tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_text("#!/no/such/interpreter\n")
    broken.chmod(0o755)
    ended = done([*words, "--", str(broken)], variables)
    assert ended.returncode == 2
    assert ended.stderr.startswith(b"error[usage]: ")


def test_a_system_without_shared_locks_is_reported_with_a_hint(words: list[str], variables: dict[str, str]) -> None:
    windows = "from sightline.platform import support; support.require.__defaults__ = ('win32',)\n"
    without = windows + "from sightline.cli import main; raise SystemExit(main())"
    ended = done([sys.executable, "-c", without, *words[len(PROGRAM) :], "--", "true"], variables)
    first, second = ended.stderr.decode().splitlines()
    assert (ended.returncode, ended.stdout) == (2, b"")
    assert first.startswith("error[config]: ")
    assert "Windows does not support `sightline run`" in first
    assert second.startswith("hint: Start `sightline serve`")
