import pytest

from sightline.dialects.dialect import Target
from sightline.dialects.raw.content import (
    NOTHING,
    OwnFields,
    carry,
    carry_result,
    is_native,
    read_beside,
    read_carried_part,
    read_carried_result,
    write_beside,
)
from sightline.dialects.raw.names import FIRST_CALL
from sightline.dialects.raw.reply_read import Calls
from sightline.dialects.registry import dialect
from sightline.errors import Code, Fault
from sightline.model.events import ArgumentsReceived, FieldReceived, SignatureReceived, ToolCallBegun, ToolCallCompleted
from sightline.model.parts import (
    Audio,
    CacheBreakpoint,
    Citation,
    Document,
    FileId,
    Image,
    Inline,
    Link,
    Opaque,
    PlainText,
    Refusal,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from sightline.model.report import Report
from sightline.model.request import Message, Request
from tests.dialects.reports import refused_at

FOREIGN = [
    Document(Inline("application/pdf", "JVBERi0="), "a.pdf", cite=True),
    Document(PlainText("words")),
    Audio(Inline("audio/wav", "UklGRg==")),
    Refusal("No."),
    Image(FileId("file_1")),
    Opaque("anthropic", {"type": "search_result", "big": 10**30, "odd": "\ud800"}),
]


@pytest.mark.parametrize("part", FOREIGN)
def test_what_the_schema_lacks_is_carried_and_comes_back(part):
    assert not is_native(part, "user")
    assert read_carried_part(carry(part), "user", "") == part


def test_a_carried_part_leaves_its_place_and_its_dialects_own_fields_behind():
    part = Refusal("No.", at="/messages/3", extras={"x": 1})
    assert carry(part)["value"] == {"type": "sightline", "part": {"type": "refusal", "text": "No."}}
    citation = Citation(url="u", at="/9", extras={"y": 1})
    result = ToolResult("a", (Text("t", (citation,), at="/8"),), at="/7", extras={"z": 1})
    assert carry(result)["value"]["part"] == {
        "type": "tool_result",
        "id": "a",
        "parts": [{"type": "text", "text": "t", "citations": [{"url": "u"}]}],
    }


def test_carried_part_keeps_its_path_and_extra_fields():
    part = read_carried_part({**carry(Refusal("No.")), "tokenUsage": 3}, "user", "/0/content/1")
    assert part == Refusal("No.", at="/0/content/1", extras={"tokenUsage": 3})


@pytest.mark.parametrize(
    "value",
    [
        None,
        7,
        {"type": "other"},
        {"type": "sightline"},
        {"type": "sightline", "part": {"type": "refusal", "text": 1}},
        {"type": "sightline", "part": {"type": "refusal", "text": "a", "unknown": 1}},
        {"type": "sightline", "part": {"type": "refusal", "text": "a", "at": "/1"}},
        {"type": "sightline", "part": {"type": "refusal"}, "more": 1},
        {"type": "sightline", "part": {"type": "text", "text": "the schema says texts itself"}},
        {"type": "sightline", "part": {"type": "opaque", "dialect": "raw", "value": 1}},
        {"type": "sightline", "part": {"type": "\ud800"}},
        {"type": "sightline", "part": {"\ud800": "refusal"}},
    ],
)
def test_what_we_would_not_have_carried_so_is_not_ours(value):
    assert read_carried_part({"type": 2, "value": value}, "user", "") is None


def test_which_parts_the_schema_says_itself():
    native = [
        Text("a"), Thinking("b"), CacheBreakpoint(), Image(Link("u")), Image(Inline("a/b", "c")), Opaque("raw", 1),
    ]  # fmt: skip
    assert all(is_native(part, "user") for part in native)
    call, result = ToolCall("a", "b", "{}"), ToolResult("a")
    assert is_native(call, "assistant")
    assert not is_native(call, "user")
    assert is_native(result, "tool")
    assert not is_native(result, "assistant")


def test_a_result_carries_what_its_message_cannot_say():
    assert carry_result(ToolResult("a", (Text("x"),), "name", bare=True)) is None
    result = ToolResult("a", (Text("x"),), is_error=True, structured={"k": [1]}, item="it_1")
    document = carry_result(result)
    assert document is not None
    assert read_carried_result(document, "a") == ToolResult("a", is_error=True, structured={"k": [1]}, item="it_1")


@pytest.mark.parametrize(
    ("document", "call_id"),
    [
        (carry(ToolResult("a", is_error=True)), "b"),
        (carry(ToolResult("a", (Text("x"),), is_error=True)), "a"),
        (carry(ToolResult("a")), "a"),
        ({**carry(ToolResult("a", is_error=True)), "tokenUsage": 1}, "a"),
        (carry(Refusal("No.")), "a"),
        ("text", "a"),
    ],
)
def test_a_result_of_another_form_is_left_alone(document, call_id):
    assert read_carried_result(document, call_id) is None


def test_fields_that_a_known_kind_lacks_stand_beside_it():
    beside = OwnFields("sig", "gemini", (Citation(url="u"),), "it_1", "image/png")
    written = write_beside(beside)
    assert read_beside(written) == beside
    assert write_beside(NOTHING) == {}
    assert read_beside({}) == NOTHING


@pytest.mark.parametrize("value", [1, {"unknown": 1}, {"signature": 5}, {"signature": None}, {"\ud800": 1}])
def test_a_member_of_that_name_that_is_not_ours_is_left_alone(value):
    assert read_beside({"sightline": value}) is None


def test_a_part_that_is_nested_too_deep_is_a_fault():
    value: list = []
    for _ in range(100_000):
        value = [value]
    with pytest.raises(Fault) as caught:
        carry(Opaque("anthropic", value))
    assert caught.value.code is Code.INVALID_REQUEST
    while value:  # taken apart by hand: dropping so deep a value in one go would exhaust the stack
        value = value.pop()


@pytest.mark.parametrize("kind", ["shell", "computer"])
def test_a_call_of_a_built_in_tool_is_one_again_when_it_comes_back(kind):
    request = Request(
        messages=(
            Message("assistant", (ToolCall("c", kind, "{}", kind),)),
            Message("tool", (ToolResult("c", (Text("a"),), kind=kind),)),
        )
    )
    document = dialect("raw").write_request(request, Target(), Report())
    (call,), (result,) = (message.parts for message in dialect("raw").read_request(document).messages)
    assert (call.kind, result.kind) == (kind, kind)


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
    assert read(calls, deliver(entry("f", '{"y":2}', "a"))) == [ArgumentsReceived(A, '{"y":2}'), ToolCallCompleted(A)]


def test_an_announcement_without_an_id_waits_for_the_call():
    calls = Calls(0)
    assert read(calls, begin(entry("g"), entry("f"))) == []
    assert not calls.are_any
    events = read(calls, deliver(entry("f", "1", "a"), entry("f", "2", "b")))
    assert [event.id for event in events if isinstance(event, ToolCallBegun)] == ["a", "b"]
    assert calls.finish() == [FieldReceived("/beginToolCalls/0", {"name": "g"})]


def test_growing_arguments_begin_an_unannounced_call():
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
    assert refused_at(read, Calls(0), delta) == pointer


def test_entries_before_a_broken_one_are_reported():
    events: list = []
    with pytest.raises(Fault):
        Calls(0).read({**begin(entry(call_id="a")), **deliver(7)}, "", events)
    assert events == [ToolCallBegun(A, "a", "f", at="/beginToolCalls/0")]
