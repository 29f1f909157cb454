"""The words of replies that are complete, read without the rest."""

import json
from typing import Any

import pytest

from sightline.dialects.openai_responses.reply_read import read_words

ITEMS = [
    {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": text} for text in ("hm", "ha")]},
    {"type": "message", "id": "m", "role": "assistant", "content": [{"type": "output_text", "text": "so"}]},
    {"type": "function_call", "id": "f", "call_id": "c", "name": "look", "arguments": "{}"},
]
WORDS = ("hm\n\nha\nso\nlook\n{}", "resp_1")


def reply(*items: Any, **more: Any) -> dict[str, Any]:
    return {"id": "resp_1", "object": "response", "status": "completed", "output": list(items), **more}


def stream(*items: Any, last: dict[str, Any] | None = None, end: bytes = b"") -> bytes:
    events = [{"type": "response.output_item.done", "output_index": n, "item": each} for n, each in enumerate(items)]
    events.append({"type": "response.completed", "response": last or reply(*items)})
    return b"".join(b"data: %s\n\n" % json.dumps(each, separators=(",", ":")).encode() for each in events) + end


@pytest.mark.parametrize(
    "data",
    [json.dumps(reply(*ITEMS)).encode(), stream(*ITEMS), stream(*ITEMS, end=b"data: [DONE]\n\n")],
    ids=["whole", "stream", "stream with a mark at its end"],
)
def test_words_are_those_of_all_items_with_the_id(data: bytes) -> None:
    assert read_words(data) == WORDS


def test_a_reply_without_an_id_has_none() -> None:
    assert read_words(json.dumps(reply(ITEMS[1], id=None)).encode()) == ("so", "")


OTHERS = {
    "incomplete": json.dumps(reply(*ITEMS, status="incomplete")).encode(),
    "another item": json.dumps(reply({"type": "web_search_call", "id": "w"})).encode(),
    "no words": json.dumps(reply()).encode(),
    "no JSON": b"{",
    "a stream without its end": stream(*ITEMS).partition(b'data: {"type":"response.completed"')[0],
    "more behind the end": stream(*ITEMS, end=b"data: {}\n\n"),
    "an error on the way": b'data: {"type":"error"}\n\n' + stream(*ITEMS),
    "an end that leaves items out": stream(*ITEMS, last=reply(ITEMS[1])),
}


@pytest.mark.parametrize("data", OTHERS.values(), ids=OTHERS)
def test_any_other_reply_is_left_to_the_full_reader(data: bytes) -> None:
    assert read_words(data) is None
