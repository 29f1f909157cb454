"""The content of a raw message, both ways."""

import pytest

from sightline.dialects.raw.content import (
    ContentWriter,
    read_calls,
    read_content,
    read_part,
    read_signature,
    read_thinking,
    write_signature,
    write_thinking,
)
from sightline.errors import Code, Fault
from sightline.model.parts import (
    CacheBreakpoint,
    Citation,
    FileId,
    Image,
    Inline,
    Link,
    Opaque,
    Refusal,
    Text,
    Thinking,
    ToolCall,
)
from sightline.model.report import Loss, Report


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


def test_sightline_fields_of_a_text_are_read_back():
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


def written(*parts, same=False):
    report = Report()
    return ContentWriter(report, same=same).parts(parts), report.losses


def test_kinds_of_the_schema_are_written_as_such():
    parts, losses = written(
        Text("a"),
        Image(Inline("image/png", "AAAA"), "high"),
        Image(Link("https://x")),
        CacheBreakpoint("ephemeral"),
        Thinking("hm"),
    )
    assert parts == [
        {"type": 1, "text": "a"},
        {"type": 0, "imageUrl": {"url": "data:image/png;base64,AAAA", "detail": "high"}},
        {"type": 0, "imageUrl": {"url": "https://x"}},
        {"type": 3, "cacheType": "ephemeral"},
        {"type": 2, "value": {"type": "thinking", "thinking": {"text": "hm"}}},
    ]
    assert losses == ()


def test_unmodelled_attributes_are_written_under_the_sightline_key():
    parts, losses = written(
        Text("a", (Citation(url="u", at="/9"),), "s", "gemini"),
        Image(Link("https://x", "image/webp"), signature="s", signed_by="gemini"),
    )
    assert parts[0]["sightline"] == {"signature": "s", "signed_by": "gemini", "citations": [{"url": "u"}]}
    assert parts[1]["sightline"] == {"signature": "s", "signed_by": "gemini", "media_type": "image/webp"}
    assert losses == ()


def test_other_kinds_are_carried():
    parts, losses = written(Refusal("No."), Image(FileId("f")), Opaque("anthropic", {"a": 1}))
    assert [part["value"]["type"] for part in parts] == ["sightline"] * 3
    assert losses == ()


def test_opaque_parts_of_our_own_are_written_as_they_were():
    value = {"type": 2, "value": 5, "scope": 1}
    assert written(Opaque("raw", value), same=True)[0] == [value]


def test_the_life_of_a_cache_mark_is_lost():
    parts, losses = written(CacheBreakpoint("ephemeral", "1h", at="/m/0"))
    assert parts == [{"type": 3, "cacheType": "ephemeral"}]
    assert losses == (Loss("/m/0", "life of a cache mark", "raw has no field for it", "option"),)


def test_unknown_fields_go_back_to_their_own_dialect_only():
    text = Text("a", extras={"x": 1})
    mark = CacheBreakpoint(extras={"cacheType": None, "y": 2})
    assert written(text, mark, same=True)[0] == [{"type": 1, "text": "a", "x": 1}, {"type": 3, "y": 2}]
    assert written(text, mark)[0] == [{"type": 1, "text": "a"}, {"type": 3, "cacheType": "ephemeral"}]


def test_calls_are_functions_whatever_they_were():
    writer = ContentWriter(Report(), same=False)
    assert writer.call(ToolCall("a", "f", "", namespace="ns", item="i", extras={"x": 1}), "a") == {
        "id": "a",
        "type": "function",
        "function": {"name": "ns__f", "arguments": "{}"},
        "sightline": {"item": "i"},
    }
    custom = writer.call(ToolCall("a", "f", "words", kind="custom"), "a")
    assert custom["function"] == {"name": "f", "arguments": '{"input":"words"}'}


