import json
from pathlib import Path
from typing import Any

import pytest

from sightline.dialects.anthropic import DIALECT
from sightline.dialects.anthropic.request_read import read_request
from sightline.dialects.anthropic.request_write import write_request
from sightline.dialects.anthropic.rules import problems
from sightline.dialects.dialect import Target
from sightline.dialects.losses import UnreadLosses
from sightline.model.message import Message
from sightline.model.parts import CacheBreakpoint, Image, Link, Opaque, Text, Thinking, ToolCall, ToolResult
from sightline.model.report import Report
from sightline.model.request import Request

CASES = sorted((Path(__file__).parents[2] / "wire_cases" / "anthropic").glob("*/request.json"))


def write(*messages, target=None, dialect="openai-chat", **more):
    report = Report()
    body = write_request(Request(messages=messages, dialect=dialect, **more), target or Target(), report)
    return body, [(loss.pointer, loss.severity) for loss in report.losses]


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.parent.name)
def test_an_own_document_is_written_back_as_it_was(path):
    document, report = json.loads(path.read_text()), Report()
    assert write_request(read_request(document), Target(), report) == document
    assert not report.losses
    assert not report.additions


def test_a_system_message_that_leads_the_messages_stays_there():
    document: Any = {"system": "a", "messages": [{"role": "system", "content": "b"}, {"role": "user", "content": "c"}]}
    assert write_request(read_request(document), Target(), Report()) == document


@pytest.mark.parametrize(
    ("policy", "system", "rest"),
    [
        ("merge_leading", [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], ["user", "system"]),
        (
            "merge_all",
            [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}, {"type": "text", "text": "d"}],
            ["user"],
        ),
    ],
)
def test_a_policy_moves_own_system_messages_too(policy, system, rest):
    document: Any = {
        "system": "a",
        "messages": [
            {"role": "system", "content": "b"},
            {"role": "user", "content": "c"},
            {"role": "system", "content": "d"},
        ],
    }
    body: Any = write_request(read_request(document), Target(system=policy), Report())
    assert body["system"] == system
    assert [message["role"] for message in body["messages"]] == rest


def test_a_bare_system_message_becomes_the_system_string():
    body, lost = write(
        Message("system", (Text("Be kind."),), bare=True, at="/messages/0"),
        Message("user", (Text("hi"),), bare=True),
        model="claude",
    )
    assert body["model"] == "claude"
    assert body["system"] == "Be kind."
    assert body["messages"] == [{"role": "user", "content": "hi"}]
    assert not lost


def test_several_leading_messages_become_blocks_and_developer_is_system_here():
    body, lost = write(
        Message("system", (Text("a"),), bare=True),
        Message("developer", (Text("b"),), bare=True, at="/messages/1"),
        Message("user", (Text("c"), Text("d"))),
    )
    assert body["system"] == [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    assert lost == [("/messages/1", "identity")]


def test_a_later_system_message_stays_in_its_place():
    body, lost = write(
        Message("user", (Text("a"),), bare=True),
        Message("developer", (Text("b"),), bare=True, at="/messages/1"),
        Message("assistant", (Text("c"),), bare=True),
    )
    assert "system" not in body
    assert [message["role"] for message in body["messages"]] == ["user", "system", "assistant"]
    assert lost == [("/messages/1", "identity")]


def test_tool_messages_become_one_user_message():
    body, _ = write(
        Message("assistant", (ToolCall("1", "f", "{}"), ToolCall("2", "f", "{}"))),
        Message("tool", (ToolResult("1", (Text("x"),), bare=True),)),
        Message("tool", (ToolResult("2", (Text("y"),), bare=True),)),
        Message("user", (Text("go on"),), bare=True),
    )
    assert body["messages"][1:] == [
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "1", "content": "x"},
                {"type": "tool_result", "tool_use_id": "2", "content": "y"},
            ],
        },
        {"role": "user", "content": "go on"},
    ]


def test_a_message_that_comes_to_nothing_is_dropped_and_said():
    body, lost = write(
        Message("user", (Text("a"),), bare=True),
        Message("assistant", (Text("", at="/b"),), at="/messages/1"),
        Message("assistant", (Text("said"),)),
        Message("assistant", (Thinking("secret", at="/c"),), at="/messages/2"),
        Message("system", (Text(" ", at="/d"),), at="/messages/3"),
        Message("user", (), at="/messages/4"),
    )
    assert [message["role"] for message in body["messages"]] == ["user", "assistant"]
    assert lost == [
        ("/b", "identity"),
        ("/messages/1", "identity"),
        ("/c", "content"),
        ("/d", "content"),
        ("/messages/3", "identity"),
        ("/messages/4", "identity"),
    ]


