import io
import json
import os
import sys
from pathlib import Path

import pytest

from sightline.agent.tools.builtin import searching
from sightline.agent.tools.builtin.folder import Folder
from sightline.agent.tools.builtin.searching import SearchRequest, main, search_folder
from tests.agent.tools.builtin.rooms import refused, said


@pytest.fixture
def room(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").write_text("def f():\n    return Value(1)\n")
    (tmp_path / "b.txt").write_text("a value\nvalue(1)\n")
    (tmp_path / "c.bin").write_bytes(b"value\0")
    (tmp_path / "way").symlink_to("/etc/passwd")
    return tmp_path


def wanted(room: Path, text: str, **more: object) -> SearchRequest:
    return {
        "folder": str(room),
        "text": text,
        "path": ".",
        "pattern": "",
        "is_regex": False,
        "ignore_case": False,
    } | more  # type: ignore[return-value, operator]


def looked(room: Path, text: str, **more: object) -> str:
    folder = Folder(room)
    try:
        return search_folder(folder, wanted(room, text, **more))
    finally:
        folder.close()


def test_lines_are_found_with_their_places(room: Path) -> None:
    left_out = "\n[2 files are no text or too large and were left out]"
    assert said(room, "search_files", text="value(1)") == f"b.txt:2: value(1){left_out}"
    assert (
        said(room, "search_files", text="value(1)", ignore_case=True, pattern="*.py") == "src/a.py:2: return Value(1)"
    )
    assert said(room, "search_files", text="^def .*:$", is_regex=True, path="src") == "src/a.py:1: def f():"
    assert said(room, "search_files", text="a value", path="b.txt") == "b.txt:1: a value"
    assert said(room, "search_files", text="no such", pattern="*.txt") == "(not found in 1 files)"


def test_what_cannot_be_searched_for(room: Path) -> None:
    assert "text is empty" in refused(room, "search_files", text="")
    assert "this is no regular expression" in refused(room, "search_files", text="(", is_regex=True)
    assert "outside the folder" in refused(room, "search_files", text="x", path="../other")
    assert "No such file" in refused(room, "search_files", text="x", path="nothing")


def test_a_search_that_dies_is_no_answer(room: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searching, "PROGRAM", "sightline.no_such_module")
    assert refused(room, "search_files", text="x") == "the search was not finished: exit code 1"


def test_a_pattern_that_takes_for_ever_is_stopped(room: Path) -> None:
    (room / "long.txt").write_text("a" * 60 + "!")
    words = refused(room, "search_files", timeout=0.3, text="(a+)+$", is_regex=True, path="long.txt")
    assert "the search was not finished: stopped: it took too long. Use a simpler pattern" in words


def test_only_so_much_is_shown(room: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searching, "_MOST_FOUND", 2)
    (room / "b.txt").write_text("x\n" * 9)
    assert looked(room, "x", path="b.txt").split("\n") == [
        "b.txt:1: x",
        "b.txt:2: x",
        "[the first 2 lines; there may be more]",
    ]
    monkeypatch.setattr(searching, "_LARGEST_FILE", 3)
    assert looked(room, "x", path="b.txt") == "[1 files are no text or too large and were left out]"


def test_what_is_no_file_is_left_out(room: Path) -> None:
    os.mkfifo(room / "src" / "pipe")
    assert looked(room, "return", path="src").split("\n") == [
        "src/a.py:2: return Value(1)",
        "[1 files are no text or too large and were left out]",
    ]


def test_an_expression_that_is_too_large(room: Path) -> None:
    with pytest.raises(searching.Fault, match="regular expression"):
        looked(room, "(" * 5000 + ")" * 5000, is_regex=True)


@pytest.mark.parametrize(
    ("text", "code", "start"), [("value(1)", 0, "b.txt:2:"), ("", 0, "b.txt:1:"), ("x", 3, "'no'")]
)
def test_the_program(
    room: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsysbinary: pytest.CaptureFixture[bytes],
    text: str,
    code: int,
    start: str,
) -> None:
    order = wanted(room, text, path="no" if code else ".")
    monkeypatch.setattr(sys, "stdin", io.StringIO(json.dumps(order)))
    assert main() == code
    sys.stdout.flush()
    assert capsysbinary.readouterr().out.decode().startswith(start)
