import copy
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sightline.dialects.openai_responses.names import NAME, REDACTED
from sightline.dialects.openai_responses.reply_read import read_reply
from sightline.dialects.signatures import NEXT, wrap
from sightline.errors import Code, Fault
from sightline.model.events import Ended, Failed, FieldReceived, Finished, Started
from sightline.model.fold import fold
from sightline.model.parts import Opaque, Refusal, Text, Thinking, ToolCall
from tests.dialects.openai_responses.cases import bare, having, loaded, read_sse
from tests.dialects.openai_responses.test_request_read import anything, places


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


@pytest.mark.parametrize("case", having("reply.json", "stream.sse"), ids=lambda case: case.name)
def test_a_stream_is_the_whole_reply(case):
    whole = fold(read_reply(loaded(case, "reply.json")))
    assert bare(fold(read_sse((case / "stream.sse").read_bytes()))) == bare(whole)


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


def test_what_is_not_modelled_is_told_with_its_place_unless_it_says_nothing():
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


def test_an_error_body_is_a_failure():
    events = read_reply({"error": {"message": "No.", "type": "invalid_request_error", "code": None, "param": None}})
    assert [type(event) for event in events] == [Failed, Ended]


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
    with pytest.raises(Fault) as caught:
        read_reply(document)
    assert caught.value.pointer == pointer


def test_seals_of_other_makers_come_back_as_theirs():
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


def test_every_reply_ends_once():
    events = read_reply(body(message(text("a"))))
    assert isinstance(events[-2], Finished)
    assert isinstance(events[-1], Ended)


@given(document=anything)
@settings(max_examples=200)
def test_any_json_is_read_or_refused(document):
    with suppress(Fault):
        fold(read_reply(document))


@given(data=st.data())
@settings(max_examples=300)
def test_any_change_of_a_reply_is_read_or_refused(data):
    document = copy.deepcopy(loaded(data.draw(st.sampled_from(having("reply.json"))), "reply.json"))
    holder, key = data.draw(st.sampled_from(list(places(document))))
    holder[key] = data.draw(anything)
    with suppress(Fault):
        fold(read_reply(document))


def test_what_the_provider_keeps_has_a_marker():
    assert reply(message(text("a")), store=True).marker == "resp_1"
    assert reply(message(text("a")), store=False).marker is None
    assert reply(message(text("a"))).marker is None
