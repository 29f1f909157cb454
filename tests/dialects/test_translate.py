"""Forms that are no provider's."""

import json
from dataclasses import replace

import pytest

from sightline.catalog.facts import Facts
from sightline.dialects.dialect import Client, Target
from sightline.dialects.registry import dialect
from sightline.dialects.translate import (
    VIEWS,
    StreamTranslation,
    read_canonical,
    restore_names,
    translate_reply,
    translate_request,
    write_canonical,
    write_request,
)
from sightline.errors import Code, Fault
from sightline.model.events import Ended, Failed, StreamEvent, TextReceived, ToolCallBegun
from sightline.model.parts import Text
from sightline.model.report import Report
from sightline.model.request import CustomTool, Message, Request
from sightline.wire.jsontext import decode
from tests.dialects.reports import added_at, losses

CHAT = b'{ "model": "gpt", "messages": [{"role":"user","content":"hi"}], "seed": 1.0e0, "x": 1 }'


def chat(**fields: object) -> bytes:
    return json.dumps({"model": "gpt", "messages": [{"role": "user", "content": "hi"}], **fields}).encode()


def test_between_equal_dialects_the_bytes_stay_as_they_came() -> None:
    data = b'{"messages" :  [{"role":"user","content":"h\\u0069"}],"model":"m"}'
    translation = translate_request(data, "openai-chat", "openai-chat")
    assert translation.data is data
    assert translation.request.model == "m"


def test_another_model_is_the_only_change() -> None:
    data = b'{"messages" :  [{"role":"user","content":"h\\u0069"}],"model" : "m"}'
    assert translate_request(data, "openai-chat", "openai-chat", model="n").data == data.replace(b'"m"', b'"n"')
    assert translate_request(data, "openai-chat", "openai-chat", model="m").data is data
    null = b'{"model": null, "messages":[]}'
    assert translate_request(null, "openai-chat", "openai-chat", model="n").data == b'{"model": "n", "messages":[]}'
    unnamed = b'{"messages":[]}'
    assert translate_request(unnamed, "openai-chat", "openai-chat", model="n").data == b'{"messages":[],"model":"n"}'


def test_another_system_policy_writes_the_request_anew_and_keeps_unknown_fields() -> None:
    data = chat(
        messages=[
            {"role": "system", "content": "a"},
            {"role": "system", "content": "b"},
            {"role": "user", "content": "hi", "unknown": 1},
        ],
        other=[1],
    )
    translation = translate_request(data, "openai-chat", "openai-chat", settings=Target(system="merge_leading"))
    body = json.loads(translation.data)
    assert [message["role"] for message in body["messages"]] == ["system", "user"]
    assert (body["messages"][1]["unknown"], body["other"]) == (1, [1])
    assert not translation.report.losses


def test_across_dialects_unknown_fields_are_lost_and_listed() -> None:
    translation = translate_request(chat(unknown=1, seed=7), "openai-chat", "anthropic", model="claude")
    assert json.loads(translation.data)["model"] == "claude"
    assert {"/unknown", "/seed"} <= {loss.pointer for loss in translation.report.losses}


def test_a_dialect_that_says_its_model_in_the_url_tells_so() -> None:
    translation = translate_request(chat(stream=True), "openai-chat", "gemini")
    assert {("/model", "identity"), ("/stream", "identity")} <= {
        (loss.pointer, loss.severity) for loss in translation.report.losses
    }


def test_what_is_not_set_is_not_missed_in_the_body() -> None:
    translation = translate_request(b'{"messages":[{"role":"user","content":"hi"}]}', "openai-chat", "gemini")
    assert not translation.report.losses


def test_a_bare_list_of_messages_becomes_an_object_to_hold_a_model() -> None:
    renamed = translate_request(b'[{"role":1,"content":[{"type":1,"text":"hi"}]}]', "raw", "raw", model="m")
    assert json.loads(renamed.data)["model"] == "m"