def test_a_call_of_our_own_keeps_even_empty_arguments():
    call = ContentWriter(Report(), same=True).call(ToolCall("a", "f", "", extras={"x": 1}), "a")
    assert call == {"id": "a", "type": "function", "function": {"name": "f", "arguments": ""}, "x": 1}


def test_a_detail_that_the_schema_does_not_know_is_reported_and_not_written():
    parts, losses = written(Image(Link("https://x"), "auto", at="/a"), Image(Link("https://x"), "original", at="/b"))
    assert parts == [{"type": 0, "imageUrl": {"url": "https://x"}}] * 2
    assert [(loss.pointer, loss.severity) for loss in losses] == [("/a", "identity"), ("/b", "option")]
    assert written(Image(Link("https://x"), "auto"), same=True)[0][0]["imageUrl"]["detail"] == "auto"


def inner(part):
    return write_thinking(part)["value"]["thinking"]


@pytest.mark.parametrize(
    "part",
    [
        Thinking("words"),
        Thinking("words", id="t_0", signature="seal", signed_by="raw"),
        Thinking("words", id="t_0", signed_by="raw"),
        Thinking("words", signature="seal", signed_by="anthropic"),
        Thinking("", id="next", signature="seal", signed_by="gemini"),
        Thinking("", id="rs_1", signed_by="openai-responses"),
        Thinking("", signature="data", signed_by="anthropic", redacted=True),
        Thinking("a\n\nb", ("a", "b")),
        Thinking("whole", ("short",), id="rs_2", signature="e", signed_by="openai-responses"),
    ],
)
def test_reasoning_is_written_and_read_back(part):
    assert read_thinking(write_thinking(part), "") == part


def test_it_has_the_form_of_the_editor():
    part = Thinking("words", id="t_0", signature="seal", signed_by="raw")
    assert write_thinking(part) == {
        "type": 2,
        "value": {"type": "thinking", "thinking": {"id": "t_0", "text": "words", "encrypted": "seal"}},
    }


def test_pieces_of_a_summary_are_the_editors_list_of_texts():
    assert inner(Thinking("a\n\nb", ("a", "b"))) == {"text": ["a", "b"]}


def test_a_foreign_signature_names_its_maker():
    assert inner(Thinking("w", signature="s", signed_by="anthropic"))["encrypted"] == "sightline:anthropic::s"


def test_what_only_looks_like_a_wrapped_signature_is_our_own():
    assert read_signature("sightline:raw::x", None) == ("sightline:raw::x", "raw")
    assert read_signature("sightline:gemini:item:x", None) == ("sightline:gemini:item:x", "raw")
    assert write_signature("x", None) == "x"


def test_members_that_are_not_modelled_are_kept_where_they_stand():
    holder = {
        "type": 2,
        "value": {"type": "thinking", "thinking": {"text": "a", "metadata": {"toolId": "c"}}, "more": 1},
        "tokenUsage": 4,
    }
    part = read_thinking(holder, "/0/content/0")
    assert part is not None
    assert part.at == "/0/content/0"
    assert part.extras == {"tokenUsage": 4, "value": {"more": 1, "thinking": {"metadata": {"toolId": "c"}}}}


def test_an_absent_text_is_an_empty_one():
    part = read_thinking({"type": 2, "value": {"type": "thinking", "thinking": {"id": "a"}}}, "")
    assert part == Thinking("", id="a", signed_by="raw")


@pytest.mark.parametrize(
    "thinking",
    [None, 1, {"text": 1}, {"text": ["a", 2]}, {"summary": "s"}, {"id": 1}, {"encrypted": []}, {"redacted": "yes"}],
)
def test_another_form_is_not_reasoning_of_ours(thinking):
    assert read_thinking({"type": 2, "value": {"type": "thinking", "thinking": thinking}}, "") is None


@pytest.mark.parametrize("value", [None, "thinking", {"type": "stateful_marker", "thinking": {"text": "a"}}])
def test_an_opaque_part_of_another_kind_is_not_reasoning(value):
    assert read_thinking({"type": 2, "value": value}, "") is None
