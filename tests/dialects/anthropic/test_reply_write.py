import json
from pathlib import Path
from typing import Any

import pytest

from sightline.dialects.anthropic.reply_read import read_reply
from sightline.dialects.anthropic.reply_write import write_reply
from sightline.dialects.dialect import Client
from sightline.errors import Code, Fault
from sightline.model.fold import fold
from sightline.model.parts import Audio, Citation, Image, Link, Opaque, Refusal, Text, Thinking, ToolCall
from sightline.model.reply import Choice, Reply, TokenLogprob, Unmodelled, Usage
from sightline.model.report import Report

CASES = sorted((Path(__file__).parents[2] / "wire_cases" / "anthropic").glob("*/reply.json"))


def write(*parts, finish="stop", client=None, **more):
    report = Report()
    reply = Reply(choices=(Choice(parts=parts, finish=finish, finish_at="/finish"),), **more)
    return write_reply(reply, client or Client(), report), report


def losses(report):
    return [(loss.pointer, loss.severity) for loss in report.losses]


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


def test_a_signature_on_a_call_travels_before_it():
    body, report = write(ToolCall("c", "f", "{}", signature="sig", signed_by="gemini"), finish="tool_calls")
    assert body["content"] == [
        {"type": "thinking", "thinking": "", "signature": "sightline:gemini:next:sig"},
        {"type": "tool_use", "id": "c", "name": "f", "input": {}},
    ]
    assert not report.losses


def test_a_signature_on_text_is_carried_only_where_no_words_go_before_it():
    body, report = write(
        Text("words", signature="sig", signed_by="gemini", at="/t"), Text("", signature="end", signed_by="gemini")
    )
    assert body["content"] == [
        {"type": "text", "text": "words"},
        {"type": "thinking", "thinking": "", "signature": "sightline:gemini:next:end"},
    ]
    assert losses(report) == [("/t", "identity")]


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
    assert "/content/0/id" in [addition.pointer for addition in report.additions]


def test_filled_in_values_are_reported_as_additions():
    report = Report()
    write_reply(Reply(), Client(), report)
    assert [(addition.pointer, addition.severity) for addition in report.additions] == [
        ("/id", "identity"),
        ("/model", "identity"),
        ("/usage/input_tokens", "identity"),
        ("/usage/output_tokens", "identity"),
    ]
    report = Report()
    write_reply(Reply(usage=Usage(output_tokens=0)), Client(id="m", model="claude", input_tokens=9), report)
    assert report.additions == ()


def test_an_explanation_goes_back_where_it_stood():
    details: Any = {"type": "refusal", "category": "cyber", "explanation": "because"}
    block = {"type": "text", "text": "I "}
    wire = {"type": "message", "content": [block], "stop_reason": "refusal", "stop_details": details}
    report = Report()
    body = write_reply(fold(read_reply(wire), "anthropic"), Client(), report)
    assert body["content"] == [block]
    assert body["stop_details"] == details
    assert not report.losses


def test_details_that_are_no_object_stay_as_they_are():
    unmodelled = (Unmodelled("/stop_details", "odd"), Unmodelled("/stop_details/category", "cyber"))
    assert write(finish="refusal", unmodelled=unmodelled)[0]["stop_details"] == "odd"


def test_an_invented_id_is_the_same_for_the_same_reply_only():
    def first_id(reply_id):
        return write(ToolCall("", "f", ""), id=reply_id)[0]["content"][0]["id"]

    assert first_id("a") == first_id("a") != first_id("b")


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
    ],
)
def test_every_finish_has_its_stop_reason(finish, detail, word, lost):
    report = Report()
    choice = Choice(finish=finish, detail=detail, finish_at="/f")
    assert write_reply(Reply(choices=(choice,)), Client(), report)["stop_reason"] == word
    assert losses(report) == lost


def test_an_unfinished_reply_claims_no_end():
    assert write(Text("a"), finish=None)[0]["stop_reason"] is None


def test_a_failed_reply_is_an_error_body():
    fault = Fault(Code.OVERLOADED, "Overloaded")
    body, report = write(Text("half", at="/t"), finish="error", fault=fault)
    assert losses(report)[0] == ("/t", "content")
    assert body == {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    assert write(finish="error")[0]["error"]["type"] == "api_error"


def test_details_of_a_stop_are_kept_wherever_they_stood():
    details: Any = {"type": "refusal", "category": "cyber"}
    unmodelled = (Unmodelled("/7/delta/stop_details", details), Unmodelled("/x", 1))
    body, _ = write(finish="refusal", unmodelled=unmodelled)
    assert body["stop_details"] == details
    assert "x" not in body
