import pytest

from sightline.dialects.raw.carrier import Calls
from sightline.dialects.raw.names import FIRST_CALL
from sightline.errors import Fault
from sightline.model.events import ArgumentsReceived, FieldReceived, SignatureReceived, ToolCallBegun, ToolCallCompleted

A, B = FIRST_CALL, FIRST_CALL + 1


def begin(*entries):
    return {"beginToolCalls": list(entries)}


def grow(*entries):
    return {"copilotToolCallStreamUpdates": list(entries)}


def deliver(*entries):
    return {"copilotToolCalls": list(entries)}


def entry(name="f", arguments=None, call_id=None, **more):
    known = {"name": name, "arguments": arguments, "id": call_id}
    return {key: value for key, value in known.items() if value is not None} | more


def read(calls, delta, at=""):
    events = []
    calls.read(delta, at, events)
    return events


def test_a_call_is_announced_and_then_delivered():
    calls = Calls(0)
    assert not calls.are_any
    assert read(calls, begin(entry(call_id="a")), "/0/delta") == [
        ToolCallBegun(A, "a", "f", at="/0/delta/beginToolCalls/0")
    ]
    assert calls.are_any
    assert read(calls, deliver(entry("f", "{}", "a"))) == [ArgumentsReceived(A, "{}"), ToolCallCompleted(A)]
    assert calls.finish() == []


def test_the_delivery_decides_about_the_arguments():
    calls = Calls(0)
    read(calls, begin(entry(call_id="a")))
    assert read(calls, grow(entry("f", '{"x', "a"))) == []
    assert read(calls, grow(entry("f", '{"x":1', "a"))) == []
    assert read(calls, deliver(entry("f", '{"y":2}', "a"))) == [
        ArgumentsReceived(A, '{"y":2}'),
        ToolCallCompleted(A),
    ]


def test_an_announcement_without_an_id_waits_for_the_call():
    calls = Calls(0)
    assert read(calls, begin(entry("g"), entry("f"))) == []
    assert not calls.are_any
    events = read(calls, deliver(entry("f", "1", "a"), entry("f", "2", "b")))
    assert [event.id for event in events if isinstance(event, ToolCallBegun)] == ["a", "b"]
    assert calls.finish() == [FieldReceived("/beginToolCalls/0", {"name": "g"})]


def test_growing_arguments_begin_a_call_that_nobody_announced():
    calls = Calls(1)
    assert read(calls, grow(entry("f", "x")), "/d") == [
        ToolCallBegun(A, "call_0", "f", 1, at="/d/copilotToolCallStreamUpdates/0")
    ]
    assert read(calls, grow(entry("f", "xy")), "/d") == []
    assert calls.finish() == [ArgumentsReceived(A, "xy", 1), ToolCallCompleted(A, 1)]


def test_a_call_that_is_never_delivered_has_what_was_shown():
    calls = Calls(0)
    read(calls, begin(entry(call_id="a"), entry(call_id="b")))
    read(calls, grow(entry("f", "half", "b")))
    assert calls.flush() == [ArgumentsReceived(B, "half")]
    assert calls.flush() == []
    assert calls.finish() == [ToolCallCompleted(A), ToolCallCompleted(B)]


def test_a_number_tells_calls_apart_whatever_their_ids():
    calls = Calls(0)
    read(calls, begin(entry(call_id="", part=5), entry(call_id="", part=3)))
    events = read(calls, deliver(entry("f", "three", "", part=3), entry("f", "five", "", part=5)))
    assert events == [
        ArgumentsReceived(FIRST_CALL + 3, "three"),
        ToolCallCompleted(FIRST_CALL + 3),
        ArgumentsReceived(FIRST_CALL + 5, "five"),
        ToolCallCompleted(FIRST_CALL + 5),
    ]


def test_calls_without_ids_get_some_legacy_ones_too():
    events = read(Calls(0), deliver(entry("f"), entry("f")))
    assert [event.id for event in events if isinstance(event, ToolCallBegun)] == ["call_0", "call_1"]
    events = read(Calls(0), {"_deprecatedCopilotFunctionCalls": [entry("f", "{}")]})
    assert [event.id for event in events if isinstance(event, ToolCallBegun)] == ["call_0"]


def test_a_call_that_was_delivered_is_not_delivered_again():
    calls = Calls(0)
    read(calls, deliver(entry("f", "{}", "a")))
    again = entry("f", "{}", "a")
    assert read(calls, deliver(again)) == [FieldReceived("/copilotToolCalls/0", again)]
    assert read(calls, grow(again)) == [FieldReceived("/copilotToolCallStreamUpdates/0", again)]


def test_signature_and_item_come_beside():
    calls = Calls(0)
    (begun,) = read(calls, begin(entry(call_id="a", sightline={"item": "i"})))
    assert begun.item == "i"
    events = read(calls, deliver(entry("f", "{}", "a", sightline={"signature": "s", "signed_by": "gemini"})))
    assert events[0] == SignatureReceived(A, "s", "gemini")


@pytest.mark.parametrize(
    ("delta", "pointer"),
    [
        ({"beginToolCalls": 5}, "/beginToolCalls"),
        ({"beginToolCalls": [5]}, "/beginToolCalls/0"),
        ({"copilotToolCalls": [{}]}, "/copilotToolCalls/0/name"),
        ({"copilotToolCalls": [{"name": "f", "arguments": {}}]}, "/copilotToolCalls/0/arguments"),
        ({"copilotToolCalls": [{"name": "f", "part": -1}]}, "/copilotToolCalls/0/part"),
    ],
)
def test_a_broken_entry_is_named(delta, pointer):
    with pytest.raises(Fault) as caught:
        read(Calls(0), delta)
    assert caught.value.pointer == pointer


def test_what_stands_before_a_broken_entry_is_told():
    events: list = []
    with pytest.raises(Fault):
        Calls(0).read({**begin(entry(call_id="a")), **deliver(7)}, "", events)
    assert events == [ToolCallBegun(A, "a", "f", at="/beginToolCalls/0")]
