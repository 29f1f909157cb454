import base64
import json
from pathlib import Path
from typing import Any

import pytest

from sightline.dialects.dialect import Client
from sightline.dialects.gemini.reply_read import read_reply
from sightline.dialects.gemini.reply_write import write_part, write_reply
from sightline.errors import Code, Fault
from sightline.model.fold import fold
from sightline.model.parts import (
    Audio,
    CacheBreakpoint,
    Citation,
    Document,
    FileId,
    Image,
    Inline,
    Link,
    Opaque,
    Refusal,
    Text,
    Thinking,
    ToolCall,
)
from sightline.model.reply import Choice, Reply, TokenLogprob
from sightline.model.report import Report
from sightline.model.usage import Usage

CASES = Path(__file__).parents[2] / "wire_cases" / "gemini"


def write(reply, client=Client()):  # noqa: B008 - a frozen value
    report = Report()
    return write_reply(reply, client, report), [(loss.what, loss.severity) for loss in report.losses]


@pytest.mark.parametrize("path", sorted(CASES.glob("*/reply.json")), ids=lambda path: path.parent.name)
def test_a_reply_of_this_dialect_means_the_same_when_it_is_written_again(path):
    reply = fold(read_reply(json.loads(path.read_bytes())), "gemini")
    again = fold(read_reply(write(reply)[0]), "gemini")
    assert again.usage == reply.usage
    assert [choice.finish for choice in again.choices] == [choice.finish for choice in reply.choices]
    if reply.fault is None:
        texts = [[getattr(part, "text", part) for part in choice.parts] for choice in reply.choices]
        assert [[getattr(part, "text", part) for part in choice.parts] for choice in again.choices] == texts


def test_a_whole_reply():
    reply = Reply(
        choices=(
            Choice(
                parts=(
                    Thinking("t"),
                    Text("ä", citations=(Citation(url="u", start=0, end=1),)),
                    ToolCall("1", "f", "{}"),
                ),
                finish="tool_calls",
                logprobs=(TokenLogprob("ä", -1.0, bytes=(195, 164)),),
            ),
            Choice(parts=(Text("b"), Text("")), finish="length"),
            Choice(),
        ),
        id="r",
        model="m",
        created=1773154485,
        usage=Usage(input_tokens=2, output_tokens=3),
    )
    body, lost = write(reply)
    assert body == {
        "candidates": [
            {
                "content": {
                    "parts": [
                        {"text": "t", "thought": True},
                        {"text": "ä"},
                        {"functionCall": {"id": "1", "name": "f", "args": {}}},
                    ],
                    "role": "model",
                },
                "finishReason": "STOP",
                "index": 0,
                "citationMetadata": {"citationSources": [{"startIndex": 0, "endIndex": 2, "uri": "u"}]},
                "logprobsResult": {"chosenCandidates": [{"token": "ä", "logProbability": -1.0}]},
            },
            {"content": {"parts": [{"text": "b"}], "role": "model"}, "finishReason": "MAX_TOKENS", "index": 1},
            {"content": {"parts": [], "role": "model"}, "index": 2},
        ],
        "usageMetadata": {"promptTokenCount": 2, "candidatesTokenCount": 3, "totalTokenCount": 5},
        "modelVersion": "m",
        "createTime": "2026-03-10T14:54:45Z",
        "responseId": "r",
    }
    assert lost == [("bytes of the tokens", "identity")]


def test_the_client_supplies_what_the_provider_left_out():
    body, _ = write(Reply(), Client(id="x", model="y", created=60))
    assert (body["responseId"], body["modelVersion"], body["createTime"]) == ("x", "y", "1970-01-01T00:01:00Z")
    assert write(Reply(created=10**15))[0].keys() == {"candidates"}


