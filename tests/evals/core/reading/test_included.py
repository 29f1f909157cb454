import pytest

from tests.evals.core.reading.stage import messages_of, problem, read, told

SUITE = """assertions: [{include: safe}]
tests:
  - id: a
    input: x
    assert:
      - {type: is-json}
      - {include: ../shared/words.yaml}
      - {type: composite, assertions: [{include: safe}], aggregator: {type: threshold, threshold: 0.5}}
    execution: {evaluators: [{include: safe}]}
  - id: b
    turns: [{input: x, assertions: [{include: safe}, is short]}]
    execution: {skip_defaults: true}
"""
FILES = {
    ".agentv/templates/safe.yml": b"name: safe\nassertions: [{type: contains, value: '${{ WORD }}'}]\n",
    "shared/words.yaml": b"assertions:\n  - {type: regex, value: a}\n  - {include: ./more.yaml}\n",
    "shared/more.yaml": b"assertions: [{type: regex, value: b}, is kind]\n",
}


def test_graders_of_other_files_stand_where_they_are_named() -> None:
    reading = read(SUITE, FILES, environment={"WORD": "fine"})
    assert reading.suite is not None, messages_of(reading)
    first, second = reading.suite.cases
    assert [spec.type for spec in first.graders] == [
        *("is-json", "regex", "regex", "rubrics", "composite", "contains", "contains"),
    ]
    assert [spec.config.get("value") for spec in first.graders[1:3]] == ["a", "b"]
    assert str(first.graders[2].place) == "shared/more.yaml:1:14"
    assert first.graders[4].config["assertions"] == [{"type": "contains", "value": "fine"}]
    assert [spec.type for spec in second.turns[0].graders] == ["contains", "rubrics"]


def including(name: str) -> str:
    return f"tests:\n  - id: a\n    input: x\n    assertions:\n      - {{type: is-json}}\n      - include: {name}\n"


@pytest.mark.parametrize(
    ("name", "files", "words", "where"),
    [
        ("nowhere", {}, 'no file "nowhere"', "suites/a.eval.yaml:6:18"),
        ("./nowhere.yaml", {}, 'no file "./nowhere.yaml"', "suites/a.eval.yaml:6:18"),
        ("../../x.yaml", {}, "no file", "suites/a.eval.yaml:6:18"),
        ("/etc/x.yaml", {}, "absolute", "suites/a.eval.yaml:6:18"),
        ("3", {}, "the path is empty", "suites/a.eval.yaml:6:18"),
        ("./x.yaml", {"suites/x.yaml": b"a: [\n"}, "", "suites/x.yaml:2:1"),
        ("./x.yaml", {"suites/x.yaml": b"[{type: is-json}]\n"}, "must be a mapping", "suites/x.yaml:1:1"),
        ("./x.yaml", {"suites/x.yaml": b"name: x\n"}, "has no assertions", "suites/x.yaml:1:1"),
        ("./x.yaml", {"suites/x.yaml": b"assertions: x\n"}, "must be a list", "suites/x.yaml:1:13"),
        ("./x.yaml", {"suites/x.yaml": b"tests: []\nassertions: []\n"}, 'no key "tests"', "suites/x.yaml:1:1"),
        ("./x.yaml", {"suites/x.yaml": b"assertions: [{include: ./x.yaml}]\n"}, "in a circle", "suites/x.yaml:1:24"),
    ],
)
def test_what_cannot_be_taken_in_is_an_error_at_its_place(
    name: str, files: dict[str, bytes], words: str, where: str
) -> None:
    found = problem(including(name), files)
    assert found.severity == "error"
    assert words in found.message
    assert str(found.place) == where, told(found)


def test_files_that_name_files_are_followed_three_deep() -> None:
    files = {f"suites/{n}.yaml": f"assertions: [{{include: ./{n + 1}.yaml}}]\n".encode() for n in range(1, 4)}
    files["suites/4.yaml"] = b"assertions: [{type: is-json}]\n"
    assert read(including("./2.yaml"), files).suite is not None
    assert "more than 3 files deep: suites/1.yaml → " in problem(including("./1.yaml"), files).message


def test_a_file_is_read_once_and_its_problem_told_once() -> None:
    files = {"suites/x.yaml": b"nothing: here\n"}
    text = including("./x.yaml") + "  - {id: b, input: x, assertions: [{include: ./x.yaml}, {type: is-json}]}\n"
    assert len(read(text, files).problems) == 2
