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
    assert texts(data) == ["".join(words), "end"]
    assert join_texts(data) == HEAD + frame("".join(words)) + frame("end", "stop") + TAIL


def test_frames_of_another_kind_between_them_stay_where_they_are() -> None:
    some, more = [f"a{n} " for n in range(20)], [f"b{n} " for n in range(40)]
    data = HEAD + b"".join(map(frame, some)) + HEAD + HEAD + b"".join(map(frame, more)) + TAIL
    assert join_texts(data) == HEAD + frame("".join(some)) + HEAD + HEAD + frame("".join(more)) + TAIL


WORDS = [f"word {n} " for n in range(60)]


def delta(**strings: str) -> bytes:
    return b"data: " + json.dumps({"delta": strings}, separators=(",", ":")).encode() + b"\n\n"


@pytest.mark.parametrize(
    "other",
    [
        delta(thinking="", signature=""),
        delta(content="a", refusal="b"),
        delta(signature="s"),
        delta(content="a", refusal="b") + delta(signature="s"),
    ],
    ids=["the beginning of a thought", "with another string", "of another string", "of two"],
)
def test_a_text_is_not_joined_to_another_string_that_ends_alike(other: bytes) -> None:
    frames = [delta(content=word) for word in WORDS]
    some, more = b"".join(frames[:20]), b"".join(frames[20:])
    joined, rest = delta(content="".join(WORDS[:20])), delta(content="".join(WORDS[20:]))
    assert join_texts(other + some + more + TAIL) == other + delta(content="".join(WORDS)) + TAIL
    assert join_texts(some + other + more + TAIL) == joined + other + rest + TAIL


def test_what_the_joined_frames_have_in_common_is_kept() -> None:
    thoughts = b"".join(delta(content=word, kind="thought") for word in WORDS)
    said = delta(content="said", kind="text")
    assert join_texts(thoughts + said + TAIL) == delta(content="".join(WORDS), kind="thought") + said + TAIL


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
        HEAD + b'data: {"id":"c_1","delta":{"content":"","tool_calls":[{"arguments":"000"}]}}\n\n' * 40 + TAIL,
    ],
    ids=[
        "short",
        "no text",
        "one frame",
        "no frame",
        "halves of characters",
        "ends of escapes",
        "no end of a text",
        "another text behind it",
    ],
)
def test_what_might_say_something_else_stays_as_it_is(data: bytes) -> None:
    assert join_texts(data) == data
