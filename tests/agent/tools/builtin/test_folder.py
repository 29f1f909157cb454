import os
import socket
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.agent.tools.builtin import folder as module
from sightline.agent.tools.builtin.folder import Folder
from sightline.errors import Code, Fault

SECRET = b"not for anybody"


@pytest.fixture
def house(tmp_path: Path) -> Iterator[Folder]:
    """A folder with neighbours that it must not tell of."""
    inside = tmp_path / "inside"
    (inside / "a" / "b").mkdir(parents=True)
    (inside / "a" / "b" / "file.txt").write_bytes(b"inside")
    (tmp_path / "inside-too").mkdir()
    (tmp_path / "inside-too" / "secret").write_bytes(SECRET)
    (tmp_path / "secret").write_bytes(SECRET)
    opened = Folder(inside)
    yield opened
    opened.close()
    assert (tmp_path / "secret").read_bytes() == SECRET
    assert (tmp_path / "inside-too" / "secret").read_bytes() == SECRET


def read(house: Folder, path: str) -> bytes:
    with house.open_file(path) as file:
        return os.read(file, 100)


def refusal(house: Folder, path: str) -> Fault:
    with pytest.raises(Fault) as caught:
        read(house, path)
    return caught.value


@pytest.mark.parametrize(
    "path", ["a/b/file.txt", "./a//b/./file.txt", "a/../a/b/file.txt", "a/b/../../a/b/file.txt", "{0}/a/b/file.txt"]
)
def test_paths_that_stay_inside(house: Folder, path: str) -> None:
    assert read(house, path.format(house.path)) == b"inside"


@pytest.mark.parametrize(
    "path",
    ["../secret", "a/../../secret", "/etc/passwd", "{0}/../secret", "{0}-too/secret", "..", "a/b/../../../secret"],
)
def test_paths_that_do_not(house: Folder, path: str) -> None:
    for fault in (refusal(house, path.format(house.path)), _written(house, path.format(house.path))):
        assert fault.code is Code.PERMISSION
        assert "is outside the folder that may be used" in fault.message
        assert fault.hint


def _written(house: Folder, path: str) -> Fault:
    with pytest.raises(Fault) as caught:
        house.write(path, b"overwritten")
    return caught.value


@pytest.mark.parametrize("target", ["../secret", "../../secret", "/etc/passwd", "b/../../../secret", "{0}-too/secret"])
def test_links_that_lead_out(house: Folder, target: str) -> None:
    (house.path / "a" / "link").symlink_to(target.format(house.path))
    is_inside = target == "../secret"  # there is none beside `a`
    for fault in (refusal(house, "a/link"), refusal(house, "a/b/../link")):
        assert fault.code is (Code.USAGE if is_inside else Code.PERMISSION)


def test_a_linked_folder_that_leads_out_is_no_way_to_write(house: Folder) -> None:
    (house.path / "out").symlink_to("../inside-too")
    assert _written(house, "out/secret").code is Code.PERMISSION
    assert _written(house, "out/new/file").code is Code.PERMISSION


def test_links_inside_are_followed_also_to_write(house: Folder) -> None:
    (house.path / "way").symlink_to("a/b")
    (house.path / "a" / "again").symlink_to(house.path / "way" / "file.txt")
    assert read(house, "way/file.txt") == b"inside"
    assert read(house, "a/again") == b"inside"
    assert house.write("a/again", b"changed")
    assert (house.path / "a" / "again").is_symlink()
    assert (house.path / "a" / "b" / "file.txt").read_bytes() == b"changed"


def test_a_link_to_a_link_to_itself(house: Folder) -> None:
    (house.path / "x").symlink_to("y")
    (house.path / "y").symlink_to("x")
    assert "Too many levels" in refusal(house, "x").message
    assert "Too many levels" in refusal(house, "x/file").message


