import hashlib
import json
from pathlib import Path

import pytest

from sightline.catalog.problem import Path as DocumentPath
from sightline.errors import Fault
from sightline.evals.core.making.case_writer import MadeFile
from sightline.evals.core.suite import Suite
from sightline.evals.service.suite_files import SuiteFiles, SuiteWriter, require_suite, suite_in
from sightline.model.json import Json, JsonObject

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


def read(files: SuiteFiles, file: str = "evals/s.yaml") -> Suite:
    return require_suite(suite_in(files, file, {}), file)


@pytest.fixture
def writer(files: SuiteFiles) -> SuiteWriter:
    return SuiteWriter(files, {})


def set_value(writer: SuiteWriter, file: str, case: str, path: DocumentPath, value: Json, sha256: str) -> str:
    _, after = writer.preview_change(file, case, [(path, value)], sha256)
    return writer.replace(file, after, sha256)


def test_a_new_file_of_json_lines_has_a_line_for_each_case(files: SuiteFiles, writer: SuiteWriter) -> None:
    writer.append("new.jsonl", "tests:\n  - {id: a, criteria: x, input: hi}\n  - {id: b, criteria: x, input: ho}\n")
    assert (files.root / "new.jsonl").read_text() == (
        '{"id":"a","criteria":"x","input":"hi"}\n{"id":"b","criteria":"x","input":"ho"}\n'
    )
    assert [case.id for case in read(files, "new.jsonl").cases] == ["a", "b"]


def test_a_case_is_appended_with_its_files_and_nothing_else_changes(files: SuiteFiles, writer: SuiteWriter) -> None:
    written = writer.append("evals/s.yaml", MADE, [MadeFile("two/a.txt", b"words")])
    text = (files.root / "evals/s.yaml").read_text()
    assert text.startswith(SUITE)
    assert (written.file, written.cases) == ("evals/s.yaml", ("two",))
    suite = read(files)
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


HALF = MADE.replace("criteria: x", "criteria: '\ud800'")


@pytest.mark.parametrize("text", ["tests: [", "words", "tests: []", "tests: [word]", "tests: [{id: a}]", HALF])
def test_what_is_no_sound_case_is_not_written(files: SuiteFiles, writer: SuiteWriter, text: str) -> None:
    with pytest.raises(Fault) as caught:
        writer.append("evals/s.yaml", text)
    assert caught.value.status == 422
    assert (files.root / "evals/s.yaml").read_text() == SUITE


@pytest.mark.parametrize(
    ("file", "words"),
    [
        ("/etc/s.yaml", "is absolute"),
        ("../s.yaml", "leads out of the folder"),
        ("evals/../../s.yaml", "leads out of the folder"),
        ("evals/s.txt", "is no file of a suite"),
        ("", "the path is empty"),
        ("evals/.agentv/targets.yaml", "is hidden"),
        (".s.yaml", "is hidden"),
        ("evals/.s.yaml", "is hidden"),
    ],
)
def test_nothing_is_written_elsewhere_or_out_of_sight(
    files: SuiteFiles, writer: SuiteWriter, file: str, words: str
) -> None:
    with pytest.raises(Fault, match=words) as caught:
        writer.append(file, MADE)
    assert caught.value.status == 422
    assert not (files.root / file).is_file()


@pytest.mark.parametrize("path", ["../../a.txt", "/a.txt"])
def test_neither_are_the_files_beside_it(writer: SuiteWriter, path: str) -> None:
    with pytest.raises(Fault, match="not a valid path for a file"):
        writer.append("evals/s.yaml", MADE, [MadeFile(path, b"words")])


def test_a_link_out_of_the_folder_is_not_followed(files: SuiteFiles, writer: SuiteWriter, tmp_path: Path) -> None:
    outside = tmp_path.parent / f"{tmp_path.name}-outside"
    outside.mkdir()
    (files.root / "evals/link").symlink_to(outside)
    with pytest.raises(Fault, match="leads out of the folder"):
        writer.append("evals/link/s.yaml", MADE)


def test_one_value_is_changed_and_comments_stay(files: SuiteFiles, writer: SuiteWriter) -> None:
    suite = read(files)
    assert writer.source(suite.cases[0]) == (
        "evals/s.yaml",
        suite.sha256,
        {"id": "one", "criteria": "x", "input": "Hello"},
    )
    written = set_value(writer, "evals/s.yaml", "one", ("input",), "Good day", suite.sha256)
    assert (files.root / "evals/s.yaml").read_text() == SUITE.replace('"Hello"', "Good day")
    with pytest.raises(Fault, match="changed since") as caught:
        set_value(writer, "evals/s.yaml", "one", ("input",), "Later", suite.sha256)
    assert caught.value.status == 409
    with pytest.raises(Fault, match='has no case "two"'):
        set_value(writer, "evals/s.yaml", "two", ("input",), "Later", written)
    with pytest.raises(Fault) as wrong:
        set_value(writer, "evals/s.yaml", "one", ("input",), {"role": 7}, written)
    assert wrong.value.status == 422


def test_lines_of_json_are_changed_too(files: SuiteFiles, writer: SuiteWriter) -> None:
    (files.root / "evals/s.jsonl").write_text('{"id":"a","criteria":"x","input":"hi"}\n')
    suite = read(files, "evals/s.jsonl")
    assert writer.source(suite.cases[0])[2] == {"id": "a", "criteria": "x", "input": "hi"}
    set_value(writer, "evals/s.jsonl", "a", ("input",), "ho", suite.sha256)
    assert '"input":"ho"' in (files.root / "evals/s.jsonl").read_text()


