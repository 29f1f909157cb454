from pathlib import Path

import pytest

from sightline.agent.tools.builtin import builtin as reading
from sightline.model.parts import Document, Image
from tests.agent.tools.builtin.rooms import refused, said, used


def test_a_text_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\nthree\n")
    assert said(tmp_path, "read_file", path="a.txt") == "one\ntwo\nthree\n"
    assert said(tmp_path, "read_file", path="a.txt", first_line=2) == "two\nthree\n"
    assert said(tmp_path, "read_file", path="a.txt", first_line=2, last_line=2) == "two\n"
    assert said(tmp_path, "read_file", path="a.txt", first_line=3, last_line=99) == "three\n"


def test_lines_that_are_not_there(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    (tmp_path / "empty").touch()
    assert "has only 1 lines" in refused(tmp_path, "read_file", path="a.txt", first_line=2)
    assert "there are no lines 3 to 2" in refused(tmp_path, "read_file", path="a.txt", first_line=3, last_line=2)
    assert said(tmp_path, "read_file", path="empty") == "(the file is empty)"
    assert "list_files shows what is there" in refused(tmp_path, "read_file", path="nothing")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_encodings_are_told_by_their_marks(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "a.txt").write_bytes("Grüße\r\n日本\r\n".encode(encoding))
    assert said(tmp_path, "read_file", path="a.txt") == "Grüße\n日本\n"


def test_what_cannot_be_decoded_is_said(tmp_path: Path) -> None:
    (tmp_path / "old.txt").write_bytes("Grüße".encode("latin-1"))
    assert said(tmp_path, "read_file", path="old.txt") == "Gr��e\n[bytes that are no text are shown as �]"


def test_a_character_at_the_edge_of_the_first_look_is_whole(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x" * 4000 + "\n" + "x" * 4190 + "é\n")
    assert said(tmp_path, "read_file", path="a.txt").endswith("xé\n")


def test_a_long_text_comes_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MOST_LETTERS", 30)
    (tmp_path / "a.txt").write_text("".join(f"line {n}\n" for n in range(1, 101)))
    first = said(tmp_path, "read_file", path="a.txt")
    assert first.endswith("line 4\n[lines 1 to 4; go on with first_line=5]")
    assert said(tmp_path, "read_file", path="a.txt", first_line=99) == "line 99\nline 100\n"


def test_a_line_without_end_is_cut_and_the_next_is_found(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x" * 1_000_000 + "\nnext\n")
    read = said(tmp_path, "read_file", path="a.txt")
    assert len(read) < 6000
    assert read.endswith("x[… the rest of this line is left out]\nnext\n")
    assert said(tmp_path, "read_file", path="a.txt", first_line=2) == "next\n"


def test_pictures_and_documents_are_shown_and_what_is_neither_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(9000))
    (tmp_path / "b.pdf").write_bytes(b"%PDF-1.7 ...")
    (tmp_path / "c.bin").write_bytes(bytes(100))
    (tmp_path / "d.zip").write_bytes(b"PK\x03\x04" + bytes(100))
    assert isinstance(used(tmp_path, "read_file", path="a.png").parts[0], Image)
    assert isinstance(used(tmp_path, "read_file", path="b.pdf").parts[0], Document)
    assert "is 100 bytes of application/octet-stream, which is no text" in refused(tmp_path, "read_file", path="c.bin")
    assert "is 104 bytes of application/zip, which is no text" in refused(tmp_path, "read_file", path="d.zip")
    monkeypatch.setattr(reading, "MOST_MEDIA", 100)
    assert "which is too large to look at" in refused(tmp_path, "read_file", path="a.png")
