import pytest

from sightline.dialects.dialect import Client
from sightline.dialects.openai_chat.reply_write import write_reply
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
from sightline.model.parts import Audio, Citation, Image, Inline, Link, Opaque, Thinking
from sightline.model.reply import TokenLogprob
from sightline.model.report import Report
from sightline.model.usage import Usage
from tests.dialects.openai_chat.telling import CASES, essence, fold, frames, read_bytes, read_reply, written

END = [Finished("stop"), Ended()]


def deltas(*events):
    documents = frames(written([*events, *END])[0])
    return [document["choices"][0]["delta"] for document in documents[:-2]]


def losses(*events):
    return [(loss.pointer, loss.severity) for loss in written([*events, *END])[1].losses]


def agree(events):
    """The stream and the whole reply of the same events say the same."""
    streamed = fold(read_bytes(written(events)[0]))
    assert essence(streamed) == essence(fold(read_reply(write_reply(fold(events), Client(), Report()))))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_what_is_streamed_amounts_to_what_is_written_whole(case):
    agree(read_bytes((case / "stream.sse").read_bytes()))


def test_a_stream_opens_with_the_role_and_closes_with_finish_usage_and_done():
    usage = Usage(input_tokens=3, output_tokens=2)
    stream, report = written(
        [Started("id", "m", 7), TextReceived(0, "a"), TextReceived(0, "b"), UsageReceived(usage), *END]
    )
    head = {"id": "id", "object": "chat.completion.chunk", "created": 7, "model": "m"}
    assert frames(stream) == [
        {**head, "choices": [{"index": 0, "delta": {"role": "assistant", "content": "a"}, "finish_reason": None}]},
        {**head, "choices": [{"index": 0, "delta": {"content": "b"}, "finish_reason": None}]},
        {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
        {
            **head,
            "choices": [],
            "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5},
        },
        b"[DONE]",
    ]
    assert report.losses == ()


def test_usage_goes_to_clients_that_asked_for_it():
    events = [UsageReceived(Usage(input_tokens=1)), UsageReceived(Usage(output_tokens=2)), *END]
    assert frames(written(events)[0])[-2]["usage"]["total_tokens"] == 3
    assert "usage" not in frames(written(events, Client(include_usage=False))[0])[-2]


def test_identity_is_completed_by_what_comes_later_and_by_the_client():
    events = [Started(model="m"), Started(id="late", model="other"), *END]
    chunk = frames(written(events, Client(id="c", created=9))[0])[0]
    assert (chunk["id"], chunk["model"], chunk["created"]) == ("late", "m", 9)


def test_a_failure_is_an_error_frame_and_nothing_follows_it():
    stream, _ = written([TextReceived(0, "a"), Failed(Fault(Code.OVERLOADED, "busy")), Ended()])
    assert frames(stream)[-1] == {
        "error": {"message": "busy", "type": "server_error", "param": None, "code": "server_is_overloaded"}
    }
    assert b"[DONE]" not in stream
    assert b'"finish_reason":"' not in stream


def test_parallel_calls_have_indexes_of_their_own():
    events = [
        ToolCallBegun(5, "c1", "f", namespace="ns", item="fc", at="/c"),
        ToolCallBegun(8, "c2", "g", kind="custom"),
        ArgumentsReceived(5, "{}"),
        ArgumentsReceived(8, "x"),
        ToolCallCompleted(5),
    ]
    assert [delta["tool_calls"] for delta in deltas(*events)] == [
        [{"index": 0, "id": "c1", "type": "function", "function": {"name": "ns__f", "arguments": ""}}],
        [{"index": 1, "id": "c2", "type": "custom", "custom": {"name": "g", "input": ""}}],
        [{"index": 0, "function": {"arguments": "{}"}}],
        [{"index": 1, "custom": {"input": "x"}}],
    ]
    assert losses(*events) == [("/c", "identity")]
    agree([*events, Finished("tool_calls"), Ended()])


def test_pieces_of_reasoning_are_parted_as_in_a_whole_reply():
    events = [
        ThinkingReceived(0, "a", summary=True, at="/s"),
        ThinkingReceived(0, "b", summary=True),
        ThinkingReceived(0, "c", piece=1, summary=True),
        ThinkingReceived(1, ""),
        ThinkingReceived(2, "d"),
    ]
    assert [delta["reasoning_content"] for delta in deltas(*events)] == ["a", "b", "\n\nc", "\n\nd"]
    assert losses(*events) == [("/s", "identity")]
    agree([*events, *END])


def test_a_summary_and_the_reasoning_that_says_something_else_are_both_told():
    events = [ThinkingReceived(0, "s1", summary=True, at="/s"), ThinkingReceived(0, "raw"), *END]
    assert losses(*events[:2]) == [("/s", "identity")]
    agree(events)
    whole = PartReceived(0, Thinking("raw", summary=("s1",), at="/s"))
    assert deltas(whole) == [{"role": "assistant", "reasoning_content": "s1\n\nraw"}]
    assert losses(whole) == [("/s", "identity")]
    assert losses(ThinkingReceived(0, "a"), ThinkingReceived(0, "b", piece=1)) == []
    assert losses(PartReceived(0, Thinking("s", summary=("s",)))) == []


def test_calls_without_ids_get_the_same_ones_as_in_a_whole_reply_and_they_are_listed():
    started = Started("rid", "m", 1)
    calls = [ToolCallBegun(0, "", "f"), ToolCallBegun(1, "", "f")]
    events = [started, *calls, Finished("tool_calls"), Ended()]
    data, report = written(events)
    assert [call.id for call in fold(read_bytes(data)).choice.tool_calls] == ["call_rid_0", "call_rid_1"]
    assert [(addition.pointer, addition.severity) for addition in report.additions] == [
        ("/choices/0/delta/tool_calls/0/id", "identity"),
        ("/choices/0/delta/tool_calls/1/id", "identity"),
    ]
    agree(events)


def test_what_is_made_up_is_listed_once():
    _, report = written([TextReceived(0, "a"), TextReceived(0, "b"), UsageReceived(Usage(output_tokens=1)), *END])
    assert [addition.pointer for addition in report.additions] == [
        "/id",
        "/created",
        "/model",
        "/usage/prompt_tokens",
    ]


def test_made_ids_follow_from_the_clients_id_where_the_reply_has_none():
    events = [ToolCallBegun(0, "", "f"), Finished("tool_calls"), Ended()]
    data, _ = written(events, Client(id="exchange-7"))
    assert [call.id for call in fold(read_bytes(data)).choice.tool_calls] == ["call_exchange-7_0"]


def test_a_part_stands_where_it_began_even_if_its_words_come_later():
    thoughts = [ThinkingReceived(1, "", at="/t"), ThinkingReceived(1, "hm")]
    assert losses(TextReceived(0, "a"), *thoughts) == [("/t", "content")]
    words = [TextReceived(1, "", at="/w"), TextReceived(1, "b")]
    assert losses(ToolCallBegun(0, "c", "f"), *words) == [("/w", "content")]
    refusal = [RefusalReceived(1, "", at="/r"), RefusalReceived(1, "no")]
    assert losses(ToolCallBegun(0, "c", "f"), *refusal) == [("/r", "content")]


def test_words_behind_a_call_lose_their_place():
    call = ToolCallBegun(1, "c", "f")
    words = [TextReceived(2, ""), TextReceived(2, "b", at="/b"), TextReceived(2, "c")]
    assert losses(TextReceived(0, "a"), call, *words) == [("/b", "content")]
    assert losses(call, RefusalReceived(2, "no", at="/r"), RefusalReceived(2, "!")) == [("/r", "content")]


def test_a_seal_goes_out_with_the_finish_if_it_is_the_only_one():
    seal = SignatureReceived(0, "s", "anthropic")
    events = [ThinkingReceived(0, "a"), seal, TextReceived(1, "b"), *END]
    last = frames(written(events)[0])[-2]["choices"][0]
    assert last == {"index": 0, "delta": {"reasoning_opaque": "sightline:anthropic::s"}, "finish_reason": "stop"}
    agree(events)
    more = [ThinkingReceived(0, "a", at="/a"), seal, ThinkingReceived(2, "c"), *END]
    assert b"reasoning_opaque" not in written(more)[0]
    assert [loss.pointer for loss in written(more)[1].losses] == ["/a"]
    agree(more)


def test_a_seal_that_comes_after_the_finish_still_goes_out():
    events = [TextReceived(1, "b"), Finished("stop"), SignatureReceived(0, None, "openai-chat", id="cot"), Ended()]
    assert frames(written(events)[0])[-2]["choices"][0]["delta"] == {"cot_id": "cot"}
    agree(events)


def test_googles_signature_stands_beside_its_call_and_others_are_losses():
    begun = ToolCallBegun(0, "c", "f")
    assert deltas(begun, SignatureReceived(0, "s", "gemini"))[1] == {
        "tool_calls": [
            {"index": 0, "function": {"arguments": ""}, "extra_content": {"google": {"thought_signature": "s"}}}
        ]
    }
    agree([begun, SignatureReceived(0, "s", "gemini"), Finished("tool_calls"), Ended()])
    placed = ToolCallBegun(0, "c", "f", at="/c")
    assert losses(placed, SignatureReceived(0, "s", "anthropic")) == [("/c", "identity")]
    assert losses(TextReceived(0, "a", at="/t"), SignatureReceived(0, "s", "gemini")) == [("/t", "identity")]


def test_citations_move_with_their_text():
    cited = CitationReceived(1, Citation(url="u", title="t", start=0, end=1))
    events = [TextReceived(0, "aa"), TextReceived(1, "b"), cited, *END]
    agree(events)
    assert losses(CitationReceived(0, Citation(cited_text="c", at="/c"))) == [("/c", "option")]


def test_refusals_and_logprobs_have_their_places():
    events = [RefusalReceived(0, "no"), LogprobsReceived((TokenLogprob("no", -1.0),)), Finished("refusal"), Ended()]
    agree(events)
    assert frames(written(events)[0])[1]["choices"][0]["logprobs"]["content"][0]["token"] == "no"


def test_parts_that_come_whole():
    audio = PartReceived(0, Audio(Inline("audio/wav", "AA"), "a1", "hey"))
    agree([audio, *END])
    agree([PartReceived(0, Thinking("hm", signature="s", signed_by="gemini")), *END])
    hidden = PartReceived(0, Thinking(signature="s", signed_by="anthropic", redacted=True, at="/r"))
    agree([hidden, *END])
    assert losses(hidden) == []
    assert deltas(hidden) == []
    assert b'"reasoning_opaque":"sightline:anthropic:redacted:s"' in written([hidden, *END])[0]
    assert losses(hidden, ThinkingReceived(1, "b")) == [("/r", "content")]
    assert losses(PartReceived(0, Image(Link("u"), at="/i"))) == [("/i", "content")]
    opaque = Opaque("openai-chat", {"type": "mcp", "id": "c"}, at="/choices/0/message/tool_calls/0")
    assert deltas(PartReceived(0, opaque)) == [
        {"role": "assistant", "tool_calls": [{"index": 0, "type": "mcp", "id": "c"}]}
    ]


def test_several_choices_are_kept_apart():
    events = [
        TextReceived(0, "a"),
        TextReceived(0, "b", 1),
        ThinkingReceived(1, "hm", 1),
        Finished("stop"),
        Finished("length", 1, "max_tokens", at="/f"),
        Ended(),
    ]
    agree(events)
    assert [(loss.pointer, loss.severity) for loss in written(events)[1].losses] == [
        ("", "content"),
        ("/f", "identity"),
    ]


def test_what_is_no_part_of_the_answer_writes_nothing():
    assert written([FieldReceived("/x", 1), FrameBroken("/0", "odd")])[0] == b""