def test_a_composed_request_has_no_source_to_lose_from() -> None:
    report = Report()
    request = Request(model="m", messages=(Message("user", (Text("hi"),)),))
    assert json.loads(write_request(request, "openai-chat", Target(), report))["model"] == "m"
    assert not report.losses


REPLY = {
    "id": "r",
    "model": "m",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}],
}


def test_a_reply_is_translated_or_shown() -> None:
    data = json.dumps(REPLY).encode()
    assert translate_reply(data, "openai-chat", "openai-chat").data is data
    assert json.loads(translate_reply(data, "openai-chat", "reply").data)["finish"] == "stop"
    assert translate_reply(data, "openai-chat", "events").data.endswith(b'{"event":"ended"}\n')
    translated = translate_reply(data, "openai-chat", "anthropic")
    assert json.loads(translated.data)["content"] == [{"type": "text", "text": "hi"}]
    assert translated.reply.choice.parts[0].at == "/choices/0/message/content"


def test_a_reply_can_be_given_another_models_name() -> None:
    data = json.dumps(REPLY).encode()
    assert json.loads(translate_reply(data, "openai-chat", "anthropic", model="mine").data)["model"] == "mine"


def test_a_reply_repeats_its_request_where_the_dialect_does_so() -> None:
    reply = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}]}
    request = dialect("openai-responses").read_request({"model": "m", "input": "hello", "temperature": 0.25})
    data = json.dumps(reply).encode()
    for client in (None, Client(request=request)):
        found = translate_reply(data, "openai-chat", "openai-responses", client=client, request=request)
        assert json.loads(found.data)["temperature"] == 0.25


def test_a_body_that_is_not_json_is_refused() -> None:
    with pytest.raises(Fault, match="not JSON"):
        translate_reply(b"<html>", "openai-chat", "anthropic")


def test_calls_get_their_names_back_from_the_clients_request() -> None:
    begun = ToolCallBegun(0, "c", "patch")
    assert restore_names([begun], None) == [begun]
    request = Request(tools=(CustomTool("patch"),))
    assert restore_names([begun], request) == [ToolCallBegun(0, "c", "patch", kind="custom")]


def test_model_is_not_lost_when_the_caller_writes_the_url() -> None:
    request = Request(model="m", messages=(Message("user", (Text("hi"),)),))
    report, silent = Report(), Report()
    body = write_request(request, "gemini", Target(), report)
    assert [loss.what for loss in report.losses] == ["model"]
    assert write_request(request, "gemini", Target(), silent, with_url=True) == body
    assert not silent.losses


SPELLINGS = ["64.0", '"64"', "6.4E1"]
BODIES = {
    "openai-chat": b'{"model":"m","messages":[{"role":"user","content":"hi"}],"max_tokens":%b}',
    "openai-responses": b'{"model":"m","input":"hi","max_output_tokens":%b}',
    "anthropic": b'{"model":"m","messages":[{"role":"user","content":"hi"}],"max_tokens":%b}',
    "gemini": b'{"contents":[{"role":"user","parts":[{"text":"hi"}]}],"generationConfig":{"maxOutputTokens":%b}}',
    "raw": b'{"model":"m","messages":[{"role":1,"content":"hi"}],"requestOptions":{"max_tokens":%b}}',
}


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("source", BODIES)
def test_a_whole_number_is_understood_however_it_is_spelled(source: str, spelling: str) -> None:
    data = BODIES[source] % spelling.encode()
    assert translate_request(data, source, source).data == data
    for target in BODIES:
        if target != source:
            read = dialect(target).read_request(decode(translate_request(data, source, target).data))
            assert read.options.max_tokens == 64


@pytest.mark.parametrize("source", BODIES)
def test_the_same_dialect_refuses_nothing_that_is_json(source: str) -> None:
    """The provider decides what it takes; here the bytes only pass."""
    odd = BODIES[source] % b'{"not":"a number"}'
    assert translate_request(odd, source, source).data == odd
    for target in BODIES:
        if target != source:
            with pytest.raises(Fault, match="expected a whole number"):
                translate_request(odd, source, target)


