import io
import json
import os
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.agent.tools.builtin import folder as folder_module
from sightline.agent.tools.builtin.folder import Folder, Glob, SearchRequest, main, search_folder
from sightline.errors import Fault
from tests.agent.tools.builtin.rooms import refused, said


@pytest.mark.parametrize(
    ("pattern", "path", "fits"),
    [
        ("", "any/thing", True),
        ("*.py", "a.py", True),
        ("*.py", "deep/down/a.py", True),
        ("*.py", "a.pyc", False),
        ("src/*.py", "src/a.py", True),
        ("src/*.py", "src/deep/a.py", False),
        ("src/**/*.py", "src/a.py", True),
        ("src/**/*.py", "src/deep/down/a.py", True),
        ("./src/**", "src/deep/a", True),
        ("**/test_?.py", "test_a.py", True),
        ("**/test_?.py", "tests/test_ab.py", False),
        ("*.{ts,js}", "a/b.js", True),
        ("{a,b}/*.{ts,js}", "b/x.ts", True),
        ("{a,b}/*.{ts,js}", "c/x.ts", False),
        ("a**b", "a_b", True),
        ("[ab].py", "a.py", False),
        ("[ab].py", "[ab].py", True),
    ],
)
def test_what_a_pattern_means(pattern: str, path: str, fits: bool) -> None:
    assert Glob(pattern).fits(path) is fits


def test_a_pattern_takes_no_longer_than_it_is_long() -> None:
    assert not Glob("*a" * 60 + "b").fits("a" * 5000)
    assert not Glob("**/a/" * 30 + "b").fits("a/" * 2000 + "c")


def test_too_many_alternatives_are_refused() -> None:
    with pytest.raises(Fault, match="too many patterns"):
        Glob("{a,b}" * 20)


@given(st.text("ab/*?{},.", max_size=12), st.text("ab/.", max_size=12))
def test_any_pattern_has_an_answer(pattern: str, path: str) -> None:
    assert Glob(pattern).fits(path) in (True, False)


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
    monkeypatch.setattr(folder_module, "_MOST_SHOWN", 2)
    assert said(room, "list_files").split("\n")[2].startswith("[there are more than 2")
    monkeypatch.setattr(folder_module, "MOST_VISITED", 2)
    assert "Name a folder further down" in refused(room, "list_files", pattern="*.py")


@pytest.fixture
def searching_room(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").write_text("def f():\n    return Value(1)\n")
    (tmp_path / "b.txt").write_text("a value\nvalue(1)\n")
    (tmp_path / "c.bin").write_bytes(b"value\0")
    (tmp_path / "way").symlink_to("/etc/passwd")
    return tmp_path


def wanted(searching_room: Path, text: str, **more: object) -> SearchRequest:
    return {
        "folder": str(searching_room),
        "text": text,
        "path": ".",
        "pattern": "",
        "is_regex": False,
        "ignore_case": False,
    } | more


def looked(searching_room: Path, text: str, **more: object) -> str:
    folder = Folder(searching_room)
    try:
        return search_folder(folder, wanted(searching_room, text, **more))
    finally:
        folder.close()


def test_lines_are_found_with_their_places(searching_room: Path) -> None:
    left_out = "\n[2 files are no text or too large and were left out]"
    assert said(searching_room, "search_files", text="value(1)") == f"b.txt:2: value(1){left_out}"
    assert (
        said(searching_room, "search_files", text="value(1)", ignore_case=True, pattern="*.py")
        == "src/a.py:2: return Value(1)"
    )
    assert said(searching_room, "search_files", text="^def .*:$", is_regex=True, path="src") == "src/a.py:1: def f():"
    assert said(searching_room, "search_files", text="a value", path="b.txt") == "b.txt:1: a value"
    assert said(searching_room, "search_files", text="no such", pattern="*.txt") == "(not found in 1 files)"


def test_a_line_is_searched_without_its_end_and_the_mark_of_its_file(searching_room: Path) -> None:
    (searching_room / "dos.txt").write_bytes(b"\xef\xbb\xbfimport os;\r\nrun();\r\n")
    assert looked(searching_room, "^import", is_regex=True, path="dos.txt") == "dos.txt:1: import os;"
    found = "dos.txt:1: import os;\ndos.txt:2: run();"
    assert looked(searching_room, ";$", is_regex=True, path="dos.txt") == found


def test_what_cannot_be_searched_for(searching_room: Path) -> None:
    assert "text is empty" in refused(searching_room, "search_files", text="")
    assert "give one of them" in refused(searching_room, "search_files", text="a value\nvalue(1)")
    assert "this is not a regular expression" in refused(searching_room, "search_files", text="(", is_regex=True)
    assert "outside the folder" in refused(searching_room, "search_files", text="x", path="../other")
    assert "No such file" in refused(searching_room, "search_files", text="x", path="nothing")


def test_a_search_that_dies_is_no_answer(searching_room: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_module, "PROGRAM", "sightline.no_such_module")
    words = refused(searching_room, "search_files", text="x")
    assert words.startswith("the search was not finished: exit code 1; ")
    assert "No module named sightline.no_such_module" in words


def test_a_pattern_that_takes_for_ever_is_stopped(searching_room: Path) -> None:
    (searching_room / "long.txt").write_text("a" * 60 + "!")
    words = refused(searching_room, "search_files", timeout=0.3, text="(a+)+$", is_regex=True, path="long.txt")
    assert "the search was not finished: stopped: it took too long. Use a simpler pattern" in words


def test_only_so_much_is_shown(searching_room: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_module, "_MOST_FOUND", 2)
    (searching_room / "b.txt").write_text("x\n" * 9)
    assert looked(searching_room, "x", path="b.txt").split("\n") == [
        "b.txt:1: x",
        "b.txt:2: x",
        "[the first 2 lines; there may be more]",
    ]
    monkeypatch.setattr(folder_module, "_LARGEST_FILE", 3)
    assert looked(searching_room, "x", path="b.txt") == "[1 files are no text or too large and were left out]"


def test_what_is_no_file_is_left_out(searching_room: Path) -> None:
    os.mkfifo(searching_room / "src" / "pipe")
    assert looked(searching_room, "return", path="src").split("\n") == [
        "src/a.py:2: return Value(1)",
        "[1 files are no text or too large and were left out]",
    ]


def test_an_expression_that_is_too_large(searching_room: Path) -> None:
    with pytest.raises(Fault, match="regular expression"):
        looked(searching_room, "(" * 5000 + ")" * 5000, is_regex=True)


@pytest.mark.parametrize(
    ("text", "code", "start"), [("value(1)", 0, "b.txt:2:"), ("", 0, "b.txt:1:"), ("x", 3, "'no'")]
)
def test_the_program(
    searching_room: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsysbinary: pytest.CaptureFixture[bytes],
    text: str,
    code: int,
    start: str,
) -> None:
    order = wanted(searching_room, text, path="no" if code else ".")
    monkeypatch.setattr(sys, "stdin", io.StringIO(json.dumps(order)))
    assert main() == code
    sys.stdout.flush()
    assert capsysbinary.readouterr().out.decode().startswith(start)
