"""Streams for typed decoders: frames that differ in their text alone become one."""

import json

import pytest

from sightline.dialects.streaming import join_texts, read_frames


def frame(text: str, finish: str | None = None, *, ascii_only: bool = False) -> bytes:
    chunk = {"id": "c_1", "delta": {"content": text}, "finish": finish}
    return b"data: " + json.dumps(chunk, ensure_ascii=ascii_only, separators=(",", ":")).encode() + b"\n\n"


HEAD, TAIL = b'data: {"id":"c_1","role":"assistant"}\n\n', b"data: [DONE]\n\n"


def texts(data: bytes) -> list[str]:
    frames = read_frames(data)
    assert frames is not None
    return [each["delta"]["content"] for each in json.loads(frames[0]) if "delta" in each]


def test_frames_that_differ_in_their_text_alone_become_one() -> None:
    words = [f'word {n}, "quoted", \\ and ü\n' for n in range(40)]
    data = HEAD + b"".join(map(frame, words)) + frame("end", "stop") + TAIL
    assert texts(data) == ["".join([*words, "end"])]
    assert join_texts(data) == HEAD + frame("".join([*words, "end"]), "stop") + TAIL


def test_frames_of_another_kind_between_them_stay_where_they_are() -> None:
    some, more = [f"a{n} " for n in range(20)], [f"b{n} " for n in range(40)]
    data = HEAD + b"".join(map(frame, some)) + HEAD + HEAD + b"".join(map(frame, more)) + TAIL
    assert join_texts(data) == HEAD + frame("".join(some)) + HEAD + HEAD + frame("".join(more)) + TAIL


@pytest.mark.parametrize(
    "data",
    [
        HEAD + frame("short") + frame("stream") + TAIL,
        HEAD * 60,
        b'data: {"delta":{"content":"' + b"one long text " * 100 + b'"}}\n\n',
        b"a text without any frame " * 60,
        HEAD + b"".join(frame(half, ascii_only=True) for half in ["\ud83d", "\ude00"] * 30) + TAIL,
        HEAD + b"".join(frame(f"{n} ends in \\") for n in range(30)) + TAIL,
        HEAD + b'data: {"id":"c_1","delta":{"content":"cut off\n\n' * 40 + TAIL,
    ],
    ids=["short", "no text", "one frame", "no frame", "halves of characters", "ends of escapes", "no end of a text"],
)
def test_what_might_say_something_else_stays_as_it_is(data: bytes) -> None:
    assert join_texts(data) == data
