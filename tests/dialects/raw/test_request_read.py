"""Reading a raw request, and what makes no sense in one."""

import json
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.dialects.raw.request import problems, read_request
from sightline.errors import Code, Fault
from sightline.model.message import Message
from sightline.model.parts import Opaque, Text, ToolCall, ToolResult

CASES = sorted((Path(__file__).parents[2] / "wire_cases" / "raw").glob("*/request.json"))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 5) | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["role", "content", "type", "text", "value", "part", "messages", "requestOptions", "tools"])
            | st.text(max_size=2),
            inner,
            max_size=3,
        )
    ),
)


def fault_of(document):
    with pytest.raises(Fault) as caught:
        read_request(document)
    assert caught.value.code is Code.INVALID_REQUEST
    return caught.value


def test_a_bare_list_is_a_request():
    request = read_request(
        [{"role": 0, "content": [{"type": 1, "text": "s"}]}, {"role": 1, "content": "u", "name": "n"}]
    )
    assert request.dialect == "raw"
    assert request.messages == (
        Message("system", (Text("s", at="/0/content/0"),), at="/0"),
        Message("user", (Text("u", at="/1/content"),), "n", bare=True, at="/1"),
    )


def test_an_object_names_model_and_options():
    request = read_request(
        {"model": "m", "messages": [{"role": 1, "content": []}], "requestOptions": {"temperature": 1}, "x": 1}
    )
    assert request.model == "m"
    assert request.messages[0].at == "/messages/0"
    assert request.options.temperature == 1
    assert request.extras == {"x": 1}


def test_empty_options_are_kept_although_they_say_nothing():
    assert read_request({"messages": [], "requestOptions": {}}).extras == {"requestOptions": {}}
    assert read_request({"messages": [], "requestOptions": None}).extras == {}


def test_an_assistants_calls_stand_behind_its_words():
    entry = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    (message,) = read_request([{"role": 2, "content": "w", "toolCalls": [entry], "phase": 1}]).messages
    assert message.parts == (Text("w", at="/0/content"), ToolCall("a", "f", "{}", at="/0/toolCalls/0"))
    assert message.extras == {"phase": 1}


def test_a_tool_message_is_one_result():
    document = [{"role": 3, "toolCallId": "a", "name": "f", "content": [{"type": 1, "text": "x"}], "y": 1}]
    (message,) = read_request(document).messages
    assert message.parts == (ToolResult("a", (Text("x", at="/0/content/0"),), "f", at="/0"),)
    assert message.extras == {"y": 1}


def test_a_result_gets_back_what_was_carried_beside_it():
    beyond = {"type": 2, "value": {"type": "sightline", "part": {"type": "tool_result", "id": "a", "is_error": True}}}
    (message,) = read_request([{"role": 3, "toolCallId": "a", "content": [beyond]}]).messages
    assert message.parts == (ToolResult("a", is_error=True, at="/0"),)


def test_a_result_for_another_call_in_its_place_stays_opaque():
    beyond = {"type": 2, "value": {"type": "sightline", "part": {"type": "tool_result", "id": "b", "is_error": True}}}
    (message,) = read_request([{"role": 3, "toolCallId": "a", "content": [beyond]}]).messages
    assert message.parts == (ToolResult("a", (Opaque("raw", beyond, at="/0/content/0"),), at="/0"),)


def test_fields_of_another_role_are_unknown_fields():
    (message,) = read_request([{"role": 1, "content": [], "toolCalls": [1], "toolCallId": 5}]).messages
    assert message.extras == {"toolCalls": [1], "toolCallId": 5}


def custom_history(arguments, name="patch"):
    return {
        "messages": [
            {
                "role": 2,
                "content": [],
                "toolCalls": [{"id": "a", "type": "function", "function": {"name": name, "arguments": arguments}}],
            },
            {"role": 3, "toolCallId": "a", "content": "ok"},
        ],
        "requestOptions": {"tools": [{"type": "custom", "custom": {"name": "patch"}}]},
    }


def test_a_call_of_a_custom_tool_gets_its_free_text_back():
    call, result = (message.parts[0] for message in read_request(custom_history('{"input":"words"}')).messages)
    assert (call.kind, call.arguments, result.kind) == ("custom", "words", "custom")


@pytest.mark.parametrize(
    ("arguments", "name"), [('{"input": "spaced"}', "patch"), ("{}", "patch"), ('{"input":"w"}', "f")]
)
def test_a_call_that_cannot_be_written_back_exactly_stays_a_function(arguments, name):
    call, result = (message.parts[0] for message in read_request(custom_history(arguments, name)).messages)
    assert (call.kind, call.arguments, result.kind) == ("function", arguments, "function")


@pytest.mark.parametrize(
    ("document", "pointer"),
    [
        (None, ""),
        ("text", ""),
        ({}, "/messages"),
        ({"messages": None}, "/messages"),
        ({"messages": [], "requestOptions": 5}, "/requestOptions"),
        ({"messages": [], "model": 5}, "/model"),
        ([5], "/0"),
        ([{"content": []}], "/0/role"),
        ([{"role": "user", "content": []}], "/0/role"),
        ([{"role": True, "content": []}], "/0/role"),
        ([{"role": 4, "content": []}], "/0/role"),
        ([{"role": -1, "content": []}], "/0/role"),
        ([{"role": 1}], "/0/content"),
        ([{"role": 1, "content": [], "name": 5}], "/0/name"),
        ([{"role": 3, "content": []}], "/0/toolCallId"),
        ([{"role": 3, "toolCallId": "a"}], "/0/content"),
        ({"messages": [{"role": 1, "content": [{"type": 7}]}]}, "/messages/0/content/0/type"),
    ],
)
def test_what_is_not_of_this_dialect_is_named(document, pointer):
    assert fault_of(document).pointer == pointer


@given(JSON)
def test_any_json_is_read_or_refused_with_a_fault(document):
    with suppress(Fault):
        assert read_request(document).dialect == "raw"


def places(value, path=()):
    yield path
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(inner, (*path, key))


@given(st.data())
def test_a_document_with_something_foreign_in_it_is_read_or_refused_with_a_fault(data):
    document = json.loads(data.draw(st.sampled_from(CASES)).read_text())
    path = data.draw(st.sampled_from([path for path in places(document) if path]))
    holder = document
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = data.draw(JSON)
    with suppress(Fault):
        assert read_request(document).dialect == "raw"


USER = {"role": 1, "content": "hi"}
CALL = {"role": 2, "content": [], "toolCalls": [{"id": "a", "type": "function", "function": {"name": "f"}}]}
RESULT = {"role": 3, "toolCallId": "a", "content": "x"}


def pointers(document):
    return [problem.pointer for problem in problems(read_request(document))]


def test_a_conversation_is_fine():
    assert pointers([USER, CALL, RESULT, USER]) == []


def test_there_must_be_something_to_answer():
    system = {"role": 0, "content": "s"}
    assert pointers([]) == [""]
    assert pointers([system]) == [""]
    assert pointers({"messages": [system]}) == ["/messages"]


def test_calls_and_results_must_stand_together():
    assert pointers([USER, RESULT]) == ["/1"]
    assert pointers([USER, CALL]) == ["/1/toolCalls/0"]
    assert pointers([USER, CALL, USER, RESULT]) == ["/1/toolCalls/0", "/3"]
