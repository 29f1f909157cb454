import pytest

from sightline.dialects.dialect import Client
from sightline.errors import Code, Fault
from sightline.model.events import (
    ArgumentsReceived,
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
from sightline.model.parts import Audio, Citation, Image, Link, Opaque, Refusal, Text, Thinking, ToolCall
from sightline.model.reply import Choice, Reply, TokenLogprob, Usage
from sightline.model.report import Report
from sightline.wire.jsontext import decode
from tests.contract.essence import essence
from tests.dialects.openai_chat.telling import CASES, DIALECT, fold, frames, read_bytes, read_reply, written
from tests.dialects.reports import added_at, losses

END = [Finished("stop"), Ended()]


def deltas(*events):
    documents = frames(written([*events, *END])[0])
    return [document["choices"][0]["delta"] for document in documents[:-2]]


def lost(*events):
    return losses(written([*events, *END])[1])


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
        {**head, "choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}},
        b"[DONE]",
    ]
    assert report.losses == ()


def test_usage_is_sent_only_to_clients_that_request_it():
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
    assert lost(*events) == [("/c", "identity")]


def test_pieces_of_reasoning_are_parted_as_in_a_whole_reply():
    events = [
        ThinkingReceived(0, "a", summary=True, at="/s"),
        ThinkingReceived(0, "b", summary=True),
        ThinkingReceived(0, "c", piece=1, summary=True),
        ThinkingReceived(1, ""),
        ThinkingReceived(2, "d"),
    ]
    assert [delta["reasoning_content"] for delta in deltas(*events)] == ["a", "b", "\n\nc", "\n\nd"]
    assert lost(*events) == [("/s", "identity")]


def test_calls_without_ids_get_the_same_ones_as_in_a_whole_reply_and_they_are_listed():
    calls = [ToolCallBegun(0, "", "f"), ToolCallBegun(1, "", "f")]
    data, report = written([Started("rid", "m", 1), *calls, Finished("tool_calls"), Ended()])
    assert [call.id for call in fold(read_bytes(data)).choice.tool_calls] == ["call_rid_0", "call_rid_1"]
    assert added_at(report) == ["/choices/0/delta/tool_calls/0/id", "/choices/0/delta/tool_calls/1/id"]


def test_what_is_made_up_is_listed_once():
    _, report = written([TextReceived(0, "a"), TextReceived(0, "b"), UsageReceived(Usage(output_tokens=1)), *END])
    assert added_at(report) == ["/id", "/created", "/model", "/usage/prompt_tokens"]


@pytest.mark.parametrize(
    ("before", "behind"),
    [
        (TextReceived(0, "a"), [ThinkingReceived(1, "", at="/t"), ThinkingReceived(1, "hm")]),
        (ToolCallBegun(0, "c", "f"), [TextReceived(1, "", at="/t"), TextReceived(1, "b")]),
        (ToolCallBegun(0, "c", "f"), [TextReceived(2, ""), TextReceived(2, "b", at="/t"), TextReceived(2, "c")]),
        (ToolCallBegun(0, "c", "f"), [RefusalReceived(1, "", at="/t"), RefusalReceived(1, "no")]),
        (ToolCallBegun(0, "c", "f"), [RefusalReceived(1, "no", at="/t"), RefusalReceived(1, "!")]),
    ],
)
def test_what_begins_behind_its_place_loses_it_even_if_its_text_comes_later(before, behind):
    assert lost(before, *behind) == [("/t", "content")]


def test_a_signature_goes_out_with_the_finish_if_it_is_the_only_one():
    seal = SignatureReceived(0, "s", "anthropic")
    events = [ThinkingReceived(0, "a"), seal, TextReceived(1, "b"), *END]
    last = frames(written(events)[0])[-2]["choices"][0]
    assert last == {"index": 0, "delta": {"reasoning_opaque": "sightline:anthropic::s"}, "finish_reason": "stop"}
    more = [ThinkingReceived(0, "a", at="/a"), seal, ThinkingReceived(2, "c"), *END]
    assert b"reasoning_opaque" not in written(more)[0]
    assert [loss.pointer for loss in written(more)[1].losses] == ["/a"]


def test_a_signature_that_comes_after_the_finish_still_goes_out():
    events = [TextReceived(1, "b"), Finished("stop"), SignatureReceived(0, None, "openai-chat", id="cot"), Ended()]
    assert frames(written(events)[0])[-2]["choices"][0]["delta"] == {"cot_id": "cot"}


def test_gemini_signature_is_written_with_its_call():
    assert deltas(ToolCallBegun(0, "c", "f"), SignatureReceived(0, "s", "gemini"))[1] == {
        "tool_calls": [
            {"index": 0, "function": {"arguments": ""}, "extra_content": {"google": {"thought_signature": "s"}}}
        ]
    }


def test_refusals_and_logprobs_have_their_places():
    events = [RefusalReceived(0, "no"), LogprobsReceived((TokenLogprob("no", -1.0),)), Finished("refusal"), Ended()]
    assert frames(written(events)[0])[1]["choices"][0]["logprobs"]["content"][0]["token"] == "no"


def test_a_call_of_an_unknown_kind_has_an_index():
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
    assert losses(written(events)[1]) == [
        ("", "content"),
        ("/f", "identity"),
    ]


def test_what_is_no_part_of_the_answer_writes_nothing():
    assert written([FieldReceived("/x", 1), FrameBroken("/0", "odd")])[0] == b""


write_chat_reply = DIALECT.write_reply


def write(*parts, client=None, **choice):
    report = Report()
    reply = Reply(choices=(Choice(parts=parts, **{"finish": "stop", **choice}),))
    document = write_chat_reply(reply, client or Client(), report)
    return document["choices"][0], losses(report)


def message(*parts):
    return write(*parts)[0]["message"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_reply_that_is_written_reads_back_as_it_was(case):
    reply = fold(read_reply(decode((case / "reply.json").read_bytes())), "openai-chat")
    again = fold(read_reply(write_chat_reply(reply, Client(), Report())))
    first, second = essence(reply), essence(again)
    for found in (first, second):  # finer counts and the word for a legacy finish are not written, ids are made
        found.get("usage", {}).pop("extras", None)
        found["choices"][0].pop("detail", None)
    calls = zip(reply.choice.tool_calls, again.choice.tool_calls, strict=True)
    assert all(after.id if not before.id else after.id == before.id for before, after in calls)
    for part in [*first["choices"][0]["parts"], *second["choices"][0]["parts"]]:
        part.pop("id", None)
    assert first == second


def test_identity_is_the_replys_or_the_clients_or_a_fixed_one():
    reply = Reply(id="r", model="m", created=5)
    known = write_chat_reply(reply, Client(id="c", model="n", created=6), Report())
    assert (known["id"], known["model"], known["created"]) == ("r", "m", 5)
    asked = write_chat_reply(Reply(), Client(id="c", model="n", created=6), Report())
    assert (asked["id"], asked["model"], asked["created"]) == ("c", "n", 6)
    report = Report()
    made = write_chat_reply(Reply(), Client(), report)
    assert (made["id"], made["model"], made["created"]) == ("chatcmpl-0", "", 0)
    assert [(addition.pointer, addition.severity) for addition in report.additions] == [
        ("/id", "identity"),
        ("/created", "identity"),
        ("/model", "identity"),
    ]


def test_calls_without_ids_get_different_ones_that_are_listed():
    call, known = ToolCall("", "f", "{}"), ToolCall("known", "f", "{}")
    reply = Reply(choices=(Choice(parts=(call, known, call)),), id="rid", model="m", created=1)
    report = Report()
    calls = write_chat_reply(reply, Client(), report)["choices"][0]["message"]["tool_calls"]
    assert [entry["id"] for entry in calls] == ["call_rid_0", "known", "call_rid_2"]
    assert [(addition.pointer, addition.severity) for addition in report.additions] == [
        ("/choices/0/message/tool_calls/0/id", "identity"),
        ("/choices/0/message/tool_calls/2/id", "identity"),
    ]
    assert message(call, call)["tool_calls"][1]["id"] == "call_1"
    unnamed = Reply(choices=(Choice(parts=(call,)),))
    [entry] = write_chat_reply(unnamed, Client(id="exchange-7"), Report())["choices"][0]["message"]["tool_calls"]
    assert entry["id"] == "call_exchange-7_0"


def test_words_behind_a_call_and_thoughts_behind_words_lose_their_place():
    call = ToolCall("c", "f", "{}")
    choice, losses = write(Text("a"), call, Text("", at="/e"), Text("b", at="/b"), Thinking("hm", at="/t"), call)
    assert choice["message"]["content"] == "ab"
    assert losses == [("/b", "content"), ("/t", "content")]


def test_a_refusal_with_words_of_its_own_is_a_stop_and_one_without_a_filters():
    explained = write(Refusal("because"), finish="refusal", detail="refusal")[0]
    assert (explained["finish_reason"], explained["message"]["refusal"]) == ("stop", "because")
    assert write(finish="refusal")[0]["finish_reason"] == "content_filter"


def test_usage_is_written_where_it_is_known():
    usage = Usage(input_tokens=10, output_tokens=5, cached_tokens=4)
    assert write_chat_reply(Reply(usage=usage), Client(), Report())["usage"] == {
        "prompt_tokens": 10,
        "completion_tokens": 5,
        "total_tokens": 15,
        "prompt_tokens_details": {"cached_tokens": 4},
    }
    assert "usage" not in write_chat_reply(Reply(), Client(), Report())


def test_texts_are_joined_and_their_citations_moved_along():
    cited, lost = Citation(url="u", title="t", start=0, end=1), Citation(cited_text="c", at="/c")
    choice, losses = write(Text("aa", (cited,), signature="s", signed_by="gemini", at="/t"), Text("b", (cited, lost)))
    assert choice["message"]["content"] == "aab"
    assert choice["message"]["annotations"] == [
        {
            "type": "url_citation",
            "url_citation": {"url": "u", "title": "t", "start_index": start, "end_index": start + 1},
        }
        for start in (0, 2)
    ]
    assert losses == [("/t", "identity"), ("/c", "option")]


def test_no_words_are_null_and_refusals_have_their_own_field():
    assert message(ToolCall("c", "f", "{}"))["content"] is None
    assert message(Refusal("no, "), Refusal("never"))["refusal"] == "no, never"


def test_calls_keep_their_ids_and_arguments():
    call = ToolCall("c", "f", "{ }", namespace="ns", item="fc_1", signature="s", signed_by="anthropic", at="/c")
    custom, signed = ToolCall("d", "g", "x", kind="custom"), ToolCall("e", "h", "{}", signature="s", signed_by="gemini")
    choice, losses = write(call, custom, signed)
    assert choice["message"]["tool_calls"] == [
        {"id": "c", "type": "function", "function": {"name": "ns__f", "arguments": "{ }"}},
        {"id": "d", "type": "custom", "custom": {"name": "g", "input": "x"}},
        {
            "id": "e",
            "type": "function",
            "function": {"name": "h", "arguments": "{}"},
            "extra_content": {"google": {"thought_signature": "s"}},
        },
    ]
    assert losses == [("/c", "identity"), ("/c", "identity")]


@pytest.mark.parametrize(
    ("thoughts", "fields", "losses"),
    [
        ([Thinking("a"), Thinking("b")], {"reasoning_content": "a\n\nb"}, []),
        (
            [Thinking("a", id="cot", signature="s", signed_by="openai-chat")],
            {"reasoning_content": "a", "reasoning_opaque": "s", "cot_id": "cot"},
            [],
        ),
        ([Thinking("", signature="s", signed_by="anthropic")], {"reasoning_opaque": "sightline:anthropic::s"}, []),
        (
            [Thinking("a", id="rs_1", signature="s", signed_by="openai-responses")],
            {"reasoning_content": "a", "reasoning_opaque": "sightline:openai-responses:rs_1:s"},
            [],
        ),
        (
            [Thinking("a", signature="s", signed_by="anthropic", at="/a"), Thinking("b", at="/b")],
            {"reasoning_content": "a\n\nb"},
            [("/a", "identity")],
        ),
        (
            [Thinking("", signature="s", signed_by="anthropic", redacted=True, at="/a")],
            {"reasoning_opaque": "sightline:anthropic:redacted:s"},
            [],
        ),
        (
            [Thinking("a", signature="s", signed_by="anthropic", redacted=True, at="/a")],
            {"reasoning_content": "a", "reasoning_opaque": "sightline:anthropic::s"},
            [],
        ),
        (
            [
                Thinking("", signature="s", signed_by="anthropic", redacted=True, at="/a"),
                Thinking("b", signature="t", signed_by="anthropic", at="/b"),
            ],
            {"reasoning_content": "b"},
            [("/a", "content"), ("/b", "identity")],
        ),
        ([Thinking("a", id="rs_1", at="/a")], {"reasoning_content": "a"}, [("/a", "identity")]),
        (
            [Thinking("a\n\nb", summary=("a", "b"), at="/a"), Thinking("c", summary=("c",))],
            {"reasoning_content": "a\n\nb\n\nc"},
            [("/a", "identity")],
        ),
        ([Thinking("raw", summary=("s1",), at="/a")], {"reasoning_content": "s1\n\nraw"}, [("/a", "identity")]),
    ],
)
def test_reasoning_is_one_text_with_one_signature(thoughts, fields, losses):
    choice, found = write(*thoughts)
    assert {
        key: value for key, value in choice["message"].items() if key not in ("role", "content", "refusal")
    } == fields
    assert found == losses


def test_what_a_reply_cannot_hold_is_a_loss():
    own = Opaque("openai-chat", {"type": "mcp"}, at="/choices/0/message/tool_calls/0")
    choice, losses = write(Image(Link("u"), at="/i"), own, Audio(Link("u"), "a1"))
    assert choice["message"]["tool_calls"] == [{"type": "mcp"}]
    assert choice["message"]["audio"] == {"id": "a1"}
    assert losses == [("/i", "content")]


def test_a_finer_finish_is_a_loss_unless_it_is_of_this_dialect():
    choice, losses = write(finish="pause", detail="pause_turn", finish_at="/f")
    assert choice["finish_reason"] == "stop"
    assert losses == [("/f", "option"), ("/f", "identity")]
    own = Reply(choices=(Choice(finish="length", detail="model_length"),), dialect="openai-chat")
    report = Report()
    write_chat_reply(own, Client(), report)
    assert report.losses == ()


def test_logprobs_stand_beside_the_message():
    choice, _ = write(Text("a"), logprobs=(TokenLogprob("a", -1.0),))
    assert choice["logprobs"]["content"][0]["token"] == "a"
    assert write(Text("a"))[0]["logprobs"] is None
