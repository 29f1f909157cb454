"""The typed readers of plain texts; that they say what the full readers say is shown where the words are used."""

import json
from typing import Any

import msgspec
import pytest

from sightline.dialects.openai_chat.plain import PLAIN_TEXTS, begins_stream, read_ending, read_stream
from sightline.dialects.registry import dialect
from sightline.dialects.reply_decoder import ReplyDecoder
from sightline.model.fold import fold
from sightline.model.reply import Usage

ANSWER = {"role": "assistant", "content": "yes", "refusal": None}
CHOICE = {"index": 0, "message": ANSWER, "finish_reason": "stop"}


def test_the_texts_of_messages_come_with_their_roles() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": parts}]
    body = json.dumps({"model": "m", "messages": messages, "stream": True}).encode()
    assert PLAIN_TEXTS.request(body) == [("system", ["Be brief."]), ("user", ["a", "b"])]


@pytest.mark.parametrize(
    "body",
    [
        {"messages": [{"role": "user", "content": "hi"}], "tools": []},
        {"messages": [{"role": "user", "content": "hi", "name": "Ada"}]},
        {"messages": [{"role": "tool", "content": "hi"}]},
        {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "u"}}]}]},
    ],
)
def test_any_other_request_is_left_to_the_full_reader(body: Any) -> None:
    assert PLAIN_TEXTS.request(json.dumps(body).encode()) is None


def test_the_text_of_a_reply_is_its_only_answer() -> None:
    assert (
        PLAIN_TEXTS.reply(json.dumps({"id": "r", "choices": [CHOICE], "usage": {"prompt_tokens": 1}}).encode()) == "yes"
    )


@pytest.mark.parametrize(
    "body",
    [
        {"choices": [CHOICE, CHOICE]},
        {"choices": [{**CHOICE, "finish_reason": "error"}]},
        {"choices": [{**CHOICE, "message": {**ANSWER, "refusal": "no"}}]},
        {"choices": [CHOICE], "error": {"message": "slow down"}},
    ],
)
def test_any_other_reply_is_left_to_the_full_reader(body: Any) -> None:
    assert PLAIN_TEXTS.reply(json.dumps(body).encode()) is None


COUNTS = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
THOUGHT = {**COUNTS, "completion_tokens_details": {"reasoning_tokens": 5}}


@pytest.mark.parametrize(
    "body",
    [
        {"choices": [CHOICE]},
        {"id": "r", "created": 5, "model": "m-1", "choices": [CHOICE], "usage": None, "system_fingerprint": "f"},
        {"id": "r", "model": "", "choices": [{**CHOICE, "finish_reason": "length"}], "usage": COUNTS},
        {"choices": [{**CHOICE, "finish_reason": "content_filter"}], "usage": THOUGHT},
        {"choices": [CHOICE], "usage": {**THOUGHT, "total_tokens": 15}},
        {"choices": [CHOICE], "usage": {**COUNTS, "prompt_tokens_details": {"cached_tokens": 4, "audio_tokens": 0}}},
        {"choices": [CHOICE], "usage": {**COUNTS, "cached_tokens": 4}},
        {"choices": [CHOICE], "usage": {**COUNTS, "cached_tokens": 4, "prompt_tokens_details": {"cached_tokens": 5}}},
        {"choices": [{**CHOICE, "message": {**ANSWER, "reasoning_content": "so"}}], "usage": {}},
    ],
)
def test_how_a_reply_of_one_text_ended_is_what_the_full_reader_says(body: Any) -> None:
    data = json.dumps(body).encode()
    full, quick = fold(ReplyDecoder(dialect("openai-chat")).whole(data)), read_ending(data)
    assert quick is not None
    assert (quick.choice.finish, quick.id, quick.model) == (full.choice.finish, full.id, full.model)
    assert counts(quick.usage) == counts(full.usage)


