"""Stop reasons and token counts, both ways."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.dialects.anthropic import DIALECT
from sightline.dialects.anthropic.names import finish_of
from sightline.dialects.anthropic.reply_read import read_plain, read_reply
from sightline.dialects.anthropic.usage import Counter, write_usage
from sightline.errors import Fault
from sightline.model.events import (
    ArgumentsReceived,
    Ended,
    Failed,
    FieldReceived,
    Finished,
    FrameBroken,
    PartReceived,
    RefusalReceived,
    SignatureReceived,
    Started,
    TextReceived,
    ThinkingReceived,
    ToolCallBegun,
    ToolCallCompleted,
    UsageReceived,
)
from sightline.model.fold import fold
from sightline.model.parts import Citation, Opaque, Text, Thinking, ToolCall
from sightline.model.reply import Usage
from sightline.wire.sse import Frame
from tests.dialects.reports import refused_at


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
    choice = fold(
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
    ).choice
    assert choice.finish == "tool_calls"  # whatever the word says, because there is a call to answer
    assert choice.parts == (
        Thinking("hm", signature="EqQB", signed_by="anthropic", at="/content/0"),
        Thinking("", signature="EqQC", signed_by="anthropic", at="/content/1"),
        Thinking("unsigned", at="/content/2"),
        Thinking(signature="EmwK", signed_by="anthropic", redacted=True, at="/content/3"),
        Text("a", (Citation(cited_text="x", value=citation, at="/content/4/citations/0"),), at="/content/4"),
        Opaque("anthropic", search, at="/content/5"),
        ToolCall("t", "f", '{"a":1}', at="/content/6"),
    )


def test_unmodelled_fields_are_reported_with_their_path():
    call = {"type": "tool_use", "id": "t", "name": "f", "input": {}, "caller": {"type": "direct"}}
    events = read_reply(reply(call, stop="refusal", stop_details={"type": "refusal"}, container=None))
    assert [event for event in events if isinstance(event, FieldReceived)] == [
        FieldReceived("/content/0/caller", {"type": "direct"}),
        FieldReceived("/stop_details", {"type": "refusal"}),
    ]


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
    assert refused_at(read_reply, document) == pointer


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


@pytest.mark.parametrize(
    ("word", "sequence", "finish", "detail"),
    [
        ("end_turn", None, "stop", None),
        ("stop_sequence", "END", "stop", None),
        ("stop_sequence", None, "stop", "stop_sequence"),
        ("max_tokens", None, "length", None),
        ("model_context_window_exceeded", None, "length", "model_context_window_exceeded"),
        ("tool_use", None, "tool_calls", None),
        ("refusal", None, "refusal", None),
        ("pause_turn", None, "pause", None),
        ("compaction", None, "pause", "compaction"),
        ("a_word_of_tomorrow", None, "stop", "a_word_of_tomorrow"),
    ],
)
def test_every_stop_reason_is_understood(word, sequence, finish, detail):
    assert finish_of(word, sequence) == (finish, detail)


WIRE: dict[str, Any] = {
    "input_tokens": 4,
    "cache_creation_input_tokens": 310,
    "cache_read_input_tokens": 18200,
    "output_tokens": 143,
    "output_tokens_details": {"thinking_tokens": 21},
    "cache_creation": {"ephemeral_1h_input_tokens": 310},
    "service_tier": "standard",
    "server_tool_use": None,
}


def test_cached_tokens_are_part_of_the_input():
    usage = Counter().read(WIRE, "/usage")
    assert usage == Usage(
        input_tokens=18514,
        output_tokens=143,
        cached_tokens=18200,
        cache_write_tokens=310,
        reasoning_tokens=21,
        cache_write_1h_tokens=310,
        at="/usage",
        extras={"cache_creation": {"ephemeral_1h_input_tokens": 310}, "service_tier": "standard"},
    )
    assert write_usage(usage, 0) == {key: value for key, value in WIRE.items() if value is not None}


def test_finer_counts_are_kept():
    usage = Counter().read({"output_tokens_details": {"thinking_tokens": 1, "poetry_tokens": 2}, "rhymes": 3}, "/u")
    assert usage == Usage(
        reasoning_tokens=1, at="/u", extras={"output_tokens_details": {"poetry_tokens": 2}, "rhymes": 3}
    )


def test_running_totals_replace_one_another():
    counter = Counter()
    counter.read({"input_tokens": 10, "cache_read_input_tokens": 5, "output_tokens": 1}, "/0")
    usage = counter.read({"output_tokens": 50}, "/9")
    assert usage == Usage(input_tokens=15, output_tokens=50, cached_tokens=5, at="/9")
    assert counter.read({"input_tokens": 12, "cache_read_input_tokens": 5}, "/10").input_tokens == 17


def test_a_stream_says_once_how_long_the_cache_keeps_what_was_written():
    counter = Counter()
    kept = {"ephemeral_5m_input_tokens": 100, "ephemeral_1h_input_tokens": 200}
    counter.read({"input_tokens": 1, "cache_creation_input_tokens": 300, "cache_creation": kept}, "/0")
    usage = counter.read({"output_tokens": 50}, "/9")
    assert (usage.input_tokens, usage.cache_write_tokens, usage.cache_write_1h_tokens) == (301, 300, 200)


def test_cache_write_tokens_are_summed_from_their_parts():
    usage = Counter().read({"input_tokens": 1, "cache_creation": {"ephemeral_5m_input_tokens": 100}}, "/u")
    assert (usage.input_tokens, usage.cache_write_tokens, usage.cache_write_1h_tokens) == (101, 100, None)


@pytest.mark.parametrize("odd", [None, "none", 5, [], {"ephemeral_1h_input_tokens": "many"}])
def test_an_odd_account_of_the_cache_is_carried_and_teaches_nothing(odd: Any):
    usage = Counter().read({"input_tokens": 1, "cache_creation": odd}, "/u")
    assert (usage.input_tokens, usage.cache_write_tokens, usage.cache_write_1h_tokens) == (1, None, None)
    assert usage.extras == ({} if odd is None else {"cache_creation": odd})


def test_nothing_counted_is_an_estimate_and_no_output():
    assert write_usage(None, 7) == {"input_tokens": 7, "output_tokens": 0}


def test_counts_of_another_provider_are_not_ours():
    assert write_usage(Usage(input_tokens=3, output_tokens=1, extras={"audio_tokens": 1}), 9) == {
        "input_tokens": 3,
        "output_tokens": 1,
    }


def test_a_count_is_a_number():
    with pytest.raises(Fault) as caught:
        Counter().read({"input_tokens": "four"}, "/usage")
    assert caught.value.pointer == "/usage/input_tokens"


@given(st.integers(0, 10**9), st.none() | st.integers(0, 10**9), st.none() | st.integers(0, 10**9))
def test_counts_come_back_exactly(fresh, written, cached):
    whole = fresh + (written or 0) + (cached or 0)
    usage = Usage(input_tokens=whole, output_tokens=1, cached_tokens=cached, cache_write_tokens=written, at="/u")
    assert Counter().read(write_usage(usage, 0), "/u") == usage


START: dict[str, Any] = {
    "type": "message_start",
    "message": {"id": "m", "model": "c", "usage": {"input_tokens": 3, "output_tokens": 1}},
}
END: list[dict[str, Any]] = [
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 9}},
    {"type": "message_stop"},
]


def read(*documents):
    reader = DIALECT.stream_reader()
    events = [event for document in documents for event in reader.feed(Frame(json.dumps(document).encode()))]
    return events + reader.close()


def block(index, **content_block):
    return {"type": "content_block_start", "index": index, "content_block": content_block}


def delta(index, **change):
    return {"type": "content_block_delta", "index": index, "delta": change}


def stop(index):
    return {"type": "content_block_stop", "index": index}


def test_words_and_counts():
    assert read(
        START, block(0, type="text", text=""), {"type": "ping"}, delta(0, type="text_delta", text="hi"), stop(0), *END
    ) == [
        Started("m", "c", places={"id": "/0/message/id", "model": "/0/message/model"}),
        UsageReceived(Usage(input_tokens=3, output_tokens=1, at="/0/message/usage")),
        TextReceived(0, "", at="/1/content_block"),
        TextReceived(0, "hi"),
        UsageReceived(Usage(input_tokens=3, output_tokens=9, at="/5/usage")),
        Finished("stop", at="/5/delta/stop_reason", stop_at="/5/delta/stop_sequence"),
        Ended(),
    ]


def test_thinking_with_its_signature_and_without():
    events = read(
        START,
        block(0, type="thinking", thinking="", signature=""),
        delta(0, type="thinking_delta", thinking="hm"),
        delta(0, type="signature_delta", signature=""),
        delta(0, type="signature_delta", signature="EqQB"),
        stop(0),
        block(1, type="redacted_thinking", data="EmwK"),
        stop(1),
        block(2, type="thinking", thinking="all at once", signature="EqQC"),
        *END,
    )
    assert events[2:-3] == [
        ThinkingReceived(0, "", at="/1/content_block"),
        ThinkingReceived(0, "hm"),
        SignatureReceived(0, "EqQB", "anthropic"),
        PartReceived(1, Thinking(signature="EmwK", signed_by="anthropic", redacted=True, at="/6/content_block")),
        ThinkingReceived(2, "all at once", at="/8/content_block"),
        SignatureReceived(2, "EqQC", "anthropic"),
    ]


def test_calls_as_they_are_written():
    events = read(
        START,
        block(0, type="tool_use", id="a", name="f", input={}, caller={"type": "direct"}),
        delta(0, type="input_json_delta", partial_json=""),
        delta(0, type="input_json_delta", partial_json='{"x": '),
        block(1, type="tool_use", id="b", name="g", input={}, caller={"type": "direct"}),
        delta(0, type="input_json_delta", partial_json="1}"),
        stop(0),
        stop(1),
        block(2, type="tool_use", id="c", name="h", input={"y": 2}),
        *END,
    )
    assert events[2:-3] == [
        ToolCallBegun(0, "a", "f", at="/1/content_block"),
        FieldReceived("/1/content_block/caller", {"type": "direct"}),
        ArgumentsReceived(0, '{"x": '),
        ToolCallBegun(1, "b", "g", at="/4/content_block"),
        ArgumentsReceived(0, "1}"),
        ToolCallCompleted(0),
        ArgumentsReceived(1, "{}"),
        ToolCallCompleted(1),
        ToolCallBegun(2, "c", "h", at="/8/content_block"),
        ArgumentsReceived(2, '{"y":2}'),
        ToolCallCompleted(2),
    ]
    assert events[-2] == Finished("tool_calls", at="/9/delta/stop_reason", stop_at="/9/delta/stop_sequence")


@pytest.mark.parametrize(("fragments", "value"), [(['{"q":', "1}"], {"q": 1}), (['{"q":'], '{"q":'), ([""], {})])
def test_a_server_tool_comes_whole(fragments, value):
    events = read(
        START,
        block(0, type="server_tool_use", id="s", name="web_search", input={}),
        *(delta(0, type="input_json_delta", partial_json=fragment) for fragment in fragments),
        stop(0),
        *END,
    )
    whole: Any = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": value}
    assert events[2] == PartReceived(0, Opaque("anthropic", whole, at="/1/content_block"))


def test_a_block_of_tomorrow_grows_by_its_deltas():
    events = read(
        START,
        block(0, type="compaction", content="a"),
        delta(0, type="compaction_delta", content="b", sealed=True),
        stop(0),
        *END,
    )
    whole: Any = {"type": "compaction", "content": "ab", "sealed": True}
    assert events[2] == PartReceived(0, Opaque("anthropic", whole, at="/1/content_block"))


def test_unmodelled_stream_fields_are_reported_once():
    events = read(
        {**START, "trace": 1},
        {"type": "dance", "step": 1},
        {"type": "dance", "step": 2},
        {**block(0, type="text", text=""), "trace": 2},
        {**delta(0, type="text_delta", text="a"), "pad": "x"},
        {**delta(0, type="text_delta", text="b", logit=1), "pad": "y"},
        delta(0, type="thinking_delta", thinking="?"),
        delta(0, type="thinking_delta", thinking="?"),
        block(1, type="thinking", thinking="", signature=""),
        delta(1, type="thinking_delta", thinking="hm", estimate=5),
        {"type": "message_delta", "delta": {"stop_reason": "refusal", "stop_details": {"type": "refusal"}}},
        {"type": "message_stop"},
    )
    assert [event for event in events if isinstance(event, FieldReceived)] == [
        FieldReceived("/0/trace", 1),
        FieldReceived("/1", {"type": "dance", "step": 1}),
        FieldReceived("/4/pad", "x"),
        FieldReceived("/5/delta/logit", 1),
        FieldReceived("/6/delta", {"type": "thinking_delta", "thinking": "?"}),
        FieldReceived("/9/delta/estimate", 5),
        FieldReceived("/10/delta/stop_details", {"type": "refusal"}),
    ]
    assert "".join(event.text for event in events if isinstance(event, TextReceived)) == "ab"
    assert events[-2] == Finished("refusal", at="/10/delta/stop_reason", stop_at="/10/delta/stop_sequence")


def test_stop_reason_beside_context_management_is_read():
    late = {**END[0], "context_management": {"applied_edits": []}}
    events = read(START, late, END[1])
    assert isinstance(events[-2], Finished)


def test_counts_may_come_after_the_finish():
    events = read(START, END[0], {**END[0], "usage": {"output_tokens": 10}}, END[1])
    assert [type(event) for event in events].count(Finished) == 1
    usage = fold(events).usage
    assert usage is not None
    assert usage.output_tokens == 10


def test_a_marker_of_another_dialect_says_nothing():
    reader = DIALECT.stream_reader()
    assert isinstance(reader.feed(Frame(b"[DONE]"))[0], Failed)


@pytest.mark.parametrize(
    ("frame", "pointer"),
    [
        ({"no": "type"}, "/1/type"),
        ({"type": "message_start"}, "/1/message"),
        (block("x", type="text", text=""), "/1/index"),
        (delta(7, type="text_delta", text="a"), "/1/index"),
        ({"type": "content_block_delta", "index": True, "delta": {}}, "/1/index"),
        ({"type": "content_block_stop"}, "/1/index"),
        ({"type": "message_delta", "usage": {}}, "/1/delta"),
        (block(0, type="tool_use", id="a", name="f", input=[]), "/1/content_block/input"),
    ],
)
def test_broken_frame_is_reported_and_skipped(frame, pointer):
    events = read(START, frame, *END)
    assert [event.at for event in events if isinstance(event, FrameBroken)] == [pointer]


def test_a_block_that_begins_twice_is_broken():
    events = read(START, block(0, type="text", text="a"), block(0, type="text", text="b"), *END)
    assert [event.at for event in events if isinstance(event, FrameBroken)] == ["/2/index"]


def test_the_end_of_a_block_that_never_began_is_nothing():
    assert not any(isinstance(event, FrameBroken) for event in read(START, stop(3), *END))


def test_a_null_does_not_hide_what_comes_later():
    events = read(
        {"type": "message_start", "message": {"id": "m", "stop_details": None}},
        {"type": "message_delta", "delta": {"stop_reason": None, "stop_details": {"category": "bio"}}},
        {"type": "message_delta", "delta": {"stop_reason": "refusal", "stop_details": {"explanation": "because"}}},
        {"type": "message_stop"},
    )
    assert FieldReceived("/1/delta/stop_details", {"category": "bio"}) in events
    assert RefusalReceived(0, "because", at="/2/delta/stop_details/explanation") in events


def test_what_an_error_in_a_stream_says_besides_its_words_comes_before_it():
    events = read({"type": "error", "error": {"type": "api_error", "message": "no"}, "request_id": "req_1"})
    assert events[0] == FieldReceived("/0/request_id", "req_1")
    assert isinstance(events[1], Failed)


PLAIN: dict[str, Any] = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-sonnet-4-5",
    "content": [{"type": "text", "text": "hi"}],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": {"input_tokens": 7, "output_tokens": 2, "cache_read_input_tokens": 3, "service_tier": "priority"},
}


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"id": None},
        {"usage": None},
        {"stop_details": None},
        {"stop_reason": "stop_sequence", "stop_sequence": "END"},
        {"stop_reason": "tool_use"},
        {"stop_reason": "a word of its own"},
        {"content": [{"type": "text", "text": "hi", "citations": None}]},
    ],
)
def test_a_reply_that_is_one_text_is_read_at_once_as_by_its_events(changes: dict[str, Any]) -> None:
    document = PLAIN | changes
    assert read_plain(document, "anthropic") == fold(read_reply(document), "anthropic")


@pytest.mark.parametrize(
    "changes",
    [
        {"type": "error"},
        {"container": {"id": "c"}},
        {"stop_details": {"explanation": "no"}},
        {"content": None},
        {"content": []},
        {"content": ["hi"]},
        {"content": [{"type": "text", "text": ""}]},
        {"content": [{"type": "text", "text": 1}]},
        {"content": [{"type": "thinking", "text": "hi"}]},
        {"content": [{"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}]},
        {"content": [{"type": "text", "text": "hi", "citations": [{"type": "char_location"}]}]},
        {"content": [{"type": "text", "text": "hi", "citations": ""}]},
        {"content": [{"type": "text", "text": "hi"}, {"type": "text", "text": "there"}]},
    ],
)
def test_any_other_reply_is_left_to_its_events(changes: dict[str, Any]) -> None:
    assert read_plain(PLAIN | changes, "anthropic") is None
    assert read_plain([PLAIN], "anthropic") is None
