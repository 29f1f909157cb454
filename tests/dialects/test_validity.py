import re

import pytest

from sightline.dialects.tool_names import NameRule
from sightline.dialects.validity import (
    is_object,
    no_messages,
    pairing_problems,
    tool_problems,
)
from sightline.model.parts import CacheBreakpoint, Part, Text, ToolCall, ToolResult
from sightline.model.request import FunctionTool, Message, OpaqueTool, Request, ToolChoice

NAME = NameRule(re.compile("[a-z]+"), 64)


def asked(*messages: Message) -> Request:
    return Request(messages=messages)


def said(*parts: Part) -> Message:
    return Message("assistant", parts, at="/a")


def call(call_id: str) -> ToolCall:
    return ToolCall(call_id, "add", "{}", at=f"/{call_id}")


def result(call_id: str) -> ToolResult:
    return ToolResult(call_id, at=f"/r-{call_id}")


USER = Message("user", (Text("hi"),))
SYSTEM = Message("system", (Text("careful"),))


@pytest.mark.parametrize("adjacent", [True, False])
def test_calls_that_are_answered_are_no_problem(adjacent: bool) -> None:
    request = asked(
        USER,
        said(Text("x"), call("c1"), call("c2")),
        SYSTEM,
        Message("tool", (result("c2"), CacheBreakpoint())),
        Message("user", (result("c1"), Text("and"))),
    )
    assert not list(pairing_problems(request, adjacent=adjacent))


@pytest.mark.parametrize("adjacent", [True, False])
def test_orphans_and_open_calls_are_named(adjacent: bool) -> None:
    request = asked(Message("tool", (result("c0"),)), said(call("c1")))
    problems = pairing_problems(request, adjacent=adjacent)
    assert [problem.pointer for problem in problems] == ["/r-c0", "/c1"]


def test_an_answer_that_comes_too_late_is_a_problem_only_where_it_must_follow() -> None:
    request = asked(said(call("c1")), USER, Message("tool", (result("c1"),)))
    assert not list(pairing_problems(request, adjacent=False))
    assert [problem.pointer for problem in pairing_problems(request, adjacent=True)] == ["/c1", "/r-c1"]


def test_calls_in_several_items_of_one_turn_may_wait_for_each_other() -> None:
    request = asked(said(call("c1")), said(call("c2")), Message("tool", (result("c1"), result("c2"))))
    assert not list(pairing_problems(request, adjacent=True))


def test_a_call_is_not_answered_behind_the_next_call_of_the_model() -> None:
    request = asked(
        said(call("c1"), call("c2")),
        Message("tool", (result("c1"),)),
        said(call("c3")),
        Message("tool", (result("c2"), result("c3"))),
    )
    assert not list(pairing_problems(request, adjacent=False))
    assert [problem.pointer for problem in pairing_problems(request, adjacent=True)] == ["/c2", "/r-c2"]


def test_two_open_calls_may_not_share_an_id() -> None:
    request = asked(said(call("c1"), call("c1")), Message("tool", (result("c1"),)))
    assert "used by two open calls" in next(pairing_problems(request, adjacent=True)).message


def test_request_with_only_a_system_message_is_a_problem() -> None:
    assert no_messages(asked(SYSTEM), "/messages")[0].pointer == "/messages"
    assert no_messages(asked(SYSTEM, USER), "/messages") == []


@pytest.mark.parametrize(("text", "expected"), [("{}", True), ("[]", False), ("{", False)])
def test_what_an_object_is(text: str, expected: bool) -> None:
    assert is_object(text) is expected


def test_tools_need_good_names_once_each_and_not_too_many() -> None:
    request = Request(
        tools=(
            FunctionTool("add", at="/0"),
            FunctionTool("add", at="/1"),
            FunctionTool("add", namespace="other", at="/2"),
            FunctionTool("Bad Name", at="/3"),
            OpaqueTool("d", {}, at="/4"),
        )
    )
    problems = tool_problems(request, NAME, 4)
    assert [problem.pointer for problem in problems] == ["/0", "/1", "/3/name", "/tools"]
    assert not list(tool_problems(Request(tools=request.tools[:1]), NAME))
    assert not list(tool_problems(Request(tools=request.tools[3:4]), None))


def test_a_choice_names_tools_that_there_are() -> None:
    tools = (FunctionTool("f"), FunctionTool("g", namespace="n"))

    def found(*names: str, offered: tuple[FunctionTool | OpaqueTool, ...] = tools) -> list[str]:
        choice = ToolChoice("required", names, at="/tool_choice")
        return [problem.message for problem in tool_problems(Request(tools=offered, tool_choice=choice), None)]

    assert found("f", "g", "n__g") == found() == []
    assert found("f", "h") == ["the tool choice names 'h', and there is no such tool"]
    assert found("h", offered=(*tools, OpaqueTool("anthropic", {"name": "h"}))) == []
    assert found("h", offered=()) == []
