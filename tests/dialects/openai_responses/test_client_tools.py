"""Built-in tools that the client runs: calls like any other, in the shape that their own API gives them."""

import json
from typing import Any

import msgspec
import pytest

from sightline.dialects.dialect import Target
from sightline.dialects.openai_responses.client_tools import (
    complete_call,
    is_client_call,
    read_call,
    read_output,
    read_tool,
    write_call,
    write_output,
)
from sightline.dialects.openai_responses.names import NAME
from sightline.dialects.openai_responses.reply_read import read_reply
from sightline.dialects.openai_responses.request import write_request
from sightline.model.events import ToolCallBegun
from sightline.model.parts import FileId, Image, Link, PlainText, Text, ToolCall, ToolResult
from sightline.model.report import Report
from sightline.model.request import Message, Request
from tests.dialects.openai_responses.cases import read, write
from tests.dialects.reports import added_at, named_losses

ACTIONS: list[dict[str, Any]] = [
    {"type": "local_shell_call", "action": {"type": "exec", "command": ["ls"], "env": {}}},
    {"type": "shell_call", "action": {"commands": ["ls"]}, "environment": {"type": "local"}},
    {"type": "shell_call", "action": {"commands": ["ls"]}, "environment": None},
    {"type": "apply_patch_call", "operation": {"type": "delete_file", "path": "a"}},
    {"type": "computer_call", "action": {"type": "screenshot"}, "pending_safety_checks": []},
    {"type": "computer_call", "actions": [{"type": "wait"}], "action": None},
    {"type": "tool_search_call", "execution": "client", "arguments": {"goal": "x"}},
]


@pytest.mark.parametrize("item", ACTIONS, ids=lambda item: item["type"])
def test_a_call_is_read_and_written_back_as_the_same_item(item: dict[str, Any]) -> None:
    item = {**item, "id": "i_1", "call_id": "c_1", "status": "completed"}
    call = read_call(item, "/input/0")
    assert call is not None
    assert (call.id, call.item, call.name) == ("c_1", "i_1", call.kind)
    assert isinstance(json.loads(call.arguments), dict)
    body = {"model": "m", "input": [item]}
    assert write(read(body)) == body


@pytest.mark.parametrize(
    "item",
    [
        {"type": "shell_call", "call_id": "c", "action": {}, "environment": {"type": "container_reference"}},
        {"type": "tool_search_call", "call_id": "c", "execution": "server", "arguments": {}},
        {"type": "shell_call", "call_id": None, "action": {}},
        {"type": "shell_call", "call_id": "c", "action": "ls"},
        {"type": "computer_call", "call_id": "c", "actions": {}},
        {"type": "shell_call", "call_id": "c", "id": 7, "action": {}},
    ],
)
def test_server_run_or_malformed_call_items_are_not_calls(item: dict[str, Any]) -> None:
    assert read_call(item, "") is None
    body = {"model": "m", "input": [item]}
    assert write(read(body)) == body


def test_the_result_of_a_call_that_the_server_ran_is_its_own_affair_too() -> None:
    call = {"type": "shell_call", "call_id": "c", "action": {}, "environment": {"type": "container_reference"}}
    result = {"type": "shell_call_output", "call_id": "c", "output": []}
    search = {"type": "tool_search_output", "call_id": None, "execution": "server", "tools": []}
    body = {"model": "m", "input": [call, result, search]}
    request = read(body)
    assert [type(message.parts[0]).__name__ for message in request.messages] == ["Opaque"] * 3
    assert write(request) == body
    assert not is_client_call({"type": "message"})


RESULTS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"type": "local_shell_call_output", "output": "ok"}, {"parts": (Text("ok", at="/o/output"),), "bare": True}),
    ({"type": "shell_call_output", "output": [{"stdout": "a"}]}, {"structured": {"output": [{"stdout": "a"}]}}),
    (
        {"type": "apply_patch_call_output", "status": "failed", "output": "no"},
        {"structured": {"status": "failed", "output": "no"}},
    ),
    ({"type": "apply_patch_call_output", "status": "completed"}, {"structured": {"status": "completed"}}),
    (
        {"type": "computer_call_output", "output": {"type": "computer_screenshot", "image_url": "https://x/y.png"}},
        {"parts": (Image(Link("https://x/y.png"), at="/o/output"),)},
    ),
    (
        {"type": "computer_call_output", "output": {"type": "computer_screenshot", "file_id": "f", "detail": "low"}},
        {"parts": (Image(FileId("f"), at="/o/output", extras={"detail": "low"}),)},
    ),
    (
        {"type": "computer_call_output", "output": {"type": "computer_screenshot"}},
        {"structured": {"output": {"type": "computer_screenshot"}}},
    ),
    ({"type": "tool_search_output", "execution": "client", "tools": []}, {"structured": {"tools": []}}),
    ({"type": "shell_call_output"}, {"structured": {}}),
]


