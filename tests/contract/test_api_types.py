"""The page's types of the API are those of the server."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_types_of_the_page_are_written_from_the_servers_values() -> None:
    command = [sys.executable, "tools/api_types.py", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr.decode()
