"""pydantic-ai, openai-agents, LiteLLM, llm and aider as people install them, through `sightline run`.

A provider on this machine plays a task of two turns: it calls the program's tool, then repeats what that has said. Each
program does it directly, then through Sightline by a base URL and below TLS, and with a provider of another API. pip
fetches the programs into the user's cache, which takes a while: `make clients` does it.
"""

import json
import os
import re
import subprocess
import venv
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.e2e.test_clients import DIALECTS, PROGRAM, SAID, Case, Playing, _run
from tests.gateway_server import served
from tests.raw_upstream import RawRequest, raw_upstream
from tests.tls_stage import vendors_in_front_of

pytestmark = pytest.mark.skipif(
    os.environ.get("TEST_CLIENTS") != "1", reason="fetches and runs real clients for minutes; `make clients` does it"
)

# aider pins its dependencies, so that it has an environment of its own.
PACKAGES = {
    "frameworks": ("pydantic-ai-slim[openai,anthropic,google]", "openai-agents", "litellm", "llm", "llm-anthropic"),
    "aider": ("aider-chat",),
}
OF_A_CONNECTION = ("host", "connection")  # the rest of a head is the program's
TOOL = Case(("a program",), "", "say_it", {})

PYDANTIC_AI = """
import asyncio, sys
from pydantic_ai import Agent

agent = Agent(sys.argv[1], instructions="Be brief.")

@agent.tool_plain
def say_it() -> str:
    "Says it."
    return "sight" + "line-said-so"

async def stream():
    async with agent.run_stream("Do it.") as result:
        print(await result.get_output())

print(agent.run_sync("Do it.").output)
asyncio.run(stream())
"""
AGENTS = """
import sys
from agents import Agent, Runner, function_tool, set_default_openai_api, set_tracing_disabled

set_tracing_disabled(True)
set_default_openai_api(sys.argv[1])

@function_tool
def say_it() -> str:
    "Says it."
    return "sight" + "line-said-so"

agent = Agent("a", instructions="Be brief.", model="gpt-5.5", tools=[say_it])
print(Runner.run_sync(agent, "Do it.").final_output)
"""
LITELLM = """
import sys
import litellm

kind = {"name": "say_it", "description": "Says it.", "parameters": {"type": "object", "properties": {}}}
tools = [{"type": "function", "function": kind}]
messages = [{"role": "user", "content": "Do it."}]
while True:
    message = litellm.completion(sys.argv[1], messages, tools=tools, max_tokens=99).choices[0].message
    if not message.tool_calls:
        break
    said = "sight" + "line-said-so"
    messages.append(message.model_dump())
    messages += [{"role": "tool", "tool_call_id": call.id, "content": said} for call in message.tool_calls]
print(message.content)
chunks = litellm.completion(sys.argv[1], messages, tools=tools, max_tokens=99, stream=True)
print("".join(chunk.choices[0].delta.content or "" for chunk in chunks))
"""
FUNCTION = 'def say_it() -> str:\n    "Says it."\n    return "sight" + "line-said-so"\n'
AIDER = ("--no-git", "--yes-always", "--no-check-update", "--no-show-model-warnings", "--no-pretty", "--no-stream")


@dataclass(frozen=True)
class Program:
    """A program, the API that it speaks, and its words behind the interpreter or script of its environment."""

    spoken: str
    words: tuple[str, ...]
    home: str = "frameworks"


