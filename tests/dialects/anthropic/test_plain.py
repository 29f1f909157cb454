"""The typed readers of plain texts; that they say what the full readers say is shown where the words are used."""

import json
from typing import Any

import pytest

from sightline.dialects.anthropic.plain import PLAIN_TEXTS

ASKED = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}


def test_the_texts_of_messages_come_with_their_roles_and_instructions_come_first() -> None:
    marked = [{"type": "text", "text": "a", "cache_control": {"type": "ephemeral", "ttl": "1h"}}]
    assert PLAIN_TEXTS.request(json.dumps(ASKED).encode()) == [("user", ["hi"])]
    body = {**ASKED, "system": "Be brief.", "messages": [{"role": "assistant", "content": marked}]}
    assert PLAIN_TEXTS.request(json.dumps(body).encode()) == [("system", ["Be brief."]), ("assistant", ["a"])]


@pytest.mark.parametrize(
    "body",
    [{**ASKED, "tools": []}, {**ASKED, "messages": [{"role": "system", "content": "hi"}]}, {**ASKED, "system": 1}],
)
def test_any_other_request_is_left_to_the_full_reader(body: Any) -> None:
    assert PLAIN_TEXTS.request(json.dumps(body).encode()) is None


def test_the_words_of_a_reply_are_its_texts_and_thoughts() -> None:
    content = [{"type": "thinking", "thinking": "hm", "signature": "s"}, {"type": "text", "text": "yes"}]
    body = {"type": "message", "content": content, "stop_reason": "end_turn"}
    assert PLAIN_TEXTS.reply(json.dumps(body).encode()) == "hm\nyes"
    assert PLAIN_TEXTS.reply(json.dumps({**body, "content": [{"type": "image"}]}).encode()) is None


TEXT = {"type": "text", "text": "So "}
CALL = {"type": "tool_use", "id": "t", "name": "look", "input": {}}
START: dict[str, object] = {"type": "message_start", "message": {"id": "m", "content": []}}
FINISH: list[dict[str, object]] = [
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 3}},
    {"type": "message_stop"},
]


def block(index: int, begun: object, *deltas: object, end: bool = True) -> list[dict[str, object]]:
    return [
        {"type": "content_block_start", "index": index, "content_block": begun},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        *([{"type": "content_block_stop", "index": index}] if end else []),
    ]


def stream(*events: dict[str, object], end: str = "") -> bytes:
    frames = (f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in events)
    return ("".join(frames) + end).encode()


SAID = block(0, TEXT, {"type": "text_delta", "text": "be it."})


def test_the_words_of_a_stream_are_those_of_its_blocks() -> None:
    thought = {"type": "thinking", "thinking": "", "signature": ""}
    events = [
        *block(0, thought, {"type": "thinking_delta", "thinking": "hm"}, {"type": "signature_delta", "signature": "s"}),
        {"type": "ping"},
        *block(1, TEXT, {"type": "text_delta", "text": "be it."}),
        *block(2, CALL, {"type": "input_json_delta", "partial_json": "{}"}),
    ]
    assert PLAIN_TEXTS.reply(stream(START, *events, *FINISH)) == "hm\nSo be it.\nlook\n{}"


def test_the_thoughts_of_a_long_stream_without_spaces_are_read() -> None:
    thought = {"type": "thinking", "thinking": "", "signature": ""}
    words = [f"thought {n} " for n in range(40)]
    grown = [{"type": "thinking_delta", "thinking": word} for word in words]
    events = [*block(0, thought, *grown), *block(1, TEXT, {"type": "text_delta", "text": "be it."})]
    reply = stream(START, *events, *FINISH).replace(b'": ', b'":').replace(b', "', b',"')
    assert PLAIN_TEXTS.reply(reply) == f"{''.join(words)}\nSo be it."


@pytest.mark.parametrize(
    "reply",
    [
        stream(START, *SAID),
        stream(*FINISH),
        stream(START, *SAID, *FINISH, end="data: [DONE]\n\n"),
        stream(START, *SAID, *FINISH).replace(b"event: message_stop\ndata: ", b","),
        stream(START, *SAID, *FINISH).replace(b"\n\nevent: message_stop\ndata: ", b","),
        stream(START, *SAID, *SAID, *FINISH),
        stream(START, *block(1, TEXT), *FINISH),
        stream(START, *block(0, TEXT, end=False), *FINISH),
        stream(START, *block(0, TEXT, {"type": "thinking_delta", "thinking": "hm"}), *FINISH),
        stream(START, *block(0, CALL), *FINISH),
        stream(START, {"type": "error", "error": {"type": "e", "message": "m"}}, *FINISH),
    ],
)
def test_any_other_stream_is_left_to_the_full_reader(reply: bytes) -> None:
    assert PLAIN_TEXTS.reply(reply) is None
