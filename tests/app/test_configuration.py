import asyncio
import ctypes
import os
import shlex
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from sightline.app.configuration import config_file, configuration, data_folder, load_with_problems
from sightline.app.machine import Ids, SystemClock, is_alive, own_command, process_name
from sightline.errors import Code, Fault


def test_the_built_in_catalogue_is_sound() -> None:
    loaded = configuration(None)
    assert loaded.path is None
    assert loaded.problems == ()
    assert list(loaded.catalog.providers)[-1] == "local"


def test_no_dialect_is_loaded_for_it(tmp_path: Path) -> None:
    """All of them together take twice as long as the configuration, and most commands need one or none."""
    (tmp_path / "sightline.toml").write_text('[providers.acme]\ndialect = "gemini"\nbase_url = "http://127.0.0.1"\n')
    script = (
        "import sys; from sightline.app.configuration import configuration; print(*configuration(None).problems); "
        "print(*[name for name in sys.modules if name.startswith('sightline.dialects.')])"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, check=True, text=True)
    assert done.stdout == "\nsightline.dialects.registry\n"


def test_the_environment_can_name_the_file_and_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIGHTLINE_CONFIG", "mine.toml")
    monkeypatch.setenv("SIGHTLINE_DATA", str(tmp_path / "kept"))
    assert config_file(None) == Path("mine.toml")
    assert config_file("other.toml") == Path("other.toml")
    assert data_folder(None) == tmp_path / "kept"
    assert data_folder("here") == Path("here")
    monkeypatch.delenv("SIGHTLINE_DATA")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    assert data_folder(None) == tmp_path / "share" / "sightline"
    monkeypatch.delenv("XDG_DATA_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert data_folder(None) == tmp_path / ".local" / "share" / "sightline"


def test_a_wrong_configuration_is_refused_or_looked_at(tmp_path: Path) -> None:
    (tmp_path / "sightline.toml").write_text("[nonsense]\n")
    with pytest.raises(Fault) as caught:
        configuration(None)
    assert caught.value.code is Code.CONFIG
    assert len(load_with_problems(None).problems) == 1


def test_a_home_that_is_not_ours_holds_nothing_for_us(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_path: Path) -> bool:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "is_file", refused)
    assert config_file(None) is None


def test_missing_home_directory_error_names_the_variable_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CONFIG_HOME")
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    with pytest.raises(Fault, match="no home folder") as caught:
        config_file(None)
    assert "XDG_CONFIG_HOME" in caught.value.hint
    with pytest.raises(Fault, match="no home folder"):
        data_folder(None)


def test_an_endless_file_is_no_configuration() -> None:
    with pytest.raises(Fault, match="too large for a configuration"):
        configuration("/dev/zero")


def test_the_embedded_models_window_is_what_was_set(tmp_path: Path) -> None:
    (tmp_path / "sightline.toml").write_text("[local]\ncontext_window = 2048\n")
    assert configuration(None).catalog.models["smollm2-135m-instruct"].context_window == 2048


TELLS = "from sightline.app.machine import process_name; print(process_name(), flush=True); input()"


def test_the_clock_is_the_machines() -> None:
    clock = SystemClock()
    assert clock.now() > 1_700_000_000
    asyncio.run(clock.sleep(0))


def test_the_program_is_started_by_its_path_where_the_shell_does_not_find_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    path = shlex.split(own_command())[0]
    assert Path(path).is_absolute()
    assert Path(path).name.startswith("sightline")
    monkeypatch.setenv("PATH", str(Path(path).parent))
    assert own_command() == "sightline"


def test_ids_sort_as_they_were_made() -> None:
    times = iter([5_000, 5_000, 4_000, 9_000_000])
    make = Ids(lambda: next(times), lambda: "abc")
    made = [make() for _ in range(4)]
    assert made == sorted(set(made))
    assert all(each.startswith("x_") for each in made)


def test_a_process_is_alive_until_it_ends() -> None:
    own = process_name()
    assert is_alive(own)
    host, number, started = own.split(":")
    assert not is_alive(f"{host}:{number}:{started}0"), "another had this number before"
    assert not is_alive(f"elsewhere:{number}:{started}")
    assert not is_alive("")
    assert not is_alive(f"{host}:x:1")
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", TELLS], text=True, **pipes) as child:
        name = child.stdout.readline().strip()
        assert is_alive(name)
        child.stdin.write("\n")
        child.stdin.flush()
    assert not is_alive(name)


def test_liveness_check_on_windows_does_not_kill_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    own, closed = process_name(), list[int]()
    waits, handles, errors = iter([0x102, 0]), iter([7, 8, 0, 0]), iter([5, 87])
    kernel = SimpleNamespace(
        OpenProcess=lambda _right, _inherit, number: next(handles) if number == os.getpid() else 0,
        WaitForSingleObject=lambda _handle, _time: next(waits),
        CloseHandle=closed.append,
        GetLastError=lambda: next(errors),
    )
    monkeypatch.setattr(ctypes, "windll", SimpleNamespace(kernel32=kernel), raising=False)
    monkeypatch.setattr(os, "kill", None)
    monkeypatch.setattr(sys, "platform", "win32")
    assert [is_alive(own) for _ in range(4)] == [True, False, True, False], "runs, has ended, is another's, is gone"
    assert closed == [7, 8]
