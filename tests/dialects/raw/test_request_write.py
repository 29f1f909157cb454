import json
from pathlib import Path

import msgspec
import pytest

from sightline.dialects.dialect import Target
from sightline.dialects.raw.request import read_request, write_request
from sightline.model.message import Message
from sightline.model.parts import (
    CacheBreakpoint,
    Document,
    Image,
    Link,
    Opaque,
    PlainText,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from sightline.model.report import Report
from sightline.model.request import Request

CASES = sorted((Path(__file__).parents[2] / "wire_cases" / "raw").glob("*/request.json"))


def written(request, target=None):
    report = Report()
    return write_request(request, target or Target(), report), report


def messages_of(*messages):
    document, report = written(Request(model="m", messages=messages, dialect="anthropic"))
    return document["messages"], report


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.parent.name)
def test_what_was_read_is_written_back(path):
    document = json.loads(path.read_text())
    body, report = written(read_request(document))
    assert body == document
    assert report.losses == report.additions == ()


def test_a_bare_list_becomes_an_object_when_there_is_more_to_say():
    request = read_request([{"role": 1, "content": "hi"}])
    assert written(request)[0] == [{"role": 1, "content": "hi"}]
    body, _ = written(msgspec.structs.replace(request, model="m"))
    assert body == {"model": "m", "messages": [{"role": 1, "content": "hi"}]}


def test_a_request_that_was_composed_here_is_an_object():
    assert written(Request(messages=(Message("user"),), dialect="raw"))[0] == {"messages": [{"role": 1, "content": []}]}
    assert written(Request(dialect="raw"))[0] == {"messages": []}


def test_roles_are_numbers_and_a_developer_is_a_system():
    messages, report = messages_of(
        Message("system", (Text("a"),), bare=True),
        Message("developer", (Text("b"),), at="/messages/1"),
        Message("user", (Text("c"),), "ada"),
        Message("assistant", (Text("d"),)),
    )
    assert [(message["role"], message["content"][0]["text"]) for message in messages] == [
        (0, "a"),
        (0, "b"),
        (1, "c"),
        (2, "d"),
    ]
    assert messages[2]["name"] == "ada"
    (loss,) = report.losses
    assert (loss.pointer, loss.severity) == ("/messages/1", "identity")


def test_results_become_messages_of_their_own_in_their_order():
    results = (
        ToolResult("a", (Text("x"), Image(Link("u"))), "f"),
        ToolResult("b", (Text("y"),), is_error=True, bare=True),
    )
    messages, report = messages_of(
        Message("assistant", (ToolCall("a", "f", "{}"), ToolCall("b", "g", ""))),
        Message("user", (*results, Text("go on"))),
    )
    assert messages[0] == {
        "role": 2,
        "content": [],
        "toolCalls": [
            {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}},
            {"id": "b", "type": "function", "function": {"name": "g", "arguments": "{}"}},
        ],
    }
    assert messages[1] == {
        "role": 3,
        "toolCallId": "a",
        "content": [{"type": 1, "text": "x"}, {"type": 0, "imageUrl": {"url": "u"}}],
        "name": "f",
    }
    assert messages[2]["content"][-1]["value"]["part"] == {"type": "tool_result", "id": "b", "is_error": True}
    assert messages[3] == {"role": 1, "content": [{"type": 1, "text": "go on"}]}
    assert report.losses == ()


def test_words_beside_results_follow_them_as_a_users():
    messages, report = messages_of(Message("tool", (Text("w"), ToolResult("a", at="/0/content/1"))))
    assert [message["role"] for message in messages] == [3, 1]
    assert [(loss.pointer, loss.severity) for loss in report.losses] == [("/0/content/1", "content")]


def test_a_cache_mark_behind_a_result_stays_with_it():
    parts = (ToolResult("a", (Text("x"),), bare=True), CacheBreakpoint(), ToolResult("b"), Text("w"), CacheBreakpoint())
    messages, report = messages_of(Message("user", parts))
    mark = {"type": 3, "cacheType": "ephemeral"}
    assert [message["content"] for message in messages] == [
        [{"type": 1, "text": "x"}, mark],
        [],
        [{"type": 1, "text": "w"}, mark],
    ]
    assert report.losses == ()


def test_ids_that_are_missing_are_made():
    messages, report = messages_of(
        Message("assistant", (ToolCall("", "f", "{}"),)), Message("tool", (ToolResult("", name="f"),))
    )
    assert messages[0]["toolCalls"][0]["id"] == messages[1]["toolCallId"] == "call_1"
    assert {addition.severity for addition in report.additions} == {"identity"}


def test_items_of_one_turn_are_one_message_and_their_ids_are_lost():
    messages, report = messages_of(
        Message("assistant", (Thinking("hm"),), id="rs_1", at="/input/0"),
        Message("assistant", (Text("w"),), id="msg_1", at="/input/1"),
    )
    assert len(messages) == 1
    assert [(loss.pointer, loss.what) for loss in report.losses] == [
        ("/input/0", "id of an item"),
        ("/input/1", "id of an item"),
    ]


def test_an_item_that_only_its_dialect_knows_stays_a_message_of_its_own():
    search = Opaque("openai-responses", {"type": "web_search_call", "id": "ws"}, at="/input/1")
    tools = Opaque("openai-responses", {"type": "additional_tools"}, mirrored=True, at="/input/4")
    messages, report = messages_of(
        Message("assistant", (Thinking("hm"),), at="/input/0"),
        Message("assistant", (search,), at="/input/1"),
        Message("assistant", (Thinking("so"),), at="/input/2"),
        Message("assistant", (Text("w"),), at="/input/3"),
        Message("system", (tools,), at="/input/4"),
    )
    assert [len(message["content"]) for message in messages] == [1, 1, 2, 1]
    again = read_request({"messages": messages}).messages
    assert [msgspec.structs.replace(again[index].parts[0], at="") for index in (1, 3)] == [
        msgspec.structs.replace(part, at="") for part in (search, tools)
    ]
    assert report.losses == ()


def test_what_stands_behind_a_call_moves_before_it_and_that_is_said():
    call = ToolCall("a", "f", "{}")
    messages, report = messages_of(
        Message("assistant", (call, Text("w", at="/1"), CacheBreakpoint(at="/2"))), Message("tool", (ToolResult("a"),))
    )
    assert [part["type"] for part in messages[0]["content"]] == [1, 3]
    assert [(loss.pointer, loss.severity) for loss in report.losses] == [("/1", "content"), ("/2", "option")]


def test_everything_else_is_carried():
    parts = (
        Document(PlainText("d")),
        Opaque("anthropic", {"a": 1}),
        Thinking("t", signature="s", signed_by="anthropic"),
    )
    messages, report = messages_of(Message("user", parts))
    assert [part["type"] for part in messages[0]["content"]] == [2, 2, 2]
    assert report.losses == ()
    again = read_request({"messages": messages}).messages[0].parts
    assert [msgspec.structs.replace(part, at="") for part in again] == list(parts)


def test_system_messages_go_where_the_target_wants_them():
    request = read_request([{"role": 0, "content": "a"}, {"role": 1, "content": "b"}, {"role": 0, "content": "c"}])
    body, report = written(request, Target(system="merge_all"))
    assert [message["role"] for message in body] == [0, 1]
    assert len(report.losses) == 1
