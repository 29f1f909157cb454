"""Codex, Claude Code, Gemini CLI and opencode as people install them, through `sightline run`, on every provider.

A provider on this machine plays a task of two turns: first it calls the client's shell tool, then it repeats what the
command has said. The clients are fetched by npm into the user's cache, which takes a while: `make clients` does it.
"""

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from websockets.sync.server import ServerConnection

from sightline.dialects.dialect import Client
from sightline.dialects.registry import dialect
from sightline.model.events import (
    ArgumentsReceived,
    Ended,
    Finished,
    Started,
    StreamEvent,
    TextReceived,
    ToolCallBegun,
    ToolCallCompleted,
    UsageReceived,
)
from sightline.model.reply import Usage
from tests.client_sessions import COMMANDS, READ, ReadingModel, Session, fill, measure_all
from tests.contract.loopback import Upstream, _listening
from tests.gateway_server import served
from tests.server_process import PROGRAM
from tests.socket_upstream import SocketUpstream, events, socket_upstream

pytestmark = pytest.mark.skipif(
    os.environ.get("TEST_CLIENTS") != "1", reason="fetches and runs real clients for minutes; `make clients` does it"
)

PACKAGES = ("@openai/codex", "@anthropic-ai/claude-code", "@google/gemini-cli", "opencode-ai")
COMMAND = "printf 'sight%s' line-said-so"
SAID = "sightline-said-so"  # stands in no request before the command has run
TASK = "Run the command that you know of, and repeat what it says."
DIALECTS = ("openai-chat", "openai-responses", "anthropic", "gemini")
COUNTED = UsageReceived(Usage(input_tokens=11, output_tokens=5))


@dataclass(frozen=True)
class Case:
    """A client, the dialect that it speaks, its words on the command line, and its shell tool. A tool in a namespace
    takes a text instead of arguments."""

    words: tuple[str, ...]
    spoken: str
    tool: str
    arguments: dict[str, Any]
    namespace: str = ""
    settings: tuple[tuple[str, str], ...] = ()  # files in the home folder

    @property
    def program(self) -> str:
        return self.words[0]

    def call(self, dialect: str) -> tuple[ToolCallBegun, str]:
        """How a model of this dialect calls the tool: its name and kind, and what it is given."""
        if not self.namespace:
            return ToolCallBegun(0, "call_1", self.tool), json.dumps(self.arguments)
        (text,) = self.arguments.values()
        if dialect == "openai-responses":
            return ToolCallBegun(0, "call_1", self.tool, kind="custom", namespace=self.namespace), text
        joined = f"{self.namespace}__{self.tool}"
        if dialect == "openai-chat":
            return ToolCallBegun(0, "call_1", joined, kind="custom"), text
        return ToolCallBegun(0, "call_1", joined), json.dumps(self.arguments)


CODEX = ("codex", "exec", "--skip-git-repo-check", "-c", 'sandbox_mode="danger-full-access"')
BASH = {"command": COMMAND, "description": "says something"}
GEMINI_SETTINGS = json.dumps({"privacy": {"usageStatisticsEnabled": False}, "general": {"enableAutoUpdate": False}})
OPENCODE = ("opencode", "run", "--title", "t", "-m")

CASES = {
    "claude": Case(("claude", "-p", TASK, "--allowedTools", "Bash"), "anthropic", "Bash", BASH),
    "codex": Case((*CODEX, "-m", "gpt-5.5", TASK), "openai-responses", "exec_command", {"cmd": COMMAND}),
    # Its newest models are given their tools in an item of the conversation, and call them by a program.
    "codex with a newer model": Case(
        (*CODEX, "-m", "gpt-6.1-terra", TASK),
        "openai-responses",
        "exec",
        {"input": f"text(JSON.stringify(await tools.exec_command({json.dumps({'cmd': COMMAND})})))"},
        namespace="functions",
    ),
    # The provider that it has built in tries a WebSocket first.
    "codex signed in": Case(
        (*CODEX, "-m", "gpt-5.5", TASK),
        "openai-responses",
        "exec_command",
        {"cmd": COMMAND},
        settings=((".codex/auth.json", '{"OPENAI_API_KEY": "sk-of-nobody"}'),),
    ),
    "gemini": Case(
        ("gemini", "-m", "gemini-3.8-flash", "-p", TASK, "--approval-mode", "yolo", "--skip-trust"),
        "gemini",
        "run_shell_command",
        {"command": COMMAND},
        settings=((".gemini/settings.json", GEMINI_SETTINGS),),
    ),
    "opencode of Anthropic": Case((*OPENCODE, "anthropic/claude-sonnet-4-5", TASK), "anthropic", "bash", BASH),
    "opencode of OpenAI": Case((*OPENCODE, "openai/gpt-5.5", TASK), "openai-responses", "bash", BASH),
    "opencode of Google": Case((*OPENCODE, "google/gemini-2.5-flash", TASK), "gemini", "bash", BASH),
}
VARIABLES = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "OPENCODE_DISABLE_MODELS_FETCH": "1",
    "OPENCODE_DISABLE_AUTOUPDATE": "1",
    "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
    "TERM": "dumb",
}


