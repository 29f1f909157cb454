import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.catalog.facts import Facts
from sightline.dialects.anthropic.request_read import read_request
from sightline.dialects.anthropic.request_write import with_turns, write_request
from sightline.dialects.anthropic.rules import problems, vendor_problems
from sightline.dialects.dialect import Target
from sightline.model.message import Message
from sightline.model.parts import CacheBreakpoint, Text, ToolCall, ToolResult
from sightline.model.report import Report
from sightline.model.request import Request


def turned(*messages):
    report = Report()
    return list(with_turns(messages, report)), [(loss.pointer, loss.severity) for loss in report.losses]


def call(call_id):
    return ToolCall(call_id, "f", "{}")


ASK = Message("user", (Text("go"),))
SPOKEN = Message("user", (Text("wait"),))


def test_an_ordinary_conversation_stays_as_it_is():
    messages = [
        ASK,
        Message("assistant", (Text("a"), call("1"), call("2"))),
        Message("tool", (ToolResult("1"), ToolResult("2"))),
        SPOKEN,
    ]
    assert turned(*messages) == (messages, [])


def test_items_become_turns():
    turns, lost = turned(
        ASK,
        Message("assistant", (call("1"),)),
        Message("assistant", (call("2"),)),
        Message("tool", (ToolResult("1"),)),
        Message("tool", (ToolResult("2"),)),
    )
    assert [turn.role for turn in turns] == ["user", "assistant", "tool"]
    assert not lost


def test_a_late_result_moves_to_its_call():
    late = ToolResult("1", at="/late")
    turns, lost = turned(ASK, Message("assistant", (call("1"),)), SPOKEN, Message("tool", (late,)))
    assert turns == [ASK, Message("assistant", (call("1"),)), Message("tool", (late,), at="/late"), SPOKEN]
    assert lost == [("/late", "content")]


def test_only_the_late_one_moves():
    first, late = ToolResult("1"), ToolResult("2", at="/late")
    turns, lost = turned(
        Message("assistant", (call("1"), call("2"))),
        Message("user", (first,)),
        SPOKEN,
        Message("user", (late, Text("more"))),
    )
    assert turns[1:] == [
        Message("user", (first,)),
        Message("tool", (late,), at="/late"),
        SPOKEN,
        Message("user", (Text("more"),)),
    ]
    assert lost == [("/late", "content")]


def test_an_id_that_is_used_again_is_answered_again():
    messages = [
        Message("assistant", (call("1"),)),
        SPOKEN,
        Message("assistant", (call("1"),)),
        Message("tool", (ToolResult("1"),)),
    ]
    assert turned(*messages) == (messages, [])


def test_results_come_first_in_their_message_with_their_cache_marks():
    mark = CacheBreakpoint()
    result = ToolResult("1", at="/r")
    turns, lost = turned(Message("assistant", (call("1"),)), Message("user", (Text("a"), result, mark, Text("b"))))
    assert turns[1].parts == (result, mark, Text("a"), Text("b"))
    assert lost == [("/r", "content")]


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