def test_an_unreadable_request_gets_another_model_too() -> None:
    assert translate_request(b'{"model":"a","messages":7}', "openai-chat", "openai-chat", model="b").data == (
        b'{"model":"b","messages":7}'
    )
    with pytest.raises(Fault):
        translate_request(
            b'{"model":"a","messages":7}', "openai-chat", "openai-chat", settings=Target(system="merge_all")
        )


@pytest.mark.parametrize("target", ["openai-chat", "openai-responses", "gemini"])
def test_a_search_result_is_sent_in_words(target: str) -> None:
    block = {
        "type": "search_result",
        "source": "https://kb.example/1",
        "title": "Knowledge base",
        "content": [{"type": "text", "text": "It is so."}],
    }
    result = {"type": "tool_result", "tool_use_id": "t", "content": [block]}
    call = {"type": "tool_use", "id": "t", "name": "f", "input": {}}
    body = {
        "model": "m",
        "max_tokens": 9,
        "messages": [
            {"role": "user", "content": [block]},
            {"role": "assistant", "content": [call]},
            {"role": "user", "content": [result]},
        ],
    }
    translation = translate_request(json.dumps(body).encode(), "anthropic", target)
    said = translation.data.decode()
    assert said.count("Knowledge base") == said.count("https://kb.example/1") == said.count("It is so.") == 2
    assert [loss.severity for loss in translation.report.losses if "search_result" in loss.what] == ["identity"] * 2


def unsigned(target: str) -> list[tuple[str, str]]:
    data = json.dumps(
        {
            "choices": [
                {"message": {"role": "assistant", "content": "a", "reasoning_content": "hm"}, "finish_reason": "stop"}
            ]
        }
    ).encode()
    additions = translate_reply(data, "openai-chat", target).report.additions
    return [(addition.pointer, addition.severity) for addition in additions if "not signed" in addition.what]


def test_placeholder_signature_is_an_addition() -> None:
    assert unsigned("anthropic") == [("/content/0/signature", "identity")]
    assert unsigned("openai-responses") == [("/output/0/encrypted_content", "identity")]
    assert unsigned("gemini") == []
    stream = (
        b'data: {"choices":[{"index":0,"delta":{"reasoning_content":"hm"}}]}\n\n'
        b'data: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
    )
    for target, place in (("anthropic", "/content/0/signature"), ("openai-responses", "/output/0/encrypted_content")):
        translation = StreamTranslation("openai-chat", target)
        assert b"sightline:" in translation.feed(stream) + translation.close()
        assert place in added_at(translation.report)


def test_what_the_target_model_refuses_is_left_out_of_a_translation_only() -> None:
    settings = Target(facts=Facts(refuses=("temperature",), thinking=("adaptive", "between_tools")))
    data = chat(temperature=0.2, reasoning_effort="none")
    translation = translate_request(data, "openai-chat", "anthropic", model="claude", settings=settings)
    body = json.loads(translation.data)
    assert "temperature" not in body
    assert body["thinking"] == {"type": "between_tools"}
    assert {loss.pointer for loss in translation.report.losses} == {"/temperature", "/reasoning_effort"}
    assert translate_request(data, "openai-chat", "openai-chat", settings=settings).data is data
    rewritten = translate_request(data, "openai-chat", "openai-chat", settings=replace(settings, system="merge_all"))
    assert json.loads(rewritten.data)["temperature"] == 0.2


EVENTS: list[StreamEvent] = [TextReceived(0, "half"), Failed(Fault(Code.NETWORK, "gone")), Ended()]


def test_events_are_a_line_each() -> None:
    view = VIEWS["events"]()
    lines = [json.loads(view.feed(event)) for event in EVENTS]
    assert lines == [
        {"event": "text", "part": 0, "text": "half"},
        {"event": "failed", "fault": {"code": "network", "message": "gone"}},
        {"event": "ended"},
    ]


