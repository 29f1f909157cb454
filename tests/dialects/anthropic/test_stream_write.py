import json
from typing import Any

import msgspec
import pytest

from sightline.dialects.anthropic.reply_read import read_reply, stream_reader
from sightline.dialects.anthropic.reply_write import write_reply
from sightline.dialects.anthropic.stream_write import MessagesWriter
from sightline.dialects.dialect import Client
from sightline.errors import Code, Fault
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
from sightline.model.parts import Citation, Image, Link, Opaque, Thinking, ToolCall
from sightline.model.reply import Usage
from sightline.model.report import Report
from sightline.wire.sse import SseDecoder

DONE = (Finished("stop"), Ended())


def stream(*events, client=None):
    report = Report()
    writer = MessagesWriter(client or Client(), report)
    frames = SseDecoder().feed(b"".join(writer.feed(event) for event in events))
    documents = [json.loads(frame.data) for frame in frames]
    assert [frame.event for frame in frames] == [document["type"] for document in documents]
    return documents, report


def shape(documents):
    """What each frame says, briefly."""
    told = []
    for document in documents:
        kind = document["type"]
        if kind == "content_block_start":
            told.append((document["index"], document["content_block"]["type"]))
        elif kind == "content_block_delta":
            change = dict(document["delta"])
            change.pop("type")
            told.append((document["index"], next(iter(change.values()))))
        elif kind == "content_block_stop":
            told.append((document["index"], "stop"))
        else:
            told.append(kind)
    return told


def losses(report):
    return [(loss.pointer, loss.severity) for loss in report.losses]


PLACES = ("at", "places", "finish_at", "stop_at")


def bare(reply):
    def stripped(value):
        if isinstance(value, dict):
            return {key: stripped(inner) for key, inner in value.items() if key not in PLACES}
        return [stripped(inner) for inner in value] if isinstance(value, (list, tuple)) else value

    return stripped(msgspec.to_builtins(msgspec.structs.replace(reply, unmodelled=())))


def folds_alike(events):
    """Whether the stream and the body of these events say the same to our own reader."""
    writer, reader, frames = MessagesWriter(Client(), Report()), stream_reader(), SseDecoder()
    streamed = [told for event in events for frame in frames.feed(writer.feed(event)) for told in reader.feed(frame)]
    whole = read_reply(write_reply(fold(events), Client(), Report()))
    assert bare(fold(streamed)) == bare(fold(whole))


def test_a_whole_stream():
    documents, report = stream(
        Started("resp_1", "gpt", 5),
        TextReceived(0, ""),
        TextReceived(0, "Hel"),
        TextReceived(0, "lo"),
        UsageReceived(Usage(input_tokens=10, output_tokens=2, cached_tokens=4, reasoning_tokens=1)),
        Finished("stop"),
        Ended(),
        TextReceived(1, "nothing comes after the end"),
        client=Client(input_tokens=8),
    )
    assert shape(documents) == [
        "message_start", (0, "text"), (0, "Hel"), (0, "lo"), (0, "stop"), "message_delta", "message_stop",
    ]  # fmt: skip
    assert documents[0]["message"] == {
        "id": "resp_1",
        "type": "message",
        "role": "assistant",
        "model": "gpt",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 8, "output_tokens": 0},
    }
    assert documents[-2] == {
        "type": "message_delta",
        "delta": {"stop_reason": "end_turn", "stop_sequence": None},
        "usage": {
            "input_tokens": 6,
            "cache_read_input_tokens": 4,
            "output_tokens": 2,
            "output_tokens_details": {"thinking_tokens": 1},
        },
    }
    assert losses(report) == [("/created", "identity")]


def test_usage_received_after_the_finish_is_written():
    documents, _ = stream(Finished("length"), UsageReceived(Usage(input_tokens=3, output_tokens=2)), Ended())
    assert documents[0]["message"]["id"] == "msg_0"
    assert documents[-2]["usage"] == {"input_tokens": 3, "output_tokens": 2}
    assert documents[-2]["delta"]["stop_reason"] == "max_tokens"


