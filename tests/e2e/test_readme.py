"""What the README tells a newcomer to type works as it stands."""

import os
import re
import shlex
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from tests.gateway_server import Served
from tests.person import Person
from tools.pictures import IMAGES, LARGEST, TAKES, chunks

ROOT = Path(__file__).parents[2]
BIN = ".venv/bin/"
README = (ROOT / "README.md").read_text()
COMMANDS = [
    line
    for block in re.findall(r"^```sh\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    for line in block.splitlines()
    if line.startswith((f"{BIN}sightline", f"{BIN}python"))
]


CLAUDE = """#!{python}
import json, os, urllib.request
body = {{"model": "claude-haiku-4-5", "max_tokens": 16, "messages": [{{"role": "user", "content": "Say hello."}}]}}
request = urllib.request.Request(
    os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages?beta=true",
    json.dumps(body).encode(),
    {{"content-type": "application/json", "anthropic-version": "2023-06-01", "user-agent": "claude-cli/2.0"}},
)
with urllib.request.urlopen(request) as response:
    print(json.load(response)["content"][0]["text"])
"""
"""Stands for Claude Code, which `make clients` runs: it finds Sightline as that does, and asks as that does."""


def run(line: str, data: Path) -> subprocess.CompletedProcess[str]:
    folder = Path(sys.executable).parent
    words = shlex.split(line, comments=True)
    command = [str(folder / word.removeprefix(BIN)) if word.startswith(BIN) else word for word in words]
    kept = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    environment = {**kept, "SIGHTLINE_DATA": str(data), "SIGHTLINE_SERVER_PORT": "0"}
    if words[-1] == "claude":
        command[-1] = str(data / "claude")
        (data / "claude").write_text(CLAUDE.format(python=sys.executable))
        (data / "claude").chmod(0o700)
    if " --hold " in line:
        return held(command, environment)
    if line.endswith(" chat"):
        return opened([*command, "--no-open"], environment)
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False, env=environment)


def held(command: list[str], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """The same with a person, who opens the link and sends what is held."""
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as running:
        assert running.stderr is not None
        try:
            link = next(found for said in running.stderr if (found := re.search(r"(http\S+)/\?token=(\S+)", said)))
            person = Person(Served(link[1], link[2], None))  # type: ignore[arg-type]
            assert person.release(person.held()[0])[0] == 200
            out, err = running.communicate(timeout=60)
        finally:
            running.kill()
    return subprocess.CompletedProcess(command, running.returncode, out, err)


def opened(command: list[str], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """The same with a person, who opens the link that is printed and ends it by Ctrl-C when they have seen the chat."""
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as running:
        try:
            link = running.stdout.readline()
            with urllib.request.build_opener(urllib.request.HTTPCookieProcessor()).open(link, timeout=30) as page:
                assert b"<title>" in page.read()
            running.send_signal(signal.SIGINT)
            _, err = running.communicate(timeout=60)
        finally:
            running.kill()
    assert running.returncode == 130
    return subprocess.CompletedProcess(command, 0, link, err)


def test_the_readme_has_commands() -> None:
    assert len(COMMANDS) >= 6


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data folder of a newcomer, who types one command after the other."""
    return tmp_path_factory.mktemp("newcomer")


@pytest.mark.parametrize("line", COMMANDS)
def test_a_readme_command_works(line: str, data: Path) -> None:
    if " traffic " in line and not (data / "claude").exists():  # it shows what the client before it has left
        assert run(next(each for each in COMMANDS if " run " in each), data).returncode == 0
    expected = int(marked[1]) if (marked := re.search(r"# exits (\d+)$", line)) else 0
    done = run(line, data)
    assert done.returncode == expected, done.stderr
    if expected == 0:
        assert done.stdout
    else:
        assert re.match(r"error\[\w+\]: ", done.stderr)


def test_every_linked_file_exists() -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", README)
    assert links
    assert not [link for link in links if not (ROOT / link).exists()]


def test_every_picture_is_taken_by_the_script_and_shown_somewhere() -> None:
    taken = {f"{name}.png" for names in TAKES.values() for name in names}
    assert {path.name for path in IMAGES.iterdir()} == taken
    pages = [README, *(path.read_text() for path in (ROOT / "docs").rglob("*.md"))]
    assert taken == {name for page in pages for name in re.findall(r"images/([\w.-]+)\)", page)}


def test_the_moving_picture_is_an_animated_png_of_less_than_two_megabytes() -> None:
    data = (IMAGES / "hold-edit-send.png").read_bytes()
    kinds = [kind for kind, _ in chunks(data)]
    assert kinds[:2] == [b"IHDR", b"acTL"]
    assert kinds.count(b"fcTL") > 10
    assert len(data) < LARGEST
