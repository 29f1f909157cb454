import json
from pathlib import Path

import msgspec
import pytest

from sightline.dialects.dialect import Client
from sightline.dialects.raw.reply_read import read_reply
from sightline.dialects.raw.reply_write import write_reply
from sightline.errors import Code, Fault
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
