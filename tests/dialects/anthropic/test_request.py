"""Writing a request, and the turns that it needs."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.catalog.facts import Facts
from sightline.dialects.anthropic import DIALECT, problems, vendor_problems
from sightline.dialects.anthropic.request import read_request, with_turns, write_request
from sightline.dialects.dialect import Target
from sightline.dialects.losses import UnreadLosses
from sightline.errors import Code, Fault
from sightline.model.parts import CacheBreakpoint, Image, Link, Text, Thinking, ToolCall, ToolResult
from sightline.model.report import Report
from sightline.model.request import Message, Request
from tests.dialects.reports import losses


def write(*messages, target=None, dialect="openai-chat", **more):
    report = Report()
    body = write_request(Request(messages=messages, dialect=dialect, **more), target or Target(), report)
    return body, losses(report)


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


def test_message_left_empty_is_dropped_and_reported():
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


def test_names_and_ids_of_messages_are_lost():
    _, lost = write(Message("user", (Text("a"),), name="ann", id="msg_1", at="/messages/0"))
    assert lost == [("/messages/0", "identity"), ("/messages/0/name", "option")]


def test_a_cache_mark_turns_a_bare_message_into_blocks():
    body, _ = write(Message("user", (Text("a"),), bare=True), Message("assistant", (CacheBreakpoint(), Text("b"))))
    marked = {"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}
    assert body["messages"][0] == {"role": "user", "content": [marked]}


def test_the_scope_of_a_cache_mark_is_no_content_of_its_own():
    control = {"type": "ephemeral", "scope": "global"}
    text = {"type": "text", "text": "a", "cache_control": control}
    request = read_request({"max_tokens": 9, "messages": [{"role": "user", "content": [text]}]})
    report = Report()
    UnreadLosses(DIALECT.unread, "gemini", report).of_request(request)
    assert losses(report) == [("/messages/0/content/0/cache_control/scope", "option")]


def call(call_id):
    return ToolCall(call_id, "f", "{}")


def test_results_come_first_in_their_message_with_their_cache_marks():
    mark, result, report = CacheBreakpoint(), ToolResult("1", at="/r"), Report()
    asked = Message("user", (Text("a"), result, mark, Text("b")))
    turns = with_turns((Message("assistant", (call("1"),)), asked), report)
    assert turns[1].parts == (result, mark, Text("a"), Text("b"))
    assert losses(report) == [("/r", "content")]


# --- system messages inside the conversation --------------------------------------------------------

TAKING, REFUSING, UNKNOWN = Facts(inline_system=True), Facts(inline_system=False), Facts()


def told(roles: str, facts: Facts | None, system: str = "in_place"):
    """What comes of a conversation, one letter a message: s, d, u, a, c (a call) and r (its result)."""
    kinds = {"s": "system", "d": "developer", "u": "user", "a": "assistant", "c": "assistant", "r": "tool"}
    messages = []
    for index, letter in enumerate(roles):
        parts = {"c": (call("1"),), "r": (ToolResult("1", (Text("ok"),)),)}.get(letter, (Text(f"{letter}{index}"),))
        messages.append(Message(kinds[letter], parts, bare=True, at=f"/messages/{index}"))
    report = Report()
    target = Target(facts=facts, system=system)
    body = write_request(Request("m", tuple(messages), dialect="openai-chat"), target, report)
    spoken = [f"{message['role'][0]}:{_words(message['content'])}" for message in body["messages"]]
    losses = [
        f"{loss.pointer.rpartition('/')[2]} {loss.what}: {loss.why} ({loss.severity})"
        for loss in report.losses
        if loss.what != "role developer"
    ]
    return spoken, losses


def _words(content):
    if isinstance(content, str):
        return content
    return "+".join(block.get("text", block["type"]) for block in content)


def test_a_model_that_takes_them_gets_them_where_they_stand():
    for facts in (TAKING, None):
        assert told("susa", facts) == (["u:u1", "s:s2", "a:a3"], [])
        assert told("us", facts) == (["u:u0", "s:s1"], [])
        assert told("ucrsa", facts)[1] == []


def test_a_model_that_takes_none_hears_them_as_the_users_words():
    why = "the model takes none inside the conversation: demoted to user"
    for facts in (REFUSING, UNKNOWN):
        assert told("susa", facts) == (["u:u1", "u:s2", "a:a3"], [f"2 role of a system message: {why} (content)"])
        assert told("uada", facts)[1] == [f"2 role of a developer message: {why} (content)"]


def test_the_policy_to_merge_all_goes_before():
    spoken, losses = told("susa", REFUSING, "merge_all")
    assert spoken == ["u:u1", "a:a3"]
    assert losses == ["2 place of a system message: merge_all moves it to the front (option)"]


@pytest.mark.parametrize("roles", ["uasu", "uasua"])
def test_behind_the_assistants_turn_it_moves_behind_the_users(roles):
    spoken, losses = told(roles, TAKING)
    assert spoken[:4] == ["u:u0", "a:a1", "u:u3", "s:s2"]
    assert losses == ["2 place of a system message: anthropic takes it behind the user's turn (option)"]


def test_between_two_messages_of_the_user_it_moves_behind_both():
    spoken, losses = told("usua", TAKING)
    assert spoken == ["u:u0", "u:u2", "s:s1", "a:a3"]
    assert [loss[:10] for loss in losses] == ["1 place of"]


def test_two_in_a_row_become_one():
    spoken, losses = told("ussa", TAKING)
    assert spoken == ["u:u0", "s:s1+s2", "a:a3"]
    assert losses == ["2 a system message of its own: anthropic takes no two in a row: joined (identity)"]


@pytest.mark.parametrize("roles", ["uas", "uasa"])
def test_where_no_users_turn_is_near_it_speaks_as_the_user(roles):
    spoken, losses = told(roles, TAKING)
    assert spoken[:3] == ["u:u0", "a:a1", "u:s2"]
    assert losses == [
        "2 role of a system message: anthropic takes one behind a user's turn only: demoted to user (content)"
    ]


@pytest.mark.parametrize(("facts", "role"), [(TAKING, "s"), (REFUSING, "u")])
def test_nothing_parts_a_call_from_its_result(facts, role):
    spoken, losses = told("ucsr", facts)
    assert spoken == ["u:u0", "a:tool_use", "u:tool_result", f"{role}:s2"]
    assert " place of a tool result: anthropic wants it directly after the call (content)" in losses


@given(roles=st.lists(st.sampled_from(["s", "d", "u", "a", "cr", "csr"]), max_size=8).map("".join))
def test_whatever_the_order_was_the_api_takes_it(roles):
    messages = "u" + roles
    for facts in (TAKING, REFUSING, None):
        kinds = {"s": "system", "d": "developer", "u": "user", "a": "assistant", "c": "assistant", "r": "tool"}
        ids = iter(range(100))
        built, last = [], ""
        for index, letter in enumerate(messages):
            if letter == "c":
                last = f"t{next(ids)}"
            parts = {"c": (call(last),), "r": (ToolResult(last, (Text("ok"),)),)}.get(letter, (Text(f"{index}"),))
            built.append(Message(kinds[letter], parts, at=f"/messages/{index}"))
        body = write_request(Request("m", tuple(built), dialect="openai-chat"), Target(facts=facts), Report())
        assert not [each for each in problems(read_request(body)) if each.severity == "error"]
        assert vendor_problems(body) == []
        if facts is REFUSING:
            assert "system" not in [message["role"] for message in body["messages"]]


def test_one_message_for_each_message_and_one_for_the_system_prompt():
    request = read_request(
        {
            "model": "claude",
            "system": "Be kind.",
            "messages": [
                {"role": "user", "content": "hi", "id": "m1"},
                {"role": "system", "content": [{"type": "text", "text": "now"}]},
            ],
        }
    )
    assert request.dialect == "anthropic"
    assert request.model == "claude"
    assert request.messages == (
        Message("system", (Text("Be kind.", at="/system"),), bare=True, at="/system"),
        Message("user", (Text("hi", at="/messages/0/content"),), bare=True, at="/messages/0", extras={"id": "m1"}),
        Message("system", (Text("now", at="/messages/1/content/0"),), at="/messages/1"),
    )


def test_a_system_prompt_of_blocks():
    request = read_request({"system": [{"type": "text", "text": "a"}], "messages": []})
    assert request.messages == (Message("system", (Text("a", at="/system/0"),), at="/system"),)


def test_what_we_do_not_model_is_kept():
    thread: Any = {"type": "create"}
    request = read_request({"messages": [], "thread": thread, "metadata": {"user_id": "u", "team": "t"}})
    assert request.extras == {"thread": thread, "metadata": {"team": "t"}}
    assert request.model == ""


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ([], ""),
        ({}, "/messages"),
        ({"messages": None, "input": "responses"}, "/messages"),
        ({"messages": {}}, "/messages"),
        ({"messages": ["hi"]}, "/messages/0"),
        ({"messages": [{"content": "hi"}]}, "/messages/0/role"),
        ({"messages": [{"role": "tool", "content": "hi"}]}, "/messages/0/role"),
        ({"messages": [{"role": "user"}]}, "/messages/0/content"),
        ({"messages": [], "system": 5}, "/system"),
        ({"messages": [], "model": 5}, "/model"),
        ({"messages": [], "tools": {}}, "/tools"),
        ({"messages": [], "tool_choice": "auto"}, "/tool_choice"),
        ({"messages": [], "metadata": "x"}, "/metadata"),
        ({"messages": [], "thinking": True}, "/thinking"),
        ({"messages": [], "max_tokens": "many"}, "/max_tokens"),
    ],
)
def test_a_body_of_the_wrong_shape_names_the_place(body, pointer):
    with pytest.raises(Fault) as caught:
        read_request(body)
    assert (caught.value.code, caught.value.pointer) == (Code.INVALID_REQUEST, pointer)
