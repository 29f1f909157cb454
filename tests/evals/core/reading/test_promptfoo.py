import pytest

from sightline.evals.core.target import SuiteTarget
from tests.evals.core.reading.stage import messages_of, problem, read, sound

TEST = "tests: [{vars: {a: 1}, assert: [{type: contains, value: x}]}]\n"


def said(prompts: str, files: dict[str, bytes] | None = None) -> list[list[tuple[str, str]]]:
    suite = sound(f"prompts: {prompts}\n{TEST}", files)
    return [
        [(message.role, message.segments[0].text) for message in case.messages]  # type: ignore[union-attr]
        for case in suite.cases
    ]


def user(text: str) -> list[tuple[str, str]]:
    return [("user", text)]


FILES = {
    "suites/p/one.txt": b"Say {{ a }}.\r\n---\r\n  \n---\nTwice {{ a }}.\n",
    "suites/p/two.txt": b"Two",
    "suites/note.md": b"# {{ a }}\n\n---\n\nText",
    "suites/chat.json": b'[{"role": "system", "content": "Be {{ a }}."}, {"role": "user", "content": "hi"}]',
    "suites/object.json": b'{"ask": "{{ a }}"}',
    "suites/many.jsonl": b'[{"role": "user", "content": "one"}]\n\n["two"]\n',
    "suites/chat.yaml": b"- {role: system, content: s}\n- {role: user, content: '{{ a }}'}\n",
    "suites/list.yaml": b"- file://p/two.txt\n- {raw: Three, label: t}\n- {id: 'file://note.md'}\n",
    "suites/empty.txt": b"---\n",
    "suites/empty.md": b" ",
    "suites/bad.yaml": b"[",
    "suites/latin.txt": b"\xff\xfe\xff",
    "suites/data.bin": b"x",
}


def test_prompts_are_in_files_of_every_kind() -> None:
    assert said("[file://p/one.txt]", FILES) == [user("Say 1."), user("Twice 1.")]
    assert said("p/two.txt", FILES) == [user("Two")]
    assert said("[file://p/*.txt]", FILES) == [user("Say 1."), user("Twice 1."), user("Two")]
    assert said("[file://note.md]", FILES) == [user("# 1\n\n---\n\nText")]
    assert said("[file://chat.json]", FILES) == [[("system", "Be 1."), ("user", "hi")]]
    assert said("file://chat.json", FILES) == [[("system", "Be 1."), ("user", "hi")]]
    assert said("[file://object.json]", FILES) == [user('{"ask": "1"}')]
    assert said("[file://many.jsonl]", FILES) == [user("one"), user('["two"]')]
    assert said("[file://chat.yaml]", FILES) == [[("system", "s"), ("user", "1")]]
    assert said("file://chat.yaml", FILES) == [[("system", "s"), ("user", "1")]]
    assert said("file://list.yaml", FILES) == [user("Two"), user("Three"), user("# 1\n\n---\n\nText")]


def test_a_value_in_a_file_that_is_no_text_is_reported() -> None:
    text = "prompts: [x]\ntests: [{vars: {a: 'file://latin.txt'}, assert: [{type: is-json}]}]\n"
    assert problem(text, FILES).message == "the file is not UTF-8: byte 0 is 0xff"


def test_tests_may_have_the_same_description() -> None:
    suite = sound(
        "prompts: ['Say {{a}}']\n"
        "tests:\n"
        "  - {description: short, vars: {a: 1}, assert: [{type: contains, value: x}]}\n"
        "  - {description: short, vars: {a: [2, 3]}, assert: [{type: contains, value: x}]}\n"
        "  - {vars: {a: 4}, assert: [{type: contains, value: x}]}\n"
        "  - {description: test-3, vars: {a: 5}, assert: [{type: contains, value: x}]}\n"
    )
    assert [case.id for case in suite.cases] == ["short", "short (2) #1", "short (2) #2", "test-3", "test-3 (2)"]
    assert [case.group for case in suite.cases] == ["short", "short (2)", "short (2)", "test-3", "test-3 (2)"]


