"""Snapshots add only what their deltas left out; reasoning and counts."""

import pytest

from sightline.dialects.openai_responses.content import (
    read_reasoning,
    read_signature,
    reasoning_pieces,
    write_signature,
)
from sightline.dialects.openai_responses.names import BOOKKEEPING, CALLS, NAME, OUTPUTS, REDACTED, STRIDE
from sightline.dialects.openai_responses.reply_read import read_reply
from sightline.dialects.openai_responses.snapshots import SnapshotReader, read_usage, write_usage
from sightline.dialects.signatures import NEXT, wrap
from sightline.errors import Code
from sightline.model.events import (
    ArgumentsReceived,
    FieldReceived,
    LogprobsReceived,
    PartReceived,
    SignatureReceived,
    Started,
    TextReceived,
    ToolCallBegun,
    ToolCallCompleted,
)
from sightline.model.fold import fold
from sightline.model.parts import Opaque, Refusal, Text, Thinking, ToolCall
from sightline.model.reply import Usage
from sightline.model.report import Report
from tests.dialects.reports import refused_at


def body(*output, **fields):
    return {"id": "resp_1", "object": "response", "status": "completed", "output": list(output), **fields}


def message(*content, **fields):
    return {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "status": "completed",
        "content": list(content),
        **fields,
    }


def text(words, **fields):
    return {"type": "output_text", "text": words, "annotations": [], **fields}


CALL = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "f", "arguments": "{}", "status": "completed"}


def reply(*output, **fields):
    return fold(read_reply(body(*output, **fields)))


def test_identity_and_its_places():
    assert read_reply(body(model="m", created_at=12.5))[0] == Started(
        "resp_1", "m", 12, {"id": "/id", "model": "/model", "created": "/created_at"}
    )


def test_parts_in_the_order_of_the_output():
    note = {"type": "url_citation", "url": "u", "title": "t", "start_index": 0, "end_index": 1}
    token = {"token": "a", "logprob": -0.5, "bytes": [97], "top_logprobs": []}
    found = reply(
        {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [{"type": "summary_text", "text": "s"}],
            "encrypted_content": "enc",
        },
        message(text("a", annotations=[note], logprobs=[token]), {"type": "refusal", "refusal": "no"}, {"type": "odd"}),
        {**CALL, "namespace": "ns"},
        {"type": "custom_tool_call", "call_id": "c2", "name": "g", "input": "raw"},
        {"type": "web_search_call", "id": "ws"},
    )
    thinking, words, refusal, odd, call, custom, search = found.choice.parts
    assert thinking == Thinking("s", ("s",), "rs_1", "enc", NAME, at="/output/0")
    assert isinstance(words, Text)
    assert words.citations[0].at == "/output/1/content/0/annotations/0"
    assert [token.token for token in found.choice.logprobs] == ["a"]
    assert refusal == Refusal("no", at="/output/1/content/1")
    assert odd == Opaque(NAME, {"type": "odd"}, at="/output/1/content/2")
    assert call == ToolCall("c1", "f", "{}", namespace="ns", item="fc_1", at="/output/2")
    assert custom == ToolCall("c2", "g", "raw", "custom", at="/output/3")
    assert search == Opaque(NAME, {"type": "web_search_call", "id": "ws"}, at="/output/4")


def test_non_default_unmodelled_fields_are_reported_with_their_path():
    events = read_reply(
        body(
            message(text("a", x=1), phase="final"),
            {
                "type": "reasoning",
                "summary": [{"type": "odd", "text": "s"}, {"type": "summary_text", "text": "t", "n": 1}],
            },
            {**CALL, "status": "incomplete"},
            truncation="disabled",
            background=False,
            user=None,
            truncated=True,
        )
    )
    assert [(event.at, event.value) for event in events if isinstance(event, FieldReceived)] == [
        ("/output/0/content/0/x", 1),
        ("/output/0/id", "msg_1"),
        ("/output/0/phase", "final"),
        ("/output/1/summary/0/type", "odd"),
        ("/output/1/summary/1/n", 1),
        ("/output/2/status", "incomplete"),
        ("/truncated", True),
    ]