PROGRAMS = {
    "pydantic-ai of OpenAI chat": Program("openai-chat", ("python", "-c", PYDANTIC_AI, "openai-chat:gpt-5.5")),
    "pydantic-ai of OpenAI": Program("openai-responses", ("python", "-c", PYDANTIC_AI, "openai-responses:gpt-5.5")),
    "pydantic-ai of Anthropic": Program("anthropic", ("python", "-c", PYDANTIC_AI, "anthropic:claude-sonnet-4-5")),
    "pydantic-ai of Google": Program("gemini", ("python", "-c", PYDANTIC_AI, "google:gemini-2.5-flash")),
    "openai-agents": Program("openai-responses", ("python", "-c", AGENTS, "responses")),
    "openai-agents over chat": Program("openai-chat", ("python", "-c", AGENTS, "chat_completions")),
    "litellm of OpenAI": Program("openai-chat", ("python", "-c", LITELLM, "openai/gpt-5.5")),
    "litellm of Anthropic": Program("anthropic", ("python", "-c", LITELLM, "anthropic/claude-sonnet-4-5")),
    "litellm of Google": Program("gemini", ("python", "-c", LITELLM, "gemini/gemini-2.5-flash")),
    "llm of OpenAI": Program("openai-chat", ("llm", "-m", "gpt-4o-mini", "--functions", FUNCTION, "Do it.")),
    "llm of Anthropic": Program("anthropic", ("llm", "-m", "claude-haiku-5-5", "--functions", FUNCTION, "Do it.")),
    "aider": Program(
        "openai-chat", ("aider", *AIDER, "--model", "openai/gpt-5.5", "--message", f"Repeat {SAID}"), "aider"
    ),
    "aider of Anthropic": Program(
        "anthropic", ("aider", *AIDER, "--model", "anthropic/claude-sonnet-4-5", "--message", f"Repeat {SAID}"), "aider"
    ),
}


@dataclass(frozen=True)
class Asked:
    """A request as the provider got it, without what differs between any two runs or is of the connection."""

    method: str
    target: str
    headers: tuple[tuple[str, str], ...]
    body: str


class Vendor:
    """Plays the model, and keeps every request to the byte."""

    def __init__(self, spoken: str) -> None:
        self.url = ""
        self.asked: list[Asked] = []
        self._playing = Playing(spoken)
        self._playing.case = TOOL

    def __call__(self, request: RawRequest) -> None:
        data = request.read()
        headers = sorted(
            (name.lower(), value) for name, value in request.headers if name.lower() not in OF_A_CONNECTION
        )
        self.asked.append(Asked(request.method, request.target, tuple(headers), plainly(data.decode())))
        status, kind, answer = self._playing.answer_to(request.target, json.loads(data))
        request.answer(status, answer, ("content-type", kind))


def plainly(text: str) -> str:
    """A body without ids that the program makes up, and without folders."""
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\b[0-9a-f]{32}\b", "ID", text)
    return re.sub(r"\b(?:call|toolu|pyd_ai|msg)_[0-9A-Za-z]+", "ID", text)


@pytest.fixture(scope="session")
def environments() -> dict[str, Path]:
    """The folder with the programs of each environment, which is kept between runs."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sightline-clients"
    found = {name: cache / name / "bin" for name in PACKAGES}
    for name, packages in PACKAGES.items():
        if all((found[name] / each.words[0]).exists() for each in PROGRAMS.values() if each.home == name):
            continue
        venv.create(cache / name, with_pip=True)
        install = [str(found[name] / "python"), "-m", "pip", "install", "-q", *packages]
        done = subprocess.run(install, capture_output=True, text=True, timeout=900, check=False)
        if done.returncode:
            pytest.skip(f"pip could not install {name}: {done.stderr.strip()[-300:]}")
    return found


@contextmanager
def vendors() -> Iterator[dict[str, Vendor]]:
    """A provider of each API, listening."""
    with ExitStack() as stack:
        made = {name: Vendor(name) for name in DIALECTS}
        for each in made.values():
            each.url = stack.enter_context(raw_upstream(each)).url
        yield made


def variables(program: Program, environments: dict[str, Path], home: Path, address: str) -> dict[str, str]:
    """The environment of somebody who uses this address for the program's API."""
    openai = f"{address}/v1"
    home.mkdir(parents=True)
    return {
        "PATH": os.pathsep.join([str(environments[program.home]), os.environ["PATH"]]),
        "HOME": str(home),
        "TMPDIR": str(home),
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "OPENAI_API_KEY": "sk-of-nobody",
        "ANTHROPIC_API_KEY": "sk-ant-of-nobody",
        "GEMINI_API_KEY": "key-of-nobody",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "AIDER_ANALYTICS": "false",
        **dict.fromkeys(("OPENAI_BASE_URL", "OPENAI_API_BASE"), openai),
        **dict.fromkeys(("ANTHROPIC_BASE_URL", "ANTHROPIC_API_BASE"), address),
        "GOOGLE_GEMINI_BASE_URL": address,
        "GEMINI_API_BASE": f"{address}/v1beta",
    }


