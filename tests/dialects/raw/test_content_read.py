import pytest

from sightline.dialects.raw.content import nest_extras, read_calls, read_content, read_part
from sightline.errors import Code, Fault
from sightline.model.parts import (
    CacheBreakpoint,
    Citation,
    Image,
    Inline,
    Link,
    Opaque,
    Refusal,
    Text,
    Thinking,
    ToolCall,
)


def fault_of(act, *arguments):
    with pytest.raises(Fault) as caught:
        act(*arguments)
    assert caught.value.code is Code.INVALID_REQUEST
    return caught.value


def test_a_list_of_parts_is_read_in_order_with_places():
    content = [
        {"type": 1, "text": "a"},
        {"type": 0, "imageUrl": {"url": "https://x/y.png", "detail": "low"}},
        {"type": 2, "value": {"any": "thing"}, "tokenUsage": 5, "scope": 1},
        {"type": 3, "cacheType": "ephemeral"},
    ]
    assert read_content(content, "user", "/c") == (
        Text("a", at="/c/0"),
        Image(Link("https://x/y.png"), "low", at="/c/1"),
        Opaque("raw", content[2], at="/c/2"),
        CacheBreakpoint(at="/c/3"),
    )


def test_a_bare_string_is_one_text():
    assert read_content("hello", "user", "/c") == (Text("hello", at="/c"),)


@pytest.mark.parametrize(("content", "found"), [(None, "null"), (5, "a number"), ({}, "an object")])
def test_content_of_another_shape_is_a_fault(content, found):
    fault = fault_of(read_content, content, "user", "/0/content")
    assert fault.pointer == "/0/content"
    assert found in fault.message


@pytest.mark.parametrize("kind", [None, "text", True, 1.5, 4, -1, 10**30])
def test_a_kind_outside_of_the_schema_is_a_fault(kind):
    assert fault_of(read_part, {"type": kind, "text": "a"}, "user", "/0").pointer == "/0/type"


@pytest.mark.parametrize(
    ("part", "pointer"),
    [
        (5, "/p"),
        ({"type": 1}, "/p/text"),
        ({"type": 0}, "/p/imageUrl"),
        ({"type": 0, "imageUrl": {}}, "/p/imageUrl/url"),
        ({"type": 0, "imageUrl": {"url": "u", "detail": 1}}, "/p/imageUrl/detail"),
        ({"type": 3, "cacheType": 1}, "/p/cacheType"),
    ],
)
def test_a_wrong_field_is_named(part, pointer):
    assert fault_of(read_part, part, "user", "/p").pointer == pointer


def test_a_picture_may_be_inline_and_its_unknown_fields_stay():
    value = {"type": 0, "imageUrl": {"url": "data:image/png;base64,AAAA", "mediaType": "image/png"}, "x": 1}
    image = read_part(value, "user", "/p")
    assert image == Image(Inline("image/png", "AAAA"), at="/p", extras={"x": 1, "imageUrl": {"mediaType": "image/png"}})


def test_a_media_type_that_we_carried_comes_back_to_a_link_only():
    beside = {"sightline": {"media_type": "image/webp"}}
    image = read_part({"type": 0, "imageUrl": {"url": "https://x/y"}, **beside}, "user", "/p")
    assert image == Image(Link("https://x/y", "image/webp"), at="/p")


def test_a_mark_without_a_type_is_the_usual_one():
    mark = read_part({"type": 3}, "user", "/p")
    assert mark == CacheBreakpoint("ephemeral", at="/p", extras={"cacheType": None})


def test_what_stands_beside_a_text_is_read_back():
    value = {
        "type": 1,
        "text": "a",
        "sightline": {"signature": "s", "signed_by": "gemini", "citations": [{"url": "u"}]},
    }
    assert read_part(value, "assistant", "/p") == Text(
        "a", (Citation(url="u", at="/p/sightline/citations/0"),), "s", "gemini", at="/p"
    )


def test_a_member_of_that_name_that_is_not_ours_is_an_unknown_field():
    text = read_part({"type": 1, "text": "a", "sightline": 5}, "user", "/p")
    assert text == Text("a", at="/p", extras={"sightline": 5})


def test_reasoning_and_carried_parts_are_what_they_were():
    thinking = {"type": 2, "value": {"type": "thinking", "thinking": {"text": "hm"}}}
    refusal = {"type": 2, "value": {"type": "sightline", "part": {"type": "refusal", "text": "No."}}}
    assert read_content([thinking, refusal], "assistant", "/c") == (
        Thinking("hm", at="/c/0"),
        Refusal("No.", at="/c/1"),
    )


def test_calls_keep_their_arguments_as_they_were_written():
    entry = {"id": "a", "type": "function", "function": {"name": "f", "arguments": '{ "x" : 1 }', "y": 2}, "z": 3}
    (call,) = read_calls({"toolCalls": [entry]}, "/0")
    assert call == ToolCall("a", "f", '{ "x" : 1 }', at="/0/toolCalls/0", extras={"z": 3, "function": {"y": 2}})


def test_a_call_may_carry_a_signature():
    entry = {
        "id": "a",
        "type": "function",
        "function": {"name": "f"},
        "sightline": {"signature": "s", "signed_by": "gemini", "item": "i"},
    }
    (call,) = read_calls({"toolCalls": [entry]}, "/0")
    assert call == ToolCall("a", "f", "", item="i", signature="s", signed_by="gemini", at="/0/toolCalls/0")


@pytest.mark.parametrize("entry", [{"id": "a", "type": "mcp"}, {"id": "a", "type": "function"}])
def test_a_call_of_another_kind_is_opaque(entry):
    assert read_calls({"toolCalls": [entry]}, "") == [Opaque("raw", entry, at="/toolCalls/0")]


def test_no_calls_is_none_in_any_spelling():
    assert read_calls({}, "") == read_calls({"toolCalls": None}, "") == read_calls({"toolCalls": []}, "") == []


@pytest.mark.parametrize(
    ("calls", "pointer"),
    [
        ("x", "/toolCalls"),
        ([1], "/toolCalls/0"),
        ([{"function": {"name": "f"}}], "/toolCalls/0/id"),
        ([{"id": "a", "function": {}}], "/toolCalls/0/function/name"),
        ([{"id": "a", "function": {"name": "f", "arguments": {}}}], "/toolCalls/0/function/arguments"),
    ],
)
def test_a_broken_call_is_named(calls, pointer):
    assert fault_of(read_calls, {"toolCalls": calls}, "").pointer == pointer


def test_nothing_unread_leaves_no_trace():
    assert nest_extras({"a": 1}, "b", {}) == {"a": 1}
