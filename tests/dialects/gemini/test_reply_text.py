"""The text of replies that are nothing but text, read without the rest."""

import json

import pytest

from sightline.dialects.registry import dialect
from sightline.dialects.reply_decoder import ReplyDecoder
from sightline.model.fold import fold
from sightline.model.json import JsonObject
from sightline.model.parts import Text


def said(text: str, **more: object) -> JsonObject:
    part = {"text": text, **({"thoughtSignature": more.pop("signature")} if "signature" in more else {})}
    candidate = {"content": {"role": "model", "parts": [part]}, "index": 0, **more}
    usage = {"promptTokenCount": 1, "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 1}]}
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "m", "responseId": "r"}


def stream(*frames: JsonObject, end: bytes = b"") -> bytes:
    return b"".join(b"data: %s\r\n\r\n" % json.dumps(frame).encode() for frame in frames) + end


def text_of(data: bytes) -> str | None:
    texts = dialect("gemini").plain_texts
    assert texts is not None
    assert texts.request(data) is None
    return texts.reply(data)


PLAIN = {
    "whole": json.dumps(said("Grüße", finishReason="STOP", avgLogprobs=-0.1)).encode(),
    "streamed": stream(said("Hel"), said("lo, \n"), said("you", finishReason="STOP")),
    "cut by the limit": stream(said("Hel"), said("lo", finishReason="MAX_TOKENS")),
    "signed at its end": stream(said("Hel"), said("lo"), said("", signature="c2ln", finishReason="STOP")),
    "long": stream(*(said(f"word{n} ") for n in range(40)), said(".", finishReason="STOP")),
}
OTHERS = {
    "cut off": stream(said("Hel"), said("lo")),
    "finished twice": stream(said("a", finishReason="STOP"), said("b", finishReason="STOP")),
    "signed before its end": stream(said("a", signature="c2ln"), said("b", finishReason="STOP")),
    "nothing": b"",
    "no text": json.dumps(said("", finishReason="STOP")).encode(),
    "with the words of another API": stream(said("a", finishReason="STOP"), end=b"data: [DONE]\n\n"),
    "two values in a frame": b'data: {"candidates":[]},{"candidates":[]}\n\n',
    "safe": json.dumps(said("a", finishReason="SAFETY")).encode(),
    "a list": json.dumps([said("a", finishReason="STOP")]).encode(),
}


@pytest.mark.parametrize("data", PLAIN.values(), ids=PLAIN)
def test_text_alone_is_what_the_whole_reader_finds(data: bytes) -> None:
    reply = fold(ReplyDecoder(dialect("gemini"), joins=True).whole(data))
    (part,) = reply.choices[0].parts
    assert isinstance(part, Text)
    assert text_of(data) == part.text


@pytest.mark.parametrize("data", OTHERS.values(), ids=OTHERS)
def test_any_other_reply_is_left_to_the_whole_reader(data: bytes) -> None:
    assert text_of(data) is None


def test_frames_that_hold_more_than_one_value_are_left_to_the_whole_reader() -> None:
    frame = json.dumps(said("a", finishReason="STOP")).encode()
    assert text_of(b"data: " + frame + b"," + frame + b"\n\n") is None