@pytest.mark.parametrize(
    ("fields", "finish", "detail"),
    [
        ({}, "stop", None),
        ({"status": None}, "stop", None),
        ({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}, "length", None),
        ({"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}, "content_filter", None),
        ({"status": "incomplete", "incomplete_details": {"reason": "steered"}}, "pause", "steered"),
        ({"status": "incomplete", "incomplete_details": {"reason": "max_messages"}}, "length", "max_messages"),
        ({"status": "incomplete", "incomplete_details": None}, "length", None),
    ],
)
def test_how_it_ended(fields, finish, detail):
    choice = reply(message(text("a")), **fields).choice
    assert (choice.finish, choice.detail) == (finish, detail)


def test_a_call_to_answer_is_the_finish():
    assert reply(CALL).choice.finish == "tool_calls"
    assert reply(message({"type": "refusal", "refusal": "no"})).choice.finish == "refusal"
    assert reply(message({"type": "refusal", "refusal": "no"}), CALL).choice.finish == "tool_calls"
    assert reply(CALL, status="incomplete").choice.finish == "length"


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"status": "failed", "error": {"code": "server_error", "message": "x"}}, Code.UPSTREAM_ERROR),
        ({"status": "failed"}, Code.UPSTREAM_ERROR),
        ({"error": {"code": "rate_limit_exceeded", "message": "x"}}, Code.RATE_LIMITED),
        ({"status": "cancelled"}, Code.CANCELLED),
        ({"status": "in_progress"}, Code.UPSTREAM_PROTOCOL),
        ({"status": "queued"}, Code.UPSTREAM_PROTOCOL),
    ],
)
def test_a_reply_that_failed_keeps_what_had_arrived(fields, code):
    found = reply(message(text("so far")), **fields)
    assert found.fault.code is code
    assert found.choice.parts == (Text("so far", at="/output/0/content/0"),)


@pytest.mark.parametrize(
    ("document", "pointer"),
    [
        ([], ""),
        ({}, "/output"),
        ({"object": "chat.completion", "choices": []}, "/output"),
        (body(3), "/output/0"),
        (body({}), "/output/0/type"),
        (body(message(text(3))), "/output/0/content/0/text"),
        (body({"type": "function_call"}), "/output/0/name"),
        (body(usage=[]), "/usage"),
        (body(id=3), "/id"),
        (body(status=3), "/status"),
    ],
)
def test_what_is_no_reply_is_refused_with_its_place(document, pointer):
    assert refused_at(read_reply, document) == pointer


def test_signatures_of_other_makers_come_back_as_theirs():
    item = {"type": "reasoning", "id": "rs_x", "summary": []}
    found = reply(
        {**item, "encrypted_content": wrap("sig", "gemini", NEXT)},
        {**item, "encrypted_content": wrap("data", "anthropic", REDACTED)},
        {**item, "encrypted_content": wrap(None, "", None)},
    )
    following, redacted, unsigned = found.choice.parts
    assert (following.id, following.signature, following.signed_by) == ("next", "sig", "gemini")
    assert (redacted.redacted, redacted.signature, redacted.signed_by) == (True, "data", "anthropic")
    assert (unsigned.id, unsigned.signature, unsigned.signed_by) == (None, None, "")


def test_what_the_provider_keeps_has_a_marker():
    assert reply(message(text("a")), store=True).marker == "resp_1"
    assert reply(message(text("a")), store=False).marker is None
    assert reply(message(text("a"))).marker is None


TOKEN = {"token": "a", "logprob": -0.5, "bytes": [97], "top_logprobs": []}


def item_of(words, name="msg_1", **fields):
    content = [{"type": "output_text", "text": words, "annotations": []}]
    return {"type": "message", "id": name, "role": "assistant", "content": content, **fields}


@pytest.fixture
def hearing():
    return SnapshotReader()


