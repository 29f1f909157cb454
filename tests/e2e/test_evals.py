"""The example suite and the guide's, run as a reader would run them: with the program, in a folder, without a key."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.server_process import PROGRAM

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "guide" / "evals.md").read_text()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "examples" / "evals", tmp_path / "evals")
    return tmp_path


def sightline(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    environment |= {"SIGHTLINE_DATA": str(folder / "data"), "XDG_CONFIG_HOME": str(folder / "config")}
    return subprocess.run([*PROGRAM, *words], cwd=folder, env=environment, capture_output=True, text=True, timeout=120)


def test_the_example_passes_without_a_key(folder: Path) -> None:
    ran = sightline(folder, "eval", "run", "evals", "--jsonl", "first.jsonl")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "default     4/4  100 %" in ran.stdout
    rows = [json.loads(line) for line in (folder / "first.jsonl").read_text().splitlines()]
    assert {row["case"]: row["verdict"] for row in rows} == dict.fromkeys(
        ("refund", "order", "as-data", "remembers"), "pass"
    )
    again = sightline(folder, "eval", "run", "evals", "--jsonl", "second.jsonl")
    assert again.returncode == 0
    compared = sightline(folder, "eval", "compare", "first.jsonl", "second.jsonl")
    assert "these cases are too easy to tell them apart" in compared.stdout


def test_its_targets_are_looked_at_when_they_are_wanted(folder: Path) -> None:
    ran = sightline(folder, "eval", "run", "evals/support.eval.yaml", "--target", "own-server")
    assert ran.returncode == 2
    assert "the environment has no DESK_URL" in ran.stderr


def test_the_suite_of_the_guide_is_sound(folder: Path) -> None:
    (text,) = [block for block in re.findall(r"```yaml\n(.*?)```", GUIDE, re.DOTALL) if "capitals" in block]
    (folder / "docs").mkdir()
    (folder / "docs" / "rules.md").write_text("One word.")
    (folder / "guide.yaml").write_text(text)
    checked = sightline(folder, "eval", "validate", "guide.yaml")
    assert (checked.returncode, checked.stdout) == (0, "guide.yaml: 2 cases, nothing wrong\n")


def test_the_configuration_of_the_guide_is_sound(folder: Path) -> None:
    (text,) = re.findall(r"```toml\n(.*?)```", GUIDE, re.DOTALL)
    (folder / "sightline.toml").write_text(text)
    assert sightline(folder, "config", "check").returncode == 0