@pytest.mark.parametrize(
    "body",
    [
        {"choices": [CHOICE, {**CHOICE, "index": 1}]},
        {"choices": [{**CHOICE, "finish_reason": "tool_calls"}]},
        {"choices": [{**CHOICE, "finish_reason": "network_error"}]},
        {"choices": [{**CHOICE, "message": {**ANSWER, "content": ""}}]},
        {"choices": [{**CHOICE, "message": {**ANSWER, "refusal": "no"}}]},
        {"choices": [{**CHOICE, "message": {**ANSWER, "tool_calls": [{"id": "c"}]}}]},
        {"choices": [CHOICE], "error": {"message": "slow down"}},
        {"choices": [CHOICE], "usage": {"prompt_tokens": "7"}},
        {"id": 5, "choices": [CHOICE]},
        [],
    ],
)
def test_how_any_other_reply_ended_is_left_to_the_full_reader(body: Any) -> None:
    assert read_ending(json.dumps(body).encode()) is None


def stream(*chunks: Any, end: bytes = b"data: [DONE]\n\n") -> bytes:
    return b"".join(b"data: %b\n\n" % json.dumps(each).encode() for each in chunks) + end


def chunk(word: str | None = None, finish: str | None = None, **more: Any) -> dict[str, Any]:
    delta = {} if word is None else {"content": word}
    return {"id": "c", "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **more}


OPENING = chunk("", choices=[{"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}])
COUNT = chunk(choices=[], usage=COUNTS)


@pytest.mark.parametrize(
    "said",
    [
        stream(OPENING, chunk("He"), chunk("llo"), chunk(None, "stop")),
        stream(OPENING, chunk("He"), chunk("llo", "length"), COUNT),
        stream(chunk("a\nb"), chunk(None, "stop", usage=THOUGHT)),
    ],
)
def test_a_plain_stream_is_what_the_full_reader_says(said: bytes) -> None:
    reading = ReplyDecoder(dialect("openai-chat"))
    full, quick = fold(reading.feed(said) + reading.close()), read_stream(said)
    assert quick is not None
    assert begins_stream(said)
    assert [part.text for part in quick.choice.parts] == [part.text for part in full.choice.parts]  # type: ignore[union-attr]
    assert (quick.choice.finish, quick.id, quick.model) == (full.choice.finish, full.id, full.model)
    assert counts(quick.usage) == counts(full.usage)


CALL = {"index": 0, "delta": {"tool_calls": [{"index": 0, "id": "c"}]}, "finish_reason": None}


@pytest.mark.parametrize(
    "said",
    [
        stream(chunk("He"), chunk(None, "stop"), end=b""),
        stream(chunk("He"), end=b"data: {broken\n\ndata: [DONE]\n\n"),
        stream(chunk("He"), chunk("llo")),
        stream(chunk(None, "stop")),
        stream(chunk("He"), chunk(None, "stop"), chunk("late")),
        stream(chunk("He"), chunk(None, "stop", id=None, model=None)).replace(b'"id": "c"', b'"id": ""'),
        stream(chunk("He"), chunk(None, "stop", usage=COUNTS), COUNT),
        stream(chunk("He"), chunk(choices=[CALL]), chunk(None, "stop")),
        stream(chunk("He"), chunk(None, "stop"), {"error": {"message": "slow down"}}),
        stream(chunk("He"), {"choices": [], "message": "slow down"}, chunk(None, "stop")),
        stream(chunk("He"), {"choices": [], "object": "error"}, chunk(None, "stop")),
        b": ping\n\n" + stream(chunk("He"), chunk(None, "stop")),
    ],
)
def test_any_other_stream_is_left_to_the_full_reader(said: bytes) -> None:
    assert read_stream(said) is None


@pytest.mark.parametrize(
    "said", [b"data: {", b'{"error": {}}\n\n', b"data: [DONE]\n\n", stream({"choices": []}), stream(COUNT)]
)
def test_what_is_no_beginning_of_a_plain_stream(said: bytes) -> None:
    assert not begins_stream(said)


def counts(usage: Usage | None) -> Usage | None:
    return None if usage is None else msgspec.structs.replace(usage, at="", extras={})


def text_chunk(text: str | None = None, finish: str | None = None, **more: object) -> dict[str, object]:
    return {"id": "c", "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": finish}], **more}


def text_stream(*chunks: object, end: str = "data: [DONE]\n\n") -> bytes:
    return ("".join(f"data: {json.dumps(each)}\n\n" for each in chunks) + end).encode()


def test_the_text_of_a_stream_is_what_its_chunks_bring() -> None:
    usage = {"id": "c", "choices": [], "usage": {"prompt_tokens": 1}}
    whole = text_stream(text_chunk("Good "), text_chunk("morning"), text_chunk(finish="stop"), usage)
    assert PLAIN_TEXTS.reply(whole) == "Good morning"
    assert PLAIN_TEXTS.reply(whole.replace(b"\n", b"\r\n")) == "Good morning"


@pytest.mark.parametrize(
    "reply",
    [
        text_stream(text_chunk("cut ")),
        text_stream(text_chunk("cut ", "stop"), end=""),
        text_stream(text_chunk("a", "stop"), text_chunk("b", "stop")),
        text_stream(text_chunk("a", "stop"), end="data: \n\ndata: [DONE]\n\n"),
        text_stream(text_chunk("a", "stop"), end="data: [DONE]"),
        text_stream({"id": "c", "choices": []}),
        b"data: %s,%s\n\ndata: [DONE]\n\n" % ((json.dumps(text_chunk("a", "stop")).encode(),) * 2),
        b"data: %s\ndata: %s\n\ndata: [DONE]\n\n" % ((json.dumps(text_chunk("a", "stop")).encode(),) * 2),
        b"no stream",
    ],
)
def test_the_text_of_any_other_stream_is_left_to_the_full_reader(reply: bytes) -> None:
    assert PLAIN_TEXTS.reply(reply) is None


def call(index: int, name: str | None = None, arguments: str = "") -> dict[str, object]:
    named = {} if name is None else {"id": f"c{index}", "type": "function"}
    function = {**({} if name is None else {"name": name}), "arguments": arguments}
    delta = {"tool_calls": [{"index": index, **named, "function": function}]}
    return {"id": "c", "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}


def test_words_of_calls_are_their_names_and_arguments() -> None:
    function = {"name": "look", "arguments": '{"a":1}'}
    answer = {**ANSWER, "tool_calls": [{"id": "c", "type": "function", "function": function}]}
    choice = {**CHOICE, "message": answer, "finish_reason": "tool_calls"}
    assert PLAIN_TEXTS.reply(json.dumps({"choices": [choice]}).encode()) == 'yes\nlook\n{"a":1}'
    silent = {**choice, "message": {**answer, "content": None}}
    assert PLAIN_TEXTS.reply(json.dumps({"choices": [silent]}).encode()) == 'look\n{"a":1}'
    pieces = [call(0, "look"), call(0, None, '{"a"'), call(0, None, ":1}"), call(1, "go", "{}")]
    end = text_chunk(None, "tool_calls")
    assert PLAIN_TEXTS.reply(text_stream(*pieces, end)) == 'look\n{"a":1}\ngo\n{}'
    assert PLAIN_TEXTS.reply(text_stream(text_chunk("yes"), *pieces, end)) == 'yes\nlook\n{"a":1}\ngo\n{}'


@pytest.mark.parametrize(
    "pieces",
    [
        [call(0, "look", "{}"), text_chunk("and then")],
        [call(1, "look", "{}")],
        [call(0, "look", "{}"), call(0, "look", "{}")],
        [call(0, "look")],
    ],
    ids=["text behind a call", "not the next number", "begun twice", "without arguments"],
)
def test_calls_that_come_in_another_way_are_left_to_the_full_reader(pieces: list[object]) -> None:
    assert PLAIN_TEXTS.reply(text_stream(*pieces, text_chunk(None, "tool_calls"))) is None