@pytest.mark.parametrize(("item", "told"), RESULTS, ids=lambda each: str(each.get("type", "")))
def test_a_result_is_read_and_written_back_as_the_same_item(item: dict[str, Any], told: dict[str, Any]) -> None:
    item = {**item, "call_id": "c", "id": "o_1"}
    result = read_output(item, "/o")
    assert result is not None
    assert (result.id, result.item) == ("c", "o_1")
    assert {key: getattr(result, key) for key in told} == told
    body = {"model": "m", "input": [item]}
    assert write(read(body)) == body


@pytest.mark.parametrize("named", ["call_1", "lsh_1"])
def test_a_local_shell_may_name_its_call_by_id(named: str) -> None:
    """The schema of the API has `id` there, and does not say whether of the call or of its item."""
    call = {"type": "local_shell_call", "id": "lsh_1", "call_id": "call_1", "action": {}}
    result = {"type": "local_shell_call_output", "id": named, "output": "x"}
    body = {"model": "m", "input": [call, result]}
    request = read(body)
    (answer,) = request.messages[1].parts
    assert isinstance(answer, ToolResult)
    assert answer.id == "call_1"
    assert write(request) == body


@pytest.mark.parametrize(
    "item",
    [
        {"type": "shell_call_output", "output": []},
        {"type": "shell_call_output", "call_id": "c", "id": 7, "output": []},
        {"type": "local_shell_call_output", "output": ""},
    ],
)
def test_a_result_that_names_no_call_stays_whole(item: dict[str, Any]) -> None:
    assert read_output(item, "") is None
    body = {"model": "m", "input": [item]}
    assert write(read(body)) == body


def test_tools_that_a_search_found_are_tools_of_the_request() -> None:
    found = {"type": "function", "name": "deploy", "parameters": None}
    item = {"type": "tool_search_output", "execution": "client", "call_id": "c", "tools": [found]}
    body = {"model": "m", "input": [item]}
    request = read(body)
    assert [(tool.at, getattr(tool, "name", "")) for tool in request.tools] == [("/input/0/tools/0", "deploy")]
    assert write(request) == body


@pytest.mark.parametrize("arguments", ["", "[]", "{"])
def test_arguments_that_are_no_action_make_no_item(arguments: str) -> None:
    assert write_call("shell", arguments, {}) is None


def test_a_call_of_another_model_gets_what_clients_rely_on() -> None:
    report = Report()
    item = write_call("local_shell", '{"command":["ls"]}', {"call_id": "c"})
    assert item is not None
    assert complete_call(item, "/output/0", report)["action"] == {"command": ["ls"], "type": "exec", "env": {}}
    assert added_at(report) == [
        "/output/0/id",
        "/output/0/action/type",
        "/output/0/action/env",
        "/output/0/status",
    ]
    clicked = write_call("computer", '{"actions":[{"type":"wait"}]}', {})
    assert clicked == {"type": "computer_call", "actions": [{"type": "wait"}]}
    computer = {"type": "computer_call", "call_id": "c"}
    assert complete_call({**computer, "pending_safety_checks": [1]}, "", report)["pending_safety_checks"] == [1]
    assert complete_call(computer, "", report)["pending_safety_checks"] == []
    patch = {"type": "apply_patch_call"}
    assert complete_call(patch, "", report) == {**patch, "status": "completed"}
    assert complete_call({"type": "shell_call"}, "", report) == {"type": "shell_call"}


def test_what_the_api_requires_of_a_call_is_in_a_request_of_our_own() -> None:
    call = ToolCall("call_1", "local_shell", '{"type":"exec","command":["ls"],"env":{}}', kind="local_shell")
    result = ToolResult("call_1", (Text("a.txt"),))

    def items(item: str | None) -> list[Any]:
        made = msgspec.structs.replace(call, item=item)
        request = Request("m", (Message("assistant", (made,)), Message("tool", (result,))))
        body: Any = write_request(request, Target(), Report())
        return list(body["input"])

    action = {"type": "exec", "command": ["ls"], "env": {}}
    usual = {"type": "local_shell_call", "call_id": "call_1", "action": action, "status": "completed"}
    said = {"type": "local_shell_call_output", "id": "call_1", "call_id": "call_1", "output": "a.txt"}
    assert items("lsh_7") == [{**usual, "id": "lsh_7"}, said]
    for foreign in (None, "fc_7"):
        made, output = items(foreign)
        assert (made["id"][:4], len(made["id"]), output) == ("lsh_", 28, said)


