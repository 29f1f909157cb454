"""A reply as one body and as a stream; that both say the same is law 4."""

import json
from pathlib import Path
from typing import Any

import pytest

from sightline.dialects.anthropic.reply_read import read_reply
from sightline.dialects.anthropic.reply_write import MessagesWriter, write_reply
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
from sightline.model.parts import Audio, Citation, Image, Link, Opaque, Refusal, Text, Thinking, ToolCall
from sightline.model.reply import Choice, Reply, TokenLogprob, Unmodelled, Usage
from sightline.model.report import Report
from sightline.wire.sse import SseDecoder
from tests.dialects.reports import added_at, losses

BODY = {"type": "message", "role": "assistant", "content": [], "stop_reason": "end_turn"}
CASES = sorted((Path(__file__).parents[2] / "wire_cases" / "anthropic").glob("*/reply.json"))


def write(*parts, finish="stop", client=None, **more):
    report = Report()
    reply = Reply(choices=(Choice(parts=parts, finish=finish, finish_at="/finish"),), **more)
    return write_reply(reply, client or Client(), report), report


def without_nulls(value):
    if isinstance(value, dict):
        return {key: without_nulls(inner) for key, inner in value.items() if inner is not None and key != "caller"}
    return [without_nulls(inner) for inner in value] if isinstance(value, list) else value


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.parent.name)
def test_an_own_reply_is_written_back_as_it_was(path):
    document, report = json.loads(path.read_text()), Report()
    body = write_reply(fold(read_reply(document), "anthropic"), Client(), report)
    assert without_nulls(body) == without_nulls(document)
    assert not report.losses


def test_a_whole_reply():
    usage = Usage(input_tokens=10, output_tokens=3, cached_tokens=4)
    body, report = write(Text("hi"), id="chatcmpl-1", model="gpt", usage=usage)
    assert body == {
        "id": "chatcmpl-1",
        "type": "message",
        "role": "assistant",
        "model": "gpt",
        "content": [{"type": "text", "text": "hi"}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 6, "cache_read_input_tokens": 4, "output_tokens": 3},
    }
    assert not report.losses


def test_the_counts_of_a_compaction_stay_apart_from_those_of_the_answer():
    compaction = {"type": "compaction", "input_tokens": 900, "output_tokens": 80, "cache_read_input_tokens": 30}
    compaction["cache_creation"] = {"ephemeral_1h_input_tokens": 7}
    usage = {"input_tokens": 6, "output_tokens": 3, "iterations": [compaction]}
    body, _ = write(Text("hi"), usage=fold(read_reply({**BODY, "usage": usage})).usage)
    assert body["usage"] == {**usage, "cache_read_input_tokens": 0}


def test_identity_comes_from_the_client_where_the_provider_gave_none():
    body, _ = write(client=Client(id="msg_c", model="asked", input_tokens=7))
    assert (body["id"], body["model"], body["usage"]["input_tokens"]) == ("msg_c", "asked", 7)
    assert write()[0]["id"] == "msg_0"


def test_foreign_signatures_travel_under_their_makers_name():
    body, report = write(
        Thinking("hm", id="rs_1", signature="gAAA", signed_by="openai-responses"),
        Thinking("plain"),
        Thinking(signature="x", signed_by="other", redacted=True),
        Thinking("own", signature="EqQB", signed_by="anthropic"),
        Thinking(""),
    )
    assert body["content"] == [
        {"type": "thinking", "thinking": "hm", "signature": "sightline:openai-responses:rs_1:gAAA"},
        {"type": "thinking", "thinking": "plain", "signature": "sightline:unsigned::"},
        {"type": "redacted_thinking", "data": "sightline:other::x"},
        {"type": "thinking", "thinking": "own", "signature": "EqQB"},
    ]
    assert not report.losses


def test_summaries_and_reasoning_are_both_shown():
    body, _ = write(Thinking("a\n\nb", ("a", "b")), Thinking("raw", ("sum",)))
    assert [block["thinking"] for block in body["content"]] == ["a\n\nb", "sum\n\nraw"]