def test_a_failed_reply_is_an_error_body():
    fault = Fault(Code.OVERLOADED, "busy")
    body, lost = write(Reply(fault=fault))
    assert body == {"error": {"code": 503, "message": "busy", "status": "UNAVAILABLE"}}
    assert lost == []
    report = Report()
    write_reply(Reply(choices=(Choice(parts=(Text("a", at="/0/x"),)),), fault=fault), Client(), report)
    assert [(loss.pointer, loss.what) for loss in report.losses] == [("/0/x", "what had arrived")]


def test_foreign_seals_are_wrapped_in_the_field_of_their_part():
    report = Report()
    part: Any = write_part(Thinking("t", signature="SIG", signed_by="anthropic"), report)
    assert base64.b64decode(part["thoughtSignature"]) == b"sightline:anthropic::SIG"
    part = write_part(Thinking(signature="D", signed_by="anthropic", redacted=True), report)
    assert base64.b64decode(part["thoughtSignature"]) == b"sightline:anthropic:redacted:D"
    part = write_part(Thinking(id="rs_1", signature="E", signed_by="openai-responses"), report)
    assert part["text"] == ""
    assert base64.b64decode(part["thoughtSignature"]) == b"sightline:openai-responses:rs_1:E"
    assert report.losses == ()


def test_own_seals_are_exact():
    sealed: Any = {"signature": "S", "signed_by": "gemini"}
    report = Report()
    assert write_part(Text("", **sealed), report) == {"text": "", "thoughtSignature": "S"}
    for value in (ToolCall("", "f", "{}", **sealed), Image(Inline("image/png", "A"), **sealed)):
        part: Any = write_part(value, report)
        assert part["thoughtSignature"] == "S"


@pytest.mark.parametrize(
    ("part", "wire", "lost"),
    [
        (Text(""), None, []),
        (Thinking(""), None, []),
        (Thinking("", id="rs_1"), None, ["identity"]),
        (Thinking("a\n\nb", summary=("a", "b")), {"text": "a\n\nb", "thought": True}, ["identity"]),
        (Thinking("a", summary=("a",)), {"text": "a", "thought": True}, []),
        (Thinking("c", summary=("a", "b")), {"text": "a\n\nb\n\nc", "thought": True}, ["identity"]),
        (Refusal("no"), {"text": "no"}, ["identity"]),
        (Refusal(""), None, ["identity"]),
        (Image(FileId("f")), None, ["content"]),
        (Document(Link("gs://u", "x/y")), {"fileData": {"fileUri": "gs://u", "mimeType": "x/y"}}, []),
        (Audio(Inline("audio", "A")), None, ["content"]),
        (Audio(Inline("audio", "A"), transcript="words"), {"text": "words"}, ["content"]),
        (Audio(Inline("audio/wav", "A"), id="a"), {"inlineData": {"mimeType": "audio/wav", "data": "A"}}, ["identity"]),
        (Opaque("gemini", {"executableCode": {}}), {"executableCode": {}}, []),
        (Opaque("anthropic", {}), None, ["content"]),
        (Opaque("anthropic", {}, mirrored=True), None, []),
        (CacheBreakpoint(), None, ["content"]),
    ],
)
def test_parts_of_an_answer(part, wire, lost):
    report = Report()
    assert write_part(part, report) == wire
    assert [loss.severity for loss in report.losses] == lost


def test_the_same_dialect_gets_its_extras_back():
    part: Any = write_part(Image(Inline("image/png", "A"), extras={"thought": True}), Report(), same=True)
    assert part["thought"] is True
    reply = Reply(usage=Usage(input_tokens=1, extras={"trafficType": "x"}), dialect="gemini")
    assert write(reply)[0]["usageMetadata"]["trafficType"] == "x"


def test_a_call_of_free_text_becomes_one_of_a_function_and_that_is_said():
    report = Report()
    wire = write_part(ToolCall("c", "sql", "select 1", kind="custom", at="/0"), report)
    assert wire == {"functionCall": {"id": "c", "name": "sql", "args": {"input": "select 1"}}}
    assert [(loss.pointer, loss.what) for loss in report.losses] == [("/0", "that the call takes free text")]
