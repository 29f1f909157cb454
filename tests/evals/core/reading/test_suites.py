import json

import pytest

from sightline.evals.core.graders.grade import check_graders
from sightline.evals.core.reading.document import SuiteFindings
from sightline.evals.core.reading.suites import check_dependencies
from sightline.evals.core.suite import Case, FileSegment, SuitePlace, SuiteProblem, TextSegment
from tests.evals.core.reading.stage import messages_of, problem, read, sound

EVALS = {
    "skill_name": "csv",
    "evals": [
        {
            "id": 1,
            "prompt": "Sum it.",
            "expected_output": "42",
            "files": ["data.csv"],
            "assertions": ["It says 42.", "It is short."],
        },
        {"id": "two", "prompt": "Hello", "expected_output": "Hi", "files": [], "assertions": []},
    ],
}


def test_evals_of_a_skill_are_a_suite() -> None:
    suite = sound(json.dumps(EVALS), {"suites/data.csv": b"x"}, file="suites/evals.json")
    first, second = suite.cases
    assert (first.id, second.id) == ("1", "two")
    file, text = first.messages[0].segments
    assert isinstance(file, FileSegment)
    assert isinstance(text, TextSegment)
    assert (file.resolved, text.text) == ("suites/data.csv", "Sum it.")
    assert [spec.type for spec in first.graders] == ["rubrics"]
    assert first.metadata == {"skill_name": "csv"}
    assert [spec.type for spec in second.graders] == ["llm-grader"]  # it only says what is expected


def test_problems_in_skill_evals_are_reported() -> None:
    wrong = {"evals": [{"id": True, "prompt": "x", "assertions": ["y"]}, {"id": 2, "prompt": "x", "hint": "z"}, 3]}
    text = json.dumps({**wrong, "other": 1}, indent=1)
    told = messages_of(read(text, file="evals.json"))
    assert 'evals of a skill has no key "other"' in told
    assert 'an eval of a skill has no key "hint"' in told
    assert "id must be text, not true" in told
    assert "nothing says how the test is graded" in told
    assert len([each for each in told if "mapping" in each or "lacks" in each]) >= 1


def cases(**waits: list[str]) -> list[Case]:
    return [Case(id=name, depends_on=tuple(others)) for name, others in waits.items()]


def checked(found: list[Case]) -> tuple[SuiteProblem, ...]:
    findings = SuiteFindings()
    check_dependencies(found, {each.place: () for each in found}, findings)
    return findings.problems


def told(found: list[Case]) -> list[str]:
    return [each.message for each in checked(found)]


def test_cases_may_wait_for_each_other_in_an_order() -> None:
    assert told(cases(a=[], b=["a"], c=["a", "b"])) == []


def test_duplicate_id_names_both_places() -> None:
    found = problem("tests:\n  - {id: a, input: x, criteria: y}\n  - {id: a, input: x, criteria: y}\n")
    assert (found.place.line, found.path) == (3, "tests[1]")
    assert found.message == 'the id "a" is used twice, first at suites/a.eval.yaml:2:5'


def test_a_dependency_on_nothing_suggests_the_nearest() -> None:
    (found,) = checked(cases(alpha=[], b=["alhpa"]))
    assert found.suggestion == 'Did you mean "alpha"?'


def test_cycle_is_reported_with_all_of_its_cases() -> None:
    assert told(cases(a=["b"], b=["c"], c=["a"], d=["a"])) == ["cases wait for each other: a → b → c → a"]
    assert told(cases(a=["a"])) == ["cases wait for each other: a → a"]


def test_every_cycle_is_reported_up_to_a_limit() -> None:
    assert len(told(cases(a=["b"], b=["a"], c=["d"], d=["c"]))) == 2
    assert len(told(cases(**{f"n{number}": [f"n{number}"] for number in range(50)}))) == 20


SUITE = """tests:
  - id: a
    input: x
    assertions:
      - {type: word-count, least: 3, weight: 2, negate: true}
      - {type: word_count, name: short}
      - {type: contains, value: x}
  - id: b
    turns: [{input: x, assertions: [{type: word-count}]}]
"""


@pytest.mark.parametrize(
    ("path", "seen"),
    [
        ("suites/.agentv/assertions/word-count.ts", ".agentv/assertions/word-count.ts"),
        (".agentv/assertions/word-count.js", "../.agentv/assertions/word-count.js"),
        (".agentv/graders/word-count.mts", "../.agentv/graders/word-count.mts"),
        (".agentv/judges/word-count.mjs", "../.agentv/judges/word-count.mjs"),
    ],
)
def test_a_script_of_the_repository_grades_under_its_name(path: str, seen: str) -> None:
    suite = sound(SUITE, {path: b""})
    first, second = suite.cases
    counted, short, other = first.graders
    assert (counted.type, counted.name, counted.weight, counted.negate) == ("code-grader", "word-count", 2, True)
    assert counted.config == {"command": ["bun", "run", seen], "config": {"least": 3}}
    assert (short.type, short.name, other.type) == ("code-grader", "short", "contains")
    assert [spec.type for spec in second.turns[0].graders] == ["code-grader"]
    assert check_graders(first.graders) == ()


