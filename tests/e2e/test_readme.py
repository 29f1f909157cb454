"""What the README tells a newcomer to type works as it stands."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BIN = ".venv/bin/"
README = (ROOT / "README.md").read_text()
COMMANDS = [
    line
    for block in re.findall(r"^```sh\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    for line in block.splitlines()
    if line.startswith((f"{BIN}sightline", f"{BIN}python"))
]


def run(line: str) -> subprocess.CompletedProcess[str]:
    program, *arguments = shlex.split(line, comments=True)
    here = Path(sys.executable).parent / program.removeprefix(BIN)
    return subprocess.run([str(here), *arguments], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)


def test_the_readme_has_commands() -> None:
    assert len(COMMANDS) >= 6


@pytest.mark.parametrize("line", COMMANDS)
def test_a_readme_command_works(line: str) -> None:
    expected = int(marked[1]) if (marked := re.search(r"# exits (\d+)$", line)) else 0
    done = run(line)
    assert done.returncode == expected, done.stderr
    if expected == 0:
        assert done.stdout
    else:
        assert re.match(r"error\[\w+\]: ", done.stderr)


def test_every_linked_file_exists() -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", README)
    assert links
    assert not [link for link in links if not (ROOT / link).exists()]
