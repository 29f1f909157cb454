import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.dialects.dialect import Target
from sightline.dialects.gemini import DIALECT
from sightline.dialects.gemini.request import read_request
from sightline.errors import Code, Fault
from sightline.model.message import Message
from sightline.model.parts import Text, ToolCall
from sightline.model.report import Report
from sightline.model.tools import ToolChoice
from sightline.wire.pointer import resolve

CASES = Path(__file__).parents[2] / "wire_cases" / "gemini"
REQUESTS = sorted(CASES.glob("*/request.json"))


def pointers(value):
    """Every `at` below a canonical value."""
    if isinstance(value, (tuple, list)):
        for item in value:
            yield from pointers(item)
    elif hasattr(value, "__struct_fields__"):
        if at := getattr(value, "at", ""):
            yield at
        for name in value.__struct_fields__:
            yield from pointers(getattr(value, name))


@pytest.mark.parametrize("path", REQUESTS, ids=lambda path: path.parent.name)
def test_a_document_comes_back_as_it_was_and_every_place_is_real(path):
    document = json.loads(path.read_bytes())
    request = read_request(document)
    report = Report()
    assert DIALECT.write_request(request, Target(), report) == document
    assert (report.losses, report.additions) == ((), ())
    assert DIALECT.problems(request) == []
    for at in [*pointers(request), *request.options.places.values()]:
        resolve(document, at)


def test_one_message_for_each_content_and_the_system_instruction_first():
    request = read_request(
        {
            "contents": [
                {"role": "user", "parts": [{"text": "a"}]},
                {"role": "model", "parts": [{"text": "b"}], "new": 1},
                {"parts": []},
            ],
            "systemInstruction": {"parts": [{"text": "s"}]},
        }
    )
    assert request.messages == (
        Message("system", (Text("s", at="/systemInstruction/parts/0"),), at="/systemInstruction"),
        Message("user", (Text("a", at="/contents/0/parts/0"),), at="/contents/0"),
        Message("assistant", (Text("b", at="/contents/1/parts/0"),), at="/contents/1", extras={"new": 1}),
        Message("user", at="/contents/2", extras={"role": None}),
    )
    assert request.dialect == "gemini"


def test_the_short_forms_of_google_s_examples():
    request = read_request({"contents": {"parts": {"text": "a"}}, "system_instruction": {"parts": {"text": "s"}}})
    assert [message.at for message in request.messages] == ["/system_instruction", "/contents"]
    assert request.messages[1].parts == (Text("a", at="/contents/parts"),)
    assert DIALECT.write_request(request, Target(), Report()) == {
        "systemInstruction": {"parts": [{"text": "s"}]},
        "contents": [{"parts": [{"text": "a"}]}],
    }


@pytest.mark.parametrize(
    ("instruction", "parts", "bare", "again"),
    [
        ("s", (Text("s", at="/systemInstruction"),), True, "s"),
        ([{"text": "s"}], (Text("s", at="/systemInstruction/0"),), False, {"parts": [{"text": "s"}]}),
        ({}, (), False, {}),
    ],
)
def test_other_forms_of_the_system_instruction(instruction, parts, bare, again):
    request = read_request({"contents": [], "systemInstruction": instruction})
    assert (request.messages[0].parts, request.messages[0].bare) == (parts, bare)
    written: Any = DIALECT.write_request(request, Target(), Report())
    assert written["systemInstruction"] == again


def test_both_spellings_may_stand_side_by_side():
    document: Any = {
        "contents": [
            {"role": "model", "parts": [{"function_call": {"name": "f", "args": {}}, "thoughtSignature": "S"}]}
        ],
        "generation_config": {
            "max_output_tokens": 5,
            "topK": 3,
            "thinking_config": {"thinking_level": "low", "x_y": 1},
            "speech_config": {},
            "response_mime_type": "application/json",
        },
        "tool_config": {"function_calling_config": {"mode": "ANY"}, "retrieval_config": {}},
        "safety_settings": [],
        "cached_content": "c",
    }
    request = read_request(document)
    assert request.messages[0].parts == (
        ToolCall("", "f", "{}", signature="S", signed_by="gemini", at="/contents/0/parts/0"),
    )
    assert request.tool_choice == ToolChoice("required", at="/tool_config/function_calling_config")
    assert request.extras == {
        "cached_content": "c",
        "generation_config": {"speech_config": {}},
        "tool_config": {"retrieval_config": {}},
    }
    assert request.options.places["max_tokens"] == "/generation_config/max_output_tokens"
    assert DIALECT.write_request(request, Target(), Report()) == {
        "contents": [
            {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "S"}]}
        ],
        "generationConfig": {
            "maxOutputTokens": 5,
            "topK": 3,
            "thinkingConfig": {"thinkingLevel": "low", "x_y": 1},
            "speech_config": {},
            "responseMimeType": "application/json",
        },
        "toolConfig": {"functionCallingConfig": {"mode": "ANY"}, "retrieval_config": {}},
        "safetySettings": [],
        "cachedContent": "c",
    }


