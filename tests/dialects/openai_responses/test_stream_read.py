import pytest

from sightline.dialects.openai_responses import DIALECT
from sightline.dialects.openai_responses.names import NAME
from sightline.dialects.translate import StreamTranslation
from sightline.errors import Code
from sightline.model.events import (
    ArgumentsReceived,
    CitationReceived,
    Ended,
    Failed,
    FieldReceived,
    Finished,
    FrameBroken,
    RefusalReceived,
    Started,
    TextReceived,
    ThinkingReceived,
    ToolCallBegun,
    ToolCallCompleted,
)
from sightline.model.fold import fold
from sightline.model.parts import Text, Thinking, ToolCall
from sightline.wire.jsontext import encode
from sightline.wire.sse import Frame, encode_frame
from tests.dialects.openai_responses.cases import streamed

CREATED = {"type": "response.created", "response": {"id": "resp_1", "model": "m", "created_at": 5}}
DONE = {"type": "response.completed", "response": {"id": "resp_1", "status": "completed"}}
TEXT = {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "item_id": "msg_1"}
ITEM = {"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": "Hi"}]}
CALL = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "f", "arguments": ""}


def added(item, index=0):
    return {"type": "response.output_item.added", "output_index": index, "item": item}


def done(item, index=0):
    return {"type": "response.output_item.done", "output_index": index, "item": item}


def arguments(kind, **fields):
    return {"type": f"response.function_call_arguments.{kind}", "output_index": 0, "item_id": "fc_1", **fields}


def parts(*frames):
    return fold(streamed(*frames, DONE)).choice.parts


def test_created_time_is_reported_at_the_start():
    events = streamed(CREATED, {**CREATED, "type": "response.in_progress"}, DONE)
    assert [type(event) for event in events] == [Started, Started, Finished, Ended]
    assert events[0].created == 5


def test_words_come_as_they_come_and_snapshots_add_nothing():
    events = streamed(
        {**TEXT, "delta": "H"},
        {**TEXT, "delta": "i", "logprobs": [], "obfuscation": "x"},
        {**TEXT, "type": "response.output_text.done", "text": "Hi", "logprobs": []},
        done(ITEM),
        {**DONE, "response": {"output": [ITEM]}},
    )
    assert [event for event in events if isinstance(event, TextReceived)] == [
        TextReceived(0, "H", at="/0/delta"),
        TextReceived(0, "i"),
    ]


@pytest.mark.parametrize(
    "frames",
    [
        [{**TEXT, "type": "response.output_text.done", "text": "Hi"}],
        [{**TEXT, "delta": ""}, {**TEXT, "type": "response.output_text.done", "text": "Hi"}],
        [done(ITEM)],
        [{"type": "response.output_text.delta", "output_index": 0, "delta": "Hi"}, done(ITEM)],
        [added({**ITEM, "content": []}), done(ITEM), done(ITEM)],
    ],
)
def test_whatever_tells_the_words_first_tells_them_once(frames):
    assert [part.text for part in parts(*frames) if isinstance(part, Text)] == ["Hi"]


def test_the_last_snapshot_is_enough():
    (part,) = fold(streamed({**DONE, "response": {"output": [ITEM]}})).choice.parts
    assert part == Text("Hi", at="/0/response/output/0/content/0")


def test_an_item_is_known_by_its_id_where_positions_have_gaps():
    other = {**ITEM, "id": "msg_2"}
    found = fold(streamed(done(ITEM, 3), {**DONE, "response": {"output": [ITEM, other]}})).choice.parts
    assert len(found) == 2


def test_refusals():
    refusal = {**TEXT, "type": "response.refusal.delta", "delta": "No"}
    events = streamed(refusal, {**TEXT, "type": "response.refusal.done", "refusal": "No"}, DONE)
    assert events[0] == RefusalReceived(0, "No", at="/0/delta")
    assert isinstance(events[-2], Finished)
    assert events[-2].finish == "refusal"


