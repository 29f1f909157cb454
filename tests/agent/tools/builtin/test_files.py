import asyncio
from pathlib import Path
from threading import Event

import pytest

from sightline.agent.core.steps import RunnableCall
from sightline.agent.core.tool import Toolbox, words_of
from sightline.agent.tools.builtin import builtin
from sightline.agent.tools.builtin import builtin as reading
from sightline.agent.tools.builtin import builtin as writing
from sightline.agent.tools.builtin.builtin import NAMES, OFFERED_BY_DEFAULT, Builtin
from sightline.errors import Code, Fault
from sightline.model.parts import Document, Image
from sightline.model.request import OpaqueTool
from tests.agent.tools.builtin.rooms import refused, said, used


def opened(folder: Path, *names: str, **how: object) -> Builtin:
    return Builtin(folder, names or OFFERED_BY_DEFAULT, environment={}, **how)


def test_only_what_was_chosen_is_there(tmp_path: Path) -> None:
    tools = opened(tmp_path)
    assert [each.name for each in tools.definitions] == ["read_file", "list_files", "search_files"]
    outcome = asyncio.run(
        tools.use(RunnableCall(key="1", id="a", name="run_command", arguments={"command": "id"}), print)
    )
    assert outcome.is_error
    assert "does not exist" in words_of(outcome)
    asyncio.run(tools.close())


def test_every_tool_says_what_it_does_and_what_it_takes(tmp_path: Path) -> None:
    tools = opened(tmp_path, *NAMES)
    Toolbox(tools.definitions).check()
    for each in tools.definitions:
        assert each.description
        if each.is_remote:
            continue
        properties = each.schema["properties"]
        assert all("description" in value for value in properties.values())
    asyncio.run(tools.close())


def test_those_that_only_read_run_beside_each_other(tmp_path: Path) -> None:
    tools = opened(tmp_path, *NAMES)
    writing = {"write_file", "edit_file", "run_command", "local_shell"}
    remote = {each.name for each in tools.definitions if each.is_remote}
    assert {each.name for each in tools.definitions if each.is_parallel} == set(NAMES) - writing - remote
    asyncio.run(tools.close())


def test_a_name_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(Fault) as caught:
        opened(tmp_path, "delete_everything")
    assert caught.value.code is Code.CONFIG
    assert "run_command" in caught.value.hint


def test_faults_and_errors_of_the_system_are_words_for_the_model(tmp_path: Path) -> None:
    assert refused(tmp_path, "read_file", path="../x").startswith("'../x' is outside the folder that may be used. Give")
    tools = opened(tmp_path)
    asyncio.run(tools.close())
    outcome = asyncio.run(tools.use(RunnableCall(key="1", id="a", name="list_files", arguments={}), print))
    assert words_of(outcome) == "list_files failed: Bad file descriptor"
    assert str(tools) == f"the built-in tools of {tmp_path}"


def test_hanging_file_tool_is_stopped_after_the_timeout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stuck = Event()
    monkeypatch.setattr(builtin, "_GRACE", 0.0)

    def list_files(self: object) -> None:
        stuck.wait()

    monkeypatch.setattr(builtin.SearchTools, "list_files", list_files)
    tools = opened(tmp_path, "list_files", timeout=0.01)
    outcome = asyncio.run(tools.use(RunnableCall(key="1", id="a", name="list_files", arguments={}), print))
    stuck.set()
    assert words_of(outcome) == "list_files was stopped: it took longer than 0.01 s."
    asyncio.run(tools.close())


def test_what_the_model_s_api_has_by_itself_is_offered_so(tmp_path: Path) -> None:
    tools = opened(tmp_path, "local_shell", "web_search")
    assert Toolbox(tools.definitions).tools_for() == (
        OpaqueTool("openai-responses", {"type": "local_shell"}),
        OpaqueTool("openai-responses", {"type": "web_search"}),
    )
    outcome = asyncio.run(tools.use(RunnableCall(key="1", id="a", name="web_search", arguments={}), print))
    assert "does not exist" in words_of(outcome)
    asyncio.run(tools.close())