def test_thinking_is_signed_before_it_ends():
    events = [
        ThinkingReceived(0, "a", summary=True, at="/t"),
        ThinkingReceived(0, "b", summary=True),
        ThinkingReceived(0, "c", summary=True, piece=1),
        SignatureReceived(0, "gAAA", "openai-responses", id="rs_1"),
        TextReceived(1, "hi"),
        *DONE,
    ]
    documents, _ = stream(*events)
    assert shape(documents)[1:8] == [
        (0, "thinking"), (0, "a"), (0, "b"), (0, "\n\nc"), (0, "sightline:openai-responses:rs_1:gAAA"), (0, "stop"),
        (1, "text"),
    ]  # fmt: skip
    folds_alike(events)


@pytest.mark.parametrize(
    ("pieces", "lost"),
    [
        ([ThinkingReceived(0, "", at="/t"), ThinkingReceived(0, "a", summary=True)], []),
        ([ThinkingReceived(0, "a", at="/t"), ThinkingReceived(0, "b", piece=1)], []),
        ([ThinkingReceived(0, "a", summary=True, at="/t"), ThinkingReceived(0, "b", summary=True, piece=1)], ["/t"]),
        ([ThinkingReceived(0, "a", summary=True, at="/t"), ThinkingReceived(0, "b", at="/u")], ["/t"]),
    ],
)
def test_a_summary_in_pieces_becomes_one_text_in_a_stream_as_in_a_whole_reply(pieces, lost):
    events, report = [Started("m", "n"), *pieces, *DONE], Report()
    write_reply(fold(events), Client(), report)
    for told in (report, stream(*events)[1]):
        assert [loss.pointer for loss in told.losses if loss.what == "pieces of the reasoning summary"] == lost


def test_unsigned_thinking_gets_a_signature_that_we_know_again():
    documents, _ = stream(ThinkingReceived(0, "a"), *DONE)
    assert shape(documents)[1:5] == [(0, "thinking"), (0, "a"), (0, "sightline:unsigned::"), (0, "stop")]


def test_own_thinking_without_words_is_only_its_signature():
    events = [SignatureReceived(0, "EqQB", "anthropic"), ThinkingReceived(1, ""), TextReceived(2, "x"), *DONE]
    documents, _ = stream(*events)
    assert shape(documents)[1:5] == [(0, "thinking"), (0, "EqQB"), (0, "stop"), (1, "text")]
    folds_alike(events)


SEAL, ARGUMENTS = SignatureReceived(0, "sig", "gemini"), ArgumentsReceived(0, '{"a":1}')


@pytest.mark.parametrize("told", [(SEAL, ARGUMENTS), (ARGUMENTS, SEAL)])
def test_a_signature_on_a_call_travels_before_it(told):
    events = [ToolCallBegun(0, "c", "f"), *told, ToolCallCompleted(0), *DONE]
    documents, report = stream(*events)
    assert documents[1]["content_block"]["signature"] == "sightline:gemini:next:sig"
    assert shape(documents)[2:6] == [(0, "stop"), (1, "tool_use"), (1, '{"a":1}'), (1, "stop")]
    assert documents[-2]["delta"]["stop_reason"] == "tool_use"
    assert not report.losses
    folds_alike(events)


def test_a_signature_on_text_that_has_no_words_yet():
    events = [TextReceived(0, ""), SignatureReceived(0, "sig", "gemini"), *DONE]
    documents, _ = stream(*events)
    assert shape(documents) == ["message_start", (0, "thinking"), (0, "stop"), "message_delta", "message_stop"]
    folds_alike(events)


@pytest.mark.parametrize(
    "events",
    [
        [TextReceived(0, "words"), SignatureReceived(0, "s", "gemini")],
        [ThinkingReceived(0, "a"), TextReceived(1, "b"), SignatureReceived(0, "s", "gemini")],
        [
            TextReceived(0, "a"),
            PartReceived(1, Opaque("anthropic", {"type": "x"})),
            SignatureReceived(1, "s", "gemini"),
        ],
    ],
)
def test_a_signature_that_comes_too_late_is_lost(events):
    assert losses(stream(*events, *DONE)[1]) == [("", "identity")]


def test_a_signature_over_words_that_have_left_is_lost_where_they_stood():
    events = [TextReceived(0, "", at="/0/text"), TextReceived(0, "words"), SignatureReceived(0, "s", "gemini"), *DONE]
    assert losses(stream(*events)[1]) == [("/0/text", "identity")]