def test_citations_are_reported_once():
    note = {"type": "url_citation", "url": "u", "title": "t", "start_index": 0, "end_index": 1}
    second = {**note, "url": "v"}
    item = {**ITEM, "content": [{"type": "output_text", "text": "Hi", "annotations": [note, second]}]}
    frame = {**TEXT, "type": "response.output_text.annotation.added", "annotation_index": 0, "annotation": note}
    events = streamed({**TEXT, "delta": "Hi"}, frame, done(item), DONE)
    assert [event.citation.url for event in events if isinstance(event, CitationReceived)] == ["u", "v"]


def test_summaries_and_reasoning_are_two_things():
    place = {"output_index": 0, "item_id": "rs_1"}
    item = {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [{"type": "summary_text", "text": "ab"}, {"type": "summary_text", "text": "c"}],
        "content": [{"type": "reasoning_text", "text": "long"}],
        "encrypted_content": "enc",
    }
    summary, content = "response.reasoning_summary_text", "response.reasoning_text"
    (thinking,) = parts(
        added({"type": "reasoning", "id": "rs_1", "summary": []}),
        {"type": "response.reasoning_summary_part.added", **place, "summary_index": 0},
        {"type": f"{summary}.delta", **place, "summary_index": 0, "delta": "a"},
        {"type": f"{summary}.delta", **place, "summary_index": 0, "delta": "b"},
        {"type": f"{summary}.done", **place, "summary_index": 0, "text": "ab"},
        {"type": f"{summary}.done", **place, "summary_index": 1, "text": "c"},
        {"type": f"{content}.delta", **place, "content_index": 0, "delta": "long"},
        done(item),
    )
    expected = Thinking("long", ("ab", "c"), "rs_1", "enc", NAME, at="/2/delta")
    assert thinking == expected


def test_call_is_reported_from_its_start():
    events = streamed(
        added(CALL),
        arguments("delta", delta='{"a"'),
        arguments("delta", delta=":1}"),
        arguments("done", arguments='{"a":1}'),
        done({**CALL, "arguments": '{"a":1}'}),
        DONE,
    )
    assert [type(event) for event in events[:4]] == [
        ToolCallBegun,
        ArgumentsReceived,
        ArgumentsReceived,
        ToolCallCompleted,
    ]
    assert fold(events).choice.tool_calls == (ToolCall("c1", "f", '{"a":1}', item="fc_1", at="/0/item"),)
    assert fold(events).choice.finish == "tool_calls"


@pytest.mark.parametrize(
    "frames",
    [
        [
            added(CALL),
            arguments("delta", delta=""),
            arguments("done", arguments="{}"),
            done({**CALL, "arguments": "{}"}),
        ],
        [arguments("delta", delta="{}"), done({**CALL, "arguments": "{}"})],
        [added({**CALL, "name": None}), done({**CALL, "arguments": "{}"})],
        [added(CALL), added(CALL), done({**CALL, "arguments": "{}"})],
        [added(None), done({**CALL, "arguments": "{}"})],
    ],
)
def test_arguments_are_reported_once(frames):
    (call,) = parts(*frames)
    assert isinstance(call, ToolCall)
    assert call.arguments == "{}"


def test_custom_input():
    item = {"type": "custom_tool_call", "id": "ctc_1", "call_id": "c1", "name": "f", "input": ""}
    kind = "response.custom_tool_call_input"
    (call,) = parts(
        added(item),
        {"type": f"{kind}.delta", "output_index": 0, "delta": "a b"},
        {"type": f"{kind}.done", "output_index": 0, "input": "a b"},
        done({**item, "input": "a b"}),
    )
    assert (call.kind, call.arguments) == ("custom", "a b")


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        ({"type": "error", "code": "rate_limit_exceeded", "message": "slow"}, Code.RATE_LIMITED),
        ({"type": "error", "error": {"code": "server_error", "message": "x"}}, Code.UPSTREAM_ERROR),
        ({"error": {"message": "maximum context length"}}, Code.CONTEXT_OVERFLOW),
        (
            {"type": "response.failed", "response": {"error": {"code": "server_error", "message": "x"}}},
            Code.UPSTREAM_ERROR,
        ),
        ({"type": "response.failed", "response": {"status": "failed"}}, Code.UPSTREAM_ERROR),
        ({"type": "response.cancelled", "response": {}}, Code.CANCELLED),
        ({"type": "response.completed", "response": {"status": "failed"}}, Code.UPSTREAM_ERROR),
    ],
)
def test_a_failure_ends_the_stream_and_keeps_what_came(frame, code):
    events = streamed({**TEXT, "delta": "Hi"}, frame, DONE)
    assert isinstance(events[-2], Failed)
    assert events[-2].fault.code is code
    assert isinstance(events[-1], Ended)
    assert fold(events).choice.parts[0].text == "Hi"