def texts(events):
    return [(event.part, event.text) for event in events if isinstance(event, TextReceived)]


def fields(events):
    return [event.at for event in events if isinstance(event, FieldReceived)]


def test_a_later_snapshot_of_an_item_goes_on_where_the_earlier_one_stopped(hearing):
    assert texts(hearing.item(item_of("Hel"), 0, "/1/item")) == [(0, "Hel")]
    assert texts(hearing.outcome({"output": [item_of("Hello")]}, "/2/response")) == [(0, "lo")]


def test_fields_logprobs_and_whole_parts_are_reported_once(hearing):
    item = item_of("a", phase="final")
    item["content"][0]["logprobs"] = [TOKEN]
    item["content"].append({"type": "odd"})
    first = hearing.item(item, 0, "/1/item")
    assert fields(first) == ["/1/item/id", "/1/item/phase"]
    assert len([event for event in first if isinstance(event, (LogprobsReceived, PartReceived))]) == 2
    item["mood"] = "new"
    again = hearing.item(item, 0, "/2/response/output/0")
    assert again == [FieldReceived("/2/response/output/0/mood", "new")]


def test_items_are_known_by_their_ids_wherever_they_stand(hearing):
    hearing.place(item_of(""), 3)
    hearing.texts[3000] = ["Hel"]
    events = hearing.outcome({"output": [item_of("Hello"), item_of("other", "msg_2")]}, "")
    assert texts(events) == [(3000, "lo"), (1000, "other")]


def test_different_item_at_a_known_index_is_read_as_new(hearing):
    hearing.item(item_of("a"), 1, "/1/item")
    events = hearing.outcome({"output": [item_of("a"), item_of("b", "msg_2")]}, "")
    assert [part.text for part in fold(events).choice.parts] == ["b"]


def test_where_ids_change_on_the_way_the_place_tells(hearing):
    hearing.item(item_of("a", "msg_x"), 0, "/1/item")
    assert texts(hearing.outcome({"output": [item_of("ab", "msg_y")]}, "")) == [(0, "b")]


def test_items_sharing_an_id_are_distinguished_by_index(hearing):
    hearing.item(item_of("a"), 0, "/1/item")
    hearing.item(item_of("b"), 1, "/2/item")
    events = hearing.outcome({"output": [item_of("a"), item_of("b")]}, "")
    assert texts(events) == fields(events) == []


def test_item_of_a_different_type_at_an_index_is_reported_as_a_field(hearing):
    hearing.item(item_of("a"), 0, "/1/item")
    item = {"type": "web_search_call", "id": "ws"}
    assert hearing.outcome({"output": [item]}, "")[0] == FieldReceived("/output/0", item)


def test_a_call_that_is_complete_stays_as_it_is(hearing):
    call = {"type": "function_call", "id": "fc", "call_id": "c", "name": "f", "arguments": '{"a":'}
    first = hearing.item(call, 0, "/1/item")
    assert [type(event) for event in first if not isinstance(event, FieldReceived)][::2] == [
        ToolCallBegun,
        ToolCallCompleted,
    ]
    assert hearing.item(call, 0, "/2/item") == []
    assert hearing.item({**call, "arguments": '{"a":1}'}, 0, "/3/item") == [
        FieldReceived("/3/item/arguments", '{"a":1}')
    ]


def test_a_call_may_have_no_arguments(hearing):
    call = {"type": "function_call", "id": "fc", "call_id": "c", "name": "f", "arguments": ""}
    assert [type(event) for event in hearing.item(call, 0, "/1/item")] == [ToolCallBegun, ToolCallCompleted]


def test_late_signature_is_reported_exactly_once(hearing):
    item = {"type": "reasoning", "id": "rs", "summary": []}
    assert hearing.item(item, 0, "/1/item") == [SignatureReceived(0, None, NAME, id="rs")]
    sealed = {**item, "encrypted_content": "enc"}
    assert hearing.item(sealed, 0, "/2/item") == [SignatureReceived(0, "enc", NAME, id="rs")]
    assert hearing.item(sealed, 0, "/3/item") == []


