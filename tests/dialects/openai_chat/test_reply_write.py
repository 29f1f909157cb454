import pytest

from sightline.dialects.dialect import Client
from sightline.errors import Code, Fault
from sightline.model.parts import Audio, Citation, Image, Link, Opaque, Refusal, Text, Thinking, ToolCall
from sightline.model.reply import Choice, Reply, TokenLogprob
from sightline.model.report import Report
from sightline.model.usage import Usage
from sightline.wire.jsontext import decode
from tests.dialects.openai_chat.telling import CASES, DIALECT, essence, fold, read_reply

write_reply = DIALECT.write_reply


def write(*parts, client=None, **choice):
    report = Report()
    reply = Reply(choices=(Choice(parts=parts, **{"finish": "stop", **choice}),))
    document = write_reply(reply, client or Client(), report)
    return document["choices"][0], [(loss.pointer, loss.severity) for loss in report.losses]


def message(*parts):
    return write(*parts)[0]["message"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_reply_that_is_written_reads_back_as_it_was(case):
    reply = fold(read_reply(decode((case / "reply.json").read_bytes())), "openai-chat")
    again = fold(read_reply(write_reply(reply, Client(), Report())))
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
    known = write_reply(reply, Client(id="c", model="n", created=6), Report())
    assert (known["id"], known["model"], known["created"]) == ("r", "m", 5)
    asked = write_reply(Reply(), Client(id="c", model="n", created=6), Report())
    assert (asked["id"], asked["model"], asked["created"]) == ("c", "n", 6)
    report = Report()
    made = write_reply(Reply(), Client(), report)
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
    calls = write_reply(reply, Client(), report)["choices"][0]["message"]["tool_calls"]
    assert [entry["id"] for entry in calls] == ["call_rid_0", "known", "call_rid_2"]
    assert [(addition.pointer, addition.severity) for addition in report.additions] == [
        ("/choices/0/message/tool_calls/0/id", "identity"),
        ("/choices/0/message/tool_calls/2/id", "identity"),
    ]
    assert message(call, call)["tool_calls"][1]["id"] == "call_1"
    unnamed = Reply(choices=(Choice(parts=(call,)),))
    [entry] = write_reply(unnamed, Client(id="exchange-7"), Report())["choices"][0]["message"]["tool_calls"]
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
    assert write_reply(Reply(usage=usage), Client(), Report())["usage"] == {
        "prompt_tokens": 10,
        "completion_tokens": 5,
        "total_tokens": 15,
        "prompt_tokens_details": {"cached_tokens": 4},
    }
    assert "usage" not in write_reply(Reply(), Client(), Report())


def test_texts_are_joined_and_their_citations_moved_along():
    cited = Text("b", citations=(Citation(url="u", title="t", start=0, end=1), Citation(cited_text="c", at="/c")))
    choice, losses = write(Text("aa", signature="s", signed_by="gemini", at="/t"), cited)
    assert choice["message"]["content"] == "aab"
    assert choice["message"]["annotations"] == [
        {"type": "url_citation", "url_citation": {"url": "u", "title": "t", "start_index": 2, "end_index": 3}}
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
        (
            [Thinking("", signature="s", signed_by="anthropic")],
            {"reasoning_opaque": "sightline:anthropic::s"},
            [],
        ),
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
def test_reasoning_is_one_text_with_one_seal(thoughts, fields, losses):
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


def test_finishes_are_words_and_finer_ones_are_losses():
    choice, losses = write(finish="pause", detail="pause_turn", stop_sequence="END", finish_at="/f", stop_at="/s")
    assert choice["finish_reason"] == "stop"
    assert losses == [("/f", "option"), ("/s", "identity"), ("/f", "identity")]
    own = Reply(choices=(Choice(finish="length", detail="model_length"),), dialect="openai-chat")
    report = Report()
    write_reply(own, Client(), report)
    assert report.losses == ()


def test_logprobs_stand_beside_the_message():
    choice, _ = write(Text("a"), logprobs=(TokenLogprob("a", -1.0),))
    assert choice["logprobs"]["content"][0]["token"] == "a"
    assert write(Text("a"))[0]["logprobs"] is None


def test_a_reply_that_failed_is_an_error_body_and_what_it_said_a_loss():
    report = Report()
    reply = Reply(choices=(Choice(parts=(Text("part", at="/t"),)),), fault=Fault(Code.OVERLOADED, "busy"))
    assert write_reply(reply, Client(), report) == {
        "error": {"message": "busy", "type": "server_error", "param": None, "code": "server_is_overloaded"}
    }
    assert [(loss.pointer, loss.severity) for loss in report.losses] == [("/t", "content")]
    bare = Report()
    write_reply(fold(read_reply({"error": {"message": "busy"}})), Client(), bare)
    assert bare.losses == ()
