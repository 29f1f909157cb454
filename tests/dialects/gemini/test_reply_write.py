import base64
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from sightline.dialects.dialect import Client
from sightline.dialects.gemini.parts import pack_thoughts
from sightline.dialects.gemini.reply_read import read_reply
from sightline.dialects.gemini.reply_write import StreamWriter, write_part, write_reply
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
from sightline.model.reply import Choice, Reply, TokenLogprob, Usage
from sightline.model.report import Report
from sightline.wire.sse import SseDecoder
from tests.dialects.reports import losses

CASES = Path(__file__).parents[2] / "wire_cases" / "gemini"
END = (Finished("stop"), Ended())


def write(*events, client=Client()):  # noqa: B008 - a frozen value
    report = Report()
    writer = StreamWriter(client, report)
    data = b"".join(writer.feed(event) for event in events)
    return [json.loads(frame.data) for frame in SseDecoder().feed(data)], report


def parts_of(frames):
    return [[candidate["content"]["parts"] for candidate in frame["candidates"]] for frame in frames]


EVERYTHING = (
    Started("r", "m", 60),
    ThinkingReceived(0, "piece one", summary=True),
    ThinkingReceived(0, "", piece=1, summary=True),
    ThinkingReceived(0, "piece ", piece=1, summary=True),
    ThinkingReceived(0, "two", piece=1, summary=True),
    SignatureReceived(0, "ENC", "openai-responses", id="rs_1"),
    TextReceived(1, ""),
    TextReceived(1, "Wörter"),
    TextReceived(1, " und mehr"),
    CitationReceived(1, Citation(url="u", start=0, end=6)),
    SignatureReceived(1, "S", "gemini"),
    PartReceived(2, Image(Inline("image/png", "AA"))),
    ToolCallBegun(3, "1", "f"),
    ToolCallBegun(4, "2", "g"),
    ArgumentsReceived(4, "{}"),
    SignatureReceived(3, "T", "gemini"),
    ArgumentsReceived(3, '{"a":'),
    TextReceived(5, "after"),
    ToolCallCompleted(4),
    ArgumentsReceived(3, "1}"),
    ToolCallCompleted(3),
    RefusalReceived(6, "no"),
    RefusalReceived(6, ""),
    RefusalReceived(6, "!"),
    TextReceived(0, "other choice", 1),
    LogprobsReceived((TokenLogprob("a", -1.0),), 1, at="/l"),
    LogprobsReceived((TokenLogprob("b", -2.0),), 1),
    Finished("stop", 1),
    Finished("tool_calls"),
    UsageReceived(Usage(input_tokens=3)),
    UsageReceived(Usage(output_tokens=4)),
    FieldReceived("/x", 1),
    FrameBroken("/9", "odd"),
    Ended(),
)


def test_a_stream_ends_with_the_finishes_and_the_counts():
    frames, _ = write(*EVERYTHING)
    assert sum("finishReason" in candidate for frame in frames for candidate in frame["candidates"]) == 2
    assert [candidate.get("finishReason") for candidate in frames[-1]["candidates"]] == ["STOP", "STOP"]
    assert frames[-1]["usageMetadata"] == {"promptTokenCount": 3, "candidatesTokenCount": 4, "totalTokenCount": 7}
    assert all((frame["responseId"], frame["modelVersion"]) == ("r", "m") for frame in frames)


def test_words_leave_as_they_come():
    writer = StreamWriter(Client(model="m"), Report())
    assert writer.feed(TextReceived(0, "a")) == (
        b'data: {"candidates":[{"content":{"parts":[{"text":"a"}],"role":"model"},"index":0}],"modelVersion":"m"}\n\n'
    )
    assert writer.feed(Finished("stop")) == b""


