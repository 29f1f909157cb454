from typing import Any

import pytest

from sightline.dialects.openai_chat import request_read
from sightline.dialects.signatures import wrap
from sightline.model.parts import (
    Audio,
    Document,
    FileId,
    Image,
    Inline,
    Link,
    Opaque,
    Refusal,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from sightline.model.request import Message
from tests.dialects.openai_chat.telling import read_request
from tests.dialects.reports import refused_at

read_call: Any = request_read.read_call


def message(**fields):
    return read_request({"messages": [fields]}).messages[0]


def part(value):
    return message(role="user", content=[value]).parts[0]


def test_each_message_is_one_message_in_its_place():
    request = read_request(
        {
            "model": "m",
            "messages": [
                {"role": "system", "content": "s"},
                {"role": "developer", "content": [{"type": "text", "text": "d"}]},
                {"role": "user", "content": "u", "name": "ada", "x": 1},
                {"role": "user", "content": []},
            ],
        }
    )
    assert request.messages == (
        Message("system", (Text("s", at="/messages/0/content"),), bare=True, at="/messages/0"),
        Message("developer", (Text("d", at="/messages/1/content/0"),), at="/messages/1"),
        Message("user", (Text("u", at="/messages/2/content"),), "ada", bare=True, at="/messages/2", extras={"x": 1}),
        Message("user", (), at="/messages/3"),
    )
    assert (request.model, request.dialect) == ("m", "openai-chat")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"type": "text", "text": "t", "x": 1}, Text("t", extras={"x": 1})),
        ({"type": "refusal", "refusal": "r"}, Refusal("r")),
        ({"type": "image_url", "image_url": {"url": "https://e.org/a"}}, Image(Link("https://e.org/a"))),
        (
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA==", "detail": "low", "x": 1}},
            Image(Inline("image/png", "AA=="), "low", extras={"image_url": {"x": 1}}),
        ),
        (
            {"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}, "x": 1},
            Audio(Inline("audio/wav", "AA=="), extras={"x": 1}),
        ),
        (
            {"type": "file", "file": {"file_data": "data:application/pdf;base64,AA==", "filename": "f"}},
            Document(Inline("application/pdf", "AA=="), "f"),
        ),
        (
            {"type": "file", "file": {"file_data": "JVBERi0=", "filename": "a.PDF", "x": 1}},
            Document(Inline("application/pdf", "JVBERi0="), "a.PDF", extras={"file": {"x": 1, "file_data": None}}),
        ),
        (
            {"type": "file", "file": {"file_data": "AAAA"}},
            Document(Inline("application/octet-stream", "AAAA"), extras={"file": {"file_data": None}}),
        ),
        ({"type": "file", "file": {"file_data": "https://e.org/a.pdf"}}, Document(Link("https://e.org/a.pdf"))),
        ({"type": "file", "file": {"file_id": "file-1"}}, Document(FileId("file-1"))),
    ],
)
def test_every_kind_of_part(value, expected):
    found = part(value)
    assert found.at == "/messages/0/content/0"
    assert found == type(expected)(**{**_fields(expected), "at": found.at})


def _fields(value):
    return {name: getattr(value, name) for name in value.__struct_fields__}


@pytest.mark.parametrize(
    "value",
    [
        {"type": "video_url", "video_url": {"url": "u"}},
        {"type": "video_url"},
        {"type": ["text"]},
        {"text": "no type"},
        {"type": "image_url", "image_url": "https://e.org/a"},
        {"type": "file", "file": {}},
        {"type": "file", "file": {"file_id": "a", "file_data": "b"}},
    ],
)
def test_a_part_that_is_unknown_is_kept_whole(value):
    assert part(value) == Opaque("openai-chat", value, at="/messages/0/content/0")


