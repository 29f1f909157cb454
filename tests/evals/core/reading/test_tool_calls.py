import pytest

from sightline.evals.core.suite import CallSegment, CaseMessage
from tests.evals.core.reading.stage import case, one, read, told


def conversation(calls: str, *results: str) -> tuple[CaseMessage, ...]:
    lines = ["input:", "  - {role: user, content: go}", f"  - {{role: assistant, tool_calls: {calls}}}"]
    lines += [f"  - {{role: tool, content: {each}}}" for each in results]
    return case("\n".join(lines)).messages


@pytest.mark.parametrize(
    "written",
    [
        "{name: look, arguments: {at: 1}, id: c1}",
        "{tool: look, input: {at: 1}, id: c1}",
        "{name: look, args: {at: 1}, id: c1}",
        "{id: c1, type: function, function: {name: look, arguments: {at: 1}}}",
    ],
)
def test_a_call_is_read_in_each_of_its_spellings(written: str) -> None:
    (call,) = conversation(f"[{written}]", "seen")[1].segments
    assert isinstance(call, CallSegment)
    assert (call.name, call.arguments, call.id) == ("look", {"at": 1}, "c1")


def test_arguments_may_be_the_models_own_text_or_none() -> None:
    first, second = conversation("[{name: a, arguments: '{\"x\":  1}'}, {name: b}]", "one", "two")[1].segments
    assert isinstance(first, CallSegment)
    assert isinstance(second, CallSegment)
    assert (first.arguments, second.arguments) == ('{"x":  1}', {})


def test_an_output_beside_its_call_becomes_the_result_that_follows() -> None:
    messages = conversation("[{tool: a, id: c1, output: sunny}, {tool: b, output: {t: 3}}]")
    assert [(each.role, each.name, each.call_id) for each in messages[2:]] == [("tool", "a", "c1"), ("tool", "b", "")]
    assert [each.segments[0].text for each in messages[2:]] == ["sunny", '{"t":3}']  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("calls", "words"),
    [
        ("x", "tool_calls must be a list"),
        ("[x]", "a call must be a mapping"),
        ("[{arguments: {}}]", "names no tool"),
        ("[{name: a, function: x}]", "function must be a mapping"),
        ("[{function: {nme: a}}]", 'function has no key "nme"'),
        ("[{nam: a, name: a}]", 'a call has no key "nam"'),
        ("[{type: custom, name: a}]", 'type must be one of "function", "tool_call"'),
        ("[{name: a, arguments: {}, input: {x: 1}}]", "input is another name of arguments"),
        ("[{name: a, arguments: [1]}]", "arguments must be a mapping or text"),
    ],
)
def test_a_call_that_cannot_be_made_is_refused(calls: str, words: str) -> None:
    body = f"input:\n  - {{role: user, content: go}}\n  - {{role: assistant, content: x, tool_calls: {calls}}}"
    found = [each for each in read(one(body)).problems if words in each.message]
    assert found, [told(each) for each in read(one(body)).problems]
    assert found[0].severity == "error"


def test_what_no_provider_takes_of_a_call_is_told() -> None:
    body = (
        "input:\n  - {role: user, content: go}\n  - role: assistant\n    tool_calls: [{name: a, status: ok, output: x}]"
    )
    (found,) = read(one(body)).problems
    assert found.severity == "warning"
    assert "status of a call is not sent" in found.message
