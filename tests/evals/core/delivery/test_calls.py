from sightline.evals.core.delivery.question import CallLedger, argument_text
from sightline.evals.core.suite import CallSegment, CaseMessage, TextSegment
from sightline.model.message import Message
from sightline.model.parts import Text, ToolCall, ToolResult


def test_ids_that_are_made_differ_from_those_that_are_given() -> None:
    given = CallSegment("a", {}, "call_1")
    reply = Message("assistant", (Text("x"), ToolCall("call_2", "b", "{}")))
    result = Message("tool", (ToolResult("call_3"),))
    said = CaseMessage(role="assistant", segments=(TextSegment("x"), given))
    calls = CallLedger([said, reply, result, CaseMessage(role="tool", call_id="call_4")])
    assert calls.add_call(given).id == "call_1"
    assert calls.add_call(CallSegment("c", {})).id == "call_5"
    assert calls.fresh() == "call_6"


def test_results_find_their_calls_in_order() -> None:
    calls = CallLedger([])
    first, second = calls.add_call(CallSegment("a")), calls.add_call(CallSegment("a"))
    assert calls.take_answered(CaseMessage(role="tool")) == (first.id, "a")
    assert calls.take_answered(CaseMessage(role="tool", name="a")) == (second.id, "a")
    assert calls.take_answered(CaseMessage(role="tool")) is None


def test_calls_of_a_reply_wait_as_well() -> None:
    calls = CallLedger([])
    calls.add_reply(Message("assistant", (Text("x"), ToolCall("c9", "b", "{}"))))
    assert calls.take_answered(CaseMessage(role="tool")) == ("c9", "b")


def test_arguments_are_text_as_a_model_writes_them() -> None:
    assert argument_text('{"a":  1}') == '{"a":  1}'
    assert argument_text({"a": [1, "ü"]}) == '{"a":[1,"ü"]}'
    assert argument_text(None) == "{}"
