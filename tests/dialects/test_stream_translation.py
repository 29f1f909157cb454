import json

import pytest

from sightline.dialects.stream_translation import StreamTranslation
from sightline.dialects.streaming import truncation_fault
from sightline.errors import Code, Fault
from sightline.model.parts import Text
from sightline.model.request import Request
from sightline.model.tools import CustomTool

HEAD = {"id": "r", "object": "chat.completion.chunk", "created": 1, "model": "m"}


def chunk(delta: dict[str, object], finish: str | None = None, **fields: object) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return b"data: " + json.dumps({**HEAD, "choices": [choice], **fields}).encode() + b"\n\n"


USAGE = {"prompt_tokens": 3, "completion_tokens": 1, "prompt_tokens_details": {"audio_tokens": 2}}
WHOLE = chunk({"role": "assistant", "content": "hi"}) + chunk({}, "stop", usage=USAGE) + b"data: [DONE]\n\n"


def test_between_equal_dialects_the_bytes_stay_as_they_came() -> None:
    translation = StreamTranslation("openai-chat", "openai-chat")
    assert translation.feed(WHOLE) == WHOLE
    assert translation.close() == b""
    assert translation.reply.choice.finish == "stop"


def test_each_piece_is_told_as_soon_as_it_is_there() -> None:
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


def test_whoever_only_looks_goes_on_after_a_broken_frame() -> None:
    translation = StreamTranslation("openai-chat", "events")
    out = translation.feed(b"data: {broken\n\n" + WHOLE) + translation.close()
    kinds = [json.loads(line)["event"] for line in out.splitlines()]
    assert kinds[0] == "frame_broken"
    assert kinds[-1] == "ended"
    assert translation.reply.choice.finish == "stop"
    assert [(loss.pointer, loss.severity) for loss in translation.report.losses] == [("/0", "content")]


def test_an_unfinished_last_frame_is_still_read() -> None:
    translation = StreamTranslation("openai-chat", "reply")
    assert translation.feed(WHOLE.rstrip(b"\n")) == b""
    assert json.loads(translation.close())["finish"] == "stop"


def test_calls_get_their_names_back_from_the_clients_request() -> None:
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


def test_a_whole_reply_in_place_of_a_stream_is_told_as_one() -> None:
    message = {"role": "assistant", "content": "hi"}
    body = {**HEAD, "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    out, translation = closed(json.dumps(body).encode())
    assert out.count(b"event: message_stop") == 1
    assert translation.reply.choice.finish == "stop"


def test_frames_in_one_array_are_read_as_frames() -> None:
    part = {"candidates": [{"content": {"role": "model", "parts": [{"text": "hi"}]}}]}
    last = {"candidates": [{"content": {"role": "model", "parts": [{"text": "!"}]}, "finishReason": "STOP"}]}
    _, translation = closed(json.dumps([part, last]).encode(), "openai-chat", "gemini")
    assert translation.reply.choice.parts == (Text("hi!", at="/0/candidates/0/content/parts/0"),)
    assert translation.reply.choice.finish == "stop"


def test_a_web_page_in_place_of_a_stream_is_shown_in_the_error() -> None:
    out, translation = closed(b"<html>\n\n<h1>502 Bad Gateway</h1>")
    assert b"502 Bad Gateway" in out
    assert translation.reply.fault is not None
    assert translation.reply.fault.code == Code.UPSTREAM_PROTOCOL
    same, _ = closed(b"<html>", "openai-chat")
    assert same == b"<html>"


@pytest.mark.parametrize("data", [b"", b"da", b": wait\n", b"event: message_start\n", b"\n\n"])
def test_the_mere_beginning_of_a_stream_is_a_cut_stream(data: bytes) -> None:
    out, translation = closed(data)
    assert out.count(b"event: error") == 1
    assert translation.reply.fault == truncation_fault()


def test_the_answer_can_be_given_another_models_name() -> None:
    translation = StreamTranslation("openai-chat", "reply", model="mine")
    assert json.loads(translation.feed(WHOLE) + translation.close())["model"] == "mine"


def test_frames_behind_the_end_are_not_told_and_that_is_reported() -> None:
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
