"""Writing a raw reply: message, end, error."""

import json
from pathlib import Path

import pytest

from sightline.dialects.dialect import Client
from sightline.dialects.raw.names import read_error, read_finish, write_error, write_finish
from sightline.dialects.raw.reply_read import RawMachine, read_reply
from sightline.dialects.raw.reply_write import RawStreamWriter, write_reply
from sightline.dialects.streaming import StreamReader
from sightline.errors import Code, Fault, Numbers
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
    ToolCallBegun,
    ToolCallCompleted,
    UsageReceived,
)
from sightline.model.fold import fold
from sightline.model.parts import Citation, Image, Link, Opaque, Text, Thinking, ToolCall
from sightline.model.reply import Choice, Reply, TokenLogprob, Usage
from sightline.model.report import Report
from sightline.wire.sse import SseDecoder
from tests.contract.essence import essence
from tests.dialects.reports import added_at, losses

CASES = sorted((Path(__file__).parents[2] / "wire_cases" / "raw").glob("*/reply.json"))
STOP = (Finished("stop"), Ended())


def write(*events, client=None):
    report = Report()
    writer = RawStreamWriter(client or Client(), report)
    return b"".join(writer.feed(event) for event in events), report


def frames(*events, client=None):
    lines = write(*events, client=client)[0].decode().splitlines()
    return [json.loads(line[6:]) for line in lines if line.startswith("data: {")]


def read(data):
    decoder, reader = SseDecoder(), StreamReader(RawMachine())
    return [event for frame in decoder.feed(data) + decoder.close() for event in reader.feed(frame)] + reader.close()


def assert_same(*events):
    """What is streamed amounts to what is written whole."""
    data, report = write(*events)
    whole = write_reply(fold(events), Client(), Report())
    assert essence(fold(read(data))) == essence(fold(read_reply(whole)))
    return report


def test_plain_words_look_as_an_editor_gets_them():
    data, _ = write(Started("i", "m"), TextReceived(0, "a"), TextReceived(0, "b"), *STOP)
    assert data == (
        b'data: {"id":"i","model":"m"}\n\n'
        b'data: {"text":"a","index":0,"delta":{"text":"a"}}\n\n'
        b'data: {"text":"ab","index":0,"delta":{"text":"b"}}\n\n'
        b'data: {"index":0,"finishReason":"stop"}\n\n'
        b"data: [DONE]\n\n"
    )


def test_each_delta_carries_the_whole_text_so_far():
    written = frames(
        TextReceived(0, "I'll make "),
        TextReceived(0, "two changes", choice=1),
        TextReceived(0, "one change: "),
        ToolCallBegun(1, "a", "edit_file"),
        ArgumentsReceived(1, "{}"),
        Finished("tool_calls"),
        Finished("stop", choice=1),
        Ended(),
    )
    deltas = [(frame["index"], frame["text"]) for frame in written if "delta" in frame]
    whole = "I'll make one change: "
    assert deltas == [(0, "I'll make "), (1, "two changes"), (0, whole), (0, whole), (0, whole), (0, whole)]


def test_stateful_marker_is_written_at_the_end():
    events = (Started("resp_1", "m", marker="resp_1"), TextReceived(0, "a"), *STOP)
    written = frames(*events)
    assert written[-2] == {"text": "a", "index": 0, "delta": {"text": "", "statefulMarker": "resp_1"}}
    assert fold(read(write(*events)[0])).marker == "resp_1"
    whole = write_reply(fold(events), Client(), Report())
    assert whole["statefulMarker"] == "resp_1"
    assert fold(read_reply(whole)).marker == "resp_1"
    assert_same(*events)


