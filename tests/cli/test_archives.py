"""Exchanges leave one record as a file and enter another as they were."""

import json
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sightline.cli.program import main
from sightline.exchange.recording.formats import FORMS
from sightline.model.exchange import Received
from sightline.store.entries import BodyEntry
from tests.cli.recorded_folder import fill, folder_of, ran
from tests.recordings import exchange, failed
from tests.store.traffic import chat_body, chat_stream, noted, sha256
from tests.upstream import Upstream

FIRST, SECOND = (f"x_{number:020x}" for number in (1, 2))
BODY = chat_body("Grüße")
HEADERS = (("Content-Type", "application/json"), ("Authorization", "***"), ("user-agent", "tests/1"))
Captured = pytest.CaptureFixture[bytes]


@pytest.fixture(autouse=True)
def acme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Upstream]:
    with folder_of(tmp_path, monkeypatch) as upstream:
        other = chat_body("more")
        fill(
            tmp_path / "data",
            exchange(FIRST, BODY, chat_stream("Hel", "lo"), headers=HEADERS, session="one"),
            exchange(SECOND, other, [b'{"error":{"message":"busy"}}'], end=failed(529), headers=HEADERS),
        )
        yield upstream


@pytest.mark.parametrize("form", ["jsonl", "har"])
def test_what_is_exported_and_imported_elsewhere_is_exported_the_same_again(
    capsysbinary: Captured, tmp_path: Path, form: str
) -> None:
    first, _ = ran(capsysbinary, "export", "--as", form)
    file = tmp_path / "archive"
    file.write_bytes(first)
    elsewhere = str(tmp_path / "elsewhere")
    _, told = ran(capsysbinary, "import", str(file), "--data", elsewhere)
    assert told == f"{file}: 2 exchanges imported\n"
    again, _ = ran(capsysbinary, "export", "--as", form, "--data", elsewhere)
    assert again == first
    _, told = ran(capsysbinary, "import", str(file), "--data", elsewhere)
    assert told == f"{file}: 0 exchanges imported, 2 already on record\n"
    assert ran(capsysbinary, "export", "--as", form, "--data", elsewhere)[0] == first
    shown, _ = ran(capsysbinary, "show", FIRST, "--as", "wire", "--data", elsewhere)
    assert shown == BODY


def test_a_filter_chooses_and_a_file_appears_whole(capsysbinary: Captured, tmp_path: Path) -> None:
    file = tmp_path / "one.jsonl"
    out, _ = ran(capsysbinary, "export", "session:one", "-o", str(file))
    assert out == b""
    lines = [json.loads(line) for line in file.read_bytes().splitlines()]
    assert lines[0] == {"sightline": "record", "version": 1}
    assert {line["exchange"] for line in lines if line.get("type") == "fact"} == {FIRST}
    assert file.stat().st_mode & 0o077 == 0
    assert [each.name for each in tmp_path.iterdir() if each.name.startswith(".")] == []
    _, told = ran(capsysbinary, "export", "-o", str(tmp_path / "nowhere" / "x"), status=2)
    assert "cannot be written" in told


def test_a_pipe_and_a_link_are_written_to_and_not_replaced(capsysbinary: Captured, tmp_path: Path) -> None:
    archive, _ = ran(capsysbinary, "export")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as reader:
        came = reader.submit(pipe.read_bytes)
        ran(capsysbinary, "export", "-o", str(pipe))
        assert came.result() == archive
    assert pipe.is_fifo()
    link = tmp_path / "link"
    link.symlink_to("linked.jsonl")
    ran(capsysbinary, "export", "-o", str(link))
    assert link.is_symlink()
    assert (tmp_path / "linked.jsonl").read_bytes() == archive


def test_what_was_never_sent_has_no_place_in_an_http_archive(capsysbinary: Captured, tmp_path: Path) -> None:
    unsent = chat_body("never sent")
    name = f"x_{3:020x}"
    facts = noted(name, [Received("openai-chat", "m", sha256(unsent))])
    fill(tmp_path / "data", [BodyEntry(sha256(unsent), unsent), *facts])
    out, told = ran(capsysbinary, "export", "--as", "har")
    assert f"{name} was not sent" in told
    assert [entry["pageref"] for entry in json.loads(out)["log"]["entries"]] == [FIRST, SECOND]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "the archive is empty"),
        (b"nonsense\n", "line 1"),
        (b'{"sightline":"record","version":1}\n{half', "line 2"),
        (b'{"log": {}}', "not an HTTP archive"),
        (b'{"log": {"entries": [{"request": 5}]}}', "entry 0"),
        (b'{"log": [', "JSON"),
    ],
)
def test_a_broken_file_is_named_and_nothing_is_taken_from_it(
    capsysbinary: Captured, tmp_path: Path, content: bytes, words: str
) -> None:
    file = tmp_path / "broken"
    file.write_bytes(content)
    before, _ = ran(capsysbinary, "export")
    _, told = ran(capsysbinary, "import", str(file), status=2)
    assert told.startswith((f"error[usage]: {file}: ", f"error[invalid_request]: {file}: "))
    assert words in told
    assert "hint:" in told
    assert ran(capsysbinary, "export")[0] == before
    assert "cannot be read" in ran(capsysbinary, "import", str(tmp_path / "missing"), status=2)[1]


def test_an_archive_comes_through_a_pipe_too(
    capsysbinary: Captured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive, _ = ran(capsysbinary, "export")
    file = tmp_path / "piped"
    file.write_bytes(archive)
    with file.open() as piped:
        monkeypatch.setattr("sys.stdin", piped)
        _, told = ran(capsysbinary, "import", "-", "--data", str(tmp_path / "elsewhere"))
    assert told == "-: 2 exchanges imported\n"


def test_an_archive_does_not_come_through_an_input_that_is_closed(
    capsysbinary: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", None)
    _, told = ran(capsysbinary, "import", "-", status=2)
    assert told.startswith("error[usage]: stdin is closed\nhint: ")


def test_the_help_and_a_refusal_name_every_format(capsysbinary: Captured) -> None:
    with pytest.raises(SystemExit):
        main(["export", "--help"])
    helped = " ".join(capsysbinary.readouterr().out.decode().split())
    _, refused = ran(capsysbinary, "export", "--as", "xml", status=2)
    assert f"{', '.join(FORMS)}, or the format of a plug-in (default: jsonl)" in helped
    assert f"Formats are {', '.join(FORMS)}." in refused
