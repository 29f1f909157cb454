import json

import msgspec
import pytest

from sightline.evals.core.graders.grader import read_list
from sightline.evals.core.reading.document import SuiteFindings, node_of
from sightline.evals.core.suite import Execution, FileSegment, GraderSpec, SuitePlace, TextSegment, Trials
from sightline.model.request import CustomTool, FunctionTool, OpaqueTool
from tests.evals.core.reading.stage import FILE, case, messages_of, one, problem, read, sound

TESTS = "tests: [{id: a, input: x, criteria: y}]\n"


def execution(head: str) -> Execution:
    suite = sound(head + TESTS)
    return suite.execution


def test_all_of_it_is_read() -> None:
    head = """execution:
  targets: [fast, {name: slow, use_target: slower}, {name: third}]
  workers: 4
  trials: {count: 3, strategy: pass_at_k, cost_limit_usd: 1.5}
  budget_usd: 2
  threshold: 0.7
  cache: false
  fail_on_error: true
  skip_defaults: true
"""
    assert execution(head) == Execution(
        targets=("fast", "slower", "third"),
        workers=4,
        trials=Trials(count=3, strategy="pass_at_k", cost_limit_usd=1.5),
        budget_usd=2,
        threshold=0.7,
        cache=False,
        fail_on_error=True,
        skip_defaults=True,
    )


def test_a_target_may_stand_beside_and_twice() -> None:
    assert execution("target: a\nexecution: {target: b, targets: [a, b]}\n").targets == ("a", "b")
    assert execution("target: a\n").targets == ("a",)
    assert execution("") == Execution()


def test_a_number_of_trials_is_enough() -> None:
    assert execution("execution: {trials: 5}\n").trials == Trials(count=5)
    assert execution("execution: {trials: {strategy: mean}}\n").trials == Trials()


@pytest.mark.parametrize(
    ("head", "words"),
    [
        ("execution: x\n", "execution must be a mapping"),
        ("execution: {worker: 3}\n", 'execution has no key "worker"'),
        ("execution: {workers: 51}\n", "workers must be a whole number from 1 to 50"),
        ("execution: {trials: true}\n", "trials must be a whole number from 1 to 10000 or a mapping"),
        ("execution: {trials: {count: 0}}\n", "count must be"),
        ("execution: {trials: {strategy: best}}\n", "strategy must be one of"),
        ("execution: {targets: [3]}\n", "targets[0] must be text or a mapping"),
        ("execution: {targets: [{hooks: {}}]}\n", "the target has no name"),
        ("execution: {targets: x}\n", "targets must be a list"),
    ],
)
def test_what_makes_no_sense_is_refused(head: str, words: str) -> None:
    assert any(words in each for each in messages_of(read(head + TESTS)))


def test_names_with_capitals_are_read_as_agentv_reads_them() -> None:
    head = "execution: {budgetUsd: 2, failOnError: true, trials: {count: 2, costLimitUsd: 1}}\n"
    found = execution(head)
    assert (found.budget_usd, found.fail_on_error) == (2, True)
    assert found.trials == Trials(count=2, cost_limit_usd=1)


def test_trial_strategy_is_reported_as_having_no_effect() -> None:
    reading = read("execution: {trials: {count: 2, strategy: pass_at_k}}\n" + TESTS)
    assert [each.severity for each in reading.problems] == ["warning"]
    assert "all trials are shown" in reading.problems[0].message
    assert str(reading.problems[0].place).endswith(":1:42")


def test_two_names_for_one_target_are_reported() -> None:
    head = "execution: {targets: [{name: a, use_target: t}, {name: b, use_target: t}, c]}\n"
    assert execution(head).targets == ("t", "c")
    assert "is named twice" in messages_of(read(head + TESTS))[0]


def test_target_hooks_are_reported_as_not_run() -> None:
    reading = read("execution: {targets: [{name: a, hooks: {before: x}}]}\n" + TESTS)
    assert reading.suite is not None
    assert messages_of(reading) == ["hooks of a target are not run"]


SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
WEATHER = FunctionTool(name="weather", description="Tells it.", schema=SCHEMA)


