import pytest

from sightline.evals.core.suite import SuitePlace
from tests.evals.core.reading.stage import messages_of, problem, read

CASE = "id: {}, input: x, criteria: y"
YAML = "- {{" + CASE + "}}\n"


def ids(text: str, **files: str) -> list[str]:
    reading = read(text, {path: content.encode() for path, content in files.items()}, environment={"WHO": "Ada"})
    assert reading.suite is not None, messages_of(reading)
    return [case.id for case in reading.suite.cases]


def test_tests_stand_in_a_file_of_their_own() -> None:
    assert ids("tests: ./cases.yaml\n", **{"suites/cases.yaml": YAML.format("a")}) == ["a"]
    assert ids("tests: file://cases.yml\n", **{"suites/cases.yml": "tests:\n" + YAML.format("a")}) == ["a"]
    assert ids("tests: ../c.jsonl\n", **{"c.jsonl": '{"id": "a", "input": "x", "criteria": "${{ WHO }}"}\n'}) == ["a"]


def test_files_and_tests_may_stand_side_by_side() -> None:
    text = f"tests:\n  - {{{CASE.format('here')}}}\n  - file://more/*.yaml\n  - file://all/**/x.yaml\n"
    files = {
        "suites/more/b.yaml": YAML.format("b"),
        "suites/more/a.yaml": YAML.format("a"),
        "suites/more/a.txt": "no",
        "suites/all/deep/er/x.yaml": YAML.format("x"),
    }
    assert ids(text, **files) == ["here", "a", "b", "x"]


def test_a_pattern_may_begin_at_the_topmost_folder() -> None:
    reading = read("tests: '*.cases.yaml'\n", {"a.cases.yaml": YAML.format("a").encode()}, file="s.yaml")
    assert reading.suite is not None


def test_a_folder_has_a_folder_for_each_case() -> None:
    files = {
        "suites/cases/first/case.yaml": "input: x\ncriteria: y\n",
        "suites/cases/second/case.yml": "id: named\ninput: x\ncriteria: y\n",
        "suites/cases/second/other.md": "",
    }
    assert ids("tests: ./cases/\n", **files) == ["first", "named"]


def test_problems_in_another_file_are_told_with_its_name() -> None:
    found = problem("tests: c.yaml\n", {"suites/c.yaml": b"- {id: a, inptu: x, input: x, criteria: y}\n"})
    assert found.place == SuitePlace("suites/c.yaml", 1, 11)


@pytest.mark.parametrize(
    ("tests", "files", "words"),
    [
        ("tests: none.yaml", {}, 'there is no file "suites/none.yaml"'),
        ("tests: /c.yaml", {}, "absolute"),
        ("tests: ../../c.yaml", {}, "leads out of the folder"),
        ("tests: ../../*.yaml", {}, "leads out of the folder"),
        ("tests: 'c/*.yaml'", {}, "no file matches"),
        ("tests: 'c/[.yaml'", {}, "is not closed"),
        ("tests: c.csv", {"suites/c.csv": b"x"}, "is no file of tests"),
        ("tests: c.jsonl", {"suites/c.jsonl": b"\n"}, "there are no tests in the file"),
        ("tests: c.jsonl", {"suites/c.jsonl": b"{\n"}, "not JSON"),
        ("tests: c.yaml", {"suites/c.yaml": b"a: [\n"}, "expected"),
        ("tests: c.yaml", {"suites/c.yaml": b"a: 1\n"}, "a file of tests must be a list"),
        ("tests: c.yaml", {"suites/c.yaml": b"tests: []\nname: x\n"}, 'has no key "name"'),
        ("tests: []", {}, "the list of tests is empty"),
        ("tests: 3", {}, "tests must be a list"),
        ("name: x", {}, "the suite has no tests"),
    ],
)
def test_tests_that_cannot_be_had_are_errors(tests: str, files: dict[str, bytes], words: str) -> None:
    reading = read(tests + "\n", files)
    assert reading.suite is None
    assert any(words in each for each in messages_of(reading)), messages_of(reading)