def test_a_case_whose_file_is_gone_cannot_be_changed(files: SuiteFiles, writer: SuiteWriter) -> None:
    suite = read(files)
    (files.root / "evals/s.yaml").write_text("tests: [{id: other, criteria: x, input: hi}]\n")
    assert writer.source(suite.cases[0]) == ("", "", None)
    (files.root / "evals/s.yaml").write_text("tests: [")
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


RUNS = """
tests:
  - id: one
    criteria: x
    input: hi
    assertions:
      - {type: code-grader, command: [python, grade.py], weight: 2}
      - type: tool-trajectory
        mode: in_order
        expected: [{tool: bash, args: {command: ls}}]
"""
GRADER: JsonObject = {"type": "code-grader", "command": ["sh", "-c", "id"]}


def test_a_command_that_the_file_does_not_have_is_not_written(files: SuiteFiles, writer: SuiteWriter) -> None:
    path = files.root / "evals/s.yaml"
    path.write_text(RUNS)
    sha256 = hashlib.sha256(RUNS.encode()).hexdigest()
    refused: list[tuple[DocumentPath, Json]] = [
        (("assertions", 0, "command"), ["sh", "-c", "id"]),
        (("assertions", 0, "cwd"), "elsewhere"),
        (("assertions", 1), GRADER),
        (("assertions",), [{"type": "composite", "assertions": [GRADER], "aggregator": {"type": "weighted_average"}}]),
        (("assertions",), [{"type": "llm-grader", "prompt": {"command": ["sh", "-c", "id"]}}]),
        (("assertions",), [{"type": "code-grader", "python": "grade.py:grade"}]),
    ]
    for place, value in refused:
        with pytest.raises(Fault, match="would run a command") as caught:
            set_value(writer, "evals/s.yaml", "one", place, value, sha256)
        assert caught.value.status == 422
    for text in (RUNS.replace("one", "two").replace("grade.py", "other.py"), f"tests: [{json.dumps(NEW_CASE)}]"):
        for file in ("evals/s.yaml", "evals/new.yaml"):
            with pytest.raises(Fault, match="would run a command"):
                writer.append(file, text)
    assert path.read_text() == RUNS
    assert not (files.root / "evals/new.yaml").exists()


NEW_CASE = {"id": "two", "criteria": "x", "input": "hi", "assertions": [GRADER]}


def test_fields_next_to_a_command_can_be_edited(files: SuiteFiles, writer: SuiteWriter) -> None:
    (files.root / "evals/s.yaml").write_text(RUNS)
    sha256 = hashlib.sha256(RUNS.encode()).hexdigest()
    changes: list[tuple[DocumentPath, Json]] = [
        (("assertions", 0, "weight"), 3),
        (("assertions", 1, "expected", 0, "args", "command"), "pwd"),
        (("input",), "ho"),
    ]
    for place, value in changes:
        sha256 = set_value(writer, "evals/s.yaml", "one", place, value, sha256)
    text = (files.root / "evals/s.yaml").read_text()
    assert "command: [python, grade.py], weight: 3" in text
    assert "args: {command: pwd}" in text.replace('"', "")


def test_a_file_that_is_read_only_stays_as_it_is(files: SuiteFiles, writer: SuiteWriter) -> None:
    path = files.root / "evals/s.yaml"
    path.chmod(0o444)
    with pytest.raises(Fault, match="the file is read-only"):
        set_value(writer, "evals/s.yaml", "one", ("input",), "ho", hashlib.sha256(SUITE.encode()).hexdigest())
    assert path.read_text() == SUITE
    assert [each.name for each in path.parent.iterdir()] == ["s.yaml"]


def test_a_change_that_an_editor_makes_meanwhile_is_not_lost(files: SuiteFiles) -> None:
    class Slow(SuiteFiles):
        """Where an editor saves while the suite is being looked at."""

        looks = 0

        def read(self, path: str) -> bytes | None:
            self.looks += path.endswith("s.yaml")
            if self.looks == 2:
                (self.root / "evals/s.yaml").write_text(f"{SUITE}# mine\n")
            return super().read(path)

    sha256 = hashlib.sha256(SUITE.encode()).hexdigest()
    with pytest.raises(Fault, match="changed since it was looked at") as caught:
        set_value(SuiteWriter(Slow(files.root), {}), "evals/s.yaml", "one", ("input",), "ho", sha256)
    assert caught.value.status == 409
    assert (files.root / "evals/s.yaml").read_text() == f"{SUITE}# mine\n"


def test_a_link_inside_of_the_folder_stays_one(files: SuiteFiles, writer: SuiteWriter) -> None:
    (files.root / "evals/link.yaml").symlink_to(files.root / "evals/s.yaml")
    writer.append("evals/link.yaml", "tests: [{id: two, criteria: x, input: hi}]")
    assert (files.root / "evals/link.yaml").is_symlink()
    assert "two" in (files.root / "evals/s.yaml").read_text()


def test_several_values_are_written_at_once_and_all_of_a_file_is_put_back(
    files: SuiteFiles, writer: SuiteWriter
) -> None:
    sha256 = read(files).sha256
    changes: list[tuple[tuple[str | int, ...], str]] = [(("input",), "Ho"), (("criteria",), "good")]
    before, after = writer.preview_change("evals/s.yaml", "one", changes, sha256)
    assert (files.root / "evals/s.yaml").read_bytes() == before
    assert after == before.replace(b'"Hello"', b"Ho").replace(b"criteria: x", b"criteria: good")
    written = writer.replace("evals/s.yaml", after, sha256)
    with pytest.raises(Fault, match="changed since"):
        writer.replace("evals/s.yaml", before, sha256)
    assert writer.replace("evals/s.yaml", before, written) == sha256