def test_a_call_is_announced_shown_as_it_grows_and_delivered_once():
    written = frames(
        ToolCallBegun(4, "a", "f", item="i"),
        ArgumentsReceived(4, '{"x"'),
        ArgumentsReceived(4, ":1}"),
        SignatureReceived(4, "s", "gemini"),
        ToolCallCompleted(4),
        ToolCallBegun(5, "b", "g", namespace="ns", kind="custom"),
        ArgumentsReceived(5, "free"),
        ToolCallBegun(6, "c", "h"),
        Finished("tool_calls"),
        Ended(),
    )
    begun, grown = "beginToolCalls", "copilotToolCallStreamUpdates"
    kinds = [list(frame["delta"])[1] for frame in written[:-1]]
    assert kinds == [begun, grown, grown, begun, grown, begun, "copilotToolCalls"]
    updates = [frame["delta"][grown][0] for frame in written if grown in frame.get("delta", {})]
    assert [each["arguments"] for each in updates] == ['{"x"', '{"x":1}', '{"input":"free"}']
    assert updates[0] == {"name": "f", "arguments": '{"x"', "id": "a", "part": 4}
    assert written[0]["delta"]["beginToolCalls"] == [{"name": "f", "id": "a", "part": 4, "sightline": {"item": "i"}}]
    assert written[6]["delta"]["copilotToolCalls"] == [
        {
            "name": "f",
            "arguments": '{"x":1}',
            "id": "a",
            "part": 4,
            "sightline": {"signature": "s", "signed_by": "gemini"},
        },
        {"name": "ns__g", "arguments": '{"input":"free"}', "id": "b", "part": 5},
        {"name": "h", "arguments": "{}", "id": "c", "part": 6},
    ]


def test_parts_of_one_kind_stay_apart_and_keep_their_order():
    assert_same(
        TextReceived(3, "a"),
        TextReceived(5, "b"),
        TextReceived(3, "c"),
        TextReceived(3, ""),
        TextReceived(9, ""),
        TextReceived(9, "d"),
        ThinkingReceived(1, "t"),
        ThinkingReceived(1, "u", piece=1),
        ThinkingReceived(2, "s", summary=True),
        ThinkingReceived(2, "s", piece=1, summary=True),
        RefusalReceived(10, "No"),
        RefusalReceived(10, "."),
        PartReceived(11, Image(Link("u"))),
        PartReceived(12, Image(Link("v"))),
        *STOP,
    )


def test_signatures_and_citations_reach_their_parts():
    report = assert_same(
        SignatureReceived(0, "first", "gemini", id="next"),
        ThinkingReceived(1, "t"),
        SignatureReceived(1, None, "openai-responses", id="rs"),
        SignatureReceived(1, "e", "openai-responses"),
        TextReceived(2, "a"),
        CitationReceived(2, Citation(url="u")),
        TextReceived(3, "b"),
        SignatureReceived(2, "s", "gemini"),
        TextReceived(3, "c"),
        PartReceived(4, Image(Link("u"))),
        SignatureReceived(4, "s", "gemini"),
        PartReceived(5, Thinking("", redacted=True)),
        SignatureReceived(5, "d", "anthropic", id="x"),
        TextReceived(6, "z"),
        *STOP,
    )
    assert report.losses == ()


def test_calls_that_begin_out_of_order_are_put_in_order():
    assert_same(
        ToolCallBegun(5, "five", "f"),
        ToolCallBegun(4, "four", "f"),
        ArgumentsReceived(5, "five"),
        ArgumentsReceived(4, "four"),
        Finished("tool_calls"),
        Ended(),
    )


def test_calls_without_ids_get_the_same_ones_as_in_a_whole_reply_and_they_are_listed():
    events = (
        Started("rid"), ToolCallBegun(4, "", "f"), ToolCallBegun(5, "", "f"), Finished("tool_calls"),
        ToolCallBegun(4, "", "f", 1), Finished("tool_calls", 1), Ended(),
    )  # fmt: skip
    report = assert_same(*events)
    assert [frame["delta"]["beginToolCalls"][0]["id"] for frame in frames(*events)[1:3]] == ["call_rid_0", "call_rid_1"]
    assert added_at(report) == [
        "/toolCalls/0/id",
        "/toolCalls/1/id",
        "/others/0/toolCalls/0/id",
    ]