@pytest.mark.parametrize(
    ("frame", "finish"),
    [
        (
            {"type": "response.incomplete", "response": {"incomplete_details": {"reason": "content_filter"}}},
            "content_filter",
        ),
        ({"type": "response.incomplete", "response": {"status": "in_progress"}}, "length"),
        ({"type": "response.completed", "response": {"status": "incomplete"}}, "length"),
        ({"type": "response.completed", "response": {"status": "in_progress"}}, "stop"),
    ],
)
def test_how_it_ended(frame, finish):
    assert fold(streamed(frame)).choice.finish == finish


def test_chat_done_marker_is_not_an_end_and_is_ignored_after_one():
    reader = DIALECT.stream_reader()
    assert isinstance(reader.feed(Frame(b"[DONE]"))[0], Failed)
    reader = DIALECT.stream_reader()
    assert isinstance(reader.feed(Frame(encode(DONE)))[-1], Ended)
    assert reader.feed(Frame(b"[DONE]")) == []
    assert reader.close() == []


def test_unknown_frames_and_fields_are_reported_once():
    strange = {"type": "response.sparkle", "x": 1}
    events = streamed(
        strange, strange, {**TEXT, "delta": "a", "mood": 1}, {**TEXT, "delta": "b", "mood": 2}, {"x": 1}, DONE
    )
    assert [event for event in events if isinstance(event, FieldReceived)] == [
        FieldReceived("/0", strange),
        FieldReceived("/2/mood", 1),
        FieldReceived("/4", {"x": 1}),
    ]
    assert [event.text for event in events if isinstance(event, TextReceived)] == ["a", "b"]


@pytest.mark.parametrize(
    "kind",
    ["response.web_search_call.searching", "response.content_part.added", "keepalive", "response.steer.accepted"],
)
def test_frames_that_tell_nothing_give_nothing(kind):
    assert streamed({"type": kind})[:-2] == []


@pytest.mark.parametrize(
    "frame",
    [
        {**TEXT, "output_index": "x", "delta": "x"},
        {**TEXT, "delta": 3},
        {**TEXT, "type": "response.output_text.done"},
        {"type": "response.completed"},
        {"type": "response.created", "response": 1},
        {"type": "response.output_item.done", "output_index": 0},
        {"type": "response.reasoning_text.delta", "output_index": 0, "content_index": "x", "delta": "x"},
    ],
)
def test_unreadable_frame_is_reported_as_broken(frame):
    (broken, *_) = streamed(frame)
    assert isinstance(broken, FrameBroken)
    assert broken.at.startswith("/0")


def test_thinking_may_come_without_the_number_of_its_piece():
    (event, *_) = streamed({"type": "response.reasoning_text.delta", "output_index": 2, "delta": "x"})
    assert event == ThinkingReceived(2000, "x", at="/0/delta")


PLACE = {"output_index": 0, "item_id": "x_1"}
CUSTOM = {"type": "custom_tool_call", "id": "x_1", "call_id": "c1", "name": "f", "input": ""}
REASONING = {"type": "reasoning", "id": "x_1", "summary": []}