def test_an_assistant_message_is_reasoning_then_words_then_calls():
    found = message(
        role="assistant",
        content="words",
        reasoning_content="hm",
        refusal="no",
        audio={"id": "a1", "x": 1},
        tool_calls=[
            {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{ }"}},
            {"id": "c2", "type": "custom", "custom": {"name": "g", "input": "text"}},
            {"id": "c3", "type": "mcp", "mcp": {}},
        ],
        function_call={"name": "old", "arguments": "{}", "y": 1},
    )
    at = "/messages/0"
    assert found.parts == (
        Thinking("hm", at=f"{at}/reasoning_content"),
        Text("words", at=f"{at}/content"),
        Refusal("no", at=f"{at}/refusal"),
        Audio(id="a1", at=f"{at}/audio", extras={"x": 1}),
        ToolCall("c1", "f", "{ }", at=f"{at}/tool_calls/0"),
        ToolCall("c2", "g", "text", kind="custom", at=f"{at}/tool_calls/1"),
        Opaque("openai-chat", {"id": "c3", "type": "mcp", "mcp": {}}, at=f"{at}/tool_calls/2"),
        ToolCall("", "old", "{}", at=f"{at}/function_call", extras={"y": 1}),
    )


def test_reasoning_under_two_names_is_one_and_reasoning_of_another_shape_is_opaque():
    found = message(role="assistant", content=None, reasoning_content="hm", reasoning="hm", reasoning_text=["x"])
    assert found.parts == (
        Thinking("hm", at="/messages/0/reasoning_content"),
        Opaque("openai-chat", {"reasoning": "hm"}, mirrored=True, at="/messages/0/reasoning"),
        Opaque("openai-chat", {"reasoning_text": ["x"]}, at="/messages/0/reasoning_text"),
    )


def test_the_providers_own_signatures_are_parts_at_their_own_places():
    found = message(role="assistant", content="", reasoning_text="hm", reasoning_opaque="c2ln", cot_id="cot_1")
    assert found.parts[:3] == (
        Thinking("hm", at="/messages/0/reasoning_text"),
        Thinking(signature="c2ln", signed_by="openai-chat", at="/messages/0/reasoning_opaque"),
        Thinking(id="cot_1", signed_by="openai-chat", at="/messages/0/cot_id"),
    )


def test_reasoning_that_was_withheld_comes_back_as_such():
    seal, at = wrap("sig", "anthropic", "redacted"), "/messages/0/reasoning_opaque"
    found = message(role="assistant", content="x", reasoning_opaque=seal)
    assert found.parts[0] == Thinking(signature="sig", signed_by="anthropic", redacted=True, at=at)
    found = message(role="assistant", reasoning_content="", reasoning_opaque=seal)
    assert found.parts[0].redacted
    found = message(role="assistant", reasoning_content="hm", reasoning_opaque=seal)
    assert (found.parts[0].text, found.parts[0].id, found.parts[0].redacted) == ("hm", None, False)


def test_a_signature_of_another_dialect_that_comes_back_belongs_to_its_text():
    seal = wrap("sig", "anthropic")
    found = message(role="assistant", reasoning_content="hm", reasoning_opaque=seal)
    at = "/messages/0/reasoning_content"
    assert found.parts == (Thinking("hm", signature="sig", signed_by="anthropic", at=at),)
    found = message(role="assistant", content="x", reasoning_opaque=seal)
    at = "/messages/0/reasoning_opaque"
    assert found.parts[0] == Thinking(signature="sig", signed_by="anthropic", at=at)


def test_a_tool_message_is_a_result():
    assert message(role="tool", tool_call_id="c1", content="ok", name="f", x=1) == Message(
        "tool",
        (ToolResult("c1", (Text("ok", at="/messages/0/content"),), "f", bare=True, at="/messages/0"),),
        at="/messages/0",
        extras={"x": 1},
    )
    [result] = message(role="tool", tool_call_id="", content="ok").parts
    assert result == ToolResult("", (Text("ok", at="/messages/0/content"),), bare=True, at="/messages/0")
    [result] = message(role="function", name="f", content="ok").parts
    assert (result.id, result.name) == ("", "f")


def test_googles_signature_beside_a_call_is_googles():
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    signed = read_call(call | {"extra_content": {"google": {"thought_signature": "s"}}}, "/c")
    assert (signed.signature, signed.signed_by, signed.extras) == ("s", "gemini", {})
    more = {"google": {"thought_signature": "s", "x": 1}}
    odd = read_call(call | {"extra_content": more}, "/c")
    assert (odd.signature, odd.extras) == (None, {"extra_content": more})
    assert read_call(call | {"extra_content": "x"}, "/c").extras == {"extra_content": "x"}


def test_arguments_are_kept_as_they_were_written():
    def arguments(function):
        return read_call({"id": "c", "type": "function", "function": {"name": "f", **function}}, "/c").arguments

    assert arguments({"arguments": '{ "a" : 1.0 }'}) == '{ "a" : 1.0 }'
    assert arguments({"arguments": {"a": 1}}) == '{"a":1}'
    assert arguments({"arguments": None}) == arguments({}) == ""


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ([], ""),
        ({}, "/messages"),
        ({"messages": {}}, "/messages"),
        ({"messages": ["hi"]}, "/messages/0"),
        ({"messages": [{"content": "hi"}]}, "/messages/0/role"),
        ({"messages": [{"role": "model", "content": "hi"}]}, "/messages/0/role"),
        ({"messages": [{"role": "user", "content": 7}]}, "/messages/0/content"),
        ({"messages": [{"role": "user", "content": ["hi"]}]}, "/messages/0/content/0"),
        ({"messages": [{"role": "user", "content": [{"type": "text"}]}]}, "/messages/0/content/0/text"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "/messages/0/tool_call_id"),
        ({"messages": [{"role": "assistant", "tool_calls": [{"function": {}}]}]}, "/messages/0/tool_calls/0/id"),
        ({"messages": [{"role": "assistant", "tool_calls": {"a": 1}}]}, "/messages/0/tool_calls"),
        ({"messages": [], "model": 3}, "/model"),
        ({"messages": [], "stream_options": []}, "/stream_options"),
    ],
)
def test_a_body_that_is_not_of_this_dialect_is_a_fault_with_its_place(body, pointer):
    assert refused_at(read_request, body) == pointer