def test_nothing_but_a_lost_system_prompt_leaves_no_system():
    body, lost = write(Message("system", (Image(Link("https://e.com/a"), at="/i"),), at="/messages/0"))
    assert "system" not in body
    assert body["messages"] == []
    assert lost == [("/i", "content"), ("/messages/0", "identity"), ("/messages/0", "content")]


def test_what_stands_elsewhere_too_is_no_loss():
    body, lost = write(
        Message("developer", (Opaque("openai-responses", {}, mirrored=True, at="/input/0"),), at="/input/0"),
        Message("system", (Text("s"), Opaque("openai-chat", {}, mirrored=True, at="/m"))),
        Message("assistant", (Opaque("openai-chat", {}, mirrored=True, at="/r"), Text("a"))),
    )
    assert body["system"] == [{"type": "text", "text": "s"}]
    assert body["messages"] == [{"role": "assistant", "content": [{"type": "text", "text": "a"}]}]
    assert lost == []


@pytest.mark.parametrize("bare", [True, False])
def test_an_answer_is_begun_without_trailing_white_space(bare):
    body, lost = write(
        Message("user", (Text("a "),)),
        Message("assistant", (Text("b ", at="/b"),), bare=True),
        Message("user", (Text("c"),)),
        Message("assistant", (Text("{ \n", at="/d"), Thinking("hm", at="/e")), bare=bare),
    )
    assert body["messages"][0]["content"] == [{"type": "text", "text": "a "}]
    assert body["messages"][1]["content"] == "b "
    assert body["messages"][3]["content"] == ("{" if bare else [{"type": "text", "text": "{"}])
    assert lost == [("/e", "content"), ("/d", "content")]


def test_an_answer_that_begins_with_a_call_is_left_alone():
    call = ToolCall("c", "f", "{}")
    assert write(Message("user", (Text("a"),)), Message("assistant", (Text("b "), call)))[1] == []


def test_where_only_the_system_speaks_its_last_message_is_the_users():
    body, lost = write(
        Message("system", (Text("a"),), bare=True),
        Message("developer", (Text("b"),), at="/messages/1", bare=True),
        Message("user", (Text("  ", at="/c"),)),
    )
    assert (body["system"], body["messages"]) == ("a", [{"role": "user", "content": "b"}])
    assert lost == [("/messages/1", "identity"), ("/c", "content"), ("", "identity"), ("/messages/1", "content")]


def test_where_nothing_is_left_to_answer_it_is_a_loss_and_the_rules_say_so():
    body, lost = write(Message("user", (Text("", at="/messages/0/content"),), at="/messages/0"))
    assert body["messages"] == []
    assert lost == [("/messages/0/content", "identity"), ("/messages/0", "identity"), ("/messages/0", "content")]
    assert write()[1] == [("", "content")]
    assert "/messages" in [problem.pointer for problem in problems(read_request(body))]


def test_names_and_ids_of_messages_are_lost():
    _, lost = write(Message("user", (Text("a"),), name="ann", id="msg_1", at="/messages/0"))
    assert lost == [("/messages/0", "identity"), ("/messages/0/name", "option")]


def test_a_cache_mark_turns_a_bare_message_into_blocks():
    body, _ = write(
        Message("user", (Text("a"),), bare=True),
        Message("assistant", (CacheBreakpoint(), Text("b"))),
    )
    marked = {"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}
    assert body["messages"][0] == {"role": "user", "content": [marked]}


def test_the_scope_of_a_cache_mark_is_no_content_of_its_own():
    control = {"type": "ephemeral", "scope": "global"}
    text = {"type": "text", "text": "a", "cache_control": control}
    request = read_request({"max_tokens": 9, "messages": [{"role": "user", "content": [text]}]})
    report = Report()
    UnreadLosses(DIALECT.unread, "gemini", report).of_request(request)
    assert [(loss.pointer, loss.severity) for loss in report.losses] == [
        ("/messages/0/content/0/cache_control/scope", "option")
    ]