GROWING = {
    "text": (
        {**ITEM, "content": []},
        {"type": "response.output_text", **PLACE, "content_index": 0},
        "text",
        lambda words: {**ITEM, "content": [{"type": "output_text", "text": words}]},
        "/content/0/text",
    ),
    "refusal": (
        {**ITEM, "content": []},
        {"type": "response.refusal", **PLACE, "content_index": 0},
        "refusal",
        lambda words: {**ITEM, "content": [{"type": "refusal", "refusal": words}]},
        "/content/0/refusal",
    ),
    "arguments": (
        CALL,
        {"type": "response.function_call_arguments", **PLACE},
        "arguments",
        lambda words: {**CALL, "arguments": words},
        "/arguments",
    ),
    "input": (
        CUSTOM,
        {"type": "response.custom_tool_call_input", **PLACE},
        "input",
        lambda words: {**CUSTOM, "input": words},
        "/input",
    ),
    "summary": (
        REASONING,
        {"type": "response.reasoning_summary_text", **PLACE, "summary_index": 0},
        "text",
        lambda words: {**REASONING, "summary": [{"type": "summary_text", "text": words}]},
        "/summary/0/text",
    ),
    "reasoning": (
        REASONING,
        {"type": "response.reasoning_text", **PLACE, "content_index": 0},
        "text",
        lambda words: {**REASONING, "content": [{"type": "reasoning_text", "text": words}]},
        "/content/0/text",
    ),
}
"""What is told in deltas: its item, its events, the field of its `.done`, its snapshot, and the words' place there."""


def words_of(part):
    return part.arguments if isinstance(part, ToolCall) else part.text


def deltas(start, event, *fragments):
    kind = event["type"]
    return [added(start), *({**event, "type": f"{kind}.delta", "delta": fragment} for fragment in fragments)]


@pytest.mark.parametrize("name", GROWING)
@pytest.mark.parametrize("teller", ["done", "item", "snapshot"])
@pytest.mark.parametrize("fragments", [("He", "l"), ("Hel",), ("",), ("Hello",)])
def test_a_snapshot_that_says_more_adds_the_rest(name, teller, fragments):
    start, event, key, item, _ = GROWING[name]
    frames = deltas(start, event, *fragments)
    if teller == "done":
        frames.append({**event, "type": f"{event['type']}.done", key: "Hello"})
    if teller in ("done", "item"):
        frames.append(done(item("Hello")))
    found = fold(streamed(*frames, {**DONE, "response": {"output": [item("Hello")]}}))
    assert [words_of(part) for part in found.choice.parts] == ["Hello"]
    assert not [field for field in found.unmodelled if field.value == "Hello"]


@pytest.mark.parametrize("name", GROWING)
@pytest.mark.parametrize("teller", ["done", "item", "snapshot"])
def test_contradicting_snapshot_is_reported_once_and_streamed_text_is_kept(name, teller):
    start, event, key, item, place = GROWING[name]
    frames = deltas(start, event, "Hel", "lo")
    expected = f"/3/response/output/0{place}"
    if teller == "item":
        frames.append(done(item("Hola")))
        expected = f"/3/item{place}"
    elif teller == "done":
        frames.append({**event, "type": f"{event['type']}.done", key: "Hola"})
        frames.append(done(item("Hola")))
        expected = f"/3/{key}"
    events = streamed(*frames, {**DONE, "response": {"output": [item("Hola")]}})
    assert [words_of(part) for part in fold(events).choice.parts] == ["Hello"]
    assert [event for event in events if isinstance(event, FieldReceived) and event.value == "Hola"] == [
        FieldReceived(expected, "Hola")
    ]
    assert not isinstance(events[-2], Failed)


@pytest.mark.parametrize("name", GROWING)
def test_a_snapshot_that_says_less_denies_nothing(name):
    start, event, key, item, _ = GROWING[name]
    frames = [*deltas(start, event, "Hello"), {**event, "type": f"{event['type']}.done", key: ""}, done(item("Hel"))]
    found = fold(streamed(*frames, {**DONE, "response": {"output": [item("")]}}))
    assert [words_of(part) for part in found.choice.parts] == ["Hello"]
    assert not [field for field in found.unmodelled if field.value in ("", "Hel")]