def test_the_folded_reply_comes_at_the_end() -> None:
    view = VIEWS["reply"]()
    written = [view.feed(event) for event in EVENTS]
    assert written[:2] == [b"", b""]
    assert json.loads(written[2])["fault"] == {"code": "network", "message": "gone"}


def test_a_request_is_written_and_read_back() -> None:
    request = Request(model="m", messages=(Message("user", (Text("hi \ud800"),)),), dialect="openai-chat")
    assert read_canonical(write_canonical(request)) == request


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"{}", "/messages: expected a list, found null"),
        (b'{"messages":[],"bogus":1}', "unknown field `bogus`"),
        (b'{"messages":[{"role":"user","parts":[{"type":"text","text":"x","zz":1}]}]}', "unknown field `zz`"),
        (b'{"messages":[],"model":5}', "not a canonical request: Expected `str`"),
        (b"{", "not JSON"),
        (b"[]", "Expected `object`"),
        (b'{"messages":[],"options":{"temperature":"\\ud800"}}', "surrogates"),
    ],
)
def test_anything_else_is_refused_with_a_reason(data: bytes, reason: str) -> None:
    with pytest.raises(Fault, match=reason) as caught:
        read_canonical(data)
    assert caught.value.code == Code.INVALID_REQUEST
    assert caught.value.hint


HEAD = {"id": "r", "object": "chat.completion.chunk", "created": 1, "model": "m"}


def chunk(delta: dict[str, object], finish: str | None = None, **fields: object) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return b"data: " + json.dumps({**HEAD, "choices": [choice], **fields}).encode() + b"\n\n"


USAGE = {"prompt_tokens": 3, "completion_tokens": 1, "prompt_tokens_details": {"audio_tokens": 2}}
WHOLE = chunk({"role": "assistant", "content": "hi"}) + chunk({}, "stop", usage=USAGE) + b"data: [DONE]\n\n"


def test_between_equal_dialects_the_bytes_of_a_stream_stay_as_they_came() -> None:
    translation = StreamTranslation("openai-chat", "openai-chat")
    assert translation.feed(WHOLE) == WHOLE
    assert translation.close() == b""
    assert translation.reply.choice.finish == "stop"


def test_each_piece_is_written_as_soon_as_it_arrives() -> None:
    translation = StreamTranslation("openai-chat", "anthropic")
    first = translation.feed(chunk({"content": "hi"}))
    assert b"text_delta" in first
    rest = translation.feed(WHOLE[len(chunk({"role": "assistant", "content": "hi"})) :]) + translation.close()
    assert rest.count(b"event: message_stop") == 1


def test_what_no_other_dialect_can_carry_is_reported() -> None:
    translation = StreamTranslation("openai-chat", "anthropic")
    translation.feed(chunk({"content": "hi"}, system_fingerprint="fp_1", brand_new=[1]))
    translation.feed(WHOLE)
    lost = {loss.pointer: loss.severity for loss in translation.report.losses}
    assert lost["/0/system_fingerprint"] == "identity"
    assert lost["/0/brand_new"] == "content"
    assert lost["/2/usage/prompt_tokens_details/audio_tokens"] == "identity"


def test_a_frame_that_cannot_be_read_fails_a_translation_and_nothing_follows() -> None:
    translation = StreamTranslation("openai-chat", "anthropic")
    out = translation.feed(chunk({"content": "hi"}) + b"data: {broken\n\n" + WHOLE)
    assert out.count(b"event: error") == 1
    assert b"message_stop" not in out
    assert translation.feed(WHOLE) == b""
    assert translation.close() == b""
    assert translation.reply.fault is not None
    assert translation.reply.fault.code == Code.UPSTREAM_PROTOCOL


def test_event_translation_continues_after_a_broken_frame() -> None:
    translation = StreamTranslation("openai-chat", "events")
    out = translation.feed(b"data: {broken\n\n" + WHOLE) + translation.close()
    kinds = [json.loads(line)["event"] for line in out.splitlines()]
    assert kinds[0] == "frame_broken"
    assert kinds[-1] == "ended"
    assert translation.reply.choice.finish == "stop"
    assert losses(translation.report) == [("/0", "content")]


