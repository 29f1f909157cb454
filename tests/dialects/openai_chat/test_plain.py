"""The typed readers of plain texts; that they say what the full readers say is shown where the words are used."""

import json
from typing import Any

import pytest

from sightline.dialects.openai_chat.plain import PLAIN_TEXTS

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


def chunk(text: str | None = None, finish: str | None = None, **more: object) -> dict[str, object]:
    return {"id": "c", "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": finish}], **more}


def stream(*chunks: object, end: str = "data: [DONE]\n\n") -> bytes:
    return ("".join(f"data: {json.dumps(each)}\n\n" for each in chunks) + end).encode()


def test_the_text_of_a_stream_is_what_its_chunks_bring() -> None:
    usage = {"id": "c", "choices": [], "usage": {"prompt_tokens": 1}}
    whole = stream(chunk("Good "), chunk("morning"), chunk(finish="stop"), usage)
    assert PLAIN_TEXTS.reply(whole) == "Good morning"
    assert PLAIN_TEXTS.reply(whole.replace(b"\n", b"\r\n")) == "Good morning"


@pytest.mark.parametrize(
    "reply",
    [
        stream(chunk("cut ")),
        stream(chunk("cut ", "stop"), end=""),
        stream(chunk("a", "stop"), chunk("b", "stop")),
        stream(chunk("a", "stop"), end="data: \n\ndata: [DONE]\n\n"),
        stream(chunk("a", "stop"), end="data: [DONE]"),
        stream({"id": "c", "choices": []}),
        b"data: %s,%s\n\ndata: [DONE]\n\n" % ((json.dumps(chunk("a", "stop")).encode(),) * 2),
        b"data: %s\ndata: %s\n\ndata: [DONE]\n\n" % ((json.dumps(chunk("a", "stop")).encode(),) * 2),
        b"no stream",
    ],
)
def test_any_other_stream_is_left_to_the_full_reader(reply: bytes) -> None:
    assert PLAIN_TEXTS.reply(reply) is None