def test_what_follows_an_open_call_waits_for_it():
    frames, _ = write(
        ToolCallBegun(0, "1", "f"), TextReceived(1, "a"), ToolCallBegun(2, "2", "g"), ToolCallCompleted(0), *END
    )
    call = {"functionCall": {"id": "1", "name": "f", "args": {}}}
    other = {"functionCall": {"id": "2", "name": "g", "args": {}}}
    assert parts_of(frames) == [[[call, {"text": "a"}]], [[other]], [[]]]


def test_a_call_that_was_cut_off_is_written_at_the_end():
    frames, report = write(ToolCallBegun(0, "1", "f", at="/c"), ArgumentsReceived(0, '{"a'), *END)
    assert parts_of(frames)[0] == [[{"functionCall": {"id": "1", "name": "f", "args": {"input": '{"a'}}}]]
    assert losses(report) == [("/c", "content")]


def test_a_failure_is_a_frame_of_its_own_and_the_last():
    fault = Fault(Code.OVERLOADED, "busy")
    frames, report = write(
        TextReceived(0, "a"),
        ToolCallBegun(1, "1", "f", at="/c"),
        ToolCallBegun(2, "2", "g"),
        ToolCallCompleted(2),
        Failed(fault),
        TextReceived(0, "b"),
        Ended(),
    )
    assert parts_of(frames[:2]) == [[[{"text": "a"}]], [[{"functionCall": {"id": "2", "name": "g", "args": {}}}]]]
    assert frames[2:] == [{"error": {"code": 503, "message": "busy", "status": "UNAVAILABLE"}}]
    assert "finishReason" not in json.dumps(frames)
    assert [loss.pointer for loss in report.losses] == ["/c"]


def test_a_choice_without_a_finish_has_none():
    frames, _ = write(TextReceived(0, "a"), TextReceived(0, "b", 1), Finished("stop", 1), Ended())
    assert [candidate.get("finishReason") for candidate in frames[-1]["candidates"]] == [None, "STOP"]
    lost = PartReceived(0, Opaque("anthropic", {}), 1)
    frames, _ = write(TextReceived(0, "a"), lost, Finished("stop"), Ended())
    assert [candidate.get("finishReason") for candidate in frames[-1]["candidates"]] == ["STOP", None]


def test_unsupported_parts_are_lost():
    frames, report = write(
        PartReceived(0, Opaque("anthropic", {}, at="/o")),
        PartReceived(1, Thinking(signature="D", signed_by="anthropic", redacted=True)),
        SignatureReceived(2, None, "openai-responses"),
        *END,
    )
    assert len(frames) == 2
    assert frames[0]["candidates"][0]["content"]["parts"][0]["thought"] is True
    assert [loss.pointer for loss in report.losses] == ["/o"]


def test_signature_in_pieces_is_written_once_at_the_end_of_its_part():
    frames, _ = write(
        SignatureReceived(0, None, "raw", id="rs_1"),
        ThinkingReceived(0, "t"),
        SignatureReceived(0, "ENC", "raw", id="rs_1"),
        SignatureReceived(1, "S", "gemini"),
        ToolCallBegun(2, "1", "f"),
        ToolCallCompleted(2),
        TextReceived(3, "a"),
        SignatureReceived(3, "T", "gemini"),
        Ended(),
    )
    assert "error" in frames[-1]
    parts = [part for frame in frames[:-1] for part in frame["candidates"][0]["content"]["parts"]]
    assert [part.get("thoughtSignature", "")[:4] for part in parts] == ["", "c2ln", "S", "c2ln", "", "T"]
    frames, _ = write(TextReceived(0, "a"), Finished("stop"), SignatureReceived(0, "S", "gemini"), Ended())
    assert frames[1]["candidates"][0]["content"]["parts"] == [{"text": "", "thoughtSignature": "S"}]


def test_a_refusal_is_reported_once():
    _, report = write(RefusalReceived(0, "n", at="/r"), RefusalReceived(0, "o"), Finished("refusal", at="/f"), Ended())
    assert losses(report) == [("/r", "identity"), ("/f", "option")]


