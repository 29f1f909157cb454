from pathlib import Path

import pytest

from sightline.errors import Fault
from sightline.evals.core.reading.files import Need
from sightline.evals.service import suite_files as module
from sightline.evals.service.suite_files import SuiteFiles


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
    for path in ("../outside.md", "/etc/passwd", "evals/link.md", "evals", "evals/none.md", "a\0b"):
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


def test_a_file_that_cannot_be_read_is_told(files: SuiteFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refused)
    with pytest.raises(Fault, match="Permission denied"):
        files.read("evals/a.md")


def test_a_name_that_no_file_can_have_is_told(files: SuiteFiles) -> None:
    name = "x" * 300 + ".yaml"
    for asked in (lambda: files.read(name), lambda: files.bring(Need(name, "presence")), lambda: files.find(name, "")):
        with pytest.raises(Fault, match="x…: File name too long") as caught:
            asked()
        assert caught.value.status == 422
