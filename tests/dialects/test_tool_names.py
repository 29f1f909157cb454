import pytest

from sightline.dialects.tool_names import (
    NameRestorer,
    as_function_arguments,
    flat_name,
    flat_names,
    free_text,
    function_for,
)
from sightline.errors import Code, Fault
from sightline.model.events import (
    ArgumentsReceived,
    Failed,
    Finished,
    StreamEvent,
    TextReceived,
    ToolCallBegun,
    ToolCallCompleted,
)
from sightline.model.parts import ToolCall
from sightline.model.request import Request
from sightline.model.tools import CustomTool, FunctionTool, Grammar, OpaqueTool

REQUEST = Request(
    tools=(
        CustomTool("patch", grammar=Grammar("lark", "start: /x/")),
        FunctionTool("add"),
        FunctionTool("run", namespace="shell"),
        CustomTool("edit", namespace="files"),
        OpaqueTool("openai-responses", {"type": "web_search"}),
    )
)


def restored(*events: StreamEvent) -> list[StreamEvent]:
    restorer = NameRestorer(REQUEST)
    return [out for event in events for out in restorer.feed(event)]


def test_a_custom_tool_becomes_a_function_that_tells_its_grammar() -> None:
    function = function_for(CustomTool("patch", "Patches.", Grammar("lark", "start: /x/")))
    assert function.description == "Patches.\n\nThe input must follow this lark grammar:\nstart: /x/"
    assert function.schema == {
        "type": "object",
        "properties": {"input": {"type": "string"}},
        "required": ["input"],
        "additionalProperties": False,
    }
    assert function_for(CustomTool("note")).description is None


def test_namespaces_become_part_of_the_name() -> None:
    assert flat_name("run", "shell") == "shell__run"
    assert flat_name("run", None) == "run"


def test_a_choice_finds_its_tool_under_the_flat_name() -> None:
    assert flat_names(REQUEST) == {"patch": "patch", "add": "add", "run": "shell__run", "edit": "files__edit"}


def test_free_text_goes_through_a_function_and_back() -> None:
    call = ToolCall("c", "patch", 'say "hi"\n', "custom")
    assert free_text(as_function_arguments(call)) == 'say "hi"\n'
    assert as_function_arguments(ToolCall("c", "add", '{"a": 1}')) == '{"a": 1}'


@pytest.mark.parametrize("arguments", ["not json", '{"other": "x"}', '{"input": 5}', '{"input": "x", "y": 1}', "[]"])
def test_arguments_of_another_shape_are_given_as_they_are(arguments: str) -> None:
    assert free_text(arguments) == arguments


def test_a_call_of_a_custom_tool_comes_back_as_one() -> None:
    assert restored(
        ToolCallBegun(1, "c", "patch"),
        ArgumentsReceived(1, '{"input":'),
        ArgumentsReceived(1, '"*** Begin"}'),
        ToolCallCompleted(1),
    ) == [ToolCallBegun(1, "c", "patch", kind="custom"), ArgumentsReceived(1, "*** Begin"), ToolCallCompleted(1)]


def test_a_namespaced_call_gets_its_namespace_back() -> None:
    assert restored(ToolCallBegun(1, "c", "shell__run"), ArgumentsReceived(1, "{}"), ToolCallCompleted(1)) == [
        ToolCallBegun(1, "c", "run", namespace="shell"),
        ArgumentsReceived(1, "{}"),
        ToolCallCompleted(1),
    ]
    assert restored(ToolCallBegun(1, "c", "files__edit")) == [
        ToolCallBegun(1, "c", "edit", kind="custom", namespace="files")
    ]


def test_other_events_pass() -> None:
    events: list[StreamEvent] = [
        ToolCallBegun(1, "c", "add"),
        ArgumentsReceived(1, "{}"),
        ToolCallCompleted(1),
        TextReceived(0, "x"),
        Finished("tool_calls"),
    ]
    assert restored(*events) == events


@pytest.mark.parametrize("end", [Finished("length"), Failed(Fault(Code.NETWORK, "gone"))])
def test_what_had_arrived_of_a_call_is_told_before_the_end(end: StreamEvent) -> None:
    out = restored(ToolCallBegun(1, "c", "patch"), ArgumentsReceived(1, '{"input": "ha'), end)
    assert out == [ToolCallBegun(1, "c", "patch", kind="custom"), ArgumentsReceived(1, '{"input": "ha'), end]
