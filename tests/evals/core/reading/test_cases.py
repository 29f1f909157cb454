import pytest

from sightline.evals.core.suite import FileSegment, TextSegment
from tests.evals.core.reading.stage import case, messages_of, one, read

WHOLE = """conversation_id: talk
suite: demo
note: why it is there
tags: [slow]
metadata: {systemPrompt: Be kind., tags: [fast, 3], owner: ada}
depends_on: one
on_dependency_failure: run
aggregation: min
on_turn_failure: stop
window_size: 2
mode: conversation
criteria: is kind
execution: {target: t}
workspace: {}
turns:
  - input: hello
    expected_output: hi
    assertions: [is short]
  - input: [look, {type: text, value: here}]
    note: parts of one message
  - input: [{role: system, content: now}, {role: user, content: on}]
"""


def test_every_field_of_a_case_is_read() -> None:
    reading = read(one(WHOLE.replace("depends_on: one\n", "")))
    assert messages_of(reading) == ["workspace is not set up: the case runs without one"]
    assert reading.suite is not None
    (found,) = reading.suite.cases
    assert (found.group, found.tags, found.system_prompt) == ("talk", ("slow", "fast"), "Be kind.")
    assert found.metadata["suite"] == "demo"
    assert found.metadata["note"] == "why it is there"
    assert found.metadata["owner"] == "ada"
    assert (found.on_dependency_failure, found.aggregation, found.on_turn_failure) == ("run", "min", "stop")
    assert (found.window_size, found.criteria, found.execution.targets) == (2, "is kind", ("t",))
    first, second, third = found.turns
    assert first.expected[0].role == "assistant"
    assert [spec.type for spec in first.graders] == ["rubrics"]
    assert [segment.text for segment in second.messages[0].segments] == ["look", "here"]  # type: ignore[union-attr]
    assert [message.role for message in third.messages] == ["system", "user"]


def test_a_case_depends_on_others() -> None:
    reading = read("tests:\n  - {id: a, input: x, criteria: y}\n  - {id: b, input: x, criteria: y, depends_on: [a]}\n")
    assert reading.suite is not None
    assert reading.suite.cases[1].depends_on == ("a",)


@pytest.mark.parametrize(
    ("written", "text", "value"),
    [
        ("expected_output: fine", "fine", None),
        ("expected_output: {a: 1}", '{\n  "a": 1\n}', {"a": 1}),
        ("expected_output: [1, 2]", '{\n  "value": [\n    1,\n    2\n  ]\n}', [1, 2]),
        ("expected_output: 3", '{\n  "value": 3\n}', 3),
        ("expected_output: [{role: assistant, content: fine}]", "fine", None),
        ("expected_output: [{role: assistant, content: {a: 1}}]", '{\n  "a": 1\n}', {"a": 1}),
        ("expected_output: {role: assistant, content: {a: 1}}", '{\n  "a": 1\n}', {"a": 1}),
    ],
)
def test_what_is_expected_is_words_a_value_or_messages(written: str, text: str, value: object) -> None:
    found = case(f"input: x\n{written}")
    (message,) = found.expected
    assert message.role == "assistant"
    assert message.segments[0].text == text  # type: ignore[union-attr]
    assert found.expected_value == value


def test_files_go_before_the_text_of_a_short_input() -> None:
    files = {"suites/a.md": b"A", "suites/b.md": b"B"}
    (message,) = case("input: read\ninput_files: [a.md, b.md]", files).messages
    assert [type(each) for each in message.segments] == [FileSegment, FileSegment, TextSegment]


def test_files_of_a_case_take_the_place_of_the_suites() -> None:
    files = {"suites/a.md": b"A", "suites/b.md": b"B"}
    head = "input_files: [a.md]\n"
    found = read(head + one("input: read\ninput_files: [b.md]"), files).suite
    assert found is not None
    assert found.cases[0].messages[0].segments[0].path == "b.md"  # type: ignore[union-attr]
    reading = read(head + one("input: [{role: user, content: x}]"), files)
    assert [each.severity for each in reading.problems] == ["warning"]
    assert reading.suite is not None
    reading = read(one("input: [{role: user, content: x}]\ninput_files: [a.md]"), files)
    assert [each.severity for each in reading.problems] == ["error"]