def test_an_unfinished_last_frame_is_still_read() -> None:
    translation = StreamTranslation("openai-chat", "reply")
    assert translation.feed(WHOLE.rstrip(b"\n")) == b""
    assert json.loads(translation.close())["finish"] == "stop"


def test_calls_of_a_stream_get_their_names_back() -> None:
    call = {"index": 0, "id": "c", "type": "function", "function": {"name": "patch", "arguments": '{"input": "x"}'}}
    stream = chunk({"tool_calls": [call]}) + chunk({}, "tool_calls") + b"data: [DONE]\n\n"
    translation = StreamTranslation("openai-chat", "events", request=Request(tools=(CustomTool("patch"),)))
    lines = [json.loads(line) for line in (translation.feed(stream) + translation.close()).splitlines()]
    assert {"event": "arguments", "part": 4, "fragment": "x"} in lines


def closed(data: bytes, target: str = "anthropic", source: str = "openai-chat") -> tuple[bytes, StreamTranslation]:
    translation = StreamTranslation(source, target)
    return translation.feed(data) + translation.close(), translation


def test_an_error_body_in_place_of_a_stream_keeps_its_words() -> None:
    out, translation = closed(b'{"error": {"message": "Slow down", "type": "rate_limit_error", "code": null}}')
    assert out.count(b"event: error") == 1
    assert b"Slow down" in out
    assert translation.reply.fault is not None
    assert translation.reply.fault.code == Code.RATE_LIMITED


def test_a_web_page_in_place_of_a_stream_is_shown_in_the_error() -> None:
    out, translation = closed(b"<html>\n\n<h1>502 Bad Gateway</h1>")
    assert b"502 Bad Gateway" in out
    assert translation.reply.fault is not None
    assert translation.reply.fault.code == Code.UPSTREAM_PROTOCOL
    same, _ = closed(b"<html>", "openai-chat")
    assert same == b"<html>"


def test_the_answer_can_be_given_another_models_name() -> None:
    translation = StreamTranslation("openai-chat", "reply", model="mine")
    assert json.loads(translation.feed(WHOLE) + translation.close())["model"] == "mine"


def test_frames_after_the_end_are_dropped_and_reported() -> None:
    _, translation = closed(WHOLE + b"data: [DONE]\n\n" + chunk({"content": "late"}))
    assert [(loss.pointer, loss.what) for loss in translation.report.losses if loss.what == "a frame"] == [
        ("/4", "a frame")
    ]
    assert translation.reply.choice.parts == (Text("hi", at=translation.reply.choice.parts[0].at),)
    same = StreamTranslation("openai-chat", "openai-chat")
    same.feed(WHOLE + chunk({"content": "late"}))
    assert not same.report.losses


def test_a_source_that_breaks_off_is_an_error_in_the_target_s_words_and_after_the_end_nothing() -> None:
    translation = StreamTranslation("openai-chat", "anthropic")
    translation.feed(chunk({"content": "hi"}))
    assert not translation.has_ended
    out = translation.fail(Fault(Code.NETWORK, "the connection was lost"))
    assert b"event: error" in out
    assert b"the connection was lost" in out
    assert translation.has_ended
    ended = StreamTranslation("openai-chat", "anthropic")
    ended.feed(WHOLE)
    assert ended.fail(Fault(Code.NETWORK, "the connection was lost")) == b""


def test_a_translation_tells_that_its_source_may_have_nothing_more_to_say() -> None:
    part = {"candidates": [{"content": {"role": "model", "parts": [{"text": "hi"}]}, "finishReason": "STOP"}]}
    translation = StreamTranslation("gemini", "anthropic")
    assert not translation.may_end
    translation.feed(b"data: " + json.dumps(part).encode() + b"\n\n")
    assert translation.may_end
    translation.close()
