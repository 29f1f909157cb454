import re

import msgspec
import pytest

from sightline.dialects.tool_names import (
    NameRestorer,
    NameRule,
    as_function_arguments,
    fit_choice,
    flat_name,
    free_text,
    function_for,
    function_instead,
    with_wire_names,
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
from sightline.model.parts import Text, ToolCall, ToolResult
from sightline.model.report import Report
from sightline.model.request import CustomTool, FunctionTool, Grammar, Message, OpaqueTool, Request, ToolChoice
from tests.dialects.reports import named_losses

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


RULE = NameRule(re.compile("[a-zA-Z0-9_-]+"), 24)


@pytest.mark.parametrize("name", ["add", "a-b_C9", "x" * 24])
def test_a_name_that_the_api_takes_is_never_touched(name: str) -> None:
    assert RULE.fit(name) == name


@pytest.mark.parametrize("name", ["a.b:c", "9.1", "x" * 25, "", "überall", "\ud800"])
def test_another_name_is_fitted_the_same_way_each_time(name: str) -> None:
    fitted = RULE.fit(name)
    assert fitted == RULE.fit(name)
    assert RULE.pattern.fullmatch(fitted)
    assert len(fitted) <= 24
    assert fitted != RULE.fit(name + ".")


def test_request_uses_tool_names_the_target_accepts() -> None:
    report = Report()
    request = msgspec.structs.replace(
        REQUEST,
        tools=(*REQUEST.tools, FunctionTool("a.b", at="/tools/5")),
        tool_choice=ToolChoice("auto", ("run", "a.b", "unknown.tool")),
        messages=(
            Message("user", (Text("hi"),)),
            Message(
                "assistant", (Text("x"), ToolCall("c1", "run", "{}", namespace="shell"), ToolCall("c2", "a.b", "{}"))
            ),
            Message("tool", (ToolResult("c1"), ToolResult("c2", name="a.b"), ToolResult("c3", name="other.one"))),
        ),
    )
    told = with_wire_names(request, RULE, report, "target")
    fitted = RULE.fit("a.b")
    assert [tool.name for tool in told.tools if not isinstance(tool, OpaqueTool)] == [
        "patch",
        "add",
        "shell__run",
        "files__edit",
        fitted,
    ]
    assert not any(tool.namespace for tool in told.tools if not isinstance(tool, OpaqueTool))
    assert told.tool_choice == ToolChoice("auto", ("shell__run", fitted, RULE.fit("unknown.tool")))
    assert told.messages[0] is request.messages[0]
    assert [part.name for part in told.messages[1].parts if isinstance(part, ToolCall)] == ["shell__run", fitted]
    results = [part.name for part in told.messages[2].parts if isinstance(part, ToolResult)]
    assert results == [None, fitted, RULE.fit("other.one")]
    assert {loss.pointer: loss.severity for loss in report.losses} == {"": "identity", "/tools/5": "identity"}
    restored_name = NameRestorer(request, RULE).feed(ToolCallBegun(0, "c", fitted))
    assert restored_name == [ToolCallBegun(0, "c", "a.b")]


def test_a_target_with_namespaces_keeps_them() -> None:
    rule = NameRule(RULE.pattern, 24, has_namespaces=True)
    call = ToolCall("c1", "run", "{}", namespace="shell")
    request = msgspec.structs.replace(REQUEST, messages=(Message("assistant", (call,)),))
    told = with_wire_names(request, rule, Report(), "target")
    assert told == request


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
def test_partial_call_arguments_are_reported_before_the_end(end: StreamEvent) -> None:
    out = restored(ToolCallBegun(1, "c", "patch"), ArgumentsReceived(1, '{"input": "ha'), end)
    assert out == [ToolCallBegun(1, "c", "patch", kind="custom"), ArgumentsReceived(1, '{"input": "ha'), end]


def test_a_custom_call_of_a_target_that_knows_them_gets_its_name_back() -> None:
    request = Request(tools=(CustomTool("exec", namespace="functions"),))
    restorer = NameRestorer(request)
    begun = restorer.feed(ToolCallBegun(0, "c", "functions__exec", kind="custom"))
    assert begun == [ToolCallBegun(0, "c", "exec", kind="custom", namespace="functions")]
    rest: list[StreamEvent] = [ArgumentsReceived(0, '{"input": "as it is"}'), ToolCallCompleted(0)]
    assert [out for event in rest for out in restorer.feed(event)] == rest


SHELL = OpaqueTool(
    "openai-responses", {"type": "shell"}, functions=(FunctionTool("shell", "Runs.", {}),), kind="shell", at="/tools/0"
)


def test_a_built_in_tool_is_a_function_elsewhere_and_comes_back_as_what_it_was() -> None:
    call, result = ToolCall("c", "shell", "{}", "shell", at="/input/0"), ToolResult("c", kind="shell")
    request = Request(
        messages=(Message("assistant", (call,)), Message("tool", (result,))),
        tools=(SHELL, FunctionTool("shell")),
        tool_choice=ToolChoice("opaque", ("shell",), value={"type": "shell"}),
    )
    report = Report()
    rule = NameRule(re.compile("[a-z_]+"), 64)
    told = with_wire_names(request, rule, report, "anthropic")
    assert [tool.name for tool in told.tools if isinstance(tool, FunctionTool)] == ["shell_tool", "shell"]
    assert told.messages[0].parts == (ToolCall("c", "shell_tool", "{}", at="/input/0"),)
    assert told.messages[1].parts == (ToolResult("c"),)
    assert told.tool_choice == ToolChoice("named", ("shell_tool",))
    assert [(loss.what, loss.severity) for loss in report.losses] == [("that 'shell' is a built-in tool", "identity")]
    assert [addition.what for addition in report.additions] == ["description and schema of the built-in tool 'shell'"]
    restorer = NameRestorer(request, rule)
    assert restorer.feed(ToolCallBegun(0, "c", "shell_tool")) == [ToolCallBegun(0, "c", "shell", kind="shell")]
    assert restorer.feed(ToolCallBegun(1, "d", "shell")) == [ToolCallBegun(1, "d", "shell")]


def test_a_built_in_tool_stays_where_it_is_known() -> None:
    request = Request(tools=(SHELL,))
    assert with_wire_names(request, NameRule(re.compile(".*"), 64), Report(), "openai-responses").tools == (SHELL,)


def test_a_call_of_a_built_in_tool_that_is_not_offered_any_more_is_named_after_its_kind() -> None:
    request = Request(messages=(Message("assistant", (ToolCall("c", "shell", "{}", "shell"),)),))
    told = with_wire_names(request, NameRule(re.compile(".*"), 64), Report(), "anthropic")
    assert told.messages[0].parts == (ToolCall("c", "shell", "{}"),)


def test_unenforced_grammar_is_a_loss_and_its_description_an_addition() -> None:
    report = Report()
    tool = CustomTool("patch", "Patches.", Grammar("lark", "start: /x/"), at="/tools/3")
    assert function_instead(tool, "/tools/0", report, "gemini") == function_for(tool)
    assert named_losses(report) == [
        ("/tools/3", "that the tool takes free text", "identity"),
        ("/tools/3", "that a grammar is enforced", "option"),
    ]
    assert [(addition.pointer, addition.what) for addition in report.additions] == [
        ("/tools/0/description", "the grammar in words")
    ]
    function_instead(CustomTool("note"), "/tools/1", report, "gemini")
    assert len(report.additions) == 1


def test_a_target_that_tells_the_kinds_apart_keeps_them() -> None:
    call, result = ToolCall("c", "shell", "{}", "shell"), ToolResult("c", kind="shell")
    request = Request(messages=(Message("assistant", (call,)), Message("tool", (result,))))
    report = Report()
    told = with_wire_names(request, NameRule(re.compile(".*"), 64), report, "raw", keeps_kinds=True)
    assert told.messages[0].parts == (call,)
    assert told.messages[1].parts == (ToolResult("c", name="shell", kind="shell"),)
    assert report.losses == ()


def test_only_what_has_a_name_that_the_target_refuses_is_changed() -> None:
    fine = Message("assistant", (ToolCall("a", "known", "{}"),))
    result = Message("tool", (ToolResult("a", (Text("x"),), "known"),))
    odd = Message("tool", (ToolResult("b", (Text("y"),), "not a name"),))
    kept = with_wire_names(Request(messages=(fine, result)), RULE, Report(), "target").messages
    assert [one is other for one, other in zip(kept, (fine, result), strict=True)] == [True, True]
    changed = with_wire_names(Request(messages=(fine, result, odd)), RULE, Report(), "target").messages
    assert changed[:2] == (fine, result)
    assert changed[2] == Message("tool", (ToolResult("b", (Text("y"),), RULE.fit("not a name")),))


@pytest.mark.parametrize(
    ("choice", "known", "fitting", "lost"),
    [
        (None, ["f"], None, []),
        (ToolChoice("auto"), ["f"], ToolChoice("auto"), []),
        (ToolChoice("named", ("f",), at="/c"), ["f", "g"], ToolChoice("named", ("f",), at="/c"), []),
        (ToolChoice("opaque", value={"x": 1}, at="/c"), ["f"], None, [("/c", "tool choice", "option")]),
        (ToolChoice("auto", at="/c"), [], None, [("/c", "tool choice", "identity")]),
        (ToolChoice("none"), [], None, [("/tool_choice", "tool choice", "identity")]),
        (ToolChoice("required", at="/c"), [], None, [("/c", "tool choice", "option")]),
        (ToolChoice("named", ("f",), at="/c"), [], None, [("/c", "tool choice", "option")]),
        (ToolChoice("auto", ("f",), at="/c"), [], None, [("/c", "tool choice", "option")]),
        (
            ToolChoice("required", ("f", "g")),
            ["f"],
            ToolChoice("required", ("f",)),
            [("/tool_choice", "choice of the tool 'g'", "option")],
        ),
        (ToolChoice("named", ("g",), at="/c"), ["f"], None, [("/c", "choice of the tool 'g'", "option")]),
        (ToolChoice("auto", ("g",), at="/c"), ["f"], None, [("/c", "choice of the tool 'g'", "option")]),
    ],
)
def test_a_choice_is_kept_as_far_as_its_tools_are(
    choice: ToolChoice | None, known: list[str], fitting: ToolChoice | None, lost: list[object]
) -> None:
    report = Report()
    assert fit_choice(choice, known, report, "target", has_tools=bool(known)) == fitting
    assert named_losses(report) == lost