@pytest.mark.parametrize(
    "written",
    [
        {"name": "weather", "description": "Tells it.", "parameters": SCHEMA},
        {"name": "weather", "description": "Tells it.", "input_schema": SCHEMA},
        {"type": "function", "function": {"name": "weather", "description": "Tells it.", "parameters": SCHEMA}},
        msgspec.to_builtins(WEATHER),
    ],
)
def test_a_tool_is_declared_as_any_provider_writes_it(written: object) -> None:
    assert case(f"input: x\ntools: [{json.dumps(written)}]").tools == (WEATHER,)
    files = {"suites/a/tools.json": json.dumps([written], indent=2).encode()}
    assert case("input: x\ntools: a/tools.json", files).tools == (WEATHER,)


def test_tools_of_other_kinds_are_read_as_a_made_case_has_them() -> None:
    tools = (CustomTool(name="shell"), OpaqueTool(dialect="anthropic", value={"type": "web_search"}))
    files = {"tools.json": msgspec.json.encode(tools)}
    assert case("input: x\ntools: tools.json", files).tools == tools


@pytest.mark.parametrize(
    ("written", "words", "column"),
    [
        ("{name: x}", "tools must be a list", 12),
        ("[x]", "a tool must be a mapping", 13),
        ("[{description: x}]", 'a tool lacks the key "name"', 13),
        ("[{name: x, parametres: {}}]", 'no key "parametres"', 23),
        ("[{name: x, parameters: 3}]", "parameters must be a mapping", 35),
        ("[{name: x, parameters: {}, schema: {}}]", "schema is another name of parameters", 39),
        ("[{name: x}, {name: x}]", 'the tool "x" is declared twice', 24),
        ("[{type: functoin, name: x}]", "type must be one of", 20),
        ("[{type: custom}]", "it is no custom tool", 13),
        ("[{type: function, function: x}]", "a tool must be a mapping", 40),
        ("~/tools.json", "absolute", 12),
        ("nowhere.json", 'there is no file "nowhere.json"', 12),
    ],
)
def test_what_is_no_tool_is_refused_at_its_place(written: str, words: str, column: int) -> None:
    found = problem(one(f"input: x\ntools: {written}"))
    assert words in found.message
    assert (found.place.line, found.place.column) == (5, column)


def test_unreadable_file_is_reported_at_its_own_location() -> None:
    found = problem(one("input: x\ntools: t.json"), {"suites/t.json": b"[{"})
    assert found.place.file == "suites/t.json"


def test_a_file_that_is_missing_is_an_error_of_its_case() -> None:
    reading = read(one("input: x\ntools: nowhere.json"))
    assert [(each.severity, each.case) for each in reading.problems] == [("error", "one")]
    assert reading.suite is not None
    assert [each.missing for each in reading.suite.cases] == ["nowhere.json"]
    assert case("input: x\ntools: []").tools == ()


def graders(written: str) -> tuple[GraderSpec, ...]:
    suite = sound(f"tests:\n  - id: a\n    input: x\n    assertions: {written}\n")
    return suite.cases[0].graders


def test_type_specific_keys_are_kept_in_the_grader_config() -> None:
    (spec,) = graders("[{type: contains, value: x, name: n, weight: 2, min_score: 0.5, negate: true, x-note: y}]")
    assert spec == GraderSpec(
        type="contains",
        name="n",
        weight=2,
        min_score=0.5,
        negate=True,
        config={"value": "x"},
        place=SuitePlace(FILE, 4, 18),
    )


def test_bare_texts_are_the_criteria_of_one_rubric() -> None:
    rubric, other = graders("[is polite, {type: is-json}, is short]")
    assert other.name == "is-json"
    assert rubric.config == {
        "criteria": [{"id": "rubric-1", "outcome": "is polite"}, {"id": "rubric-2", "outcome": "is short"}]
    }
    assert rubric.type == "rubrics"
    assert rubric.weight == 2  # each of the three that a person sees counts alike


def test_the_rubric_of_a_turn_weighs_as_much_as_any_other_grader() -> None:
    turn = case("turns: [{input: x, assertions: [is polite, {type: is-json}, is short]}]").turns[0]
    assert [spec.weight for spec in turn.graders] == [1, 1]