@pytest.mark.parametrize(
    "more",
    [
        {"model": "models/gemini-3-pro"},
        {"tools": []},
        {"generationConfig": {}},
        {"generationConfig": {"responseMimeType": "text/x.enum", "responseSchema": {"enum": ["a"]}}},
        {"generationConfig": {"responseJsonSchema": {"type": "object"}, "responseSchema": {"type": "STRING"}}},
        {"toolConfig": {}},
        {"toolConfig": {"functionCallingConfig": {}}},
        {"contents": [{"role": "model"}]},
        {"contents": [{"role": "function", "parts": []}]},
    ],
)
def test_odd_documents_come_back_as_they_were(more):
    document = {"contents": [{"role": "user", "parts": [{"text": "a"}]}], **more}
    request = read_request(document)
    assert DIALECT.write_request(request, Target(), Report()) == document
    assert request.model == document.get("model", "")


@pytest.mark.parametrize(
    ("document", "pointer"),
    [
        (None, ""),
        ([], ""),
        ({}, "/contents"),
        ({"contents": "hello"}, "/contents"),
        ({"messages": []}, "/contents"),
        ({"contents": [5]}, "/contents/0"),
        ({"contents": [{"role": "assistant"}]}, "/contents/0/role"),
        ({"contents": [{"role": 5}]}, "/contents/0/role"),
        ({"contents": [{"parts": "a"}]}, "/contents/0/parts"),
        ({"contents": [], "system_instruction": 5}, "/system_instruction"),
        ({"contents": [], "tools": {}}, "/tools"),
        ({"contents": [], "model": 5}, "/model"),
        ({"contents": [], "generation_config": 5}, "/generation_config"),
        ({"contents": [], "toolConfig": []}, "/toolConfig"),
        ({"contents": [], "generationConfig": {"seed": "x"}}, "/generationConfig/seed"),
    ],
)
def test_a_body_that_is_not_of_the_dialect_fails_with_a_pointer(document, pointer):
    with pytest.raises(Fault) as caught:
        read_request(document)
    assert (caught.value.code, caught.value.pointer) == (Code.INVALID_REQUEST, pointer)


LEAVES = st.none() | st.booleans() | st.integers(-2, 9) | st.floats(allow_nan=False) | st.text(max_size=4)
WORDS = sorted(
    {word for path in REQUESTS for word in path.read_text().split('"')[1::2] if len(word) < 30}
    | {"function_call", "thought_signature", "generation_config", "mime_type"}
)
ANYTHING = st.recursive(
    LEAVES | st.sampled_from(WORDS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=4),
    max_leaves=20,
)


def mutated(value, path, replacement):
    """The document with one place replaced, the place chosen by the numbers of the path."""
    if not path or not value or not isinstance(value, (dict, list)):
        return replacement
    keys = list(value) if isinstance(value, dict) else list(range(len(value)))
    key = keys[path[0] % len(keys)]
    copy = value.copy()
    copy[key] = mutated(value[key], path[1:], replacement)
    return copy


@given(ANYTHING)
def test_any_json_is_read_or_refused(document):
    try:
        request = read_request(document)
    except Fault:
        return
    DIALECT.problems(request)
    DIALECT.write_request(request, Target(), Report())


@given(st.sampled_from(REQUESTS), st.lists(st.integers(0, 9), max_size=8), ANYTHING)
def test_a_mutated_document_is_read_or_refused_and_comes_back(path, places, replacement):
    document = mutated(json.loads(path.read_bytes()), places, replacement)
    try:
        request = read_request(document)
    except Fault:
        return
    DIALECT.problems(request)
    again = DIALECT.write_request(request, Target(), Report())
    assert DIALECT.write_request(read_request(again), Target(), Report()) == again
