"""Writing a raw reply: message, end, error."""

import json
from pathlib import Path

import msgspec
import pytest

from sightline.dialects.dialect import Client
from sightline.dialects.raw.errors import read_error, write_error
from sightline.dialects.raw.names import read_finish, write_finish
from sightline.dialects.raw.reply_read import read_reply
from sightline.dialects.raw.reply_write import write_reply
from sightline.errors import Code, Fault, Numbers
from sightline.model.events import Failed, Finished
from sightline.model.fold import fold
from sightline.model.parts import Opaque, Text, Thinking, ToolCall
from sightline.model.reply import Choice, Reply, TokenLogprob
from sightline.model.report import Report

CASES = sorted((Path(__file__).parents[2] / "wire_cases" / "raw").glob("*/reply.json"))
PLACES = {"at", "places", "finish_at", "stop_at", "logprobs_at"}


def without_places(value):
    if isinstance(value, dict):
        return {key: without_places(inner) for key, inner in value.items() if key not in PLACES}
    if isinstance(value, list | tuple):
        return [without_places(inner) for inner in value]
    return value


def plain(reply):
    return without_places(msgspec.to_builtins(reply))


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.parent.name)
def test_a_reply_survives_being_written(path):
    reply = fold(read_reply(json.loads(path.read_text())))
    report = Report()
    assert plain(fold(read_reply(write_reply(reply, Client(), report)))) == plain(reply)
    assert report.losses == ()


def test_who_answers_is_said_as_far_as_it_is_known():
    client = Client(id="c", model="cm", created=5)
    assert write_reply(Reply(), client, Report()) == {
        "role": 2,
        "content": [],
        "id": "c",
        "model": "cm",
        "created": 5,
    }
    assert write_reply(Reply(), Client(), Report()) == {"role": 2, "content": []}
    known = write_reply(Reply(id="i", model="m", created=7), client, Report())
    assert (known["id"], known["model"], known["created"]) == ("i", "m", 7)


def test_words_behind_a_call_move_before_it_and_that_is_said():
    parts = (ToolCall("a", "f", ""), Text("w", at="/x"), Opaque("raw", {"type": "mcp"}, at="/toolCalls/1"))
    report = Report()
    document = write_reply(Reply(choices=(Choice(parts=parts, finish="tool_calls"),)), Client(), report)
    assert document["content"] == [{"type": 1, "text": "w"}]
    assert document["toolCalls"] == [
        {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}},
        {"type": "mcp"},
    ]
    assert [(loss.pointer, loss.severity) for loss in report.losses] == [("/x", "content")]


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


def test_a_foreign_seal_travels_wrapped():
    parts = (Thinking("t", signature="s", signed_by="anthropic"),)
    document = write_reply(Reply(choices=(Choice(parts=parts),)), Client(), Report())
    assert document["content"][0]["value"]["thinking"]["encrypted"] == "sightline:anthropic::s"


def test_likelihoods_are_said():
    choice = Choice(logprobs=(TokenLogprob("a", -0.5),))
    document = write_reply(Reply(choices=(choice,)), Client(), Report())
    assert document["logprobs"] == {"content": [{"token": "a", "logprob": -0.5, "bytes": None, "top_logprobs": []}]}


def test_a_reply_that_failed_has_what_came_and_the_error():
    reply = Reply(choices=(Choice(parts=(Text("a"),), finish="error"),), fault=Fault(Code.NETWORK, "cut"))
    assert write_reply(reply, Client(), Report()) == {
        "role": 2,
        "content": [{"type": 1, "text": "a"}],
        "finishReason": "error",
        "error": {"code": "network", "message": "cut"},
    }


@pytest.mark.parametrize("word", ["stop", "length", "content_filter", "refusal", "pause"])
def test_our_own_words_are_said_exactly(word):
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


def test_nothing_is_said_where_nothing_is_known():
    assert write_finish(None, None, None) == {}


@pytest.mark.parametrize("code", list(Code))
def test_every_code_is_said_and_heard(code):
    status, body = write_error(Fault(code, "words"))
    assert status >= 400
    assert body == {"error": {"code": code.value, "message": "words"}}
    fault = read_error(status, body, {})
    assert (fault.code, fault.message, fault.status) == (code, "words", status)


def test_a_wait_that_was_asked_for_is_kept():
    fault = read_error(429, {"error": {"code": "rate_limited", "message": "slow"}}, {"Retry-After": "3"})
    assert fault.retry_after == 3.0
    assert fault.hint


def test_a_foreign_word_is_classified_by_what_it_says():
    body = {"error": {"code": "context_length_exceeded", "message": "too long", "type": "x"}}
    assert read_error(400, body, {}).code is Code.CONTEXT_OVERFLOW
    assert read_error(500, {"error": {"code": 5, "message": 6}}, {}).code is Code.UPSTREAM_ERROR


@pytest.mark.parametrize(("body", "message"), [("gone", "gone"), ({"error": "gone"}, "gone")])
def test_a_bare_text_is_the_message(body, message):
    assert read_error(502, body, {}).message == message


@pytest.mark.parametrize("body", [None, [], {}, {"error": None}])
def test_a_body_that_says_nothing_is_still_a_fault(body):
    assert "502" in read_error(502, body, {}).message


def test_figures_and_hints_come_with_our_own_words_too():
    told = "prompt is too long: 9 tokens > 5 maximum"
    fault = read_error(400, {"error": {"code": "context_overflow", "message": told}}, {})
    assert fault.numbers == Numbers(5, 9, 4)
    assert fault.hint