@pytest.mark.parametrize(
    ("written", "floors"),
    [
        ("required: true", (True, None)),
        ("required: true, min_score: 0.6", (True, 0.6)),
        ("required: 0.3", (0.3, None)),
        ("required: 0", (0.0, None)),
        ("min_score: 0", (None, 0.0)),
        ("required: false", (None, None)),
        ("weight: 1", (None, None)),
    ],
)
def test_what_is_required_reads_the_same_at_every_level(written: str, floors: tuple[object, object]) -> None:
    (spec,) = graders(f"[{{type: is-json, {written}}}]")
    assert (spec.required, spec.min_score) == floors
    assert type(spec.required) is type(floors[0])  # 0 is not false
    (holder,) = graders(f"[{{type: composite, assertions: [{{type: is-json, {written}}}]}}]")
    (inside,) = read_list(node_of(holder.config["assertions"], holder.place, ()), "assertions", SuiteFindings())
    assert (inside.required, inside.min_score, type(inside.required)) == (*floors, type(floors[0]))


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("contains", "assertions must be a list"),
        ("[3]", "a grader must be a mapping"),
        ("['']", "the criterion is empty"),
        ("[{value: x}]", 'a grader lacks the key "type"'),
        ("[{type: is-json, weight: -1}]", "weight must be"),
        ("[{type: is-json, required: 2}]", "required must be"),
    ],
)
def test_a_grader_that_cannot_be_one_is_refused(written: str, words: str) -> None:
    reading = read(f"tests:\n  - id: a\n    input: x\n    criteria: good\n    assertions: {written}\n")
    assert reading.suite is None
    assert any(words in each for each in messages_of(reading))


def test_graders_stand_under_execution_too() -> None:
    suite = sound(
        "execution: {assertions: [{type: is-json}]}\n"
        "tests:\n  - {id: a, input: x, execution: {evaluators: [{type: contains, value: y}]}}\n"
        "  - {id: b, input: x, criteria: good, execution: {skip_defaults: true}}\n"
    )
    assert [[spec.type for spec in case.graders] for case in suite.cases] == [
        ["contains", "is-json"],
        ["llm-grader"],
    ]


def test_a_suites_graders_may_name_the_variables_of_a_case() -> None:
    suite = sound(
        "assertions: [{type: contains, value: '{{ word }}'}]\n"
        "tests:\n  - {id: a, input: x, vars: {word: one}}\n  - {id: b, input: x, vars: {word: two}}\n"
    )
    assert [case.graders[0].config["value"] for case in suite.cases] == ["one", "two"]


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


def test_graders_of_turns_are_enough() -> None:
    suite = sound("tests:\n  - {id: a, turns: [{input: x, assertions: [good]}]}\n")
    assert suite.cases[0].graders == ()


def test_what_a_turn_expects_is_enough_and_kept() -> None:
    body = "tests:\n  - id: a\n    turns: [{input: x, expected_output: {a: 1}}, {input: y, expected_output: z}]\n"
    suite = sound(body)
    (found,) = suite.cases
    assert found.graders == ()
    assert [turn.expected_value for turn in found.turns] == [{"a": 1}, None]
    assert [len(turn.expected) for turn in found.turns] == [1, 1]


def test_variables_leave_the_names_of_graders_alone() -> None:
    body = "vars: {who: Ada, output: no}\ninput: 'Hello {{ who }}'\ncriteria: 'greets {{ who }}'"
    text = one(body).replace("value: x", "value: '{{ who }}', prompt: 'Is {{ output }} fine, {{ who }}?'")
    suite = sound(text)
    (found,) = suite.cases
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


def test_id_with_control_characters_or_in_two_unicode_forms_is_refused() -> None:
    text = 'tests:\n  - {id: "a\\u0000b", input: x, criteria: y}\n  - {id: "caf\\u00e9", input: x, criteria: y}\n'
    reading = read(text + '  - {id: "cafe\\u0301", input: x, criteria: y}\n')
    assert [str(each.place) for each in reading.problems] == ["suites/a.eval.yaml:2:10", "suites/a.eval.yaml:4:5"]
    assert "control characters" in messages_of(reading)[0]
    assert "is used twice, in two Unicode forms, first at suites/a.eval.yaml:3:5" in messages_of(reading)[1]