def test_what_is_no_file_is_not_opened(house: Folder, tmp_path: Path) -> None:
    os.mkfifo(house.path / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(house.path / "s"))
        assert "is not a regular file" in refusal(house, "pipe").message
        assert "No such device" in refusal(house, "s").message
        assert "is not a regular file" in _written(house, "pipe").message
    for path in ("a", ".", ""):
        assert "Is a directory" in refusal(house, path).message
        assert "Is a directory" in _written(house, path).message
    assert "Not a directory" in refusal(house, "a/b/file.txt/more").message
    assert "No such file" in refusal(house, "nothing/here").message
    assert "cannot be the name of a file" in refusal(house, "a\0b").message
    assert "cannot be the name of a file" in refusal(house, "a\ud83d").message


def test_no_fault_tells_where_the_folder_is(house: Folder) -> None:
    for path in ("nothing", "../secret", "a", "a/b/file.txt/more"):
        assert str(house.path) not in refusal(house, path).message


def test_a_write_is_whole_or_not_at_all(house: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    os.chmod(house.path / "a/b/file.txt", 0o750)  # noqa: PTH101
    assert house.write("a/b/file.txt", b"new")
    assert (house.path / "a/b/file.txt").stat().st_mode & 0o777 == 0o750
    assert not house.write("deep/er/file", b"made")
    assert (house.path / "deep/er/file").read_bytes() == b"made"

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module.os, "replace", full)
    assert "No space left" in _written(house, "a/b/file.txt").message
    assert [each.name for each in (house.path / "a/b").iterdir()] == ["file.txt"]
    assert (house.path / "a/b/file.txt").read_bytes() == b"new"


def test_swapping_a_folder_for_a_symlink_never_exposes_outside_files(house: Folder, tmp_path: Path) -> None:
    """Somebody exchanges `here` for a link to the outside as fast as they can; nothing of the outside is ever seen."""
    (house.path / "here").mkdir()
    (house.path / "here" / "secret").write_bytes(b"mine")
    (house.path / "link").symlink_to("../inside-too")
    done = Event()

    here, kept, link = (house.path / name for name in ("here", "kept", "link"))

    def swap() -> None:
        while not done.is_set():
            here.rename(kept)
            link.rename(here)
            here.rename(link)
            kept.rename(here)

    swapping = Thread(target=swap)
    swapping.start()
    try:
        seen = set()
        for _ in range(2000):
            try:
                seen.add(read(house, "here/secret"))
            except Fault as fault:
                seen.add(fault.code.value.encode())
    finally:
        done.set()
        swapping.join()
    assert SECRET not in seen
    assert read(house, "here/secret") == b"mine"


def test_it_stays_the_same_folder_when_its_path_becomes_another_s(house: Folder, tmp_path: Path) -> None:
    house.path.rename(tmp_path / "moved")
    (tmp_path / "inside").symlink_to("inside-too")
    assert read(house, "a/b/file.txt") == b"inside"
    assert refusal(house, "secret").code is Code.USAGE


def test_a_folder_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for name in ("file", "nothing"):
        with pytest.raises(Fault) as caught:
            Folder(tmp_path / name)
        assert caught.value.code is Code.CONFIG


def test_closing_twice_is_closing(house: Folder) -> None:
    house.close()
    house.close()


@given(st.lists(st.sampled_from(["..", "a", "b", ".", "", "out", "up", "file.txt", "secret"]), max_size=8))
def test_no_path_whatsoever_shows_the_outside(tmp_path_factory: pytest.TempPathFactory, steps: list[str]) -> None:
    base = tmp_path_factory.mktemp("base")
    (base / "in" / "a" / "b").mkdir(parents=True)
    (base / "secret").write_bytes(SECRET)
    (base / "in" / "a" / "out").symlink_to("../..")
    (base / "in" / "up").symlink_to("a/..")
    house = Folder(base / "in")
    try:
        with pytest.raises(Fault):
            read(house, "/".join(steps))
    finally:
        house.close()