@pytest.mark.parametrize("identity", [{"id": "r1"}, {"client": "c1"}])
def test_an_invented_call_id_follows_the_id_of_the_reply_or_of_the_client(identity):
    def call_id(told, asked):
        events = [Started(told), ToolCallBegun(0, "", "f"), ToolCallCompleted(0), *DONE]
        client = Client(id=asked)
        whole: Any = write_reply(fold(events), client, Report())
        assert stream(*events, client=client)[0][1]["content_block"]["id"] == whole["content"][0]["id"]
        return whole["content"][0]["id"]

    told, asked = identity.get("id"), identity.get("client", "")
    assert call_id(told, asked) == call_id(told, asked) != call_id(None, "")


def test_parallel_calls_never_overlap():
    events = [
        ToolCallBegun(0, "a", "f"),
        ArgumentsReceived(0, "{"),
        ToolCallBegun(1, "b", "g"),
        ArgumentsReceived(1, '{"x":1}'),
        ArgumentsReceived(0, "}"),
        ToolCallCompleted(0),
        ToolCallCompleted(1),
        ToolCallCompleted(1),
        *DONE,
    ]
    documents, _ = stream(*events)
    assert shape(documents)[1:-2] == [
        (0, "tool_use"), (0, "{"), (0, "}"), (0, "stop"), (1, "tool_use"), (1, '{"x":1}'), (1, "stop"),
    ]  # fmt: skip
    folds_alike(events)


def test_a_call_without_arguments_has_no_delta():
    events = [ToolCallBegun(0, "a", "f"), ArgumentsReceived(0, ""), ToolCallCompleted(0), *DONE]
    documents, _ = stream(*events)
    assert shape(documents)[1:3] == [(0, "tool_use"), (0, "stop")]
    assert documents[1]["content_block"] == {"type": "tool_use", "id": "a", "name": "f", "input": {}}
    folds_alike(events)


def test_a_custom_call_is_one_string_and_an_id_is_invented_where_none_came():
    events = [
        ToolCallBegun(0, "", "patch", kind="custom", namespace="fs", item="ctc_1", at="/1"),
        ArgumentsReceived(0, "*** "),
        ArgumentsReceived(0, 'Begin "x"'),
        *DONE,
    ]
    documents, report = stream(*events)
    call = documents[1]["content_block"]
    assert call["name"] == "fs__patch"
    assert call["id"].startswith("toolu_")
    assert documents[2]["delta"]["partial_json"] == '{"input":"*** Begin \\"x\\""}'
    assert losses(report) == [("/1", "identity"), ("/1", "identity")]
    folds_alike(events)


def test_arguments_that_are_no_object_are_reported():
    _, report = stream(ToolCallBegun(0, "a", "f", at="/1"), ArgumentsReceived(0, "oops"), ToolCallCompleted(0), *DONE)
    assert losses(report) == [("/1", "content")]


def test_arguments_of_no_open_call_are_nothing():
    documents, _ = stream(TextReceived(0, "a"), ArgumentsReceived(0, "{}"), *DONE)
    assert shape(documents)[1:4] == [(0, "text"), (0, "a"), (0, "stop")]


def test_citations_follow_their_text():
    own = Citation(value={"type": "page_location", "cited_text": "x"})
    foreign = Citation(url="https://e.com", at="/c")
    events = [
        TextReceived(0, ""), CitationReceived(0, own), TextReceived(0, "a"), CitationReceived(0, foreign),
        CitationReceived(1, own), *DONE,
    ]  # fmt: skip
    documents, report = stream(*events)
    assert shape(documents)[1:-2] == [
        (0, "text"), (0, own.value), (0, "a"), (0, "stop"), (1, "text"), (1, own.value), (1, "stop"),
    ]  # fmt: skip
    assert losses(report) == [("/c", "option")]
    folds_alike(events)


def test_parts_that_come_whole():
    events = [
        TextReceived(0, "a"),
        PartReceived(1, Thinking(signature="EmwK", signed_by="anthropic", redacted=True)),
        PartReceived(2, Opaque("anthropic", {"type": "server_tool_use", "id": "s", "name": "w", "input": {"q": 1}})),
        PartReceived(3, Image(Link("https://e.com/a"), at="/i")),
        PartReceived(4, ToolCall("c", "f", '{"a":1}')),
        *DONE,
    ]
    documents, report = stream(*events)
    assert shape(documents)[4:-2] == [
        (1, "redacted_thinking"), (1, "stop"), (2, "server_tool_use"), (2, "stop"), (3, "tool_use"), (3, "stop"),
    ]  # fmt: skip
    assert documents[-2]["delta"]["stop_reason"] == "tool_use"
    assert losses(report) == [("/i", "content")]
    folds_alike(events)