def test_a_reply_s_call_without_a_call_id_is_named_by_its_item() -> None:
    item = {"type": "shell_call", "id": "sh_1", "call_id": None, "action": {"commands": ["ls"]}}
    assert is_client_call(item)
    reply = {"id": "r", "object": "response", "model": "m", "status": "completed", "output": [item]}
    begun = [event for event in read_reply(reply) if isinstance(event, ToolCallBegun)]
    assert [(event.id, event.kind) for event in begun] == [("sh_1", "shell")]
    body = {"model": "m", "input": [item]}
    assert read_call(item, "") is None
    assert write(read(body)) == body


def made(result: ToolResult, kind: Any) -> tuple[Any, Report]:
    report = Report()
    return write_output(result, kind, {"call_id": "c"}, report, same=False), report


def test_words_of_our_own_loop_become_the_item_that_the_call_wants() -> None:
    said = ToolResult("c", (Text("a"), Text("b")), is_error=True, at="/messages/3")
    item, report = made(said, "shell")
    assert item["output"] == [{"stdout": "ab", "stderr": "", "outcome": {"type": "exit", "exit_code": 1}}]
    assert [addition.what for addition in report.additions] == ["exit code of a shell"]
    assert made(ToolResult("c"), "apply_patch")[0] == {
        "type": "apply_patch_call_output",
        "call_id": "c",
        "status": "completed",
    }
    assert made(said, "apply_patch")[0]["status"] == "failed"
    item, report = made(said, "local_shell")
    assert item["output"] == "ab"
    assert named_losses(report) == [("/messages/3", "error flag of a tool result", "option")]
    assert made(ToolResult("c", structured={"a": 1}), "local_shell")[0]["output"] == '{"a":1}'


def test_a_screenshot_needs_a_picture() -> None:
    shown = ToolResult("c", (Image(Link("https://x/y.png"), extras={"detail": "low"}),))
    output = {"type": "computer_screenshot", "image_url": "https://x/y.png"}
    assert made(shown, "computer")[0] == {"type": "computer_call_output", "call_id": "c", "output": output}
    assert made(ToolResult("c", (Image(PlainText("x")),)), "computer")[0] is None
    assert made(ToolResult("c", (Text("done"),)), "computer")[0] is None
    assert made(ToolResult("c", (Image(FileId("f")),)), "shell")[0] is None


def test_our_own_loop_answers_built_in_tools_in_their_own_items() -> None:
    from sightline.model.request import Message, Request

    calls = (
        ToolCall("c1", "shell", '{"commands":["ls"]}', "shell"),
        ToolCall("c2", "computer", "{broken", "computer"),
        ToolCall("c3", "computer", '{"type":"wait"}', "computer"),
    )
    results = tuple(ToolResult(call.id, (Text("done"),)) for call in calls)
    body = write(Request("m", (Message("assistant", calls), Message("tool", results))))
    assert [item["type"] for item in body["input"]] == [
        *("shell_call", "function_call", "computer_call"),
        *("shell_call_output", "function_call_output", "function_call_output"),
    ]


@pytest.mark.parametrize(
    ("tool", "name"),
    [
        ({"type": "local_shell"}, "local_shell"),
        ({"type": "shell", "environment": {"type": "local"}}, "shell"),
        ({"type": "apply_patch"}, "apply_patch"),
        ({"type": "computer"}, "computer"),
        ({"type": "computer_use_preview", "display_width": 1, "display_height": 2, "environment": "mac"}, "computer"),
        ({"type": "tool_search", "execution": "client"}, "tool_search"),
        ({"type": "tool_search"}, None),
        ({"type": "tool_search", "execution": "client", "parameters": "x"}, None),
        ({"type": "tool_search", "execution": "client", "description": 7}, None),
        ({"type": "shell", "environment": {"type": "container_auto"}}, None),
        ({"type": "web_search"}, None),
    ],
)
def test_a_tool_that_the_client_runs_has_a_function_that_says_what_it_does(
    tool: dict[str, Any], name: str | None
) -> None:
    read = read_tool(tool, "/tools/0")
    assert (read.dialect, read.value) == (NAME, tool)
    assert [function.name for function in read.functions] == ([] if name is None else [name])
    assert read.kind == (name or "function")
    for function in read.functions:
        assert function.description
        assert function.schema is not None or tool["type"] == "tool_search"


def test_screen_size_is_given_in_the_tool_description() -> None:
    tool = {"type": "computer_use_preview", "display_width": 800, "display_height": 600, "environment": "mac", "new": 1}
    read = read_tool(tool, "/tools/0")
    assert "800 by 600 pixels" in (read.functions[0].description or "")
    assert '"mac"' in (read.functions[0].description or "")
    assert read.extras == {"new": 1}