def test_a_sentence_that_ends_in_a_file_is_a_sentence() -> None:
    assert said("[Summarise notes.txt]") == [user("Summarise notes.txt")]
    assert said("['[1, 2']") == [user("[1, 2")]


@pytest.mark.parametrize(
    ("prompts", "words"),
    [
        ("[3]", "a prompt has to be text"),
        ("[{label: x}]", "a prompt has to be text"),
        ("[{raw: x, function: y}]", 'a prompt has no key "function"'),
        ("3", "prompts must be a list"),
        ("[file://gone.txt]", 'there is no file "suites/gone.txt"'),
        ("file://gone.yaml", 'there is no file "suites/gone.yaml"'),
        ("file://bad.yaml", "bad.yaml"),
        ("[file://bad.yaml]", "bad.yaml"),
        ("[file://none/*.txt]", 'no file matches "none/*.txt"'),
        ("['file:///etc/passwd']", "is absolute"),
        ("[file://empty.txt]", "there is no prompt in the file"),
        ("[file://empty.md]", "there is no prompt in the file"),
        ("[file://latin.txt]", "latin.txt"),
        ("[file://data.bin]", "is no file of prompts"),
        ("[file://prompt.py]", 'the prompt "file://prompt.py" would have to be run'),
        ("['file://prompt.js:make']", "would have to be run"),
        ("['exec:make.sh']", "would have to be run"),
        ("['{{ a | upper }}']", "is not computed here"),
        ("['{% if a %}x{% endif %}']", "is not computed here"),
        ("['{{ env.NAME }}']", "{{ env.NAME }} is not filled in here"),
    ],
)
def test_invalid_prompts_are_reported(prompts: str, words: str) -> None:
    reading = read(f"prompts: {prompts}\n{TEST}", FILES)
    assert reading.suite is None
    found = [f"{each.place.file} {each.message}" for each in reading.problems]
    assert any(words in each for each in found), found


def test_a_suite_without_prompts_is_none() -> None:
    assert "the suite has no prompts" in messages_of(read("providers: [x]\n" + TEST))


def test_a_value_that_is_in_several_files_is_a_list() -> None:
    text = "prompts: ['{{ a }}']\ntests: [{vars: {a: 'file://p/*.txt'}, assert: [{type: is-json}]}]\n"
    suite = sound(text, {"suites/p/x.txt": b"X", "suites/p/y.txt": b"Y"})
    assert [case.messages[0].segments[0].text for case in suite.cases] == ["X", "Y"]  # type: ignore[union-attr]
    assert 'there is no file "suites/gone.txt"' in messages_of(read(text.replace("p/*.txt", "gone.txt")))


