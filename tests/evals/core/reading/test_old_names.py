import pytest

from tests.evals.core.reading.stage import problem, read

OLD = """evalcases:
  - id: a
    outcome: is polite
    input_messages: [{role: user, content: hi}]
    expected_messages: [{role: assistant, content: hello}]
    evaluators: [{type: is-json}]
"""


@pytest.mark.parametrize("name", ["evalcases", "eval_cases", "tests"])
def test_the_names_of_earlier_days_are_read(name: str) -> None:
    reading = read(OLD.replace("evalcases", name))
    assert reading.suite is not None
    (case,) = reading.suite.cases
    assert case.criteria == "is polite"
    assert [message.role for message in (*case.messages, *case.expected)] == ["user", "assistant"]
    assert [spec.type for spec in case.graders] == ["is-json"]
    assert not reading.problems


def test_assert_is_read_for_the_suite_and_for_a_case() -> None:
    reading = read(OLD.replace("evaluators", "assert") + "assert: [{type: contains, value: x}]\n")
    assert reading.suite is not None
    assert [spec.type for spec in reading.suite.cases[0].graders] == ["is-json", "contains"]


def test_the_old_and_the_new_name_at_once_is_an_error() -> None:
    found = problem("tests:\n  - {id: a, input: x, criteria: y, outcome: z}\n")
    assert found.message == "outcome is another name of criteria, and both are written"
    assert found.path == "tests[0].outcome"
    assert (found.place.line, found.place.column) == (2, 36)
