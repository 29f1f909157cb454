import os
from pathlib import Path

import pytest

from sightline.agent.tools.builtin import listing
from tests.agent.tools.builtin.rooms import refused, said


@pytest.fixture
def room(tmp_path: Path) -> Path:
    for name in ("a.py", "src/b.py", "src/deep/c.py", "src/deep/d.txt", ".git/config", "node_modules/x/e.py"):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(name)
    (tmp_path / "up").symlink_to("..")
    return tmp_path


def test_what_is_directly_in_a_folder(room: Path) -> None:
    assert said(room, "list_files").split("\n") == [".git/", "a.py", "node_modules/", "src/", "up"]
    assert said(room, "list_files", path="src") == "b.py\ndeep/"


def test_what_is_below_it_by_pattern(room: Path) -> None:
    assert said(room, "list_files", pattern="*.py").split("\n") == ["a.py", "src/b.py", "src/deep/c.py"]
    assert said(room, "list_files", path="src", pattern="deep/*").split("\n") == ["src/deep/c.py", "src/deep/d.txt"]
    assert said(room, "list_files", pattern="*.rs") == "(no file fits)"


def test_an_empty_folder_and_one_that_is_none(room: Path) -> None:
    (room / "empty").mkdir()
    assert said(room, "list_files", path="empty") == "(the folder is empty)"
    assert "Not a directory" in refused(room, "list_files", path="a.py")
    assert "outside the folder" in refused(room, "list_files", path="up")


def test_names_that_would_upset_a_list(tmp_path: Path) -> None:
    (tmp_path / "two\nlines").touch()
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff")).touch()
    assert said(tmp_path, "list_files").split("\n") == [r"'two\nlines'", r"'\udcff'"]


def test_a_long_list_ends_somewhere(room: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "_MOST_SHOWN", 2)
    assert said(room, "list_files").split("\n")[2].startswith("[there are more than 2")
    monkeypatch.setattr(listing, "MOST_VISITED", 2)
    assert "Name a folder further down" in refused(room, "list_files", pattern="*.py")
