"""Completion: the shells themselves are asked what they would complete."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from sightline.cli.program import main
from tests.debian import brought

CASES = [
    ("sightline com", ["completion"]),
    ("sightline eval ru", ["run"]),
    ("sightline serve --po", ["--port"]),
    ("sightline show --as wi", ["wire"]),
    ("sightline run -- ser", []),
]
ASK_BASH = """
source "$1"
read -ra COMP_WORDS <<< "$2"
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_sightline
printf '%s\\n' "${COMPREPLY[@]}"
"""
ASK_ZSH = """
compdef() { }
_describe() { print -l -- ${found%%:*} }
_normal() { }
source "$1"
words=(${(z)2}); CURRENT=${#words}
_sightline
"""


@pytest.fixture
def script(request: pytest.FixtureRequest, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> Path:
    """The script for the shell that the test names, in a file."""
    assert main(["completion", request.param]) == 0
    path = tmp_path / "completion"
    path.write_bytes(capfdbinary.readouterr().out)
    return path


def shell(name: str) -> str:
    """The shell's program; Debian brings it where it may."""
    found = brought(lambda: shutil.which(name), name)
    if found is None:
        pytest.skip(f"{name} is not installed, and cannot be installed here")
    return found


def completed(command: list[str], folder: Path) -> list[str]:
    environment = {**os.environ, "HOME": str(folder)}
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder, env=environment, timeout=60)
    return [line.split("\t")[0] for line in done.stdout.splitlines() if line]


@pytest.mark.parametrize(("line", "expected"), CASES)
@pytest.mark.parametrize("script", ["bash"], indirect=True)
def test_bash_completes(script: Path, line: str, expected: list[str], tmp_path: Path) -> None:
    assert completed([shell("bash"), "-c", ASK_BASH, "bash", str(script), line], tmp_path) == expected


@pytest.mark.parametrize(("line", "expected"), CASES)
@pytest.mark.parametrize("script", ["zsh"], indirect=True)
def test_zsh_offers_the_word(script: Path, line: str, expected: list[str], tmp_path: Path) -> None:
    offered = completed([shell("zsh"), "-f", "-c", ASK_ZSH, "zsh", str(script), line], tmp_path)
    assert [word for word in offered if word.startswith(line.split()[-1])] == expected


@pytest.mark.parametrize(("line", "expected"), CASES)
@pytest.mark.parametrize("script", ["fish"], indirect=True)
def test_fish_completes(script: Path, line: str, expected: list[str], tmp_path: Path) -> None:
    asked = [shell("fish"), "-N", "-c", 'source $argv[1]; complete -C "$argv[2]"', str(script), line]
    assert completed(asked, tmp_path) == expected