class Playing(Upstream):
    """A model that knows one command of one tool, and says what it has heard of it."""

    def __init__(self, spoken: str) -> None:
        super().__init__(dialect(spoken), Client(id="r1", model="scripted"))
        self._spoken = spoken
        self.case = CASES["claude"]

    def answer_to(self, path: str, body: Any) -> tuple[int, str, bytes]:
        text = json.dumps(body)
        begun, given = self.case.call(self._spoken)
        if SAID in text:
            self.events = _telling(f"It says {SAID}.")
        elif f'"{begun.name}"' in text:
            self.events = _calling(begun, given)
        else:
            self.events = _telling('{"title": "A task"}')  # some ask for a title beside the task
        return super().answer_to(path, body)


def _calling(begun: ToolCallBegun, given: str) -> list[StreamEvent]:
    told: list[StreamEvent] = [Started("r1", "scripted"), begun, ArgumentsReceived(0, given), ToolCallCompleted(0)]
    return [*told, COUNTED, Finished("tool_calls"), Ended()]


def _telling(text: str) -> list[StreamEvent]:
    return [Started("r2", "scripted"), TextReceived(0, text), COUNTED, Finished("stop"), Ended()]


@pytest.fixture(scope="session")
def clients() -> Path:
    """The folder with the clients' programs."""
    return find_clients()


def find_clients() -> Path:
    """The folder with the clients' programs, which is kept between runs."""
    if shutil.which("npm") is None:
        pytest.skip("the clients are installed by npm, which is not here")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sightline-clients"
    found = cache / "node_modules" / ".bin"
    if not all((found / case.program).exists() for case in CASES.values()):
        cache.mkdir(parents=True, exist_ok=True)
        install = ["npm", "install", "--prefix", str(cache), "--no-audit", "--no-fund", *PACKAGES]
        done = subprocess.run(install, cwd=cache, capture_output=True, text=True, timeout=600, check=False)
        if done.returncode:
            pytest.skip(f"npm could not install the clients: {done.stderr.strip()[-300:]}")
    return found


@pytest.fixture(scope="module")
def upstreams() -> Iterator[dict[str, Playing]]:
    with ExitStack() as stack:
        made = {name: Playing(name) for name in DIALECTS}
        for each in made.values():
            stack.enter_context(_listening(each))
        yield made


def _environment(clients: Path, home: Path, case: Case) -> dict[str, str]:
    for name, text in case.settings:
        file = home / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    path = os.pathsep.join([str(clients), os.environ["PATH"]])
    return {
        "PATH": path,
        "HOME": str(home),
        "TMPDIR": str(home),
        "LANG": "C.UTF-8",
        **VARIABLES,
    }


def _config(upstream: Upstream, spoken: str) -> str:
    version = "/v1" if spoken.startswith("openai") else ""
    return (
        "[server]\nport = 0\n"
        f'[providers.scripted]\ndialect = "{spoken}"\nbase_url = "{upstream.url}{version}"\n'
        '[[routes]]\nmodel = "*"\nprovider = "scripted"\n'
    )


def _run(command: list[str], folder: Path, variables: dict[str, str]) -> tuple[int, str, str]:
    """The status, output and errors of a command; one that does not end in time is ended with all that it started."""
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command,
        cwd=folder,
        env=variables,
        stdin=subprocess.DEVNULL,
        stdout=pipe,
        stderr=pipe,
        text=True,
        start_new_session=True,
    ) as running:
        try:
            said, told = running.communicate(timeout=120)
        except subprocess.TimeoutExpired:
            os.killpg(running.pid, signal.SIGKILL)
            raise
    return running.returncode, said, told


@pytest.mark.parametrize("spoken", DIALECTS)
@pytest.mark.parametrize("name", CASES)
def test_a_client_does_a_task_with_a_tool(
    clients: Path, upstreams: dict[str, Playing], tmp_path: Path, name: str, spoken: str
) -> None:
    case, upstream = CASES[name], upstreams[spoken]
    upstream.case = case
    upstream.bodies.clear()
    home, work = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    work.mkdir()
    config = tmp_path / "sightline.toml"
    config.write_text(_config(upstream, spoken))
    options = ["--config", str(config), "--data", str(tmp_path / "data"), "--session", "a task"]
    status, said, told = _run([*PROGRAM, "run", *options, "--", *case.words], work, _environment(clients, home, case))
    assert status == 0, f"{said}\n{told}"
    assert f"It says {SAID}" in said
    assert not list(home.glob("sightline-run-*"))
    _expect_on_record(tmp_path, config.read_text(), case, spoken, upstream)


