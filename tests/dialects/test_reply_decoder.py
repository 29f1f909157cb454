import json

import pytest

from sightline.dialects.registry import dialect
from sightline.dialects.reply_decoder import ReplyDecoder, read_plain_reply
from sightline.dialects.streaming import truncation_fault
from sightline.errors import Code, Fault
from sightline.model.events import Ended, Failed, Finished, StreamEvent, TextReceived
from sightline.model.fold import fold

HEAD = {"id": "r", "object": "chat.completion.chunk", "created": 1, "model": "m"}


def chunk(delta: dict[str, object], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return b"data: " + json.dumps({**HEAD, "choices": [choice]}).encode() + b"\n\n"


WHOLE = chunk({"role": "assistant", "content": "hi"}) + chunk({}, "stop") + b"data: [DONE]\n\n"


def heard(*pieces: bytes, name: str = "openai-chat") -> list[StreamEvent]:
    hearing = ReplyDecoder(dialect(name))
    return [event for piece in pieces for event in hearing.feed(piece)] + hearing.close()


def test_text_is_reported_as_soon_as_it_arrives() -> None:
    hearing = ReplyDecoder(dialect("openai-chat"))
    assert [e.text for e in hearing.feed(chunk({"content": "hi"})) if isinstance(e, TextReceived)] == ["hi"]
    assert not hearing.has_ended
    hearing.feed(chunk({}, "stop") + b"data: [DONE]\n\n")
    assert hearing.has_ended
    assert hearing.close() == []


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_any_split_of_the_bytes_tells_the_same(size: int) -> None:
    pieces = [WHOLE[i : i + size] for i in range(0, len(WHOLE), size)]
    assert heard(*pieces) == heard(WHOLE)


def test_whole_body_gives_the_same_events_as_a_stream() -> None:
    message = {"role": "assistant", "content": "hi"}
    body = {**HEAD, "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    reply = fold(heard(json.dumps(body, indent=1).encode()))
    assert reply.choice.finish == "stop"


def test_frames_in_one_array_are_read_as_frames() -> None:
    part = {"candidates": [{"content": {"role": "model", "parts": [{"text": "hi"}]}, "finishReason": "STOP"}]}
    assert fold(heard(json.dumps([part]).encode(), name="gemini")).choice.finish == "stop"


def test_what_is_neither_is_shown_in_the_fault() -> None:
    *_, failed, ended = heard(b"<html>\n\n<h1>502 Bad Gateway</h1>")
    assert isinstance(failed, Failed)
    assert "502 Bad Gateway" in failed.fault.message
    assert ended == Ended()


@pytest.mark.parametrize("data", [b"", b"da", b": wait\n", b"event: message_start\n", b"\n\n"])
def test_the_mere_beginning_of_a_stream_is_a_cut_stream(data: bytes) -> None:
    assert heard(data) == [Failed(truncation_fault()), Ended()]


def test_half_a_frame_at_the_end_is_a_cut_stream_too() -> None:
    events = heard(chunk({"content": "hi"}), chunk({}, "stop")[:30])
    assert events[-2:] == [Failed(truncation_fault()), Ended()]


def test_a_connection_that_fails_ends_the_answer_with_its_fault() -> None:
    hearing = ReplyDecoder(dialect("openai-chat"))
    hearing.feed(chunk({"content": "hi"}))
    fault = Fault(Code.TIMEOUT_IDLE, "nothing came for a while")
    assert hearing.fail(fault) == [Failed(fault), Ended()]
    assert hearing.fail(fault) == []


def test_after_its_legal_end_an_answer_cannot_fail_any_more() -> None:
    hearing = ReplyDecoder(dialect("openai-chat"))
    assert any(isinstance(event, Finished) for event in hearing.feed(WHOLE))
    assert hearing.fail(Fault(Code.NETWORK, "gone")) == []


def test_frames_after_the_end_give_no_events_and_are_noted() -> None:
    hearing = ReplyDecoder(dialect("openai-chat"))
    hearing.feed(WHOLE + b"data: [DONE]\n\n")
    assert hearing.feed(chunk({"content": "late"})) == []
    assert hearing.late == ["/4"]


def test_a_piece_without_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sightline.dialects.reply_decoder.LONGEST_FRAME", 1000)
    hearing = ReplyDecoder(dialect("openai-chat"))
    assert hearing.feed(b"data: " + b"x" * 900) == []
    failed, ended = hearing.feed(b"x" * 200)
    assert isinstance(failed, Failed)
    assert failed.fault.code is Code.UPSTREAM_PROTOCOL
    assert ended == Ended()
    assert hearing.feed(b"x" * 2000) == []
    assert hearing.close() == []


def test_only_a_dialect_without_a_word_for_the_end_may_end_by_itself() -> None:
    part = {"candidates": [{"content": {"role": "model", "parts": [{"text": "hi"}]}, "finishReason": "STOP"}]}
    gemini = ReplyDecoder(dialect("gemini"))
    assert not gemini.may_end
    gemini.feed(b"data: " + json.dumps(part).encode() + b"\n\n")
    assert gemini.may_end
    gemini.fail(Fault(Code.NETWORK, "gone"))
    assert not gemini.may_end
    chat = ReplyDecoder(dialect("openai-chat"))
    chat.feed(chunk({"content": "hi"}, "stop"))
    assert not chat.may_end


def test_an_answer_that_is_all_here_is_a_body_or_a_stream() -> None:
    message = {"role": "assistant", "content": "hi"}
    body = json.dumps({**HEAD, "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}).encode()
    for answer in (body, WHOLE, b" " + body):
        reply = fold(ReplyDecoder(dialect("openai-chat")).whole(answer))
        assert (reply.fault, reply.choice.finish, reply.choice.parts[0].text) == (None, "stop", "hi")  # type: ignore[union-attr] # it is a text


@pytest.mark.parametrize("name", ["openai-chat", "gemini"])
@pytest.mark.parametrize("size", [50, 400, 10_000])
def test_text_pieces_that_arrive_together_may_be_joined(name: str, size: int) -> None:
    words = ["hi", " there", " \u00e9", '"', " a", " b", " c"]
    data = b"".join(chunk({"content": word}) for word in words) + chunk({}, "stop") + b"data: [DONE]\n\n" + chunk({})
    single, joining = ReplyDecoder(dialect(name)), ReplyDecoder(dialect(name), joins=True)
    told, joined = [
        [event for at in range(0, len(data), size) for event in each.feed(data[at : at + size])] + each.close()
        for each in (single, joining)
    ]
    assert fold(told) == fold(joined)
    assert single.late == joining.late
    assert (len(joined) < len(told)) == (name == "openai-chat" and size > 50)


def test_array_elements_are_decoded_as_soon_as_they_are_complete() -> None:
    part = b'{"candidates": [{"content": {"role": "model", "parts": [{"text": "hi"}]}, "finishReason": "STOP"}]}'
    hearing = ReplyDecoder(dialect("gemini"))
    assert hearing.feed(b" \n") == []
    assert any(isinstance(event, TextReceived) for event in hearing.feed(b"[" + part))
    assert hearing.can_add_element
    assert hearing.feed(b"\n]") == []
    assert not hearing.can_add_element
    assert isinstance(hearing.close()[-1], Ended)


def test_an_array_without_its_last_bracket_is_cut_whatever_its_elements_say() -> None:
    part = b'{"candidates": [{"content": {"role": "model", "parts": [{"text": "hi"}]}, "finishReason": "STOP"}]}'
    *_, failed, ended = heard(b"[" + part, name="gemini")
    assert isinstance(failed, Failed)
    assert failed.fault.message == truncation_fault().message
    assert ended == Ended()


def test_a_text_that_only_begins_like_an_array_is_quoted() -> None:
    failed, _ = heard(b"[warning: the disk", b" is gone", name="gemini")
    assert isinstance(failed, Failed)
    assert "[warning: the disk" in failed.fault.message


def test_missing_finish_is_distinguished_from_a_provider_error() -> None:
    bare, refused = ReplyDecoder(dialect("openai-chat")), ReplyDecoder(dialect("openai-chat"))
    bare.feed(b"data: [DONE]\n\n")
    refused.feed(b'data: {"error": {"message": "no", "code": 500}}\n\n')
    assert (bare.was_cut, refused.was_cut) == (True, False)


@pytest.mark.parametrize(
    ("name", "head", "is_unnamed"),
    [("anthropic", b"", True), ("anthropic", b"event: error\n", False), ("openai-chat", b"", False)],
)
def test_an_error_without_the_name_that_clients_look_for_is_noticed(name: str, head: bytes, is_unnamed: bool) -> None:
    hearing = ReplyDecoder(dialect(name))
    frame = b'data: {"type":"error","error":{"type":"api_error","message":"boom"}}\n\n'
    assert [type(event) for event in hearing.feed(head + frame)][-2:] == [Failed, Ended]
    assert hearing.has_unnamed_error is is_unnamed


def test_a_plain_body_is_read_at_once_and_any_other_is_left() -> None:
    body = {
        "id": "r",
        "model": "m",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}],
    }
    data = json.dumps(body).encode()
    plain = read_plain_reply(dialect("openai-chat"), data)
    assert plain == fold(ReplyDecoder(dialect("openai-chat")).whole(data), "openai-chat")
    for other in (b"{broken", b'{"choices": []}', data.replace(b'"r"', b"1")):
        assert read_plain_reply(dialect("openai-chat"), other) is None
    assert read_plain_reply(dialect("anthropic"), data) is None