def test_text_after_a_call_moves_before_it_and_is_reported():
    report = assert_same(
        TextReceived(0, "a"),
        ToolCallBegun(1, "a", "f"),
        TextReceived(0, "b"),
        TextReceived(2, "c", at="/9"),
        TextReceived(3, "", at="/10"),
        Finished("tool_calls"),
        Ended(),
    )
    assert losses(report) == [("/9", "content"), ("/10", "content")]


def test_choices_likelihoods_and_counts():
    events = (
        TextReceived(0, "a", 0),
        TextReceived(0, "b", 1),
        LogprobsReceived((TokenLogprob("b", -0.5),), 1),
        Finished("length", 1, "MAX", "END"),
        Finished("stop", 0),
        UsageReceived(Usage(input_tokens=3)),
        UsageReceived(Usage(output_tokens=4)),
        Ended(),
    )
    assert_same(*events)
    assert frames(*events)[-1] == {
        "index": 1,
        "finishReason": "length",
        "finishDetail": "MAX",
        "stopSequence": "END",
        "usage": {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7},
    }
    assert "usage" not in frames(*events, client=Client(include_usage=False))[-1]


def test_identity_is_completed_as_it_arrives_and_finally_from_the_client():
    client = Client(id="c", model="cm", created=5)
    places = {"id": "/0/id"}
    written = frames(
        Started(id="i", places=places),
        Started(id="j", created=3),
        Started(),
        TextReceived(0, "a"),
        *STOP,
        client=client,
    )
    assert written[:2] == [{"id": "i"}, {"created": 3}]
    assert written[-1] == {"index": 0, "finishReason": "stop", "model": "cm"}


def test_a_failure_is_the_last_word():
    data, _ = write(
        TextReceived(0, "a"),
        ToolCallBegun(1, "a", "f"),
        ArgumentsReceived(1, "half"),
        Failed(Fault(Code.OVERLOADED, "busy")),
        Ended(),
    )
    assert data.endswith(b'data: {"error":{"code":"overloaded","message":"busy"}}\n\n')
    reply = fold(read(data))
    assert reply.choice.finish == "error"
    assert reply.choice.tool_calls[0].arguments == "half"


def test_field_and_broken_frame_events_are_not_written():
    assert write(FieldReceived("/x", 1), FrameBroken("/y", "z"))[0] == b""


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.parent.name)
def test_a_reply_survives_being_written(path):
    reply = fold(read_reply(json.loads(path.read_text())))
    report = Report()
    assert essence(fold(read_reply(write_reply(reply, Client(), report)))) == essence(reply)
    assert report.losses == ()


def test_known_identity_is_written_with_client_fallback():
    client = Client(id="c", model="cm", created=5)
    assert write_reply(Reply(), client, Report()) == {"role": 2, "content": [], "id": "c", "model": "cm", "created": 5}
    assert write_reply(Reply(), Client(), Report()) == {"role": 2, "content": []}
    known = write_reply(Reply(id="i", model="m", created=7), client, Report())
    assert (known["id"], known["model"], known["created"]) == ("i", "m", 7)


def test_words_behind_a_call_move_before_it_in_a_whole_reply_too():
    parts = (ToolCall("a", "f", ""), Text("w", at="/x"), Opaque("raw", {"type": "mcp"}, at="/toolCalls/1"))
    report = Report()
    document = write_reply(Reply(choices=(Choice(parts=parts, finish="tool_calls"),)), Client(), report)
    assert document["content"] == [{"type": 1, "text": "w"}]
    assert document["toolCalls"] == [
        {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}},
        {"type": "mcp"},
    ]
    assert losses(report) == [("/x", "content")]


