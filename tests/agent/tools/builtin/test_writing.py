from pathlib import Path

import pytest

from sightline.agent.tools.builtin import builtin as writing
from tests.agent.tools.builtin.rooms import refused, said

POEM = "one\n  two\none\n"


def edited(room: Path, content: bytes, old: str, new: str, **how: bool) -> bytes:
    (room / "a").write_bytes(content)
    said(room, "edit_file", path="a", old_text=old, new_text=new, **how)
    return (room / "a").read_bytes()


def test_a_file_is_made_and_replaced(tmp_path: Path) -> None:
    assert said(tmp_path, "write_file", path="new/a.txt", content="é\nx") == "Made new/a.txt: 2 lines, 4 bytes."
    assert said(tmp_path, "write_file", path="new/a.txt", content="y\n") == "Replaced new/a.txt: 1 line, 2 bytes."
    assert (tmp_path / "new" / "a.txt").read_text() == "y\n"
    assert said(tmp_path, "write_file", path="none", content="").endswith("0 lines, 0 bytes.")


def test_half_a_character_is_not_written(tmp_path: Path) -> None:
    assert "half a character at 1" in refused(tmp_path, "write_file", path="a", content="x\ud83d")
    assert not (tmp_path / "a").exists()


def test_the_one_place_is_changed(tmp_path: Path) -> None:
    (tmp_path / "a").write_text(POEM)
    assert said(tmp_path, "edit_file", path="a", old_text="  two\n", new_text="") == "Changed a in 1 place: line 2."
    assert (tmp_path / "a").read_text() == "one\none\n"


def test_two_places_are_too_many_unless_every_one_is_meant(tmp_path: Path) -> None:
    (tmp_path / "a").write_text(POEM)
    words = refused(tmp_path, "edit_file", path="a", old_text="one", new_text="1")
    assert "old_text is in 'a' 2 times: line 1, 3" in words
    assert "set every to true" in words
    assert (tmp_path / "a").read_text() == POEM
    assert edited(tmp_path, POEM.encode(), "one", "1", every=True) == b"1\n  two\n1\n"
    (tmp_path / "a").write_text("x" * 9)
    assert "line 1, 1, 1, 1, 1 and more" in refused(tmp_path, "edit_file", path="a", old_text="x", new_text="y")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("", "x", "old_text is empty. To write a whole file, use write_file."),
        ("one", "one", "old_text and new_text are the same"),
        ("two\none\n\n", "x", "Line 2 differs from it only in spaces"),
        ("three", "x", "old_text is not in 'a'. Read the file again"),
        ("\n\n\n\n", "x", "Read the file again"),
    ],
)
def test_what_cannot_be_done_is_said_so_that_the_next_try_can(tmp_path: Path, old: str, new: str, words: str) -> None:
    (tmp_path / "a").write_text(POEM)
    assert words in refused(tmp_path, "edit_file", path="a", old_text=old, new_text=new)
    assert (tmp_path / "a").read_text() == POEM


def test_ends_of_lines_stay_what_they_are(tmp_path: Path) -> None:
    assert edited(tmp_path, b"a\r\nb\r\nc\r\n", "a\nb", "x\ny") == b"x\r\ny\r\nc\r\n"
    assert edited(tmp_path, b"a\r\nb\r\nc\r\n", "b", "y") == b"a\r\ny\r\nc\r\n"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_encodings_and_their_marks_stay_what_they_are(tmp_path: Path, encoding: str) -> None:
    assert edited(tmp_path, "Grüße, a".encode(encoding), "a", "日本") == "Grüße, 日本".encode(encoding)
    big = b"\xfe\xff" + "xa".encode("utf-16-be")
    assert edited(tmp_path, big, "a", "b") == b"\xfe\xff" + "xb".encode("utf-16-be")


def test_what_is_no_text_or_too_much_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_bytes(b"a\xff")
    assert "is no text" in refused(tmp_path, "edit_file", path="a", old_text="a", new_text="b")
    monkeypatch.setattr(writing, "MOST_BYTES", 1)
    assert "too large to edit" in refused(tmp_path, "edit_file", path="a", old_text="a", new_text="b")