def _expect_on_record(folder: Path, config: str, case: Case, spoken: str, upstream: Upstream) -> None:
    """Everything that the provider was asked is there, as it was sent, and whole."""
    with served(folder, config) as gateway:
        lines = gateway.api("/api/exchanges?limit=100")["exchanges"]
        # What warms up a socket is not sent to a provider that is asked over HTTP.
        lines = [line for line in lines if line["provider"]]
        assert len(lines) >= 2
        for line in lines:
            assert (line["state"], line["status"], line["session"]) == ("finished", 200, "a task")
            assert (line["dialect"], line["provider"]) == (case.spoken, "scripted")
            assert gateway.body(line["id"], "reply")
            if case.spoken == spoken and gateway.api(f"/api/exchanges/{line['id']}")["transport"] == "http":
                assert gateway.body(line["id"], "received") == gateway.body(line["id"], "sent")
        sent = [json.loads(gateway.body(line["id"], "sent")) for line in reversed(lines)]
    assert sorted(map(json.dumps, sent)) == sorted(map(json.dumps, upstream.bodies))


RECORDED = ("claude", "codex", "gemini", "opencode of Anthropic", "opencode of OpenAI", "opencode of Google")


def record_session(clients: Path, folder: Path, name: str) -> Session:
    """A client reads ten files, through the gateway to a provider of its own dialect."""
    case = CASES[name]
    home, work = folder / "home", folder / "work"
    home.mkdir()
    work.mkdir()
    fill(work)
    key = next(iter(case.arguments))
    upstream = ReadingModel(case.spoken, case.tool, lambda command: {**case.arguments, key: command})
    with _listening(upstream):
        config = folder / "sightline.toml"
        config.write_text(_config(upstream, case.spoken))
        words = [word.replace(TASK, READ) for word in case.words]
        options = ["--config", str(config), "--data", str(folder / "data")]
        status, said, told = _run([*PROGRAM, "run", *options, "--", *words], work, _environment(clients, home, case))
    assert status == 0, f"{said}\n{told}"
    return Session(name, case.spoken, upstream.session)


@pytest.mark.parametrize("name", RECORDED)
def test_after_five_turns_of_a_client_the_band_holds_what_its_provider_counts(
    clients: Path, tmp_path: Path, name: str
) -> None:
    session = record_session(clients, tmp_path, name)
    measured = measure_all(session.dialect, session.bodies)
    assert len(session.bodies) > len(COMMANDS)
    assert sum(each.holds for each in measured) >= 0.95 * len(measured)
    assert median(each.error for each in measured) <= 0.03


def _play_codex(connection: ServerConnection, upstream: SocketUpstream) -> None:
    """A model behind a socket: it is warmed up, calls the tool, and repeats what the tool has said."""
    while True:
        asked = upstream.take(connection)
        name = f"resp_{len(upstream.frames)}"
        text = json.dumps(asked["input"])
        call = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "exec_command",
                "arguments": json.dumps({"cmd": COMMAND}), "status": "completed"}  # fmt: skip
        response = {"id": name, "object": "response", "created_at": 1, "model": "gpt-5.5", "status": "in_progress"}
        output: list[Any] = [] if asked.get("generate") is False else [call]
        if SAID in text:
            frames = events(name, f"It says {SAID}")
        else:
            done = {**response, "status": "completed", "output": output}
            told = [
                {"type": "response.created", "response": {**response, "output": []}},
                *({"type": "response.output_item.done", "output_index": 0, "item": each} for each in output),
                {"type": "response.completed", "response": done},
            ]
            frames = [json.dumps(each) for each in told]
        for frame in frames:
            connection.send(frame)


def test_codex_does_a_task_over_a_socket_of_the_provider(clients: Path, tmp_path: Path) -> None:
    home, work = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    work.mkdir()
    with socket_upstream(_play_codex) as upstream:
        config = f'[providers.openai]\nbase_url = "{upstream.url}"\ndialect = "openai-responses"\n'
        with served(tmp_path, f'{config}home = ["openai-responses"]\n') as gateway:
            words = [*CODEX, "-c", f'openai_base_url="{gateway.url}/v1"', "-m", "gpt-5.5", TASK]
            variables = {**_environment(clients, home, CASES["codex"]), "CODEX_API_KEY": "sk-of-nobody"}
            status, said, told = _run([str(clients / words[0]), *words[1:]], work, variables)
            assert status == 0, f"{said}\n{told}"
            assert f"It says {SAID}" in said
            lines = gateway.api("/api/exchanges")["exchanges"]
            shown = [gateway.api(f"/api/exchanges/{line['id']}") for line in reversed(lines)]
            sent = [gateway.body(each["id"], "sent").decode() for each in shown]
    assert [(each["state"], each["transport"]) for each in shown] == [("finished", "websocket")] * 3
    assert sent == upstream.frames
    assert json.loads(sent[0])["generate"] is False
    assert [json.loads(each).get("previous_response_id") for each in sent] == [None, "resp_1", "resp_2"]
    (handshake,) = upstream.handshakes
    assert handshake.headers["OpenAI-Beta"].startswith("responses_websockets=")