def test_calls_without_ids_get_different_ones_that_are_listed():
    choice = Choice(parts=(ToolCall("", "f", "{}"), ToolCall("known", "f", "{}"), ToolCall("", "f", "{}")))
    report = Report()
    document = write_reply(Reply(choices=(choice, choice), id="rid"), Client(), report)
    assert [call["id"] for call in document["toolCalls"]] == ["call_rid_0", "known", "call_rid_2"]
    assert [call["id"] for call in document["others"][0]["toolCalls"]] == ["call_rid_1_0", "known", "call_rid_1_2"]
    assert [(addition.pointer, addition.severity) for addition in report.additions] == [
        ("/toolCalls/0/id", "identity"),
        ("/toolCalls/2/id", "identity"),
        ("/others/0/toolCalls/0/id", "identity"),
        ("/others/0/toolCalls/2/id", "identity"),
    ]
    unnamed = write_reply(Reply(choices=(choice,)), Client(), Report())
    assert [call["id"] for call in unnamed["toolCalls"]] == ["call_0", "known", "call_2"]


def test_a_reply_that_failed_has_what_came_and_the_error():
    reply = Reply(choices=(Choice(parts=(Text("a"),), finish="error"),), fault=Fault(Code.NETWORK, "cut"))
    assert write_reply(reply, Client(), Report()) == {
        "role": 2,
        "content": [{"type": 1, "text": "a"}],
        "finishReason": "error",
        "error": {"code": "network", "message": "cut"},
    }


@pytest.mark.parametrize("word", ["stop", "length", "content_filter", "refusal", "pause"])
def test_own_finish_reasons_round_trip_exactly(word):
    holder = write_finish(word, "DETAIL", "END")
    assert holder == {"finishReason": word, "finishDetail": "DETAIL", "stopSequence": "END"}
    assert read_finish(holder, 1, "/0", has_calls=False) == Finished(
        word, 1, "DETAIL", "END", at="/0/finishReason", stop_at="/0/stopSequence"
    )


@pytest.mark.parametrize(
    ("word", "has_calls", "finish", "detail"),
    [
        ("tool_calls", True, "tool_calls", None),
        ("tool_calls", False, "stop", None),
        ("stop", True, "tool_calls", None),
        ("function_call", True, "tool_calls", "function_call"),
        ("DONE", False, "stop", "DONE"),
        ("Iteration Done", False, "stop", "Iteration Done"),
        (None, False, "stop", None),
    ],
)
def test_the_end_agrees_with_the_content(word, has_calls, finish, detail):
    event = read_finish({"finishReason": word}, 0, "", has_calls=has_calls)
    assert isinstance(event, Finished)
    assert (event.finish, event.detail) == (finish, detail)


@pytest.mark.parametrize(("word", "code"), [("error", Code.UPSTREAM_ERROR), ("cancelled", Code.CANCELLED)])
def test_a_failure_is_never_a_finish(word, code):
    event = read_finish({"finishReason": word}, 0, "", has_calls=False)
    assert isinstance(event, Failed)
    assert event.fault.code is code


def test_unknown_finish_writes_nothing():
    assert write_finish(None, None, None) == {}


@pytest.mark.parametrize("code", list(Code))
def test_every_error_code_round_trips(code):
    status, body = write_error(Fault(code, "words"))
    assert status >= 400
    assert body == {"error": {"code": code.value, "message": "words"}}
    fault = read_error(status, body, {})
    assert (fault.code, fault.message, fault.status) == (code, "words", status)


def test_retry_after_header_is_kept():
    fault = read_error(429, {"error": {"code": "rate_limited", "message": "slow"}}, {"Retry-After": "3"})
    assert fault.retry_after == 3.0
    assert fault.hint


def test_a_foreign_word_is_classified_by_what_it_says():
    body = {"error": {"code": "context_length_exceeded", "message": "too long", "type": "x"}}
    assert read_error(400, body, {}).code is Code.CONTEXT_OVERFLOW
    assert read_error(500, {"error": {"code": 5, "message": 6}}, {}).code is Code.UPSTREAM_ERROR


def test_figures_and_hints_come_with_our_own_words_too():
    told = "prompt is too long: 9 tokens > 5 maximum"
    fault = read_error(400, {"error": {"code": "context_overflow", "message": told}}, {})
    assert fault.numbers == Numbers(5, 9, 4)
    assert fault.hint