def variables_below_tls(
    program: Program, environments: dict[str, Path], home: Path, way: str, trusted: Path
) -> dict[str, str]:
    """The environment of somebody who has no address but the vendors' own, and reaches them by this proxy."""
    given = variables(program, environments, home, "")
    plain = {name: value for name, value in given.items() if not name.endswith(("_BASE_URL", "_API_BASE"))}
    authorities = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")
    return plain | dict.fromkeys(("HTTPS_PROXY", "https_proxy"), way) | dict.fromkeys(authorities, str(trusted))


def through(folder: Path, config: str, *options: str) -> list[str]:
    """The words that stand before those of a program that goes through Sightline."""
    file = folder / "sightline.toml"
    file.write_text(config)
    ours = ["--config", str(file), "--data", str(folder / "data"), "--session", "a task"]
    return [*PROGRAM, "run", *options, *ours, "--"]


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_sends_through_sightline_what_it_sends_directly(
    environments: dict[str, Path], tmp_path: Path, name: str
) -> None:
    program, config = PROGRAMS[name], "[server]\nport = 0\n"
    with vendors() as played:
        vendor, seen = played[program.spoken], []
        for number, before in enumerate(([], through(tmp_path, config))):
            vendor.asked.clear()
            given = variables(program, environments, tmp_path / f"home{number}", vendor.url)
            words = [str(environments[program.home] / program.words[0]), *program.words[1:]]
            status, said, told = _run([*before, *words], tmp_path, given)
            assert status == 0, f"{said}\n{told}"
            assert f"It says {SAID}" in said
            seen.append(list(vendor.asked))
    direct, passed = seen
    assert passed == direct
    assert recorded(tmp_path, config) == [("finished", 200, "a task", program.spoken, "http")] * len(direct)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_sends_below_tls_what_it_sends_directly(
    environments: dict[str, Path], tmp_path: Path, name: str
) -> None:
    program, config, vendor = PROGRAMS[name], "[server]\nport = 0\n", Vendor(PROGRAMS[name].spoken)
    seen = []
    with raw_upstream(vendor) as upstream:
        port = int(upstream.url.rpartition(":")[2])
        with vendors_in_front_of(port, tmp_path) as (way, trusted):
            for number, before in enumerate(([], through(tmp_path, config, "--tls"))):
                vendor.asked.clear()
                home = tmp_path / f"home{number}"
                given = variables_below_tls(program, environments, home, way, trusted)
                words = [str(environments[program.home] / program.words[0]), *program.words[1:]]
                status, said, told = _run([*before, *words], tmp_path, given)
                assert status == 0, f"{said}\n{told}"
                assert f"It says {SAID}" in said
                seen.append(list(vendor.asked))
    direct, passed = seen
    assert passed == direct
    assert recorded(tmp_path, config) == [("finished", 200, "a task", program.spoken, "tls")] * len(direct)


def recorded(folder: Path, config: str) -> list[tuple[str, int, str, str, str]]:
    """What is on record of each exchange."""
    with served(folder, config) as gateway:
        lines = gateway.api("/api/exchanges?limit=100")["exchanges"]
    names = ("state", "status", "session", "dialect", "transport")
    return [tuple(line[name] for name in names) for line in lines]


@pytest.mark.parametrize("other", DIALECTS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_does_its_task_with_a_provider_of_another_api(
    environments: dict[str, Path], tmp_path: Path, name: str, other: str
) -> None:
    program = PROGRAMS[name]
    if program.spoken == other:
        pytest.skip("this is its own API")
    with vendors() as played:
        version = "/v1" if other.startswith("openai") else ""
        config = (
            f'[server]\nport = 0\n[providers.scripted]\ndialect = "{other}"\n'
            f'base_url = "{played[other].url}{version}"\n[[routes]]\nmodel = "*"\nprovider = "scripted"\n'
        )
        given = variables(program, environments, tmp_path / "home", played[program.spoken].url)
        words = [str(environments[program.home] / program.words[0]), *program.words[1:]]
        status, said, told = _run([*through(tmp_path, config), *words], tmp_path, given)
        assert status == 0, f"{said}\n{told}"
        assert f"It says {SAID}" in said
        assert played[other].asked
        assert not played[program.spoken].asked
