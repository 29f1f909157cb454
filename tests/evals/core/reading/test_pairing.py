import pytest

from sightline.evals.core.reading.messages import find_call
from sightline.evals.core.suite import CallSegment, CaseMessage
from tests.evals.core.reading.stage import one, read, told

GO = "  - {role: user, content: go}\n"
CALLS = "  - {role: assistant, tool_calls: [{name: a, id: c1}, {name: b}]}\n"


@pytest.mark.parametrize(
    "rest",
    [
        "  - {role: tool, tool_call_id: c1, content: x}\n  - {role: tool, content: y}\n",
        "  - {role: tool, name: b, content: x}\n  - {role: tool, content: y}\n  - {role: user, content: on}\n",
        "  - {role: tool, content: x}\n  - {role: system, content: note}\n  - {role: tool, content: y}\n",
    ],
)
def test_calls_that_are_answered_are_fine(rest: str) -> None:
    assert not read(one("input:\n" + GO + CALLS + rest)).problems


@pytest.mark.parametrize(
    ("rest", "words"),
    [
        ("", 'the call of "b" has no result'),
        ("  - {role: user, content: on}\n", 'the call of "a" has no result'),
        ("  - {role: tool, tool_call_id: c2, content: x}\n", 'no call before it has the id "c2"'),
    ],
)
def test_calls_without_results_and_results_without_calls_are_errors(rest: str, words: str) -> None:
    reading = read(one("input:\n" + GO + CALLS + rest))
    assert reading.suite is None
    assert any(words in told(each) for each in reading.problems)


def test_an_id_that_nobody_has_says_which_calls_wait() -> None:
    by_id = "  - {role: tool, tool_call_id: c9, content: x}\n"
    hints = [each.suggestion for each in read(one("input:\n" + GO + CALLS + by_id)).problems]
    assert "Calls that wait: c1." in hints
    hints = [each.suggestion for each in read(one("input:\n" + GO + by_id)).problems]
    assert hints == ["Write the call into tool_calls of the message before."]


def test_a_result_that_nobody_asked_for_is_told_of() -> None:
    reading = read(one("input:\n" + GO + "  - {role: tool, content: sunny}\n"))
    assert reading.suite is not None
    assert [each.severity for each in reading.problems] == ["warning"]


def test_results_in_a_turn_answer_calls_before_the_turns() -> None:
    turns = "turns:\n  - input: [{role: tool, content: x}, {role: tool, content: y}]\n"
    assert not read(one("input:\n" + GO + CALLS + turns)).problems


def test_a_result_answers_by_id_then_by_name_then_in_order() -> None:
    first, second = CallSegment("a", id="1"), CallSegment("b", id="2")
    assert find_call(CaseMessage(role="tool", call_id="2"), [first, second]) is second
    assert find_call(CaseMessage(role="tool", call_id="3"), [first, second]) is None
    assert find_call(CaseMessage(role="tool", name="b"), [first, second]) is second
    assert find_call(CaseMessage(role="tool", name="z"), [first, second]) is first
    assert find_call(CaseMessage(role="tool"), []) is None
