"""Where a user's files belong, who may read them, and locks."""

import contextlib
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from sightline.platform.files import add_file, hold_lock, make_private, open_pipe, replacing, user_folder, write_pipe

HOME = Path("/home/ada")


def home() -> Path:
    return HOME


def nobody() -> Path:
    raise RuntimeError


@pytest.mark.parametrize(
    ("platform", "environment", "config", "data"),
    [
        ("linux", {}, HOME / ".config", HOME / ".local/share"),
        ("darwin", {}, HOME / ".config", HOME / ".local/share"),
        ("linux", {"APPDATA": "/roaming"}, HOME / ".config", HOME / ".local/share"),
        ("win32", {}, HOME / "AppData/Roaming", HOME / "AppData/Local"),
        ("win32", {"APPDATA": "/roaming", "LOCALAPPDATA": "/local"}, Path("/roaming"), Path("/local")),
        ("win32", {"APPDATA": "/roaming", "XDG_CONFIG_HOME": "/c", "XDG_DATA_HOME": "/d"}, Path("/c"), Path("/d")),
    ],
)
def test_a_users_folders_are_where_the_system_has_them(
    platform: str, environment: dict[str, str], config: Path, data: Path
) -> None:
    assert user_folder("config", environment, home, platform) == config / "sightline"
    assert user_folder("data", environment, home, platform) == data / "sightline"


def test_a_user_without_a_home_can_name_the_folders() -> None:
    assert user_folder("data", {"XDG_DATA_HOME": "/d"}, nobody) == Path("/d/sightline")
    with pytest.raises(RuntimeError):
        user_folder("data", {"XDG_DATA_HOME": " "}, nobody)


def test_files_and_folders_become_private_and_shared_folders_stay(tmp_path: Path) -> None:
    file, folder, shared = tmp_path / "file", tmp_path / "folder", tmp_path / "shared"
    file.touch(0o644)
    folder.mkdir(0o755)
    shared.mkdir()
    shared.chmod(0o1777)
    for path in (file, folder, shared):
        make_private(path)
    assert [stat.S_IMODE(path.stat().st_mode) for path in (file, folder, shared)] == [0o600, 0o700, 0o1777]


@pytest.mark.parametrize("mode", [0o600, 0o644])
def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "file"
    with contextlib.suppress(OSError), replacing(path) as file:
        file.write(b"half")
        raise OSError("the disk is full")
    assert list(tmp_path.iterdir()) == []
    for data in (b"first", b"second"):
        with replacing(path, mode=mode, is_forced=True) as file:
            file.write(data)
        assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (data, mode)
    assert list(tmp_path.iterdir()) == [path]


def test_of_two_files_with_one_name_the_first_stays(tmp_path: Path) -> None:
    path = tmp_path / "file"
    assert [add_file(path, b"first"), add_file(path, b"second")] == [True, False]
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"first", 0o600)
    assert list(tmp_path.iterdir()) == [path]


HOLDS = """
import sys
from pathlib import Path
from sightline.platform.files import hold_lock
with hold_lock(Path(sys.argv[1]), is_shared=sys.argv[2] == "shared"):
    print(flush=True)
    input()
"""


@pytest.mark.parametrize(("theirs", "ours", "is_held"), [
    ("exclusive", "exclusive", False), ("exclusive", "shared", False), ("shared", "exclusive", False),
    ("shared", "shared", True),
])  # fmt: skip
def test_a_lock_holds_against_another_process_until_that_ends(
    theirs: str, ours: str, is_held: bool, tmp_path: Path
) -> None:
    path = tmp_path / "lock"
    command = [sys.executable, "-c", HOLDS, str(path), theirs]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()
        with hold_lock(path, is_shared=ours == "shared", waits=False) as is_mine:
            assert is_mine is is_held
        other.kill()
    with hold_lock(path) as is_mine:
        assert is_mine


def test_a_named_pipe_wakes_its_reader_and_no_one_misses_it(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    write_pipe(path)
    path.write_bytes(b"a file in its place")
    with os.fdopen(open_pipe(path), "rb", buffering=0) as reader:
        write_pipe(path)
        assert reader.read(1) == b"!"
