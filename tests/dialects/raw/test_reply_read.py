import json

import pytest

from sightline.dialects.raw.names import FIRST_CALL, read_error
from sightline.dialects.raw.reply_read import RawMachine, read_reply
from sightline.dialects.streaming import StreamReader
from sightline.errors import Code
from sightline.model.events import (
    ArgumentsReceived,
    CitationReceived,
    Ended,
    Failed,
    FieldReceived,
    Finished,
    FrameBroken,
    LogprobsReceived,
    PartReceived,
    RefusalReceived,
    SignatureReceived,
    Started,
    TextReceived,
    ThinkingReceived,
    UsageReceived,
)
from sightline.model.fold import fold
from sightline.model.parts import Citation, Image, Link, Opaque, Refusal, Text, Thinking, ToolCall
from sightline.model.reply import Usage
from sightline.wire.sse import Frame
from tests.dialects.reports import refused_at


def read(*frames, done=True):
    reader = StreamReader(RawMachine())
    events = [event for frame in frames for event in reader.feed(Frame(json.dumps(frame).encode()))]
    if done:
        events += reader.feed(Frame(b"[DONE]"))
    return events + reader.close()


def delta(text="", index=0, **fields):
    return {"index": index, "delta": {"text": text, **fields}}


def test_words_go_on_in_the_same_part():
    assert read({"text": "a", **delta("a")}, {"text": "ab", **delta("b")}) == [
        TextReceived(0, "a"),
        TextReceived(0, "b"),
        Finished("stop", at="/finishReason"),
        Ended(),
    ]


def test_empty_words_say_nothing_unless_they_name_their_part():
    assert read(delta(""))[:-2] == []
    assert read(delta("", part=2))[:-2] == [TextReceived(2, "")]


def test_another_kind_or_a_number_begins_another_part():
    image = {"type": 0, "imageUrl": {"url": "u"}}
    events = read(
        delta("a"),
        delta(thinking={"text": "t"}),
        delta("b"),
        delta("c", part=7),
        delta(refusal="r"),
        delta(parts=[image] * 2),
    )
    assert events[:-2] == [
        TextReceived(0, "a"),
        ThinkingReceived(1, "t"),
        TextReceived(2, "b"),
        TextReceived(7, "c"),
        RefusalReceived(8, "r"),
        PartReceived(9, Image(Link("u"), at="/5/delta/parts/0")),
        PartReceived(10, Image(Link("u"), at="/5/delta/parts/1")),
    ]


def test_reasoning_and_its_signature_may_come_apart():
    reply = fold(
        read(
            delta(thinking={"id": "r", "text": "a"}),
            delta(thinking={"id": "r", "text": "b"}),
            delta(thinking={"encrypted": "e", "metadata": {"toolId": "x"}}),
        )
    )
    assert reply.choice.parts == (Thinking("ab", id="r", signature="e", signed_by="raw"),)
    assert [(field.at, field.value) for field in reply.unmodelled] == [("/2/delta/thinking/metadata", {"toolId": "x"})]


def test_id_without_a_signature_is_reported_when_its_reasoning_ends():
    seal = SignatureReceived(0, None, "raw", id="r")
    thinking = delta(thinking={"id": "r", "text": "a"})
    assert read(thinking, delta("b"))[:-2] == [ThinkingReceived(0, "a"), seal, TextReceived(1, "b")]
    assert read(thinking, delta(part=3, thinking={"text": "b"}))[:-2] == [
        ThinkingReceived(0, "a"),
        seal,
        ThinkingReceived(3, "b"),
    ]
    assert read(thinking)[:-2] == [ThinkingReceived(0, "a"), seal]
    assert read(thinking, done=False)[:2] == [ThinkingReceived(0, "a"), seal]


def test_signature_is_reported_once_and_can_be_withdrawn():
    events = read(
        delta(thinking={"id": "r", "encrypted": "sightline:gemini::e"}),
        delta(thinking={"id": "r"}),
        delta(thinking={"id": None, "encrypted": None}),
    )
    assert [event for event in events if isinstance(event, SignatureReceived)] == [
        SignatureReceived(0, "e", "gemini", id="r"),
        SignatureReceived(0, None, "raw"),
    ]


def test_pieces_of_reasoning_are_kept_apart():
    reply = fold(read(delta(thinking={"text": ["a", "b"]})))
    assert reply.choice.parts == (Thinking("a\n\nb", ("a", "b")),)
    piece = delta(thinking={"text": "s", "summary": True, "piece": 1})
    assert read(piece)[0] == ThinkingReceived(0, "s", piece=1, summary=True)


def test_what_belongs_to_a_part_comes_beside():
    events = read(
        delta("a"),
        delta(sightline={"citations": [{"url": "u"}]}),
        delta("b", part=1),
        delta(part=0, sightline={"signature": "s", "signed_by": "gemini"}),
    )
    assert isinstance(events[1], CitationReceived)
    assert (events[1].part, events[1].citation.at) == (0, "/1/delta/sightline/citations/0")
    assert events[3] == SignatureReceived(0, "s", "gemini")


def test_foreign_sightline_member_is_reported_as_a_field():
    assert read(delta("a", sightline=5))[1] == FieldReceived("/0/delta/sightline", 5)


def test_calls_make_the_end():
    events = read(
        delta(copilotToolCalls=[{"name": "f", "arguments": "{}", "id": "a"}]), {"index": 0, "finishReason": "stop"}
    )
    assert events[-2] == Finished("tool_calls", at="/1/finishReason")


