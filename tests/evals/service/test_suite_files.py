import asyncio
import hashlib
from pathlib import Path

import pytest

from sightline.errors import Fault
from sightline.evals.core.making.case import CaseExchange
from sightline.evals.core.reading.files import Need
from sightline.evals.service import suite_files as module
from sightline.evals.service.suite_files import (
    SuiteFiles,
    conversation,
    make_masked_case,
    read_text,
    require_suite,
    suite_in,
    turns_in,
)
from sightline.store.entries import Entry
from tests.eval_stage import CAPITALS
from tests.recordings import exchange, store_with
from tests.store.traffic import NOON, chat_body, chat_stream


@pytest.fixture
def files(tmp_path: Path) -> SuiteFiles:
    root = tmp_path / "root"
    (root / "evals/more/.hidden").mkdir(parents=True)
    (root / "evals/a.md").write_text("a")
    (root / "evals/more/b.md").write_text("b")
    (root / "evals/more/.hidden/c.md").write_text("c")
    (tmp_path / "outside.md").write_text("secret")
    (root / "evals/link.md").symlink_to(tmp_path / "outside.md")
    (root / "evals/inside.md").symlink_to(root / "evals/a.md")
    return SuiteFiles(root)


def test_files_are_read_below_the_folder_and_nowhere_else(files: SuiteFiles) -> None:
    assert (files.read("evals/a.md"), files.read("evals/inside.md")) == (b"a", b"a")
    (files.root / "evals/round.md").symlink_to("round.md")
    for path in ("../outside.md", "/etc/passwd", "evals/link.md", "evals", "evals/none.md", "a\0b", "evals/round.md"):
        assert files.read(path) is None


def test_a_reader_of_suites_gets_what_it_asks_for(files: SuiteFiles) -> None:
    assert files.bring(Need("evals/a.md")) == b"a"
    assert (files.bring(Need("evals/a.md", "presence")), files.bring(Need("evals/link.md", "presence"))) == (b"", None)
    listing = files.bring(Need("evals", "listing"))
    assert listing is not None
    assert listing.decode().split("\n") == ["a.md", "inside.md", "link.md", "more/b.md"]
    assert files.bring(Need("nowhere", "listing")) is None


def test_a_file_is_found_beside_the_suite_or_above(files: SuiteFiles) -> None:
    assert files.find("a.md", "evals/more/suite.yaml") == "evals/a.md"
    assert files.find("b.md", "evals/more/suite.yaml") == "evals/more/b.md"
    assert files.find("x.md", "evals/more/suite.yaml") is None


def test_what_is_too_much_is_refused(files: SuiteFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_LISTED", 2)
    with pytest.raises(Fault, match="more than 2 files"):
        files.bring(Need("", "listing"))
    monkeypatch.setattr(module, "LONGEST_FILE", 0)
    with pytest.raises(Fault, match="is larger than"):
        files.read("evals/a.md")


def test_unreadable_file_is_reported(files: SuiteFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refused)
    with pytest.raises(Fault, match="Permission denied"):
        files.read("evals/a.md")


def test_too_long_file_name_is_reported(files: SuiteFiles) -> None:
    name = "x" * 300 + ".yaml"
    for asked in (lambda: files.read(name), lambda: files.bring(Need(name, "presence")), lambda: files.find(name, "")):
        with pytest.raises(Fault, match="x…: File name too long") as caught:
            asked()
        assert caught.value.status == 422


def test_a_suite_is_read_with_its_files_and_knows_its_own_hash(tmp_path: Path) -> None:
    (tmp_path / "evals").mkdir()
    text = "tests:\n  - {id: a, criteria: x, input: [{role: user, content: [{type: file, value: note.md}]}]}\n"
    (tmp_path / "evals" / "s.yaml").write_text(text)
    files = SuiteFiles(tmp_path)
    missing = suite_in(files, "evals/s.yaml", {})
    assert [(each.severity, each.case) for each in missing.problems] == [("error", "a")]
    (tmp_path / "note.md").write_text("hello")
    suite = suite_in(files, "evals/s.yaml", {}).suite
    assert suite is not None
    assert (suite.file, suite.sha256) == ("evals/s.yaml", hashlib.sha256(text.encode()).hexdigest())


def test_graders_are_validated_and_suite_problems_are_reported_once(tmp_path: Path) -> None:
    text = """
assertions: [{type: contains}]
tests:
  - {id: a, criteria: x, input: hi}
  - {id: b, criteria: x, mode: conversation, turns: [{input: hi, assertions: [{type: regex, value: "("}]}]}
"""
    reading = read_text(SuiteFiles(tmp_path), "s.yaml", text.encode(), {})
    assert reading.suite is None
    assert len(reading.problems) == 2
    assert [each.place.line for each in reading.problems] == [2, 5]


def test_a_suite_that_must_be_sound_is_or_says_where_it_is_not(tmp_path: Path) -> None:
    files = SuiteFiles(tmp_path)
    assert require_suite(read_text(files, "s.yaml", CAPITALS.encode(), {}), "s.yaml").name == "capitals"
    with pytest.raises(Fault) as caught:
        require_suite(read_text(files, "s.yaml", b"tests: []\nname: 1\n", {}), "s.yaml")
    assert caught.value.message.startswith("s.yaml:1:")
    assert "and 1 more: `sightline eval validate s.yaml`" in caught.value.message
    assert caught.value.status == 422


def test_a_suite_that_is_not_there_is_a_fault(tmp_path: Path) -> None:
    with pytest.raises(Fault, match="there is no suite"):
        suite_in(SuiteFiles(tmp_path), "s.yaml", {})


KEY = "the-secret-key"


def told(folder: Path, ids: list[str], *entries: list[Entry]) -> tuple[CaseExchange, ...]:
    async def read() -> tuple[CaseExchange, ...]:
        async with store_with(folder, *entries) as store:
            return await conversation(store, ids, now=NOON)

    return asyncio.run(read())


def test_exchanges_become_a_case_without_keys(tmp_path: Path) -> None:
    first = exchange("x_1", chat_body(f"My key is {KEY}."), chat_stream("I ", "see."))
    second = exchange("x_2", chat_body("Hi", "Hello.", f"My key is {KEY}."), chat_stream("So ", "it is."), at=NOON + 60)
    both = told(tmp_path, ["2", "x_1"], first, second)
    assert turns_in(both) == 2
    made = make_masked_case(both, "about keys", [KEY])
    assert made.case["id"] == "about-keys"
    assert made.case["expected_output"] == "So it is."
    assert KEY not in made.text
    live = make_masked_case(both, "about keys", [KEY], from_turn=2)
    assert len(live.case["turns"]) == 1  # type: ignore[arg-type]


def test_one_that_was_not_answered_has_no_expectation(tmp_path: Path) -> None:
    (only,) = told(tmp_path, ["x_1"], exchange("x_1", chat_body("Hi")))
    assert only.reply is None


def test_a_count_is_no_conversation(tmp_path: Path) -> None:
    counted = exchange(
        "x_1", b'{"model":"m","messages":[]}', [b"{}"], spoken="anthropic", path="/v1/messages/count_tokens"
    )
    with pytest.raises(Fault, match="x_1 only counts tokens"):
        told(tmp_path, ["x_1"], counted)


def test_an_exchange_that_is_not_there_is_a_fault(tmp_path: Path) -> None:
    with pytest.raises(Fault, match="there is no exchange"):
        told(tmp_path, ["x_9"])