def test_calls_of_every_kind():
    body, report = write(
        ToolCall("", "f", '{"a":1}', item="fc_1", at="/0"),
        ToolCall("c2", "patch", "*** Begin", kind="custom", namespace="fs", at="/1"),
        ToolCall("c3", "g", "not json", at="/2"),
        id="resp_1",
    )
    first = body["content"][0]
    assert first["id"].startswith("toolu_")
    assert body["content"][1:] == [
        {"type": "tool_use", "id": "c2", "name": "fs__patch", "input": {"input": "*** Begin"}},
        {"type": "tool_use", "id": "c3", "name": "g", "input": {"input": "not json"}},
    ]
    assert body["stop_reason"] == "tool_use"
    assert losses(report) == [("/0", "identity"), ("/1", "identity"), ("/2", "content")]
    assert "/content/0/id" in added_at(report)


def test_details_that_are_no_object_stay_as_they_are():
    unmodelled = (Unmodelled("/stop_details", "odd"), Unmodelled("/stop_details/category", "cyber"))
    assert write(finish="refusal", unmodelled=unmodelled)[0]["stop_details"] == "odd"


def test_what_a_reply_cannot_hold():
    body, report = write(
        Refusal("I cannot.", at="/0"),
        Image(Link("https://e.com/a"), at="/1"),
        Audio(at="/2"),
        Opaque("gemini", {}, at="/3"),
        Opaque("gemini", {}, mirrored=True, at="/4"),
        Text("t", (Citation(url="https://e.com", at="/5/c"),), at="/5"),
    )
    assert body["content"] == [{"type": "text", "text": "I cannot."}, {"type": "text", "text": "t"}]
    assert losses(report) == [
        ("/0", "identity"),
        ("/1", "content"),
        ("/2", "content"),
        ("/3", "content"),
        ("/5/c", "option"),
    ]


def test_citations_of_our_own_kind_stay_also_without_words():
    value: Any = {"type": "page_location", "cited_text": "x"}
    body, _ = write(Text("", (Citation(value=value),)))
    assert body["content"] == [{"type": "text", "text": "", "citations": [value]}]


def test_other_choices_creation_time_and_logprobs_are_lost():
    report = Report()
    choice = Choice(parts=(Text("a"),), finish="stop", logprobs=(TokenLogprob("a", -0.1),), logprobs_at="/lp")
    other = Choice(finish="stop", finish_at="/choices/1/finish_reason")
    write_reply(Reply(choices=(choice, other), created=5, places={"created": "/created_at"}), Client(), report)
    assert losses(report) == [("/choices/1", "content"), ("/created_at", "identity"), ("/lp", "option")]


@pytest.mark.parametrize(
    ("finish", "detail", "word", "lost"),
    [
        ("length", None, "max_tokens", []),
        ("length", "model_context_window_exceeded", "model_context_window_exceeded", []),
        ("refusal", None, "refusal", []),
        ("pause", None, "pause_turn", []),
        ("content_filter", None, "refusal", [("/f", "option")]),
        ("stop", "RECITATION", "end_turn", [("/f", "identity")]),
        ("tool_calls", None, "end_turn", []),
    ],
)
def test_every_finish_has_its_stop_reason(finish, detail, word, lost):
    report = Report()
    choice = Choice(finish=finish, detail=detail, finish_at="/f")
    assert write_reply(Reply(choices=(choice,)), Client(), report)["stop_reason"] == word
    assert losses(report) == lost


def test_an_unfinished_reply_claims_no_end():
    assert write(Text("a"), finish=None)[0]["stop_reason"] is None


# --- as a stream ------------------------------------------------------------------------------------

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