def test_a_case_that_only_says_what_is_wanted_is_read_by_a_judge() -> None:
    reading = read("tests:\n  - {id: a, input: x, criteria: good}\n  - {id: b, input: x, expected_output: y}\n")
    assert reading.suite is not None
    assert [spec.type for found in reading.suite.cases for spec in found.graders] == ["llm-grader", "llm-grader"]


def test_graders_of_turns_are_enough() -> None:
    reading = read("tests:\n  - {id: a, turns: [{input: x, assertions: [good]}]}\n")
    assert reading.suite is not None
    assert reading.suite.cases[0].graders == ()


def test_what_a_turn_expects_is_enough_and_kept() -> None:
    body = "tests:\n  - id: a\n    turns: [{input: x, expected_output: {a: 1}}, {input: y, expected_output: z}]\n"
    reading = read(body)
    assert reading.suite is not None, messages_of(reading)
    (found,) = reading.suite.cases
    assert found.graders == ()
    assert [turn.expected_value for turn in found.turns] == [{"a": 1}, None]
    assert [len(turn.expected) for turn in found.turns] == [1, 1]


def test_variables_leave_the_names_of_graders_alone() -> None:
    body = "vars: {who: Ada, output: no}\ninput: 'Hello {{ who }}'\ncriteria: 'greets {{ who }}'"
    text = one(body).replace("value: x", "value: '{{ who }}', prompt: 'Is {{ output }} fine, {{ who }}?'")
    reading = read(text)
    assert reading.suite is not None
    (found,) = reading.suite.cases
    assert found.messages[0].segments[0].text == "Hello Ada"  # type: ignore[union-attr]
    assert found.criteria == "greets Ada"
    assert found.graders[0].config == {"value": "Ada", "prompt": "Is {{ output }} fine, Ada?"}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("criteria: x", "the test has no input"),
        ("input: x\nprompt: y", 'a test has no key "prompt"'),
        ("input: x\nvars: [1]", "vars must be a mapping"),
        ("input: x\nmetadata: text", "metadata must be a mapping"),
        ("input: x\nmetadata: {systemPrompt: 3}", "systemPrompt must be text"),
        ("input: x\nmode: conversation", "mode: conversation needs turns"),
        ("input: x\nmode: chat", 'mode must be "conversation"'),
        ("turns: hello", "turns must be a list"),
        ("turns: [hello]", "a turn must be a mapping"),
        ("turns: [{assertions: [x]}]", 'a turn lacks the key "input"'),
        ("turns: [{input: x, outpt: y}]", 'a turn has no key "outpt"'),
        ("input: x\nwindow_size: 0", "window_size must be a whole number"),
        ("input: x\naggregation: sum", "aggregation must be one of"),
    ],
)
def test_what_a_case_cannot_be_is_refused(body: str, words: str) -> None:
    reading = read(one(body))
    assert reading.suite is None
    assert any(words in each for each in messages_of(reading)), messages_of(reading)


def test_a_test_that_is_no_mapping_is_refused() -> None:
    assert "a test must be a mapping" in messages_of(read("tests: [3]\n"))[0]


def test_an_id_with_control_characters_or_in_letters_of_two_kinds_is_refused() -> None:
    text = 'tests:\n  - {id: "a\\u0000b", input: x, criteria: y}\n  - {id: "caf\\u00e9", input: x, criteria: y}\n'
    reading = read(text + '  - {id: "cafe\\u0301", input: x, criteria: y}\n')
    assert [str(each.place) for each in reading.problems] == ["suites/a.eval.yaml:2:10", "suites/a.eval.yaml:4:5"]
    assert "control characters" in messages_of(reading)[0]
    assert "is used twice, in two Unicode forms, first at suites/a.eval.yaml:3:5" in messages_of(reading)[1]
