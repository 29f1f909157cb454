import copy
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sightline.dialects.openai_responses.names import NAME
from sightline.errors import Fault
from sightline.model.message import Message
from sightline.model.parts import Opaque, Text, Thinking, ToolCall, ToolResult
from tests.dialects.openai_responses.cases import having, loaded, read, write


def items(*values):
    return read({"model": "m", "input": list(values)}).messages


def test_instructions_and_a_string_are_two_bare_messages():
    request = read({"model": "m", "instructions": "Be brief.", "input": "Hi"})
    assert request.messages == (
        Message("system", (Text("Be brief.", at="/instructions"),), bare=True, at="/instructions"),
        Message("user", (Text("Hi", at="/input"),), bare=True, at="/input"),
    )
    assert request.dialect == NAME


def test_instructions_may_be_a_list():
    (message,) = read(
        {"instructions": [{"type": "input_text", "text": "a"}, {"type": "message"}], "prompt": {}}
    ).messages
    assert message.parts == (
        Text("a", at="/instructions/0"),
        Opaque(NAME, {"type": "message"}, at="/instructions/1"),
    )


def test_there_is_one_message_for_every_item():
    found = items(
        {"role": "user", "content": "a"},
        {"type": "message", "role": "assistant", "id": "msg_1", "status": "completed", "content": []},
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "f", "arguments": "{ }", "namespace": "ns"},
        {"type": "custom_tool_call", "call_id": "c2", "name": "g", "input": "raw", "status": "completed"},
        {"type": "function_call_output", "call_id": "c1", "output": "ok", "name": "f"},
        {
            "type": "custom_tool_call_output",
            "id": "o",
            "call_id": "c2",
            "output": [{"type": "input_text", "text": "x"}],
        },
        {"type": "web_search_call", "id": "ws"},
        {"type": "file_search_output", "call_id": "c3"},
    )
    assert found == (
        Message("user", (Text("a", at="/input/0/content"),), bare=True, at="/input/0", extras={"type": None}),
        Message("assistant", id="msg_1", at="/input/1", extras={"status": "completed"}),
        Message("assistant", (Thinking(id="rs_1", signed_by=NAME, at="/input/2"),), at="/input/2"),
        Message("assistant", (ToolCall("c1", "f", "{ }", namespace="ns", item="fc_1", at="/input/3"),), at="/input/3"),
        Message(
            "assistant",
            (ToolCall("c2", "g", "raw", "custom", at="/input/4", extras={"status": "completed"}),),
            at="/input/4",
        ),
        Message(
            "tool",
            (ToolResult("c1", (Text("ok", at="/input/5/output"),), "f", bare=True, at="/input/5"),),
            at="/input/5",
        ),
        Message(
            "tool",
            (ToolResult("c2", (Text("x", at="/input/6/output/0"),), kind="custom", item="o", at="/input/6"),),
            at="/input/6",
        ),
        Message("assistant", (Opaque(NAME, {"type": "web_search_call", "id": "ws"}, at="/input/7"),), at="/input/7"),
        Message("tool", (Opaque(NAME, {"type": "file_search_output", "call_id": "c3"}, at="/input/8"),), at="/input/8"),
    )


def test_tools_in_the_input_stand_in_the_request_too():
    item = {"type": "additional_tools", "role": "developer", "tools": [{"type": "custom", "name": "c"}]}
    request = read({"input": [item]})
    (message,) = request.messages
    assert message.parts == (Opaque(NAME, item, mirrored=True, at="/input/0"),)
    assert message.extras == {"role": "developer"}
    assert [tool.at for tool in request.tools] == ["/input/0/tools/0"]


@pytest.mark.parametrize("key", ["prompt", "conversation", "previous_response_id"])
def test_the_provider_may_have_the_input(key):
    assert read({"model": "m", key: "x"}).messages == ()


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ([], ""),
        ({"model": "m", "messages": []}, "/input"),
        ({"input": {}}, "/input"),
        ({"input": "x", "model": 1}, "/model"),
        ({"input": "x", "instructions": 1}, "/instructions"),
        ({"input": [3]}, "/input/0"),
        ({"input": [{}]}, "/input/0/role"),
        ({"input": [{"type": 3}]}, "/input/0/type"),
        ({"input": [{"role": "tool", "content": "x"}]}, "/input/0/role"),
        ({"input": [{"role": "user", "content": 3}]}, "/input/0/content"),
        ({"input": [{"type": "function_call", "call_id": "c", "name": "f"}]}, "/input/0/arguments"),
        ({"input": [{"type": "function_call_output", "call_id": "c", "output": {}}]}, "/input/0/output"),
        ({"input": "x", "parallel_tool_calls": "yes"}, "/parallel_tool_calls"),
        ({"input": "x", "reasoning": "high"}, "/reasoning"),
    ],
)
def test_what_is_not_of_this_dialect_is_refused_with_its_place(body, pointer):
    with pytest.raises(Fault) as caught:
        read(body)
    assert caught.value.pointer == pointer


@pytest.mark.parametrize("case", having("request.json"), ids=lambda case: case.name)
def test_a_request_comes_back_as_it_was(case):
    body = loaded(case, "request.json")
    assert without_nulls(write(read(body))) == without_nulls(body)


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_nulls(inner) for key, inner in value.items() if inner is not None}
    return [without_nulls(inner) for inner in value] if isinstance(value, list) else value


scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=6)
words = st.sampled_from(
    ["type", "role", "content", "input", "tools", "name", "message", "function_call", "reasoning", "summary", "text"]
)
anything = st.recursive(
    scalars | words,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words | st.text(max_size=4), inner, max_size=5),
    max_leaves=25,
)


@given(body=anything)
@settings(max_examples=300)
def test_any_json_is_read_or_refused(body):
    with suppress(Fault):
        write(read(body))


@given(data=st.data())
@settings(max_examples=300)
def test_any_change_of_a_request_is_read_or_refused(data):
    case = data.draw(st.sampled_from(having("request.json")))
    body = copy.deepcopy(loaded(case, "request.json"))
    holder, key = data.draw(st.sampled_from(list(places(body))))
    holder[key] = data.draw(anything)
    with suppress(Fault):
        write(read(body))


def places(value):
    """Every member of every object and list."""
    members = (
        list(value.items() if isinstance(value, dict) else enumerate(value)) if isinstance(value, (dict, list)) else []
    )
    for key, inner in members:
        yield value, key
        yield from places(inner)
