"""What leaves the record for others: as a page, as Markdown, as an archive, with stand-ins for what stays here."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.recorded_folder import fill, folder_of, ran, traffic
from tests.recordings import exchange
from tests.store.traffic import chat_body, chat_stream, sha256
from tests.upstream import Upstream

FIRST, SECOND = (f"x_{number:020x}" for number in (1, 2))
HOME = "/" + "home"
KEY, MAIL, PHONE, HOST = "sk-proj-abcdefghijklmnop1234", "anna.b@acme.org", "+49 170 1234567", "db.prod.internal"
PLANTED = (KEY, MAIL, PHONE, HOST, "annab", "10.1.2.3", "TICKET-77")
Captured = pytest.CaptureFixture[bytes]


@pytest.fixture(autouse=True)
def acme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Upstream]:
    asked = f"Use {KEY} for {MAIL} ({PHONE}) on {HOST} in {HOME}/annab/src, see TICKET-77. Café \U0001f600"
    headers = (("Content-Type", "application/json"), ("x-owner", "annab at 10.1.2.3"))
    # The address comes in three pieces, and the last of them looks like another address.
    frames = chat_stream("Written to an", "na.b@ac", "me.org, annab.")
    with folder_of(tmp_path, monkeypatch) as upstream:
        config = tmp_path / "sightline.toml"
        config.write_text(config.read_text() + '[export]\npatterns = ["TICKET-\\\\d+"]\n')
        fill(
            tmp_path / "data",
            exchange(FIRST, chat_body(asked), frames, headers=headers, session="one"),
            exchange(SECOND, chat_body(f"Again {MAIL}"), chat_stream("Nothing", " else"), session="two"),
        )
        yield upstream


def contents(archive: bytes) -> str:
    """All that an archive says, with what is in base64 in it."""
    entries = [json.loads(line) for line in archive.splitlines()[1:]]
    packed = [entry.get("data") or entry.get("fact", {}).get("data") for entry in entries]
    return archive.decode() + "".join(base64.b64decode(each).decode() for each in packed if each)


@pytest.mark.parametrize("form", ["html", "markdown"])
def test_exchanges_become_one_readable_file(capsysbinary: Captured, tmp_path: Path, form: str) -> None:
    file = tmp_path / "shared"
    ran(capsysbinary, "export", "--as", form, "-o", str(file))
    text = file.read_text()
    assert text.index("TICKET-77") < text.index("Again anna.b@acme.org")
    assert "Written to anna.b@acme.org, annab." in text
    assert "Nothing else" in text
    assert "<script" not in text
    one, _ = ran(capsysbinary, "export", "session:two", "--as", form)
    assert b"TICKET" not in one


@pytest.mark.parametrize("form", ["jsonl", "har", "html", "markdown", "curl", "python"])
def test_nothing_that_was_found_is_in_what_is_shared(capsysbinary: Captured, form: str) -> None:
    out, told = ran(capsysbinary, "export", "--as", form, "--redact")
    text = contents(out) if form == "jsonl" else out.decode()
    assert [value for value in PLANTED if value in text] == []
    assert text.count("person-1@example.com") >= 2
    assert "person-2" not in text
    assert "Café \U0001f600" in text or "Caf\\u00e9" in text
    assert f"e-mail address: {MAIL} → person-1@example.com" in told
    assert f"key: {KEY} → redacted-key-1 (" in told
    assert "own pattern: TICKET-77 → redacted-1 (" in told


def test_a_redacted_archive_is_imported_and_its_hashes_are_right(
    capsysbinary: Captured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "shared.jsonl"
    ran(capsysbinary, "export", "--redact", "-o", str(file))
    for line in file.read_bytes().splitlines()[1:]:
        entry = json.loads(line)
        if entry["type"] == "body":
            assert sha256(base64.b64decode(entry["data"])) == entry["sha256"]
    monkeypatch.setenv("SIGHTLINE_DATA", str(tmp_path / "elsewhere"))
    assert "2 exchanges imported" in ran(capsysbinary, "import", str(file))[1]
    assert [each["id"] for each in traffic(capsysbinary, "text:person-1@example.com")] == [SECOND, FIRST]
    shown, _ = ran(capsysbinary, "show", FIRST, "--as", "html")
    assert b"Written to person-1@example.com, user-1." in shown
    again, _ = ran(capsysbinary, "export")
    assert again == file.read_bytes()


def test_a_preview_lists_and_writes_nothing(capsysbinary: Captured, tmp_path: Path) -> None:
    out, told = ran(capsysbinary, "export", "--preview", "-o", str(tmp_path / "none"))
    assert out == b""
    assert not (tmp_path / "none").exists()
    assert "user name: annab → user-1 (" in told
    assert "internal host: 10.1.2.3 → host-" in told
    assert f"phone number: {PHONE} → phone-1 (1 place)" in told


def test_where_nothing_is_found_it_is_said(capsysbinary: Captured) -> None:
    assert "nothing to redact was found" in ran(capsysbinary, "export", "text:nowhere", "--preview")[1]


def test_a_pattern_that_is_none_is_an_error_that_names_it(capsysbinary: Captured, tmp_path: Path) -> None:
    config = tmp_path / "sightline.toml"
    config.write_text(config.read_text().replace("TICKET-\\\\d+", "TICKET-("))
    _, told = ran(capsysbinary, "export", "--redact", status=2)
    assert "not a regular expression: 'TICKET-('" in told
    assert "[export] patterns" in told


def test_a_pattern_that_matches_words_of_the_record_itself_is_an_error_and_writes_nothing(
    capsysbinary: Captured, tmp_path: Path
) -> None:
    file = tmp_path / "shared"
    _, told = ran(capsysbinary, "export", "session:two", "--redact", "--pattern", "e", "-o", str(file), status=2)
    assert "error[config]: a value to be replaced is also in a word of the record's own" in told
    assert "Make the regular expression longer" in told
    assert not file.exists()


def test_sections_are_left_out_and_values_kept_as_the_options_say(capsysbinary: Captured) -> None:
    out, told = ran(capsysbinary, "export", "session:two", "--as", "markdown", "--without", "assistant", "--keep", MAIL)
    assert MAIL in out.decode()
    assert b"Nothing else" not in out
    assert "section: Nothing else → [assistant 1 left out]" in told
    out, _ = ran(capsysbinary, "export", "session:two", "--as", "markdown", "--redact", "--pattern", r"Ag\w+")
    assert b"redacted-1 person-1@example.com" in out
    _, wrong = ran(capsysbinary, "export", "--without", "everything", status=2)
    assert "there is no kind of section" in wrong


def test_sections_are_listed_with_their_ids_and_left_out_one_by_one(capsysbinary: Captured) -> None:
    out, told = ran(capsysbinary, "export", "--sections")
    assert out == b""
    ids = {text.split(" (")[0]: name for name, _, text in (line.split(" ", 2) for line in told.splitlines()[:4])}
    assert len(ids) == 4
    again, other = ids[f"Again {MAIL}"], ids["Nothing else"]
    out, told = ran(capsysbinary, "export", "--as", "markdown", "--without", again)
    assert b"Nothing else" in out
    assert b"Again" not in out
    assert f"section: Again {MAIL} → [user 1 left out]" in told
    out, _ = ran(capsysbinary, "export", "--as", "markdown", "--without", f"assistant,{again}", "--keep", other)
    assert b"Nothing else" in out
    assert b"Written to" not in out
    _, wrong = ran(capsysbinary, "export", "session:one", "--without", again, status=2)
    assert f"there is no section '{again}' in what is shared" in wrong