@pytest.mark.parametrize("kind", ["word-count", "../up", "a/b", "code-judge"])
def test_type_without_a_script_is_an_unknown_grader(kind: str) -> None:
    files = {"up.ts": b"", "suites/.agentv/assertions/a/b.ts": b"", ".agentv/assertions/code-judge.ts": b""}
    suite = sound(f"tests: [{{id: a, input: x, assertions: [{{type: {kind}}}]}}]\n", files, file="top.yaml")
    (problem,) = check_graders(suite.cases[0].graders)
    assert "there is no grader" in problem.message


WHOLE = """$schema: https://x/y.json
name: my-suite
description: What it is for
category: demo
version: "1.0"
author: Ada
license: MIT
requires: {agentv: '>=4'}
governance: {risk: low}
tags: [nightly]
x-mine: {anything: goes}
input:
  - {role: system, content: 'Be {{ tone }}.'}
assertions: [{type: is-json}]
guideline_patterns: ['**/*.instructions.md']
tests:
  - id: a
    vars: {tone: kind}
    input: hello
  - id: b
    vars: {tone: brief}
    input: hello
    guideline_patterns: notes/*.md
"""


def test_what_a_suite_says_once_is_in_all_of_its_cases() -> None:
    reading = read(WHOLE)
    assert reading.problems == ()
    suite = reading.suite
    assert suite is not None
    assert (suite.name, suite.description, suite.tags) == ("my-suite", "What it is for", ("nightly",))
    assert suite.about["author"] == "Ada"
    assert set(suite.about) == {"$schema", "category", "version", "author", "license", "requires", "governance"}
    first, second = suite.cases
    assert [message.segments[0].text for message in first.messages] == ["Be kind.", "hello"]  # type: ignore[union-attr]
    assert second.messages[0].segments[0].text == "Be brief."  # type: ignore[union-attr]
    assert [spec.type for spec in first.graders] == ["is-json"]
    assert first.tags == ("nightly",)
    assert second.guideline_patterns == ("**/*.instructions.md", "notes/*.md")
    assert first.place == SuitePlace("suites/a.eval.yaml", 17, 5)


@pytest.mark.parametrize(
    ("file", "name"), [("x/greet.eval.yaml", "greet"), ("greet.YML", "greet"), (".yaml", "suite"), ("greet", "greet")]
)
def test_a_suite_without_a_name_has_that_of_its_file(file: str, name: str) -> None:
    suite = sound("tests: [{id: a, input: x, criteria: y}]\n", file=file)
    assert suite.name == name


def test_a_bare_list_and_lines_of_json_are_suites() -> None:
    assert read("- {id: a, input: x, criteria: y}\n").suite is not None
    assert read(b'{"id": "a", "input": "x", "criteria": "y"}\n', file="a.jsonl").suite is not None
    assert "not JSON" in problem(b'{"id": "a", "input": "x", "criteria": "y"}\n{', file="a.jsonl").message


def test_name_that_agentv_would_reject_is_reported() -> None:
    found = problem("name: My Suite!\ntests: [{id: a, input: x, criteria: y}]\n")
    assert found.severity == "warning"
    assert found.suggestion == 'AgentV would want "my-suite".'
    assert "suite" in problem("name: '!'\ntests: [{id: a, input: x, criteria: y}]\n").suggestion


@pytest.mark.parametrize(
    ("head", "words", "severity"),
    [
        ("workspace: {template: ./x}\n", "workspace is not used", "warning"),
        ("preprocessors: [{type: xlsx}]\n", "preprocessors is not used", "warning"),
        ("testz: []\n", 'a suite has no key "testz"', "error"),
        ("cases: []\n", 'a suite has no key "cases"', "error"),
        ("guideline_patterns: ['[']\n", "a [ is not closed", "error"),
        ("description: '${{ NOPE }}'\n", "the environment has no NOPE", "error"),
    ],
)
def test_nothing_is_skipped_in_silence(head: str, words: str, severity: str) -> None:
    found = problem(head + "tests: [{id: a, input: x, criteria: y}]\n")
    assert words in found.message
    assert found.severity == severity


@pytest.mark.parametrize("text", ["", "just words\n", "a: [", "3"])
def test_a_text_that_is_no_suite_is_one_problem(text: str) -> None:
    assert problem(text).place.line == 1


def test_the_environment_reaches_every_corner() -> None:
    text = "tests:\n  - {id: '${{ ID }}', input: x, criteria: y, execution: {threshold: '${{ LEAST }}'}}\n"
    suite = sound(text, environment={"ID": "a", "LEAST": "0.5"})
    assert suite.cases[0].id == "a"
    assert suite.cases[0].execution.threshold == 0.5


def test_a_case_without_an_id_does_not_hide_the_problems_of_the_next() -> None:
    reading = read("tests:\n  - {input: x}\n  - {id: b}\n")
    assert messages_of(reading) == [
        'a test lacks the key "id"',
        "the test has no input",
        "nothing says how the test is graded",
    ]