SUITE = """description: Greetings
tags: {team: blue}
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
    suite = sound(SUITE)
    suite = suite
    assert [case.id for case in suite.cases] == [
        "by name / prompt 1",
        "by name / prompt 2",
        "test-2 / prompt 1",
        "test-2 / prompt 2",
    ]
    assert suite.execution.targets == ("openai/gpt", "mine")
    assert suite.targets == (SuiteTarget(name="mine", model="other"),)
    assert suite.tags == ("team:blue",)
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
    suite = sound(SUITE)
    graders = suite.cases[0].graders
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


MANY = list(range(400))
PROMPTFOO_TEST = "tests: [{vars: {a: 1}, assert: [{type: contains, value: x}]}]\n"


def test_one_prompt_and_one_provider_are_enough() -> None:
    suite = sound("providers: one\nprompts: '[not json {{ a }}'\n" + PROMPTFOO_TEST)
    assert [case.id for case in suite.cases] == ["test-1"]
    assert suite.execution.targets == ("one",)
    assert suite.cases[0].messages[0].segments[0].text == "[not json 1"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("text", "words", "severity"),
    [
        ("prompts: [x]\nscenarios: []\n" + PROMPTFOO_TEST, 'no key "scenarios"', "error"),
        (
            "prompts: [x]\noutputPath: x.html\n" + PROMPTFOO_TEST,
            "outputPath of a promptfoo suite is not used",
            "warning",
        ),
        (
            "prompts: [x]\nevaluateOptions: {delay: 3}\n" + PROMPTFOO_TEST,
            "delay of evaluateOptions is not used",
            "warning",
        ),
        ("prompts: [x]\nevaluateOptions: 3\n" + PROMPTFOO_TEST, "evaluateOptions must be a mapping", "error"),
        ("prompts: [x]\n", "the list of tests is empty", "error"),
        ("prompts: [x]\ntests: 3\n", "tests must be a list", "error"),
        ("prompts: [x]\ntests: [file://t.csv]\n", "a test must be a mapping", "error"),
        ("prompts: [x]\ntests: file://t.csv\n", "a test must be a mapping", "error"),
        ("prompts: [x]\ndefaultTest: 3\n" + PROMPTFOO_TEST, "a test must be a mapping", "error"),
        ("prompts: [x]\ntests: [{vars: [1], assert: [{type: is-json}]}]\n", "vars must be a mapping", "error"),
        (
            "prompts: [x]\ntests: [{assert: [{type: javascript, value: y}]}]\n",
            'no counterpart to "javascript"',
            "error",
        ),
        ("prompts: [x]\ntests: [{assert: [is polite]}]\n", "an assertion must be a mapping", "error"),
        ("prompts: [x]\ntests: [{assert: [{type: llm-rubric}]}]\n", "the value of llm-rubric must be text", "error"),
        (
            "prompts: [x]\ntests: [{assert: [{type: llm-rubric, value: x, threshold: 0.5}]}]\n",
            "threshold of llm-rubric is not used",
            "warning",
        ),
        (
            "prompts: [x]\ntests: [{assert: [{type: contains, value: x, threshold: 0.5}]}]\n",
            "threshold of contains is not used",
            "warning",
        ),
        (
            "prompts: [x]\ntests: [{assert: [{type: contains, value: x, transform: y}]}]\n",
            'an assertion has no key "transform"',
            "error",
        ),
        (
            "prompts: [x]\ntests: [{assert: [{type: contains, value: 'file://a.py'}]}]\n",
            "would have to be run",
            "error",
        ),
        (
            "prompts: [x]\ntests: [{options: {transform: y}, assert: [{type: is-json}]}]\n",
            'no counterpart to the option "transform"',
            "error",
        ),
        ("prompts: [x]\ntests: [{options: 3, assert: [{type: is-json}]}]\n", "options must be a mapping", "error"),
        (
            'prompts: [\'[{"role": "user", "content": "x"}]\']\n'
            "tests: [{options: {prefix: a}, assert: [{type: is-json}]}]\n",
            "prefix and suffix go with a prompt that is text",
            "error",
        ),
        (
            "prompts: [x]\ntests: [{options: {prefix: 3}, assert: [{type: is-json}]}]\n",
            "prefix and suffix go with a prompt that is text",
            "error",
        ),
        (
            f"prompts: [x]\ntests: [{{vars: {{a: {MANY}, b: {MANY}}}, assert: [{{type: is-json}}]}}]\n",
            "the lists of values make 160000 tests",
            "error",
        ),
    ],
)
def test_unsupported_settings_are_reported(text: str, words: str, severity: str) -> None:
    found = [each for each in read(text).problems if words in each.message]
    assert found, messages_of(read(text))
    assert found[0].severity == severity


def test_an_assertion_that_is_nearly_one_suggests_it() -> None:
    reading = read("prompts: [x]\ntests: [{assert: [{type: contians, value: y}]}]\n")
    assert 'Did you mean "contains"?' in [each.suggestion for each in reading.problems]


def test_problem_is_located_where_it_was_written() -> None:
    found = problem("prompts: [x]\ntests:\n  - {asert: [], assert: [{type: is-json}]}\n")
    assert (found.place.line, found.place.column) == (3, 6)


def test_options_may_say_little() -> None:
    suite = sound("prompts: [x]\nevaluateOptions: {}\n" + PROMPTFOO_TEST)
    assert suite.execution.workers is None


def graders(written: str, more: str = "") -> list[dict[str, object]]:
    suite = sound(f"prompts: [x]\ntests: [{{assert: [{written}]{more}}}]\n")
    (case,) = suite.cases
    assert case.execution.threshold == (0.5 if more else 0)
    return [
        {"type": each.type, "required": each.required, "min": each.min_score, **each.config} for each in case.graders
    ]


def test_without_a_threshold_every_assertion_has_to_pass_for_itself() -> None:
    plain = "{type: contains, value: y}"
    assert graders(plain) == [{"type": "contains", "required": True, "min": 1, "value": "y"}]
    assert graders("{type: contains, value: y, weight: 0}")[0]["required"] is None
    assert graders(plain, ", threshold: 0.5") == [{"type": "contains", "required": None, "min": None, "value": "y"}]


def test_a_set_is_a_composite() -> None:
    whole = "{type: assert-set, assert: [{type: is-json}]}"
    member = {"type": "is-json", "required": True, "min_score": 1}
    assert graders(whole) == [{"type": "composite", "required": True, "min": 1, "assertions": [member]}]
    partly = "{type: assert-set, threshold: 0.4, assert: [{type: is-json}]}"
    assert graders(partly) == [{"type": "composite", "required": True, "min": 0.4, "assertions": [{"type": "is-json"}]}]


def test_judge_is_set_for_all_tests_or_by_an_assertion() -> None:
    text = (
        "prompts: [x]\ndefaultTest: {options: {provider: 'openai:gpt-x'}}\ntests: [{assert: "
        "[{type: llm-rubric, value: a}, {type: g-eval, value: b, provider: {id: 'openai:gpt-y', label: y}}]}]\n"
    )
    suite = sound(text)
    assert [each.config["target"] for each in suite.cases[0].graders] == ["openai/gpt-x", "y"]
    assert [each.name for each in suite.targets] == ["y"]


def values(text: str, files: dict[str, bytes] | None = None) -> list[tuple[str, str]]:
    suite = sound(text, files)
    return [(case.id, case.messages[0].segments[0].text) for case in suite.cases]  # type: ignore[union-attr]


def test_lists_of_values_make_a_test_for_every_combination() -> None:
    text = (
        "prompts: ['{{ a }}-{{ b }}-{{ c }}']\ndefaultTest: {vars: {a: [1, 2]}}\n"
        "tests: [{description: t, vars: {b: [x, y], c: z}, assert: [{type: is-json}]}]\n"
    )
    assert values(text) == [("t #1", "1-x-z"), ("t #2", "1-y-z"), ("t #3", "2-x-z"), ("t #4", "2-y-z")]
    kept = text.replace("vars: {b", "options: {disableVarExpansion: true}, vars: {b")
    assert values(kept) == [("t", '[1,2]-["x","y"]-z')]


def test_values_and_tests_may_be_in_files() -> None:
    files = {
        "suites/a.txt": b"Ada\r\n",
        "suites/b.txt": b"Bob",
        "suites/tests.yaml": b"- {description: one, vars: {who: 'file://a.txt'}}\n"
        b"- {vars: {who: ['file://b.txt', me]}}\n",
        "suites/default.yaml": b"assert: [{type: equals, value: 'file://b.txt'}]\n",
    }
    text = "prompts: ['{{ who }}']\ntests: file://tests.yaml\ndefaultTest: file://default.yaml\n"
    assert values(text, files) == [("one", "Ada\n"), ("test-2 #1", "Bob"), ("test-2 #2", "me")]
    suite = sound(text, files)
    assert suite.cases[0].graders[0].config == {"value": "Bob"}


def test_words_around_prompts_and_metadata_are_merged() -> None:
    text = (
        "prompts: [x]\ndefaultTest: {options: {prefix: '<', suffix: '>'}, metadata: {a: 1}}\n"
        "tests: [{options: {suffix: '!'}, metadata: {b: 2}, assert: [{type: is-json}]}]\n"
    )
    assert values(text) == [("test-1", "<x!")]
    suite = sound(text)
    assert suite.cases[0].metadata == {"a": 1, "b": 2}


def test_tags_may_be_words_and_values_numbers() -> None:
    suite = sound("tags: [a, b]\nprompts: ['{{ n }}']\ntests: [{vars: {n: 3}, assert: [{type: is-json}]}]\n")
    assert suite.tags == ("a", "b")
    assert suite.cases[0].messages[0].segments[0].text == "3"  # type: ignore[union-attr]
