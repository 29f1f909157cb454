import base64
import os
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.cli import ask as attachments
from sightline.cli.ask import parts_from_files
from sightline.errors import Code, Fault
from sightline.model.parts import Audio, Document, Image, Inline, Text

PNG = b"\x89PNG\r\n\x1a\n" + bytes(8)
WAV = b"RIFF\x24\x00\x00\x00WAVEfmt "


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "private" / "here"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    return folder


def refused(*paths: str) -> Fault:
    with pytest.raises(Fault) as caught:
        parts_from_files(paths)
    assert caught.value.code is Code.USAGE
    assert caught.value.hint
    return caught.value


def texts(*paths: str) -> list[str]:
    parts = parts_from_files(paths)
    assert all(isinstance(part, Text) for part in parts)
    return [part.text for part in parts if isinstance(part, Text)]


def names(*paths: str) -> list[str]:
    return [text.partition("\n")[0].removeprefix("File: ") for text in texts(*paths)]


def test_nothing_attached_is_nothing() -> None:
    assert parts_from_files([]) == ()


# --- kinds ----------------------------------------------------------------------------------------


def test_images_papers_and_sound_are_what_they_are_whatever_their_names_say(here: Path) -> None:
    files = {"cat.txt": PNG, "paper.pdf": b"%PDF-1.4 x", "sound": WAV, "drawing.svg": b"<svg/>"}
    for name, data in files.items():
        (here / name).write_bytes(data)
    coded = {name: base64.b64encode(data).decode() for name, data in files.items()}
    assert parts_from_files(files) == (
        Image(Inline("image/png", coded["cat.txt"])),
        Document(Inline("application/pdf", coded["paper.pdf"]), "paper.pdf"),
        Audio(Inline("audio/wav", coded["sound"])),
        Text("File: drawing.svg\n```\n<svg/>\n```\n"),
    )


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_text_is_read_in_the_encoding_that_it_says(encoding: str, here: Path) -> None:
    (here / "a.txt").write_bytes("Grüße 🌍\r\n".encode(encoding))
    assert texts("a.txt") == ["File: a.txt\n```\nGrüße 🌍\r\n```\n"]


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"Gr\xfc\xdfe", "not valid UTF-8 text: byte 2"),
        (b"\xef\xbb\xbfab\xff", "not valid UTF-8 text: byte 5"),
        (b"\xff\xfea\x00\x00\xd8", "not valid UTF-16 text: byte 4"),
    ],
    ids=["latin-1", "with a mark", "half a pair"],
)
def test_text_that_cannot_be_read_is_refused_at_its_byte(data: bytes, told: str, here: Path) -> None:
    (here / "a.txt").write_bytes(data)
    fault = refused("a.txt")
    assert told in fault.message
    assert "Save it as UTF-8" in fault.hint


@pytest.mark.parametrize(
    ("name", "data", "told"),
    [
        ("a.txt", "a\0b".encode("utf-16"), "an unknown kind of file"),
        ("a.mp4", b"\x00\x00\x00\x1cftypisom", "video/mp4"),
    ],
)
def test_unsupported_file_type_is_refused_with_the_supported_types(
    name: str, data: bytes, told: str, here: Path
) -> None:
    (here / name).write_bytes(data)
    fault = refused(name)
    assert fault.message == f"{name}: {told} cannot be attached"
    assert "PDFs" in fault.hint


# --- names ----------------------------------------------------------------------------------------


def test_attachment_name_never_reveals_parent_folders(here: Path) -> None:
    (here / "src").mkdir()
    (here / "src" / "a.py").write_text("x")
    (here.parent / "b.py").write_text("x")
    paths = ("src/a.py", "./src/./a.py", str(here / "src" / "a.py"), "../b.py", "src/../src/a.py")
    for path, name in zip(paths, ("src/a.py", "src/a.py", "a.py", "b.py", "a.py"), strict=True):
        assert names(path) == [name]
        assert "private" not in texts(path)[0]


def test_attachments_with_the_same_name_get_distinct_names(here: Path) -> None:
    for folder in ("one", "two"):
        (here / folder).mkdir()
        (here / folder / "a.txt").write_text(folder)
    (here / "a (2).txt").write_text("taken")
    one, two = str(here / "one" / "a.txt"), str(here / "two" / "a.txt")
    assert names("a (2).txt", one, two, one) == ["a (2).txt", "a.txt", "a (3).txt", "a (4).txt"]
    assert names("one/a.txt", "two/a.txt", "one/a.txt") == ["one/a.txt", "two/a.txt", "one/a (2).txt"]


def test_a_name_cannot_break_its_line(here: Path) -> None:
    (here / "a\nFile: b").write_text("x")
    assert texts("a\nFile: b") == ["File: a?File: b\n```\nx\n```\n"]


@given(st.text(st.sampled_from("`~\n aFile:"), max_size=40).filter(str.strip))
def test_no_text_can_end_its_fence(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    file = tmp_path_factory.getbasetemp() / "fenced.txt"
    file.write_bytes(text.encode())
    head, fence, *lines, last, end = texts(str(file))[0].split("\n")
    assert (head, last, end) == ("File: fenced.txt", fence, "")
    assert set(fence) == {"`"}
    assert len(fence) >= 3
    assert all(fence not in line for line in lines)
    assert "\n".join(lines) == text.removesuffix("\n")


# --- what cannot be read --------------------------------------------------------------------------


def test_stdin_is_the_prompt_and_no_file() -> None:
    assert refused("-").message == "-f: stdin cannot be attached"


def test_a_path_that_is_no_file_is_refused(here: Path) -> None:
    assert refused("absent.txt").message == "absent.txt: No such file or directory"
    assert refused(".").message == ".: Is a directory"


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is closed to this user")
def test_a_file_that_may_not_be_read_is_refused(here: Path) -> None:
    (here / "closed.txt").write_text("x")
    (here / "closed.txt").chmod(0)
    assert refused("closed.txt").message == "closed.txt: Permission denied"


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="there is no such file on this system")
def test_a_file_that_fails_while_it_is_read_is_refused() -> None:
    # The memory of this process can be opened, and its first page cannot be read.
    assert refused("/proc/self/mem").message == "/proc/self/mem: Input/output error"


@pytest.mark.parametrize(("data", "told"), [(b"", "is empty"), (b"\xef\xbb\xbf", "no text"), (b" \n", "no text")])
def test_an_empty_file_is_refused(data: bytes, told: str, here: Path) -> None:
    (here / "a.txt").write_bytes(data)
    assert told in refused("a.txt").message


def test_files_have_a_limit_together(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attachments, "MOST_BYTES", 2 * 1024 * 1024)
    (here / "a.txt").write_text("a" * 1024 * 1024)
    (here / "b.txt").write_text("b" * 1024 * 1024)
    assert len(parts_from_files(["a.txt", "b.txt"])) == 2
    (here / "c.txt").write_text("c")
    assert refused("a.txt", "b.txt", "c.txt").message == "c.txt: the files are larger than 2 MiB together"
    assert "larger than 2 MiB" in refused("/dev/zero").message


def test_a_pipe_is_a_file_too() -> None:
    source, sink = os.pipe()

    def write() -> None:
        with os.fdopen(sink, "wb") as stream:
            stream.write(b"from a command\n")

    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert texts(f"/dev/fd/{source}") == [f"File: {source}\n```\nfrom a command\n```\n"]
    finally:
        writer.join()
        os.close(source)
