from sightline.dialects.anthropic.turns import with_turns
from sightline.model.message import Message
from sightline.model.parts import CacheBreakpoint, Text, ToolCall, ToolResult
from sightline.model.report import Report


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