def test_what_comes_whole_comes_once(hearing):
    redacted = {"type": "reasoning", "summary": [], "encrypted_content": wrap("d", "anthropic", "redacted")}
    search = {"type": "web_search_call", "id": "ws"}
    assert isinstance(hearing.item(redacted, 0, "/1/item")[0], PartReceived)
    assert hearing.item(search, 1, "/2/item") == [PartReceived(1000, Opaque(NAME, search, at="/2/item"))]
    assert hearing.item(redacted, 0, "/3/item") == hearing.item(search, 1, "/4/item") == []


def test_echoed_text_settings_are_reported_by_member(hearing):
    echo = {"format": {"type": "text"}, "verbosity": "low"}
    assert fields(hearing.outcome({"text": echo}, "/r")) == ["/r/text/format", "/r/text/verbosity"]
    assert fields(hearing.outcome({"text": "odd"}, "/r")) == ["/r/text"]


def test_built_in_tool_action_is_reported_once(hearing):
    item = {"type": "shell_call", "call_id": "c", "id": "i", "action": {"commands": ["a"]}, "status": "completed"}
    events = hearing.item({**item, "environment": {"type": "local"}}, 0, "/0/item")
    assert events == [
        ToolCallBegun(0, "c", "shell", kind="shell", item="i", at="/0/item"),
        ArgumentsReceived(0, '{"commands":["a"]}'),
        ToolCallCompleted(0, extras={"environment": {"type": "local"}}),
        FieldReceived("/0/item/environment", {"type": "local"}),
    ]
    assert hearing.item(item, 0, "/1/item") == []
    assert hearing.item({**item, "action": {"commands": ["b"]}}, 0, "/2/item") == [
        FieldReceived("/2/item", '{"commands":["b"]}')
    ]


def test_a_call_that_had_begun_stays_one_without_an_action(hearing):
    hearing.calls.add(0)
    item = {"type": "shell_call", "call_id": "c", "environment": {"type": "container_reference"}}
    assert hearing.item(item, 0, "/0/item")[0] == ToolCallCompleted(
        0, extras={"environment": {"type": "container_reference"}}
    )


def test_call_that_ends_with_an_unknown_type_is_reported_as_a_field(hearing):
    hearing.calls.add(0)
    item = {"type": "functio_call", "id": "fc_1", "call_id": "c", "name": "f", "arguments": "{}"}
    assert hearing.item(item, 0, "/1/item") == [FieldReceived("/1/item", item)]


AT = "/input/0"


def item(**fields):
    return {"type": "reasoning", "id": "rs_1", "summary": [], **fields}


def said(*texts, kind="summary_text"):
    return [{"type": kind, "text": text} for text in texts]


def test_a_summary_is_what_can_be_read_and_the_signature_is_bound_to_the_id():
    thinking = read_reasoning(item(summary=said("a", "b"), encrypted_content="enc", status="completed"), AT)
    expected = Thinking("a\n\nb", ("a", "b"), "rs_1", "enc", NAME, at=AT, extras={"status": "completed"})
    assert thinking == expected


def test_the_reasoning_itself_is_the_text():
    thinking = read_reasoning(item(summary=said("short"), content=said("long", kind="reasoning_text")), AT)
    assert (thinking.text, thinking.summary, thinking.extras) == ("long", ("short",), {})
    assert reasoning_pieces(thinking, own=True) == {
        "summary": said("short"),
        "content": said("long", kind="reasoning_text"),
    }


def test_pieces_that_could_not_be_rebuilt_are_kept_as_they_are():
    odd = item(content=said("x", "y", kind="reasoning_text"), summary=[{"type": "summary_text", "text": "s", "n": 1}])
    assert read_reasoning(odd, AT).extras == {"content": odd["content"], "summary": odd["summary"]}


def test_foreign_words_are_shown_as_a_summary():
    assert reasoning_pieces(Thinking("words"), own=False) == {"summary": said("words")}
    assert reasoning_pieces(Thinking(), own=False) == {"summary": []}


