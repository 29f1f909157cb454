import json
from typing import Any

import pytest

from sightline.dialects.dialect import Client, Unread
from sightline.dialects.losses import (
    UnreadLosses,
    describe,
    lose_call_kind,
    lose_choices,
    lose_counts,
    lose_finish,
    lose_partial,
)
from sightline.dialects.registry import dialect
from sightline.dialects.translate import StreamTranslation, translate_reply
from sightline.model.events import (
    Ended,
    Finished,
    Started,
    StreamEvent,
    TextReceived,
    ThinkingReceived,
    ToolCallBegun,
)
from sightline.model.fold import fold
from sightline.model.parts import CacheBreakpoint, Citation, Opaque, Part, Text, ToolCall, ToolResult
from sightline.model.reply import Choice, Reply, Unmodelled, Usage
from sightline.model.report import Report
from sightline.model.request import (
    FunctionTool,
    JsonFormat,
    Message,
    OpaqueTool,
    Options,
    Reasoning,
    Request,
    ToolChoice,
)
from tests.dialects.reports import named_losses

UNREAD = Unread(
    bookkeeping=frozenset({"status"}),
    echoes=frozenset({"temperature"}),
    containers=frozenset({"generationConfig", "thinkingConfig", "text"}),
    stateful=frozenset({"thread"}),
    private_lines=(),
)


def pointers(report: Report) -> dict[str, str]:
    return {loss.pointer: loss.severity for loss in report.losses}


def test_every_unmodelled_field_of_a_request_is_found() -> None:
    nested = Text("x", (Citation(at="/c", extras={"e": 1}),), at="/t", extras={"a/b": 1, "nothing": None})
    request = Request(
        messages=(
            Message(
                "user",
                (ToolResult("c", (nested,), at="/r", extras={"f": 1}), CacheBreakpoint(at="/b", extras={"scope": 1})),
                at="/m",
                extras={"status": "done", "phase": 1, "annotations": []},
            ),
        ),
        tools=(
            FunctionTool("f", at="/tools/0", extras={"z": 1}, cache=CacheBreakpoint(at="/cc", extras={"scope": 1})),
            FunctionTool("g", at="/tools/1"),
        ),
        tool_choice=ToolChoice("auto", at="/tool_choice", extras={"y": 1}),
        options=Options(
            format=JsonFormat(at="/f", extras={"x": 1}), reasoning=Reasoning(at="/reasoning", extras={"w": 1})
        ),
        extras={"generationConfig": {"thinkingConfig": {"v": 1}}, "top": {"deep": 1}, "text": 5, "thread": {"a": 1}},
    )
    report = Report()
    UnreadLosses(UNREAD, "gemini", report).of_request(request)
    assert pointers(report) == {
        "/generationConfig/thinkingConfig/v": "option",
        "/top": "option",
        "/text": "option",
        "/thread": "content",
        "/m/status": "identity",
        "/m/phase": "content",
        "/m/annotations": "identity",
        "/r/f": "content",
        "/b/scope": "option",
        "/t/a~1b": "content",
        "/c/e": "content",
        "/tools/0/z": "option",
        "/cc/scope": "option",
        "/tool_choice/y": "option",
        "/f/x": "option",
        "/reasoning/w": "option",
    }


def test_a_request_without_any_loses_nothing() -> None:
    report = Report()
    UnreadLosses(UNREAD, "gemini", report).of_request(Request())
    assert not report.losses


def test_every_unmodelled_field_of_a_reply_is_found() -> None:
    reply = Reply(
        choices=(Choice(parts=(Text("x", at="/t", extras={"a": 1}),)),),
        unmodelled=(
            Unmodelled("/status", "completed"),
            Unmodelled("/temperature", 1),
            Unmodelled("/new", 1),
            Unmodelled("/empty", []),
        ),
        usage=Usage(at="/usage", extras={"finer": {"audio": 3}, "cost": 0.1}),
    )
    report = Report()
    UnreadLosses(UNREAD, "anthropic", report).of_reply(reply)
    assert pointers(report) == {
        "/t/a": "content",
        "/status": "identity",
        "/temperature": "identity",
        "/new": "content",
        "/usage/finer/audio": "identity",
        "/usage/cost": "identity",
    }
    bare = Report()
    UnreadLosses(UNREAD, "anthropic", bare).of_reply(Reply())
    assert not bare.losses


def test_what_says_nothing_is_no_loss() -> None:
    report = Report()
    for value in (None, "", [], {}):
        UnreadLosses(UNREAD, "gemini", report).of_field("/x", value)
    lose_counts(Usage(), "gemini", report)
    assert not report.losses


def test_further_choices_are_named_by_their_place() -> None:
    report = Report()
    first, second = Choice(finish_at="/choices/0/finish_reason"), Choice(finish_at="/choices/1/finish_reason")
    lose_choices(Reply(choices=(first, second)), "anthropic", report)
    assert pointers(report) == {"/choices/1": "content"}