def test_identity_usage_and_logprobs_are_read():
    events = read(
        {"id": "i", "model": "m", "created": 3},
        delta("a", logprobs={"content": [{"token": "a", "logprob": -1}]}),
        {"index": 0, "finishReason": "length", "usage": {"prompt_tokens": 1}},
    )
    assert events[0] == Started("i", "m", 3, {"id": "/0/id", "model": "/0/model", "created": "/0/created"})
    assert isinstance(events[2], LogprobsReceived)
    assert events[3] == UsageReceived(Usage(input_tokens=1, at="/2/usage"))
    assert events[4] == Finished("length", at="/2/finishReason")


def test_content_before_the_fault_in_a_frame_is_kept():
    begun = delta(beginToolCalls=[{"name": "f", "id": "a"}])
    events = read(
        {**begun, "usage": 7},
        delta(copilotToolCalls=[{"name": "f", "arguments": "{}", "id": "a"}], logprobs=[]),
        {"index": 0, "finishReason": "stop"},
    )
    assert [event.at for event in events if isinstance(event, FrameBroken)] == ["/0/usage"]
    [call] = fold(events).choice.tool_calls
    assert (call.id, call.name, call.arguments) == ("a", "f", "{}")


def test_unknown_fields_are_reported_once():
    events = read({**delta("a", phase="x"), "extra": 1}, {**delta("b", phase="y"), "extra": 2})
    assert [event for event in events if isinstance(event, FieldReceived)] == [
        FieldReceived("/0/extra", 1),
        FieldReceived("/0/delta/phase", "x"),
    ]


def test_after_its_end_a_choice_hears_only_of_its_reasoning():
    events = read(
        delta("a"),
        {"index": 0, "finishReason": "stop"},
        {"index": 0, "finishReason": "length"},
        delta(""),
        delta("late", part=0),
        delta(thinking={"id": "r"}),
    )
    assert events == [
        TextReceived(0, "a"),
        FieldReceived("/4/delta", {"text": "late"}),
        SignatureReceived(1, None, "raw", id="r"),
        Finished("stop", at="/1/finishReason"),
        Ended(),
    ]


def test_choices_are_kept_separate():
    reply = fold(read(delta("a", 0), delta("b", 1), delta("c", 1), {"index": 1, "finishReason": "length"}))
    assert [choice.parts for choice in reply.choices] == [(Text("a"),), (Text("bc"),)]
    assert [choice.finish for choice in reply.choices] == ["stop", "length"]


def test_an_error_frame_is_the_end():
    events = read(
        delta(copilotToolCallStreamUpdates=[{"name": "f", "arguments": "half", "id": "a"}]),
        {"error": {"code": "overloaded", "message": "busy"}},
        delta("more"),
    )
    assert events[1] == ArgumentsReceived(FIRST_CALL, "half")
    assert isinstance(events[2], Failed)
    assert (events[2].fault.code, events[2].fault.message) == (Code.OVERLOADED, "busy")
    assert events[3:] == [Ended()]


def test_a_stream_that_is_cut_is_a_failure_and_keeps_what_came():
    events = read(delta(copilotToolCallStreamUpdates=[{"name": "f", "arguments": "half", "id": "a"}]), done=False)
    assert events[1] == ArgumentsReceived(FIRST_CALL, "half")
    assert isinstance(events[2], Failed)
    assert events[2].fault.code is Code.UPSTREAM_PROTOCOL
    assert events[3:] == [Ended()]


def test_a_stream_that_ends_after_its_finish_is_whole():
    assert read(delta("a"), {"finishReason": "stop"}, done=False)[-2:] == [
        Finished("stop", at="/1/finishReason"),
        Ended(),
    ]


def test_an_end_that_comes_too_early_for_one_choice_is_a_failure():
    events = read(delta("a", 0), delta("b", 1), {"index": 1, "finishReason": "stop"}, done=False)
    assert isinstance(events[-2], Failed)
    assert events[-1] == Ended()
    assert events.count(Ended()) == 1


def test_stream_with_reported_errors_and_no_finish_fails():
    error = {"type": "t", "code": "quota", "message": "empty", "agent": "a"}
    events = read(delta("a", copilotErrors=[error]), delta(copilotErrors=[{}]))
    assert isinstance(events[-2], Failed)
    assert events[-2].fault.code is Code.QUOTA
    finished = read(delta("a", copilotErrors=[error]), {"finishReason": "stop"})
    assert isinstance(finished[-2], Finished)


def test_a_stream_without_an_answer_is_no_success():
    assert isinstance(read({"id": "i"})[-2], Failed)


@pytest.mark.parametrize(
    ("frame", "pointer"),
    [
        ({"delta": 5}, "/0/delta"),
        ({"index": -1, "delta": {}}, "/0/index"),
        ({"index": 10**9, "delta": {}}, "/0/index"),
        ({"index": "x", "delta": {}}, "/0/index"),
        ({"index": [], "delta": {"text": "a"}}, "/0/index"),
        (delta(5), "/0/delta/text"),
        (delta("a", part=-1), "/0/delta/part"),
        (delta("a", part=FIRST_CALL), "/0/delta/part"),
        (delta(thinking={"text": 5}), "/0/delta/thinking/text"),
        (delta(thinking={"text": [5]}), "/0/delta/thinking/text/0"),
        (delta(parts=[{"type": 9}]), "/0/delta/parts/0/type"),
        (delta(copilotErrors={"a": 1}), "/0/delta/copilotErrors"),
    ],
)
def test_frame_of_the_wrong_shape_is_reported(frame, pointer):
    (broken, *_) = read(frame)
    assert isinstance(broken, FrameBroken)
    assert broken.at == pointer


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


def test_unmodelled_fields_are_reported_with_their_path():
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
    assert refused_at(read_reply, body) == pointer


def test_an_error_that_is_no_object_is_a_fault_with_its_words():
    fault = read_error(500, {"error": "it is broken"}, {})
    assert (fault.status, fault.message) == (500, "it is broken")