def test_a_whole_stream():
    documents, report = stream(
        Started("resp_1", "gpt", 5),
        TextReceived(0, ""),
        TextReceived(0, "Hel"),
        TextReceived(0, "lo"),
        TextReceived(0, ""),
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


def test_own_thinking_without_words_is_only_its_signature():
    events = [SignatureReceived(0, "EqQB", "anthropic"), ThinkingReceived(1, ""), TextReceived(2, "x"), *DONE]
    documents, _ = stream(*events)
    assert shape(documents)[1:5] == [(0, "thinking"), (0, "EqQB"), (0, "stop"), (1, "text")]


SEAL, ARGUMENTS = SignatureReceived(0, "sig", "gemini"), ArgumentsReceived(0, '{"a":1}')


@pytest.mark.parametrize("told", [(SEAL, ARGUMENTS), (ARGUMENTS, SEAL)])
def test_a_signature_on_a_call_travels_before_it(told):
    events = [ToolCallBegun(0, "c", "f"), *told, ToolCallCompleted(0), *DONE]
    documents, report = stream(*events)
    assert documents[1]["content_block"]["signature"] == "sightline:gemini:next:sig"
    assert shape(documents)[2:6] == [(0, "stop"), (1, "tool_use"), (1, '{"a":1}'), (1, "stop")]
    assert documents[-2]["delta"]["stop_reason"] == "tool_use"
    assert not report.losses


def test_a_signature_on_text_that_has_no_words_yet():
    events = [TextReceived(0, ""), SignatureReceived(0, "sig", "gemini"), *DONE]
    documents, _ = stream(*events)
    assert shape(documents) == ["message_start", (0, "thinking"), (0, "stop"), "message_delta", "message_stop"]


@pytest.mark.parametrize(
    ("events", "at"),
    [
        ([TextReceived(0, "", at="/t"), TextReceived(0, "words"), SignatureReceived(0, "s", "gemini")], "/t"),
        ([ThinkingReceived(0, "a"), TextReceived(1, "b"), SignatureReceived(0, "s", "gemini")], ""),
        ([PartReceived(0, Opaque("anthropic", {"type": "x"})), SignatureReceived(0, "s", "gemini")], ""),
    ],
)
def test_a_signature_that_comes_too_late_is_lost_where_its_part_stood(events, at):
    assert losses(stream(*events, *DONE)[1]) == [(at, "identity")]


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


def test_a_call_without_arguments_has_no_delta():
    events = [ToolCallBegun(0, "a", "f"), ArgumentsReceived(0, ""), ToolCallCompleted(0), *DONE]
    documents, _ = stream(*events)
    assert shape(documents)[1:3] == [(0, "tool_use"), (0, "stop")]
    assert documents[1]["content_block"] == {"type": "tool_use", "id": "a", "name": "f", "input": {}}


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
        (1, "redacted_thinking"), (1, "stop"), (2, "server_tool_use"), (2, "stop"), (3, "tool_use"), (3, '{"a":1}'),
        (3, "stop"),
    ]  # fmt: skip
    assert documents[-2]["delta"]["stop_reason"] == "tool_use"
    assert losses(report) == [("/i", "content")]


def test_a_refusal_is_text_and_its_own_stop_reason():
    details: Any = {"type": "refusal"}
    edits: Any = {"applied_edits": []}
    documents, report = stream(
        RefusalReceived(0, "I ", at="/r"),
        RefusalReceived(0, "cannot."),
        FieldReceived("/7/delta/stop_details", details),
        FieldReceived("/7/context_management", edits),
        FieldReceived("/7/system_fingerprint", "fp"),
        Finished("refusal"),
        Ended(),
    )
    assert shape(documents)[1:5] == [(0, "text"), (0, "I "), (0, "cannot."), (0, "stop")]
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


def test_a_finish_that_is_a_failure_is_an_error():
    documents, _ = stream(TextReceived(0, "half"), Finished("error"), Ended())
    assert documents[-1]["type"] == "error"
    assert write(finish="error")[0]["error"]["type"] == "api_error"


def test_a_frame_that_could_not_be_read_ends_the_translation():
    documents, _ = stream(TextReceived(0, "half"), FrameBroken("/3", "not JSON"), *DONE)
    assert documents[-1]["type"] == "error"
    assert "not JSON" in documents[-1]["error"]["message"]
