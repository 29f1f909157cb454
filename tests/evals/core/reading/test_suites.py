import pytest

from sightline.evals.core.suite import SuitePlace
from tests.evals.core.reading.stage import messages_of, problem, read

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
    reading = read("tests: [{id: a, input: x, criteria: y}]\n", file=file)
    assert reading.suite is not None
    assert reading.suite.name == name


def test_a_bare_list_and_lines_of_json_are_suites() -> None:
    assert read("- {id: a, input: x, criteria: y}\n").suite is not None
    assert read(b'{"id": "a", "input": "x", "criteria": "y"}\n', file="a.jsonl").suite is not None
    assert "not JSON" in problem(b'{"id": "a", "input": "x", "criteria": "y"}\n{', file="a.jsonl").message


def test_a_name_that_agentv_would_refuse_is_told_of() -> None:
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
    reading = read(text, environment={"ID": "a", "LEAST": "0.5"})
    assert reading.suite is not None, messages_of(reading)
    assert reading.suite.cases[0].id == "a"
    assert reading.suite.cases[0].execution.threshold == 0.5


def test_a_case_without_an_id_does_not_hide_the_problems_of_the_next() -> None:
    reading = read("tests:\n  - {input: x}\n  - {id: b}\n")
    assert messages_of(reading) == [
        'a test lacks the key "id"',
        "the test has no input",
        "nothing says how the test is graded",
    ]