def test_a_refusal_is_text_and_its_own_stop_reason():
    details: Any = {"type": "refusal"}
    edits: Any = {"applied_edits": []}
    documents, report = stream(
        RefusalReceived(0, "I cannot.", at="/r"),
        FieldReceived("/7/delta/stop_details", details),
        FieldReceived("/7/context_management", edits),
        FieldReceived("/7/system_fingerprint", "fp"),
        Finished("refusal"),
        Ended(),
    )
    assert shape(documents)[1:4] == [(0, "text"), (0, "I cannot."), (0, "stop")]
    assert documents[-2]["delta"] == {"stop_reason": "refusal", "stop_sequence": None, "stop_details": details}
    assert documents[-2]["context_management"] == edits
    assert losses(report) == [("/r", "identity")]


def test_probabilities_and_other_choices_are_lost():
    other = [TextReceived(0, "b", choice=1), Finished("stop", choice=1, at="/9/choices/1/finish_reason")]
    _, report = stream(LogprobsReceived((), at="/1/lp"), LogprobsReceived((), at="/2/lp"), *other, *DONE)
    assert losses(report) == [("/1/lp", "option"), ("/9/choices/1", "content")]


def test_filled_in_values_are_reported_once():
    def added(*events, **client):
        return [addition.pointer for addition in stream(*events, *DONE, client=Client(**client))[1].additions]

    assert added(TextReceived(0, "a")) == ["/id", "/model", "/usage/input_tokens", "/usage/output_tokens"]
    usage = UsageReceived(Usage(output_tokens=1))
    assert added(Started("m", "claude"), UsageReceived(Usage(input_tokens=1)), usage) == []
    assert added(usage, id="m", model="claude", input_tokens=5) == []


def test_the_time_of_a_reply_is_lost_once():
    again = [Started(created=5, places={"created": f"/{index}/created"}) for index in range(3)]
    assert losses(stream(Started("m"), *again, *DONE)[1]) == [("/0/created", "identity")]


def test_refusal_in_pieces_is_one_loss_at_its_first_piece():
    pieces = [RefusalReceived(0, "I ", at="/1/refusal"), RefusalReceived(0, "cannot")]
    documents, report = stream(*pieces, *DONE)
    assert [document["delta"]["text"] for document in documents if "text" in document.get("delta", {})] == [
        "I ",
        "cannot",
    ]
    assert losses(report) == [("/1/refusal", "identity")]


def test_an_explanation_goes_back_to_the_end_of_the_message():
    documents, report = stream(
        TextReceived(0, "I "),
        RefusalReceived(1, "because", at="/7/delta/stop_details/explanation"),
        FieldReceived("/7/delta/stop_details/category", "cyber"),
        Finished("refusal"),
        Ended(),
    )
    assert documents[-2]["delta"]["stop_details"] == {"explanation": "because", "category": "cyber"}
    assert [document["type"] for document in documents].count("content_block_start") == 1
    assert not report.losses


@pytest.mark.parametrize("begun", [[], [Started("m"), TextReceived(0, "half"), ToolCallBegun(1, "c", "f")]])
def test_a_failure_is_an_error_and_nothing_comes_after(begun):
    fault = Fault(Code.RATE_LIMITED, "slow down")
    documents, _ = stream(*begun, Failed(fault), Finished("stop"), Ended())
    assert documents[-1] == {"type": "error", "error": {"type": "rate_limit_error", "message": "slow down"}}
    assert "message_stop" not in [document["type"] for document in documents]


@pytest.mark.parametrize("end", [[], [Finished("error")]])
def test_no_finish_is_never_a_success(end):
    documents, _ = stream(TextReceived(0, "half"), *end, Ended())
    assert documents[-1]["type"] == "error"


def test_a_frame_that_could_not_be_read_ends_the_translation():
    documents, _ = stream(TextReceived(0, "half"), FrameBroken("/3", "not JSON"), *DONE)
    assert documents[-1]["type"] == "error"
    assert "not JSON" in documents[-1]["error"]["message"]