def test_client_id_names_an_unnamed_reply_and_no_call_id_is_invented():
    events = (ToolCallBegun(0, "", "f"), ToolCallCompleted(0), *END)
    frames, _ = write(*events, client=Client(id="c1"))
    assert {frame["responseId"] for frame in frames} == {"c1"}
    assert parts_of(frames)[0] == [[{"functionCall": {"name": "f", "args": {}}}]]


def test_without_server_sent_events_a_stream_is_one_array():
    writer = StreamWriter(Client(as_array=True), Report())
    pieces = [writer.feed(event) for event in (TextReceived(0, "a"), TextReceived(0, "b"), Finished("stop"), Ended())]
    first, second, _, last = pieces
    assert first.startswith(b"[{")
    assert second.startswith(b",\n{")
    assert last.endswith(b"]")
    assert [each["candidates"][0]["content"]["parts"] for each in json.loads(b"".join(pieces))] == [
        [{"text": "a"}],
        [{"text": "b"}],
        [],
    ]


def test_an_array_that_fails_ends_with_the_error():
    writer = StreamWriter(Client(as_array=True), Report())
    written = b"".join(writer.feed(e) for e in (TextReceived(0, "a"), Failed(Fault(Code.NETWORK, "gone")), Ended()))
    assert json.loads(written)[-1]["error"]["message"] == "gone"
    alone = StreamWriter(Client(as_array=True), Report())
    assert [*json.loads(alone.feed(Failed(Fault(Code.NETWORK, "gone"))))[0]] == ["error"]


def write_whole(reply, client=Client()):  # noqa: B008 - a frozen value
    report = Report()
    return write_reply(reply, client, report), [(loss.what, loss.severity) for loss in report.losses]


@pytest.mark.parametrize("path", sorted(CASES.glob("*/reply.json")), ids=lambda path: path.parent.name)
def test_a_reply_of_this_dialect_means_the_same_when_it_is_written_again(path):
    reply = fold(read_reply(json.loads(path.read_bytes())), "gemini")
    again = fold(read_reply(write_whole(reply)[0]), "gemini")
    # Which searches were made is not written: it is of no use to a client, and charged where they were made.
    assert again.usage == (reply.usage and msgspec.structs.replace(reply.usage, server_tools={}))
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
    body, lost = write_whole(reply)
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
    body, _ = write_whole(Reply(), Client(id="x", model="y", created=60))
    assert (body["responseId"], body["modelVersion"], body["createTime"]) == ("x", "y", "1970-01-01T00:01:00Z")
    assert write_whole(Reply(created=10**15))[0].keys() == {"candidates"}


def test_foreign_signatures_are_wrapped_in_the_field_of_their_part():
    report = Report()
    part: Any = write_part(Thinking("t", signature="SIG", signed_by="anthropic"), report)
    assert base64.b64decode(part["thoughtSignature"]) == b"sightline:anthropic::SIG"
    part = write_part(Thinking(signature="D", signed_by="anthropic", redacted=True), report)
    assert base64.b64decode(part["thoughtSignature"]) == b"sightline:anthropic:redacted:D"
    part = write_part(Thinking(id="rs_1", signature="E", signed_by="openai-responses"), report)
    assert part["text"] == ""
    assert base64.b64decode(part["thoughtSignature"]) == b"sightline:openai-responses:rs_1:E"
    assert report.losses == ()


def test_a_call_carries_the_signed_thoughts_before_it():
    thought = Thinking("t", signature="SIG", signed_by="anthropic")
    body, _ = write_whole(Reply(choices=(Choice(parts=(thought, ToolCall("1", "f", "{}"))),)))
    assert body["candidates"][0]["content"]["parts"][1]["thoughtSignature"] == pack_thoughts([thought])


def test_own_signatures_are_exact():
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
        (
            ToolCall("c", "sql", "select 1", kind="custom"),
            {"functionCall": {"id": "c", "name": "sql", "args": {"input": "select 1"}}},
            ["identity"],
        ),
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
    assert write_whole(reply)[0]["usageMetadata"]["trafficType"] == "x"
