import pytest

from tests.evals.reading.stage import messages_of, problem, read

SUITE = """description: Greetings
providers: [openai:gpt, {id: other, label: mine}]
prompts:
  - 'Greet {{ who }}.'
  - {raw: '[{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Greet {{ who }}."}]'}
defaultTest:
  vars: {who: nobody}
  assert: [{type: not-contains, value: sorry}]
  metadata: {owner: ada}
evaluateOptions: {maxConcurrency: 80, repeat: 3, cache: true}
tests:
  - description: by name
    vars: {who: Ada}
    threshold: 0.5
    assert:
      - {type: contains-any, value: [Ada, ADA]}
      - {type: llm-rubric, value: is polite, weight: 2, metric: polite}
      - {type: latency, threshold: 900}
      - {type: cost, threshold: 0.1}
      - {type: is-json, value: {type: object}}
      - {type: is-json}
      - {type: equals, value: hi}
  - vars: {}
"""


def test_prompts_and_tests_become_cases() -> None:
    reading = read(SUITE)
    assert reading.suite is not None, messages_of(reading)
    suite = reading.suite
    assert [case.id for case in suite.cases] == [
        "by name / prompt 1",
        "by name / prompt 2",
        "test-2 / prompt 1",
        "test-2 / prompt 2",
    ]
    assert suite.execution.targets == ("openai:gpt", "mine")
    assert suite.execution.workers == 50
    assert suite.execution.trials is not None
    assert suite.execution.trials.count == 3
    assert suite.execution.cache is True
    first, second, third, _ = suite.cases
    assert first.messages[0].segments[0].text == "Greet Ada."  # type: ignore[union-attr]
    assert [message.role for message in second.messages] == ["system", "user"]
    assert third.messages[0].segments[0].text == "Greet nobody."  # type: ignore[union-attr]
    assert first.group == second.group == "by name"
    assert first.execution.threshold == 0.5
    assert first.metadata["owner"] == "ada"


def test_assertions_become_graders() -> None:
    reading = read(SUITE)
    assert reading.suite is not None
    graders = reading.suite.cases[0].graders
    assert [(spec.type, spec.config) for spec in graders] == [
        ("contains", {"value": "sorry"}),
        ("contains-any", {"value": ["Ada", "ADA"]}),
        ("rubrics", {"criteria": [{"id": "rubric-1", "outcome": "is polite"}]}),
        ("latency", {"threshold": 900}),
        ("cost", {"budget": 0.1}),
        ("is-json", {"schema": {"type": "object"}}),
        ("is-json", {}),
        ("equals", {"value": "hi"}),
    ]
    assert graders[0].negate
    assert (graders[2].name, graders[2].weight) == ("polite", 2)


TEST = "tests: [{vars: {a: 1}, assert: [{type: contains, value: x}]}]\n"


def test_one_prompt_and_one_provider_are_enough() -> None:
    reading = read("providers: one\nprompts: '[not json {{ a }}'\n" + TEST)
    assert reading.suite is not None
    assert [case.id for case in reading.suite.cases] == ["test-1"]
    assert reading.suite.execution.targets == ("one",)
    assert reading.suite.cases[0].messages[0].segments[0].text == "[not json 1"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("text", "words", "severity"),
    [
        ("prompts: [x]\nscenarios: []\n" + TEST, 'no key "scenarios"', "error"),
        ("prompts: [file://p.txt]\n" + TEST, "a prompt in a file of its own is not read", "error"),
        ("prompts: [3]\n" + TEST, "a prompt has to be text", "error"),
        ("prompts: [{label: x}]\n" + TEST, "a prompt has to be text", "error"),
        ("providers: [x]\n" + TEST, "the suite has no prompts", "error"),
        ("prompts: [x]\n", "the list of tests is empty", "error"),
        ("prompts: [x]\ntests: [file://t.csv]\n", "a test has to be a mapping", "error"),
        ("prompts: [x]\nproviders: [{config: {}}]\n" + TEST, "the provider has no id", "error"),
        ("prompts: [x]\nproviders: [{id: a, config: {t: 1}}]\n" + TEST, "config of a provider is not read", "warning"),
        ("prompts: [x]\ntests: [{vars: [1], assert: [{type: is-json}]}]\n", "vars has to be a mapping", "error"),
        ("prompts: [x]\ntests: [{vars: {a: [1]}, assert: [{type: is-json}]}]\n", "makes several tests", "error"),
        (
            "prompts: [x]\ntests: [{assert: [{type: javascript, value: y}]}]\n",
            'no counterpart to "javascript"',
            "error",
        ),
        ("prompts: [x]\ntests: [{options: {}, assert: [{type: is-json}]}]\n", 'no key "options"', "error"),
    ],
)
def test_what_has_no_counterpart_is_said(text: str, words: str, severity: str) -> None:
    found = [each for each in read(text).problems if words in each.message]
    assert found, messages_of(read(text))
    assert found[0].severity == severity


def test_an_assertion_that_is_nearly_one_suggests_it() -> None:
    reading = read("prompts: [x]\ntests: [{assert: [{type: contians, value: y}]}]\n")
    assert 'Did you mean "contains"?' in [each.suggestion for each in reading.problems]


def test_a_mistake_stands_where_it_was_written() -> None:
    found = problem("prompts: [x]\ntests:\n  - {asert: [], assert: [{type: is-json}]}\n")
    assert (found.place.line, found.place.column) == (3, 6)


def test_options_may_say_little() -> None:
    reading = read("prompts: [x]\nevaluateOptions: {}\n" + TEST)
    assert reading.suite is not None
    assert reading.suite.execution.workers is None