def test_a_text_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\nthree\n")
    assert said(tmp_path, "read_file", path="a.txt") == "one\ntwo\nthree\n"
    assert said(tmp_path, "read_file", path="a.txt", first_line=2) == "two\nthree\n"
    assert said(tmp_path, "read_file", path="a.txt", first_line=2, last_line=2) == "two\n"
    assert said(tmp_path, "read_file", path="a.txt", first_line=3, last_line=99) == "three\n"
    assert said(tmp_path, "read_file", path="a.txt", first_line=2.0, last_line=2.0) == "two\n"


def test_lines_that_are_not_there(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    (tmp_path / "empty").touch()
    assert "has only 1 lines" in refused(tmp_path, "read_file", path="a.txt", first_line=2)
    assert "there are no lines 3 to 2" in refused(tmp_path, "read_file", path="a.txt", first_line=3, last_line=2)
    assert said(tmp_path, "read_file", path="empty") == "(the file is empty)"
    assert "list_files shows what is there" in refused(tmp_path, "read_file", path="nothing")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_encodings_are_detected_by_byte_order_mark(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "a.txt").write_bytes("Grüße\r\n日本\r\n".encode(encoding))
    assert said(tmp_path, "read_file", path="a.txt") == "Grüße\n日本\n"


def test_undecodable_bytes_are_replaced_and_noted(tmp_path: Path) -> None:
    (tmp_path / "old.txt").write_bytes("Grüße".encode("latin-1"))
    assert said(tmp_path, "read_file", path="old.txt") == "Gr��e\n[bytes that are no text are shown as �]"


def test_a_character_at_the_edge_of_the_first_look_is_whole(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x" * 4000 + "\n" + "x" * 4190 + "é\n")
    assert said(tmp_path, "read_file", path="a.txt").endswith("xé\n")


def test_a_long_text_comes_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MOST_CHARACTERS", 30)
    (tmp_path / "a.txt").write_text("".join(f"line {n}\n" for n in range(1, 101)))
    first = said(tmp_path, "read_file", path="a.txt")
    assert first.endswith("line 4\n[lines 1 to 4; continue with first_line=5]")
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
    longest = "漢" * 85
    assert said(tmp_path, "write_file", path=longest, content="z") == f"Made {longest}: 1 line, 1 bytes."


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
def test_failed_edit_explains_how_to_correct_it(tmp_path: Path, old: str, new: str, words: str) -> None:
    (tmp_path / "a").write_text(POEM)
    assert words in refused(tmp_path, "edit_file", path="a", old_text=old, new_text=new)
    assert (tmp_path / "a").read_text() == POEM


def test_ends_of_lines_stay_what_they_are(tmp_path: Path) -> None:
    assert edited(tmp_path, b"a\r\nb\r\nc\r\n", "a\nb", "x\ny") == b"x\r\ny\r\nc\r\n"
    assert edited(tmp_path, b"a\r\nb\r\nc\r\n", "b", "y") == b"a\r\ny\r\nc\r\n"
    assert edited(tmp_path, b"a\r\nb\r\nc\r\n", "b", "x\ny") == b"a\r\nx\r\ny\r\nc\r\n"
    assert edited(tmp_path, b"a\r\nb\nc\r\n", "b", "x\ny") == b"a\r\nx\ny\nc\r\n", "line ends of both kinds"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_encodings_and_their_marks_stay_what_they_are(tmp_path: Path, encoding: str) -> None:
    assert edited(tmp_path, "Grüße, a".encode(encoding), "a", "日本") == "Grüße, 日本".encode(encoding)
    big = b"\xfe\xff" + "xa".encode("utf-16-be")
    assert edited(tmp_path, big, "a", "b") == b"\xfe\xff" + "xb".encode("utf-16-be")


def test_what_is_no_text_or_too_much_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_bytes(b"a\xff")
    assert "is not UTF-8" in refused(tmp_path, "edit_file", path="a", old_text="a", new_text="b")
    monkeypatch.setattr(writing, "MOST_BYTES", 1)
    assert "too large to edit" in refused(tmp_path, "edit_file", path="a", old_text="a", new_text="b")
