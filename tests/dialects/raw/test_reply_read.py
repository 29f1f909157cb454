import json
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.dialects.raw.reply_read import read_reply
from sightline.errors import Code, Fault
from sightline.model.events import Ended, Failed, FieldReceived, Finished
from sightline.model.fold import fold
from sightline.model.parts import Citation, Image, Link, Opaque, Refusal, Text, Thinking, ToolCall
from sightline.model.usage import Usage
from tests.dialects.raw.test_request_read import JSON, places

CASES = sorted((Path(__file__).parents[2] / "wire_cases" / "raw").glob("*/reply.json"))


def carried(part):
    return {"type": 2, "value": {"type": "sightline", "part": part}}


def test_a_message_is_an_answer():
    reply = fold(
        read_reply(
            {
                "role": 2,
                "content": [{"type": 1, "text": "a"}],
                "finishReason": "length",
                "finishDetail": "MAX",
                "usage": {"prompt_tokens": 3, "completion_tokens": 4},
                "model": "m",
                "id": "i",
                "created": 9,
            }
        )
    )
    assert reply.choice.parts == (Text("a", at="/content/0"),)
    assert (reply.choice.finish, reply.choice.detail, reply.choice.finish_at) == ("length", "MAX", "/finishReason")
    assert (reply.model, reply.id, reply.created) == ("m", "i", 9)
    assert reply.usage == Usage(input_tokens=3, output_tokens=4, at="/usage")


def test_every_part_arrives():
    content = [
        {"type": 2, "value": {"type": "thinking", "thinking": {"text": ["a", "b"], "id": "r"}}},
        {"type": 2, "value": {"type": "thinking", "thinking": {"text": "t", "summary": ["s"], "encrypted": "e"}}},
        {"type": 2, "value": {"type": "thinking", "thinking": {"text": "", "encrypted": "e", "redacted": True}}},
        {"type": 1, "text": "x", "sightline": {"signature": "s", "signed_by": "gemini", "citations": [{"url": "u"}]}},
        carried({"type": "refusal", "text": "No."}),
        {"type": 0, "imageUrl": {"url": "u"}},
        {"type": 2, "value": 5},
    ]
    entry = {
        "id": "a",
        "type": "function",
        "function": {"name": "f", "arguments": "{}"},
        "sightline": {"signature": "s", "signed_by": "gemini", "item": "i"},
    }
    reply = fold(read_reply({"role": 2, "content": content, "toolCalls": [entry, {"type": "mcp"}]}))
    assert reply.choice.parts == (
        Thinking("a\n\nb", ("a", "b"), "r", signed_by="raw", at="/content/0"),
        Thinking("t", ("s",), signature="e", signed_by="raw", at="/content/1"),
        Thinking("", signature="e", signed_by="raw", redacted=True, at="/content/2"),
        Text("x", (Citation(url="u", at="/content/3/sightline/citations/0"),), "s", "gemini", at="/content/3"),
        Refusal("No.", at="/content/4"),
        Image(Link("u"), at="/content/5"),
        Opaque("raw", {"type": 2, "value": 5}, at="/content/6"),
        ToolCall("a", "f", "{}", item="i", signature="s", signed_by="gemini", at="/toolCalls/0"),
        Opaque("raw", {"type": "mcp"}, at="/toolCalls/1"),
    )
    assert reply.choice.finish == "tool_calls"


def test_a_call_of_a_kind_that_is_not_ours_to_answer_is_no_reason_to_wait():
    assert fold(read_reply({"role": 2, "content": [], "toolCalls": [{"type": "mcp"}]})).choice.finish == "stop"


def test_what_is_not_modelled_is_told_with_its_place():
    events = read_reply({"role": 2, "content": [{"type": 1, "text": "a", "x": 1}], "y": 2})
    assert [event for event in events if isinstance(event, FieldReceived)] == [
        FieldReceived("/content/0/x", 1),
        FieldReceived("/y", 2),
    ]


def test_other_choices_follow_the_first():
    other = {"role": 2, "content": "b", "finishReason": "length"}
    reply = fold(read_reply({"role": 2, "content": "a", "others": [other]}))
    assert [choice.finish for choice in reply.choices] == ["stop", "length"]
    assert reply.choices[1].parts == (Text("b", at="/others/0/content"),)


def test_an_error_body_is_a_failure():
    failed, ended = read_reply({"error": {"code": "rate_limited", "message": "slow down"}})
    assert isinstance(failed, Failed)
    assert (failed.fault.code, failed.fault.message) == (Code.RATE_LIMITED, "slow down")
    assert ended == Ended()


def test_a_reply_that_failed_on_its_way_keeps_what_came():
    body = {"role": 2, "content": "a", "finishReason": "error", "error": {"code": "network", "message": "cut"}}
    events = read_reply(body)
    reply = fold(events)
    assert not [event for event in events if isinstance(event, Finished)]
    assert reply.choice.parts == (Text("a", at="/content"),)
    assert reply.fault is not None
    assert (reply.choice.finish, reply.fault.code, reply.fault.message) == ("error", Code.NETWORK, "cut")
    assert events[-1] == Ended()


def test_an_end_in_error_without_a_message_is_still_a_failure():
    reply = fold(read_reply({"role": 2, "content": "a", "finishReason": "cancelled"}))
    assert reply.choice.finish == "cancelled"


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ([], ""),
        ({}, "/role"),
        ({"choices": []}, "/role"),
        ({"role": "assistant", "content": "a"}, "/role"),
        ({"role": 1, "content": "a"}, "/role"),
        ({"role": 2}, "/content"),
        ({"role": 2, "content": "a", "others": [{"role": 2}]}, "/others/0/content"),
        ({"role": 2, "content": "a", "others": [None] * 2000}, "/others"),
        ({"role": 2, "content": "a", "usage": 5}, "/usage"),
        ({"role": 2, "content": "a", "created": "now"}, "/created"),
        ({"role": 2, "content": "a", "finishReason": 5}, "/finishReason"),
    ],
)
def test_what_is_no_reply_is_named(body, pointer):
    with pytest.raises(Fault) as caught:
        read_reply(body)
    assert caught.value.pointer == pointer


@given(st.data())
def test_a_reply_with_something_foreign_in_it_is_read_or_refused_with_a_fault(data):
    document = json.loads(data.draw(st.sampled_from(CASES)).read_text())
    path = data.draw(st.sampled_from([path for path in places(document) if path]))
    holder = document
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = data.draw(JSON)
    with suppress(Fault):
        assert read_reply(document)[-1] == Ended()
