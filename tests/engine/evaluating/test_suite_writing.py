from pathlib import Path

import pytest

from sightline.engine.evaluating.suite_files import SuiteFiles
from sightline.engine.evaluating.suite_reading import suite_in
from sightline.engine.evaluating.suite_writing import SuiteWriter
from sightline.errors import Fault
from sightline.evals.making.writing import MadeFile

SUITE = """\
# Ours.
name: mine
tests:
  - id: one   # the first
    criteria: x
    input: "Hello"
"""
MADE = """\
tests:
  - id: two
    criteria: x
    input:
      - {role: user, content: [{type: file, value: two/a.txt}]}
"""


@pytest.fixture
def files(tmp_path: Path) -> SuiteFiles:
    (tmp_path / "evals").mkdir()
    (tmp_path / "evals" / "s.yaml").write_text(SUITE)
    return SuiteFiles(tmp_path)


@pytest.fixture
def writer(files: SuiteFiles) -> SuiteWriter:
    return SuiteWriter(files, {})


def test_a_case_is_appended_with_its_files_and_nothing_else_changes(files: SuiteFiles, writer: SuiteWriter) -> None:
    written = writer.append("evals/s.yaml", MADE, [MadeFile("two/a.txt", b"words")])
    text = (files.root / "evals/s.yaml").read_text()
    assert text.startswith(SUITE)
    assert (written.file, written.cases) == ("evals/s.yaml", ("two",))
    suite = suite_in(files, "evals/s.yaml", {}).suite
    assert suite is not None
    assert ([case.id for case in suite.cases], suite.sha256) == (["one", "two"], written.sha256)
    assert (files.root / "evals/two/a.txt").read_bytes() == b"words"


def test_a_suite_that_is_not_there_is_begun_as_it_is_written(files: SuiteFiles, writer: SuiteWriter) -> None:
    text = "# New.\ntests:\n  - {id: a, criteria: x, input: hi}\n"
    writer.append("evals/deep/new.yaml", text)
    assert (files.root / "evals/deep/new.yaml").read_text() == text


def test_an_id_that_is_there_already_and_a_file_of_another_are_refused(files: SuiteFiles, writer: SuiteWriter) -> None:
    with pytest.raises(Fault, match='has a case "one" already') as caught:
        writer.append("evals/s.yaml", "tests: [{id: one, criteria: x, input: hi}]")
    assert caught.value.status == 409
    (files.root / "evals/two").mkdir()
    (files.root / "evals/two/a.txt").write_text("others")
    with pytest.raises(Fault, match="there is another file"):
        writer.append("evals/s.yaml", MADE, [MadeFile("two/a.txt", b"words")])
    assert (files.root / "evals/s.yaml").read_text() == SUITE


@pytest.mark.parametrize("text", ["tests: [", "words", "tests: []", "tests: [word]", "tests: [{id: a}]"])
def test_what_is_no_sound_case_is_not_written(files: SuiteFiles, writer: SuiteWriter, text: str) -> None:
    with pytest.raises(Fault) as caught:
        writer.append("evals/s.yaml", text)
    assert caught.value.status == 422
    assert (files.root / "evals/s.yaml").read_text() == SUITE


@pytest.mark.parametrize("file", ["/etc/s.yaml", "../s.yaml", "evals/../../s.yaml", "evals/s.txt", ""])
def test_nothing_is_written_elsewhere(writer: SuiteWriter, file: str) -> None:
    with pytest.raises(Fault) as caught:
        writer.append(file, MADE)
    assert caught.value.status == 422


@pytest.mark.parametrize("path", ["../../a.txt", "/a.txt"])
def test_neither_are_the_files_beside_it(writer: SuiteWriter, path: str) -> None:
    with pytest.raises(Fault, match="no place for a file"):
        writer.append("evals/s.yaml", MADE, [MadeFile(path, b"words")])


def test_a_link_out_of_the_folder_is_not_followed(files: SuiteFiles, writer: SuiteWriter, tmp_path: Path) -> None:
    outside = tmp_path.parent / f"{tmp_path.name}-outside"
    outside.mkdir()
    (files.root / "evals/link").symlink_to(outside)
    with pytest.raises(Fault, match="leads out of the folder"):
        writer.append("evals/link/s.yaml", MADE)


def test_one_value_is_changed_and_comments_stay(files: SuiteFiles, writer: SuiteWriter) -> None:
    suite = suite_in(files, "evals/s.yaml", {}).suite
    assert suite is not None
    assert writer.source(suite.cases[0]) == (
        "evals/s.yaml",
        suite.sha256,
        {"id": "one", "criteria": "x", "input": "Hello"},
    )
    written = writer.set("evals/s.yaml", "one", ("input",), "Good day", suite.sha256)
    assert (files.root / "evals/s.yaml").read_text() == SUITE.replace('"Hello"', "Good day")
    with pytest.raises(Fault, match="changed since") as caught:
        writer.set("evals/s.yaml", "one", ("input",), "Later", suite.sha256)
    assert caught.value.status == 409
    with pytest.raises(Fault, match='has no case "two"'):
        writer.set("evals/s.yaml", "two", ("input",), "Later", written.sha256)
    with pytest.raises(Fault) as wrong:
        writer.set("evals/s.yaml", "one", ("input",), {"role": 7}, written.sha256)
    assert wrong.value.status == 422


def test_lines_of_json_are_changed_too(files: SuiteFiles, writer: SuiteWriter) -> None:
    (files.root / "evals/s.jsonl").write_text('{"id":"a","criteria":"x","input":"hi"}\n')
    suite = suite_in(files, "evals/s.jsonl", {}).suite
    assert suite is not None
    assert writer.source(suite.cases[0])[2] == {"id": "a", "criteria": "x", "input": "hi"}
    writer.set("evals/s.jsonl", "a", ("input",), "ho", suite.sha256)
    assert '"input":"ho"' in (files.root / "evals/s.jsonl").read_text()


def test_a_case_whose_file_is_gone_cannot_be_changed(files: SuiteFiles, writer: SuiteWriter) -> None:
    suite = suite_in(files, "evals/s.yaml", {}).suite
    assert suite is not None
    (files.root / "evals/s.yaml").write_text("tests: [{id: other, criteria: x, input: hi}]\n")
    assert writer.source(suite.cases[0]) == ("", "", None)
    (files.root / "evals/s.yaml").unlink()
    assert writer.source(suite.cases[0]) == ("", "", None)


def test_a_place_that_cannot_be_written_is_a_fault_and_leaves_nothing_behind(
    files: SuiteFiles, writer: SuiteWriter
) -> None:
    (files.root / "evals/new.yaml").mkdir()
    with pytest.raises(Fault, match=r"new\.yaml"):
        writer.append("evals/new.yaml", "tests: [{id: a, criteria: x, input: hi}]")
    assert not [each for each in (files.root / "evals").iterdir() if each.name.startswith(".")]
