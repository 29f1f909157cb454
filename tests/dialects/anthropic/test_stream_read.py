import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.dialects.anthropic.reply_read import read_reply, stream_reader
from sightline.errors import Code
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
from sightline.model.parts import Opaque, Thinking
from sightline.model.usage import Usage
from sightline.wire.sse import Frame, SseDecoder

CASES = sorted((Path(__file__).parents[2] / "wire_cases" / "anthropic").glob("*/stream.sse"))
START: dict[str, Any] = {
    "type": "message_start",
    "message": {"id": "m", "model": "c", "usage": {"input_tokens": 3, "output_tokens": 1}},
}
END: list[dict[str, Any]] = [
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 9}},
    {"type": "message_stop"},
]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["type", "text", "x"]), inner),
    max_leaves=5,
)


def read(*documents):
    reader = stream_reader()
    events = [event for document in documents for event in reader.feed(Frame(json.dumps(document).encode()))]
    return events + reader.close()


def block(index, **content_block):
    return {"type": "content_block_start", "index": index, "content_block": content_block}


def delta(index, **change):
    return {"type": "content_block_delta", "index": index, "delta": change}


def stop(index):
    return {"type": "content_block_stop", "index": index}


PLACES = ("at", "places", "finish_at", "stop_at")


def bare(reply):
    """A reply without places and unmodelled fields."""

    def stripped(value):
        if isinstance(value, dict):
            return {key: stripped(inner) for key, inner in value.items() if key not in PLACES}
        return [stripped(inner) for inner in value] if isinstance(value, (list, tuple)) else value

    return stripped(msgspec.to_builtins(msgspec.structs.replace(reply, unmodelled=())))


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.parent.name)
def test_a_stream_folds_to_the_whole_reply(path):
    frames, reader = SseDecoder(), stream_reader()
    events = [event for frame in frames.feed(path.read_bytes()) for event in reader.feed(frame)] + reader.close()
    whole = read_reply(json.loads(path.with_name("reply.json").read_text()))
    assert bare(fold(events)) == bare(fold(whole))
    assert events[-1] == Ended()


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


@pytest.mark.parametrize(
    ("fragments", "value"),
    [(['{"q":', "1}"], {"q": 1}), (['{"q":'], '{"q":'), ([""], {})],
)
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


def test_what_is_not_modelled_is_told_once():
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


def test_a_stop_reason_beside_context_management_is_heard():
    late = {**END[0], "context_management": {"applied_edits": []}}
    events = read(START, late, END[1])
    assert isinstance(events[-2], Finished)


def test_counts_may_come_after_the_finish():
    events = read(START, END[0], {**END[0], "usage": {"output_tokens": 10}}, END[1])
    assert [type(event) for event in events].count(Finished) == 1
    usage = fold(events).usage
    assert usage is not None
    assert usage.output_tokens == 10


def test_an_error_ends_the_stream():
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    events = read(START, block(0, type="text", text="half"), error, *END)
    assert isinstance(events[-2], Failed)
    assert events[-2].fault.code is Code.OVERLOADED
    assert fold(events).choice.finish == "error"


@pytest.mark.parametrize("frames", [[], [START], [START, block(0, type="text", text="a")], [START, END[1]]])
def test_a_stream_that_stops_without_a_finish_has_failed(frames):
    events = read(*frames)
    assert isinstance(events[-2], Failed)
    assert events[-2].fault.code is Code.UPSTREAM_PROTOCOL


def test_a_marker_of_another_dialect_says_nothing():
    reader = stream_reader()
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
def test_a_broken_frame_is_told_and_passed_over(frame, pointer):
    events = read(START, frame, *END)
    assert [event.at for event in events if isinstance(event, FrameBroken)] == [pointer]


def test_a_block_that_begins_twice_is_broken():
    events = read(START, block(0, type="text", text="a"), block(0, type="text", text="b"), *END)
    assert [event.at for event in events if isinstance(event, FrameBroken)] == ["/2/index"]


def test_the_end_of_a_block_that_never_began_is_nothing():
    assert not any(isinstance(event, FrameBroken) for event in read(START, stop(3), *END))


FRAMES = [
    START,
    block(0, type="text", text=""),
    delta(0, type="text_delta", text="a"),
    block(1, type="tool_use", id="a", name="f", input={}),
    delta(1, type="input_json_delta", partial_json="{}"),
    stop(1),
    *END,
]


@given(st.integers(0, len(FRAMES) - 1), st.sampled_from(["type", "index", "delta", "content_block", "usage"]), JSON)
def test_any_frame_leads_to_exactly_one_end(position, key, value):
    frames = list(FRAMES)
    frames[position] = {**frames[position], key: value}
    events = read(*frames)
    assert [type(event) for event in events].count(Ended) == 1
    fold(events)


def test_a_null_does_not_hide_what_comes_later():
    events = read(
        {"type": "message_start", "message": {"id": "m", "stop_details": None}},
        {"type": "message_delta", "delta": {"stop_reason": None, "stop_details": {"category": "bio"}}},
        {"type": "message_delta", "delta": {"stop_reason": "refusal", "stop_details": {"explanation": "because"}}},
        {"type": "message_stop"},
    )
    assert FieldReceived("/1/delta/stop_details", {"category": "bio"}) in events
    assert RefusalReceived(0, "because", at="/2/delta/stop_details/explanation") in events


def test_what_an_error_says_besides_its_words_comes_before_it():
    events = read({"type": "error", "error": {"type": "api_error", "message": "no"}, "request_id": "req_1"})
    assert events[0] == FieldReceived("/0/request_id", "req_1")
    assert isinstance(events[1], Failed)
