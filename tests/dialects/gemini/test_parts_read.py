from typing import Any

import pytest

from sightline.dialects.gemini.parts import for_client, read_part
from sightline.errors import Fault
from sightline.model.parts import Audio, Document, Image, Inline, Link, Opaque, Text, Thinking, ToolCall, ToolResult


def read(part):
    return read_part(part, "/p")


def test_text_and_thoughts_with_their_seals():
    assert read({"text": "a"}) == Text("a", at="/p")
    assert read({"text": "", "thoughtSignature": "S"}) == Text("", signature="S", signed_by="gemini", at="/p")
    assert read({"text": "a", "thought": True, "thought_signature": "S", "x": 1}) == Thinking(
        "a", signature="S", signed_by="gemini", at="/p", extras={"x": 1}
    )
    assert read({"text": "a", "thought": False}) == Text("a", at="/p", extras={"thought": False})


def test_foreign_seals_are_unwrapped():
    wrapped = for_client("SIG", "anthropic", None)
    assert read({"text": "a", "thought": True, "thoughtSignature": wrapped}) == Thinking(
        "a", signature="SIG", signed_by="anthropic", at="/p"
    )
    redacted = for_client("DATA", "anthropic", "redacted")
    assert read({"text": "", "thought": True, "thoughtSignature": redacted}) == Thinking(
        "", signature="DATA", signed_by="anthropic", redacted=True, at="/p"
    )
    bound = for_client("ENC", "openai-responses", "rs_1")
    assert read({"text": "", "thought": True, "thoughtSignature": bound}).id == "rs_1"


def test_calls_in_either_spelling_even_mixed():
    assert read({"functionCall": {"id": "1", "name": "f", "args": {"a": 1}}}) == ToolCall("1", "f", '{"a":1}', at="/p")
    assert read({"function_call": {"name": "f", "args": {}}, "thoughtSignature": "S"}) == ToolCall(
        "", "f", "{}", signature="S", signed_by="gemini", at="/p"
    )
    assert read({"functionCall": {"name": "f", "willContinue": True}, "thought": True}) == ToolCall(
        "", "f", "{}", at="/p", extras={"thought": True, "functionCall": {"willContinue": True, "args": None}}
    )


def test_results_in_their_forms():
    def result(**fields):
        return read({"functionResponse": {"name": "f", **fields}})

    at = "/p/functionResponse/response"
    assert result(response={"output": "a"}) == ToolResult("", (Text("a", at=f"{at}/output"),), name="f", at="/p")
    assert result(response={"error": "a"}) == ToolResult(
        "", (Text("a", at=f"{at}/error"),), name="f", is_error=True, at="/p"
    )
    forms: list[Any] = [{"result": "a"}, {"output": 1}, {"output": "a", "error": "b"}, {}]
    for structured in forms:
        assert result(response=structured) == ToolResult("", name="f", structured=structured, at="/p")
    assert result(id="1", scheduling="SILENT") == ToolResult(
        "1", name="f", at="/p", extras={"functionResponse": {"scheduling": "SILENT", "response": None}}
    )


def test_pictures_in_results():
    part = {
        "function_response": {
            "response": {"output": "a"},
            "parts": [{"inline_data": {"mime_type": "image/png", "data": "AA"}}, {"new": 1}],
        }
    }
    at = "/p/function_response"
    assert read(part) == ToolResult(
        "",
        (
            Text("a", at=f"{at}/response/output"),
            Image(Inline("image/png", "AA"), at=f"{at}/parts/0"),
            Opaque("gemini", {"new": 1}, at=f"{at}/parts/1"),
        ),
        at="/p",
    )


def test_media_by_their_type():
    assert read({"inlineData": {"mimeType": "image/png", "data": "AA"}, "thoughtSignature": "S"}) == Image(
        Inline("image/png", "AA"), signature="S", signed_by="gemini", at="/p"
    )
    assert read({"inline_data": {"mimeType": "audio/wav", "data": "AA"}, "thoughtSignature": "S"}) == Audio(
        Inline("audio/wav", "AA"), at="/p", extras={"thoughtSignature": "S"}
    )
    assert read({"fileData": {"fileUri": "https://x/a"}, "videoMetadata": {"fps": 1}}) == Document(
        Link("https://x/a"), at="/p", extras={"videoMetadata": {"fps": 1}}
    )
    assert read({"file_data": {"file_uri": "u", "mime_type": "image/png", "displayName": "d"}}) == Image(
        Link("u", "image/png"), at="/p", extras={"file_data": {"displayName": "d"}}
    )


@pytest.mark.parametrize(
    "part",
    [{}, {"text": None}, {"executableCode": {"code": "x"}}, {"text": "a", "functionCall": {"name": "f"}}],
)
def test_what_is_unknown_or_says_two_things_stays_whole(part):
    assert read(part) == Opaque("gemini", part, at="/p")


@pytest.mark.parametrize(
    ("part", "pointer"),
    [
        (5, "/p"),
        ({"text": 5}, "/p/text"),
        ({"text": "a", "thought": "yes"}, "/p/thought"),
        ({"functionCall": []}, "/p/functionCall"),
        ({"function_call": {}}, "/p/function_call/name"),
        ({"functionCall": {"name": "f", "args": "{}"}}, "/p/functionCall/args"),
        ({"functionResponse": {"response": "a"}}, "/p/functionResponse/response"),
        ({"functionResponse": {"parts": {}}}, "/p/functionResponse/parts"),
        ({"inlineData": {}}, "/p/inlineData/data"),
        ({"fileData": {"file_uri": 5}}, "/p/fileData/file_uri"),
    ],
)
def test_wrong_shapes_are_named(part, pointer):
    with pytest.raises(Fault) as caught:
        read(part)
    assert caught.value.pointer == pointer