def test_partial_content_of_a_failed_reply_is_reported_as_lost() -> None:
    begun = Choice(parts=(Text("half", at="/t"), ToolCall("c", "f", "", at="/c")))
    cut = Choice(finish_at="/choices/1/finish_reason")
    report = Report()
    lose_partial(Reply(choices=(begun, cut), places={"id": "/id"}, usage=Usage(at="/usage")), "anthropic", report)
    assert pointers(report) == {
        "/id": "identity",
        "/t": "content",
        "/c": "content",
        "/choices/1": "content",
        "/usage": "identity",
    }
    nothing = Report()
    lose_partial(Reply(), "anthropic", nothing)
    assert not nothing.losses


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (Opaque("openai-responses", {"type": "web_search_call"}), "part 'web_search_call' of openai-responses"),
        (Opaque("gemini", {"thought": True, "executableCode": {}}), "part 'executableCode' of gemini"),
        (Opaque("gemini", {}), "opaque part of gemini"),
        (Opaque("gemini", {"type": 7}), "opaque part of gemini"),
        (OpaqueTool("gemini", {"googleSearch": {}}), "tool 'googleSearch' of gemini"),
        (OpaqueTool("raw", "odd"), "opaque tool of raw"),
        (ToolResult("c"), "tool result"),
    ],
)
def test_a_part_that_is_lost_is_called_by_what_it_is(value: Part | OpaqueTool, words: str) -> None:
    assert describe(value) == words


def test_a_call_of_a_built_in_tool_is_one_of_a_function_elsewhere() -> None:
    report = Report()
    lose_call_kind(ToolCallBegun(0, "c", "shell", kind="shell", at="/output/0"), dialect("gemini"), report)
    lose_call_kind(ToolCallBegun(1, "d", "f", at="/output/1"), dialect("gemini"), report)
    lose_call_kind(ToolCallBegun(2, "e", "shell", kind="shell", at="/output/2"), dialect("raw"), report)
    lose_call_kind(TextReceived(2, "a"), dialect("gemini"), report)
    assert pointers(report) == {"/output/0": "identity"}


FOUND: dict[str, Any] = {
    "candidates": [
        {
            "content": {
                "role": "model",
                "parts": [
                    {"inlineData": {"mimeType": "image/png", "data": "AA==", "displayName": "rain"}},
                    {"text": "It rains."},
                ],
            },
            "finishReason": "STOP",
            "citationMetadata": {"citationSources": [{"endIndex": 2, "uri": "https://e.org", "license": "mit"}]},
            "groundingMetadata": {
                "groundingChunks": [{"retrievedContext": {"uri": "https://f.org", "title": "f", "text": "Rain."}}],
                "groundingSupports": [{"segment": {"endIndex": 2, "text": "It"}, "groundingChunkIndices": [0]}],
            },
        }
    ]
}


@pytest.mark.parametrize("target", ["openai-chat", "openai-responses"])
def test_what_citations_and_pictures_lose_is_the_same_in_a_stream_and_in_a_whole_reply(target: str) -> None:
    data = json.dumps(FOUND).encode()
    whole = translate_reply(data, "gemini", target).report
    stream = StreamTranslation("gemini", target)
    stream.feed(b"data: %b\n\n" % data)
    stream.close()
    lost = {(loss.pointer, loss.what, loss.severity) for loss in whole.losses}
    assert {(f"/0{at}", what, severity) for at, what, severity in lost} == {
        (loss.pointer, loss.what, loss.severity) for loss in stream.report.losses
    }
    at = "/candidates/0/citationMetadata/citationSources/0"
    assert {what for _, what, _ in lost} >= {"license", "displayName", "the quotation of a citation"}
    assert (f"{at}/license", "license", "content") in lost


@pytest.mark.parametrize("name", ["anthropic", "gemini", "openai-chat"])
@pytest.mark.parametrize(
    ("pieces", "lost"),
    [
        ([ThinkingReceived(0, "", at="/t"), ThinkingReceived(0, "a", summary=True)], []),
        ([ThinkingReceived(0, "a", at="/t"), ThinkingReceived(0, "b", piece=1)], []),
        ([ThinkingReceived(0, "a", summary=True, at="/t"), ThinkingReceived(0, "b", summary=True, piece=1)], ["/t"]),
        ([ThinkingReceived(0, "a", summary=True, at="/t"), ThinkingReceived(0, "b", at="/u")], ["/t"]),
    ],
)
def test_a_summary_in_pieces_becomes_one_text_in_a_stream_as_in_a_whole_reply(
    name: str, pieces: list[StreamEvent], lost: list[str]
) -> None:
    streamed, whole = Report(), Report()
    events = [Started("m", "n"), *pieces, Finished("stop"), Ended()]
    writer = dialect(name).stream_writer(Client(), streamed)
    for event in events:
        writer.feed(event)
    dialect(name).write_reply(fold(events), Client(), whole)
    for report in (streamed, whole):
        assert [loss.pointer for loss in report.losses if loss.what == "pieces of the reasoning summary"] == lost


def test_what_a_finish_says_besides_its_word() -> None:
    report = Report()
    lose_finish(Finished("pause", 0, "pause_turn", "END", "/f", "/s"), "openai-chat", report)
    lose_finish(Finished("stop", 0, None, "END", "/g"), "openai-chat", report)
    lose_finish(Finished("length", at="/h"), "openai-chat", report)
    assert named_losses(report) == [
        ("/f", "pause of the turn", "option"),
        ("/s", "the text that stopped it", "identity"),
        ("/f", "finish 'pause_turn'", "identity"),
        ("/g", "the text that stopped it", "identity"),
    ]