def test_a_signature_of_another_maker_comes_back_as_that():
    thinking = read_reasoning(item(encrypted_content=wrap("sig", "gemini", NEXT)), AT)
    assert (thinking.signature, thinking.signed_by, thinking.id) == ("sig", "gemini", "next")


def test_a_redacted_block_comes_back_redacted():
    thinking = read_reasoning(item(encrypted_content=wrap("data", "anthropic", REDACTED)), AT)
    assert (thinking.signature, thinking.redacted, thinking.id) == ("data", True, None)


def test_unsigned_reasoning_has_no_signer():
    sealed = write_signature(None, None, None, "rs_made_up")
    thinking = read_reasoning(item(summary=said("x"), encrypted_content=sealed), AT)
    assert (thinking.signature, thinking.signed_by, thinking.id) == (None, None, None)


def test_our_own_signature_is_written_as_it_is():
    assert write_signature("enc", NAME, "rs_1", "rs_1") == "enc"
    assert write_signature(None, NAME, None, "rs_1") is None


def test_our_own_signature_in_an_item_of_another_id_still_names_the_id_that_it_is_bound_to():
    sealed = write_signature("enc", NAME, "rs_1", "rs_other")
    assert read_signature(item(id="rs_other", encrypted_content=sealed), AT) == ("enc", NAME, "rs_1")


def test_an_empty_signature_is_none_and_is_written_back():
    thinking = read_reasoning(item(encrypted_content=""), AT)
    assert (thinking.signature, thinking.extras) == (None, {"encrypted_content": ""})
    assert read_signature(item(encrypted_content=""), AT)[0] is None


BODY = {
    "input_tokens": 100,
    "input_tokens_details": {"cached_tokens": 64, "cache_write_tokens": 8},
    "output_tokens": 20,
    "output_tokens_details": {"reasoning_tokens": 12},
    "total_tokens": 120,
}


def test_counts_go_both_ways_without_counting_anything_twice():
    usage = read_usage(BODY, "/usage")
    assert (usage.input_tokens, usage.cached_tokens, usage.cache_write_tokens) == (100, 64, 8)
    assert (usage.output_tokens, usage.reasoning_tokens) == (20, 12)
    report = Report()
    assert write_usage(usage, report) == BODY
    assert not report.additions


def test_finer_counts_are_kept_unless_they_count_nothing():
    finer = {**BODY, "output_tokens_details": {"reasoning_tokens": 1, "audio_tokens": 0, "image_tokens": 3}, "cost": 1}
    assert read_usage(finer, "/usage").extras == {"output_tokens_details": {"image_tokens": 3}, "cost": 1}


def test_missing_usage_counts_are_written_as_zero_and_listed():
    report = Report()
    assert write_usage(Usage(output_tokens=2), report) == {
        "input_tokens": 0,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": 2,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 2,
    }
    assert [(addition.pointer, addition.severity) for addition in report.additions] == [
        ("/usage/input_tokens", "identity"),
        ("/usage/input_tokens_details/cached_tokens", "identity"),
        ("/usage/input_tokens_details/cache_write_tokens", "identity"),
        ("/usage/output_tokens_details/reasoning_tokens", "identity"),
    ]


def test_a_count_that_is_no_number_is_refused():
    assert refused_at(read_usage, {"input_tokens": "many"}, "/usage") == "/usage/input_tokens"


def test_every_call_has_an_item_that_answers_it():
    assert {f"{kind}_output" for kind in CALLS} == set(OUTPUTS)


def test_parts_are_numbered_in_the_order_of_the_output():
    places = [(0, 0), (0, 1), (0, 999), (1, 0), (2, 5)]
    assert sorted(places, key=lambda place: place[0] * STRIDE + place[1]) == places


def test_what_a_request_asks_is_no_bookkeeping():
    assert not BOOKKEEPING & {"truncation", "prompt", "conversation", "moderation", "max_tool_calls", "background"}
