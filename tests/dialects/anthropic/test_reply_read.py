import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.dialects.anthropic.reply_read import read_reply
from sightline.errors import Code, Fault
from sightline.model.events import Ended, Failed, FieldReceived, Finished, RefusalReceived, Started, UsageReceived
from sightline.model.fold import fold
from sightline.model.parts import Citation, Opaque, Text, Thinking, ToolCall
from sightline.model.usage import Usage

CASES = sorted((Path(__file__).parents[2] / "wire_cases" / "anthropic").glob("*/reply.json"))
DOCUMENTS = [json.loads(path.read_text()) for path in CASES]
WORDS = ["type", "text", "thinking", "tool_use", "input", "error", "message", "usage", "stop_reason", "end_turn"]
SCALARS = st.none() | st.booleans() | st.integers() | st.text(max_size=4) | st.sampled_from(WORDS)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=4),
    max_leaves=8,
)


def reply(*content, stop="end_turn", **more):
    return {"type": "message", "content": list(content), "stop_reason": stop, **more}


def test_a_reply_becomes_the_events_of_its_stream():
    events = read_reply(reply({"type": "text", "text": "hi"}, id="msg_1", model="claude", usage={"output_tokens": 2}))
    assert events[0] == Started("msg_1", "claude", places={"id": "/id", "model": "/model"})
    assert events[-3:] == [
        UsageReceived(Usage(output_tokens=2, at="/usage")),
        Finished("stop", at="/stop_reason", stop_at="/stop_sequence"),
        Ended(),
    ]
    assert fold(events).choice.parts == (Text("hi", at="/content/0"),)


def test_every_kind_of_block():
    citation: Any = {"type": "page_location", "cited_text": "x"}
    search: Any = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}
    parts = fold(
        read_reply(
            reply(
                {"type": "thinking", "thinking": "hm", "signature": "EqQB"},
                {"type": "thinking", "thinking": "", "signature": "EqQC"},
                {"type": "thinking", "thinking": "unsigned", "signature": ""},
                {"type": "redacted_thinking", "data": "EmwK"},
                {"type": "text", "text": "a", "citations": [citation], "cache_control": {"type": "ephemeral"}},
                search,
                {"type": "tool_use", "id": "t", "name": "f", "input": {"a": 1}},
            )
        )
    ).choice.parts
    assert parts == (
        Thinking("hm", signature="EqQB", signed_by="anthropic", at="/content/0"),
        Thinking("", signature="EqQC", signed_by="anthropic", at="/content/1"),
        Thinking("unsigned", at="/content/2"),
        Thinking(signature="EmwK", signed_by="anthropic", redacted=True, at="/content/3"),
        Text("a", (Citation(cited_text="x", value=citation, at="/content/4/citations/0"),), at="/content/4"),
        Opaque("anthropic", search, at="/content/5"),
        ToolCall("t", "f", '{"a":1}', at="/content/6"),
    )


@pytest.mark.parametrize(
    ("content", "stop", "finish"),
    [
        ([{"type": "tool_use", "id": "t", "name": "f", "input": {}}], "end_turn", "tool_calls"),
        ([{"type": "text", "text": "a"}], "tool_use", "stop"),
        ([{"type": "text", "text": "a"}], "refusal", "refusal"),
    ],
)
def test_the_finish_agrees_with_the_content(content, stop, finish):
    assert fold(read_reply(reply(*content, stop=stop))).choice.finish == finish


def test_unmodelled_fields_are_told_with_their_place():
    call = {"type": "tool_use", "id": "t", "name": "f", "input": {}, "caller": {"type": "direct"}}
    events = read_reply(reply(call, stop="refusal", stop_details={"type": "refusal"}, container=None))
    assert [event for event in events if isinstance(event, FieldReceived)] == [
        FieldReceived("/content/0/caller", {"type": "direct"}),
        FieldReceived("/stop_details", {"type": "refusal"}),
    ]


def test_an_error_body_is_a_failure():
    events = read_reply({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})
    assert isinstance(events[0], Failed)
    assert events[0].fault.code is Code.OVERLOADED
    assert events[1:] == [Ended()]


@pytest.mark.parametrize(
    ("document", "pointer"),
    [
        ("text", ""),
        ({"choices": []}, "/content"),
        ({"content": "text"}, "/content"),
        ({"content": []}, "/stop_reason"),
        ({"content": [], "stop_reason": "end_turn", "usage": []}, "/usage"),
        ({"content": [5], "stop_reason": "end_turn"}, "/content/0"),
    ],
)
def test_what_is_no_reply_names_the_place(document, pointer):
    with pytest.raises(Fault) as caught:
        read_reply(document)
    assert caught.value.pointer == pointer


@given(st.sampled_from(DOCUMENTS), st.sampled_from(list(DOCUMENTS[0])), JSON)
def test_any_json_is_read_or_refused(document, key, value):
    for candidate in (value, {**document, key: value}):
        try:
            events = read_reply(candidate)
        except Fault:
            continue
        assert events[-1] == Ended()
        fold(events)


def test_the_explanation_of_a_refusal_is_a_part_behind_the_blocks():
    details = {"type": "refusal", "category": None, "explanation": "because"}
    events = read_reply(reply({"type": "text", "text": "I "}, stop="refusal", stop_details=details))
    assert events[2:-2] == [
        RefusalReceived(1, "because", at="/stop_details/explanation"),
        FieldReceived("/stop_details/type", "refusal"),
    ]


@pytest.mark.parametrize(
    ("stop", "details"),
    [("end_turn", {"explanation": "because"}), ("refusal", {"explanation": ""}), ("refusal", "because")],
)
def test_details_that_explain_no_refusal_stay_whole(stop, details):
    events = read_reply(reply(stop=stop, stop_details=details))
    assert FieldReceived("/stop_details", details) in events
    assert fold(events).choice.parts == ()


def test_what_an_error_says_besides_its_words_comes_before_it():
    error = {"type": "overloaded_error", "message": "Overloaded"}
    events = read_reply({"type": "error", "error": error, "request_id": "req_1"})
    assert events[0] == FieldReceived("/request_id", "req_1")
    assert isinstance(events[1], Failed)
    assert events[2] == Ended()
