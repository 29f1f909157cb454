import pytest

from sightline.dialects.dialect import Target
from sightline.dialects.raw.carrier import (
    NOTHING,
    Beside,
    carry,
    carry_result,
    is_native,
    read_beside,
    read_carried_part,
    read_carried_result,
    write_beside,
)
from sightline.dialects.registry import dialect
from sightline.errors import Code, Fault
from sightline.model.message import Message
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
from sightline.model.request import Request

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


def test_a_carried_part_knows_where_it_stands_and_what_stood_beside_it():
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
        Text("a"),
        Thinking("b"),
        CacheBreakpoint(),
        Image(Link("u")),
        Image(Inline("a/b", "c")),
        Opaque("raw", 1),
    ]
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
    beside = Beside("sig", "gemini", (Citation(url="u"),), "it_1", "image/png")
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