def test_contradicting_text_is_lost_content_in_other_dialects():
    frames = [CREATED, {**TEXT, "delta": "Hello"}, {**TEXT, "type": "response.output_text.done", "text": "Hola"}, DONE]
    translation = StreamTranslation(NAME, "raw")
    translation.feed(b"".join(encode_frame(Frame(encode(frame))) for frame in frames))
    assert [(loss.pointer, loss.severity) for loss in translation.report.losses if loss.what == "text"] == [
        ("/2/text", "content")
    ]


WORDS = {"type": "response.output_text.delta", "delta": "a"}
THOUGHT = {"type": "response.reasoning_text.delta", "delta": "hm"}
CALL_ITEM = {"type": "function_call", "name": "f", "arguments": ""}
ARGUMENTS = {"type": "response.function_call_arguments.delta", "delta": "{}"}


def grown(*frames):
    return [(event.part, type(event).__name__) for event in streamed(*frames) if hasattr(event, "part")]


def test_without_a_place_the_id_of_an_item_tells_which_it_is():
    frames = [
        {**THOUGHT, "item_id": "rs"},
        {**WORDS, "item_id": "msg"},
        {**THOUGHT, "item_id": "rs"},
        {"type": "response.output_item.added", "item": {**CALL_ITEM, "call_id": "c1"}},
        {"type": "response.output_item.added", "item": {**CALL_ITEM, "call_id": "c2"}},
        {**ARGUMENTS, "item_id": "c1"},
        {**ARGUMENTS, "item_id": "c2"},
        {"type": "response.output_item.done", "item": {**CALL_ITEM, "call_id": "c1", "arguments": "{}"}},
    ]
    assert grown(*frames) == [
        (0, "ThinkingReceived"),
        (1000, "TextReceived"),
        (0, "ThinkingReceived"),
        (2000, "ToolCallBegun"),
        (3000, "ToolCallBegun"),
        (2000, "ArgumentsReceived"),
        (3000, "ArgumentsReceived"),
        (2000, "ToolCallCompleted"),
    ]


def test_without_any_id_the_item_before_goes_on_as_long_as_the_kind_is_the_same():
    frames = [
        THOUGHT,
        THOUGHT,
        WORDS,
        {**WORDS, "item_id": ""},
        {"type": "response.output_item.added", "item": CALL_ITEM},
        ARGUMENTS,
        {"type": "response.output_item.done", "item": {**CALL_ITEM, "arguments": "{}"}},
    ]
    assert grown(*frames) == [
        *[(0, "ThinkingReceived")] * 2,
        *[(1000, "TextReceived")] * 2,
        *[(2000, "ToolCallBegun"), (2000, "ArgumentsReceived"), (2000, "ToolCallCompleted")],
    ]


def test_a_place_that_some_frames_name_counts_for_those_that_do_not():
    frames = [
        {"type": "response.output_item.added", "output_index": 4, "item": {"type": "message", "id": "m"}},
        {**WORDS, "item_id": "m"},
        {**WORDS, "item_id": "other"},
    ]
    assert grown(*frames) == [(4000, "TextReceived"), (5000, "TextReceived")]


def test_a_frame_that_repeats_the_words_of_an_item_means_the_last_of_its_kind():
    frames = [
        WORDS,
        {"type": "response.output_item.added", "item": {**CALL_ITEM, "call_id": "c1"}},
        {"type": "response.output_text.done", "text": "a"},
        {"type": "response.output_item.done", "item": {**ITEM, "id": "msg_9"}},
        WORDS,
    ]
    assert grown(*frames) == [(0, "TextReceived"), (1000, "ToolCallBegun"), (2000, "TextReceived")]


def test_arguments_of_which_nothing_says_whose_they_are_are_no_guess():
    added = [{"type": "response.output_item.added", "item": {**CALL_ITEM, "call_id": name}} for name in ("c1", "c2")]
    events = streamed(*added, ARGUMENTS)
    assert [event.at for event in events if isinstance(event, FrameBroken)] == ["/2/output_index"]
