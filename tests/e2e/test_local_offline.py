"""In a network that has nothing but this machine the embedded model answers as ever."""

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.local_model import needs_model

ROOT = Path(__file__).parents[2]
ALONE = ["unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
REACHES_OUT = """
import socket

try:
    socket.create_connection(("192.0.2.1", 80), timeout=1)
except OSError as error:
    print(error.strerror)
"""


@cache
def can_be_alone() -> bool:
    if not all(map(shutil.which, ("unshare", "ip"))):
        return False
    return subprocess.run([*ALONE, "true"], capture_output=True, check=False).returncode == 0


pytestmark = [
    needs_model,
    pytest.mark.skipif(not can_be_alone(), reason="a network of its own needs root, unshare and ip"),
]


def said_alone(*command: str, **environment: str) -> str:
    """What a program prints whose network ends at its own loopback."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    done = subprocess.run(
        [*ALONE, *command], cwd=ROOT, check=False, capture_output=True, text=True, env={**kept, **environment}
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_isolated_network_cannot_reach_outside() -> None:
    assert said_alone(sys.executable, "-c", REACHES_OUT) == "Network is unreachable\n"


def test_sightline_answers_all_the_same(tmp_path: Path) -> None:
    sightline = Path(sys.executable).parent / "sightline"
    question = ("ask", "--max-tokens", "12", "Say hello.")
    assert said_alone(str(sightline), *question, SIGHTLINE_DATA=str(tmp_path)).strip()
