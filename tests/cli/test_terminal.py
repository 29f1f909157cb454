import io
import sys
from pathlib import Path

import pytest

from sightline.cli.terminal import open_input, read, say, some, tell, write
from sightline.errors import Code, Fault


class Full(io.RawIOBase):
    """A disk without space."""

    def writable(self) -> bool:
        return True

    def write(self, _data: object) -> int:
        raise OSError(28, "No space left on device")


def test_words_never_go_where_the_result_goes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    say("lost")
    assert capsys.readouterr().out == ""


def test_a_full_stderr_loses_words_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Full())
    say("lost")


def test_a_fault_is_told_in_lines(capsys: pytest.CaptureFixture[str]) -> None:
    fault = Fault(Code.USAGE, "two\n lines", hint="Do this.")
    fault.add_note("and this was noted")
    tell(fault)
    assert capsys.readouterr().err == "error[usage]: two lines\nhint: Do this.\nand this was noted\n"


def test_a_closed_or_full_stdout_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    write(b"")
    with pytest.raises(Fault, match="stdout is closed"):
        write(b"x")


def test_a_full_disk_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    class Out:
        buffer = Full()

    monkeypatch.setattr(sys, "stdout", Out())
    with pytest.raises(Fault, match="stdout: No space left on device"):
        write(b"x")


def test_a_closed_stdin_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(Fault, match="stdin is closed"), open_input("-"):
        pass


def test_a_file_is_read_whole_or_as_it_comes(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"abc")
    assert read(str(path)) == b"abc"
    with open_input(str(path)) as stream:
        assert some(stream) == b"abc"
        assert some(stream) == b""


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(Fault, match="Is a directory"):
        read(str(tmp_path))
