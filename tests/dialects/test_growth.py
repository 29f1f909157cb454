"""Frames that are alike but for their text, read without taking them apart."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.dialects.registry import dialect
from sightline.dialects.streaming import TextDeltas
from sightline.model.events import TextReceived, ThinkingReceived
from sightline.model.fold import fold
from sightline.wire.jsontext import encode
from sightline.wire.sse import Frame

ONE = b'{"delta":{"content":"one"}}'


def grown(first: bytes, event: TextReceived | ThinkingReceived) -> TextDeltas:
    growth = TextDeltas()
    growth.learn(first, event)
    return growth


def test_a_frame_like_the_last_is_its_text() -> None:
    growth = grown(ONE, TextReceived(3, "one", 1))
    assert growth.read(b'{"delta":{"content":"two \\"quoted\\" \\u00e9"}}') == TextReceived(3, 'two "quoted" \u00e9', 1)
    assert growth.read(ONE) == TextReceived(3, "one", 1)


def test_thinking_grows_alike() -> None:
    assert grown(ONE, ThinkingReceived(0, "one")).read(ONE) == ThinkingReceived(0, "one")


@pytest.mark.parametrize(
    "frame",
    [
        b'{"delta":{"content":""}}',
        b'{"delta":{"content":"one"},"more":1}',
        b'{"delta":{"content":null}}',
        b'{"delta":{"content":"a","content":"b"}}',
        b'{"delta":{"content":"\\ud800"}}',
        b'{"delta":{"content":"\xff"}}',
        b'{"delta":{"content":"}}',
        b"[DONE]",
    ],
)
def test_any_other_frame_has_to_be_taken_apart_and_so_has_the_next(frame: bytes) -> None:
    growth = grown(ONE, TextReceived(0, "one"))
    assert growth.read(frame) is None
    assert growth.read(ONE) is None


def test_nothing_is_learned_where_it_is_not_certain_where_the_text_stands() -> None:
    assert grown(b'{"model":"one","content":"one"}', TextReceived(0, "one")).read(ONE) is None
    assert grown(b'{"content":"\\u006fne"}', TextReceived(0, "one")).read(b'{"content":"two"}') is None
    assert grown(ONE, TextReceived(0, "\ud800")).read(ONE) is None


def test_who_numbers_frames_is_soon_left_alone() -> None:
    growth = TextDeltas()
    for number in range(4):
        growth.learn(b'{"n":%d,"text":"one"}' % number, TextReceived(0, "one"))
        assert growth.read(b'{"n":%d,"text":"one"}' % (number + 1)) is None
    growth.learn(b'{"n":9,"text":"one"}', TextReceived(0, "one"))
    assert growth.read(b'{"n":9,"text":"two"}') is None


@given(st.lists(st.text(), max_size=8), st.booleans())
def test_a_stream_says_the_same_however_it_is_read(texts: list[str], has_role: bool) -> None:
    role = {"role": "assistant"} if has_role else {}
    frames = [
        encode({"id": "i", "model": "m", "choices": [{"index": 0, "delta": {**role, "content": text}}]})
        for text in texts
    ]
    frames.append(encode({"id": "i", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}))
    reader = dialect("openai-chat").stream_reader()
    reply = fold([event for frame in frames for event in reader.feed(Frame(frame))] + reader.close())
    assert "".join(part.text for part in reply.choice.parts if hasattr(part, "text")) == "".join(texts)
    assert reply.choice.finish == "stop"


def frames(*texts: bytes) -> list[Frame]:
    return [Frame(b'{"delta":{"content":"%b"}}' % text) for text in texts]


def test_several_frames_like_the_last_are_one_text() -> None:
    growth = grown(ONE, TextReceived(3, "one", 1))
    run = [*frames(b"a", b"b ", b"c"), Frame(b"[DONE]")]
    assert growth.read_run(run, 0) == (TextReceived(3, "ab c", 1), 3)
    assert growth.read_run(run, 1) == (TextReceived(3, "b c", 1), 2)
    assert growth.read_run(run, 2) == (None, 0)
    assert growth.read(run[2].data) == TextReceived(3, "c", 1)


@pytest.mark.parametrize("text", [b"\\u00", b"\\", b'"', b"\xc3", b""])
def test_what_may_be_cut_in_two_is_read_by_itself(text: bytes) -> None:
    growth = grown(ONE, TextReceived(0, "one"))
    assert growth.read_run(frames(b"a", text, b"b", b"c"), 0) == (None, 0)
    assert growth.read_run(frames(b"a", b"b", text), 0) == (TextReceived(0, "ab"), 2)


def test_a_run_that_is_no_json_has_to_be_taken_apart() -> None:
    growth = grown(ONE, TextReceived(0, "one"))
    assert growth.read_run(frames(b"a", b"\n"), 0) == (None, 0)
    assert growth.read_run(frames(b"a", b"b"), 0) == (None, 0)
