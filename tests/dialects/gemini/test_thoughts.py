import json

import pytest

from sightline.dialects.dialect import Client, Target
from sightline.dialects.gemini.request_read import read_request
from sightline.dialects.gemini.request_write import write_request
from sightline.dialects.gemini.stream_write import StreamWriter
from sightline.dialects.gemini.thinking import is_followed_by_pieces, with_joined_thoughts
from sightline.model.events import Ended, Finished, SignatureReceived, TextReceived, ThinkingReceived
from sightline.model.message import Message
from sightline.model.parts import Opaque, Text, Thinking
from sightline.model.report import Report
from sightline.model.request import Request
from sightline.wire.sse import SseDecoder

ASK = {"role": "user", "parts": [{"text": "go"}]}
A, B = {"text": "a ", "thought": True}, {"text": "b", "thought": True}
SEAL = {"text": "", "thought": True, "thoughtSignature": "c2Vs"}
WORDS = {"text": "Hi"}


def model(*parts):
    return {"role": "model", "parts": list(parts)}


def thoughts(*contents):
    request = read_request({"contents": [ASK, *contents, ASK]})
    return [
        (part.text, part.signature, part.at)
        for message in request.messages
        for part in message.parts
        if isinstance(part, Thinking)
    ]


@pytest.mark.parametrize(
    "contents",
    [[model(A, B, SEAL, WORDS)], [model(A), model(B), model(SEAL), model(WORDS)], [model(A), model(B, SEAL, WORDS)]],
)
def test_the_pieces_of_a_thought_are_one_thought_and_go_back_as_they_came(contents):
    document = {"contents": [ASK, *contents, ASK]}
    assert thoughts(*contents) == [("a b", "c2Vs", "/contents/1/parts/0")]
    report = Report()
    assert write_request(read_request(document), Target(), report) == document
    assert not report.losses


@pytest.mark.parametrize(
    ("contents", "texts"),
    [
        ([model(A, WORDS, SEAL)], ["a ", ""]),
        ([model(A), ASK, model(SEAL)], ["a ", ""]),
        ([model(A, {**SEAL, "text": "own words"})], ["a ", "own words"]),
        ([model(A, {**SEAL, "extra": 1})], ["a ", ""]),
        ([model(SEAL, SEAL)], ["", ""]),
        ([model(A, B)], ["a ", "b"]),
    ],
)
def test_what_does_not_belong_together_stays_apart(contents, texts):
    assert [text for text, _, _ in thoughts(*contents)] == texts


def test_the_echo_of_a_stream_brings_words_and_a_foreign_seal_back_together():
    writer = StreamWriter(Client(), Report())
    events = [
        ThinkingReceived(0, "let me "),
        ThinkingReceived(0, "see"),
        SignatureReceived(0, "sig", "anthropic"),
        TextReceived(1, "Hi"),
        Finished("stop"),
        Ended(),
    ]
    frames = SseDecoder().feed(b"".join(writer.feed(event) for event in events))
    echoed = [json.loads(frame.data)["candidates"][0]["content"] for frame in frames]
    request = read_request({"contents": [ASK, *(content for content in echoed if content["parts"]), ASK]})
    (whole,) = [part for message in request.messages for part in message.parts if isinstance(part, Thinking)]
    assert (whole.text, whole.signature, whole.signed_by) == ("let me see", "sig", "anthropic")
    # Google itself gets the words, never another provider's seal.
    report = Report()
    body = json.dumps(write_request(request, Target(), report))
    assert "thoughtSignature" not in body
    assert [loss.what for loss in report.losses] == ["signature"]


def test_for_another_dialect_the_pieces_are_silent():
    mirror = Opaque("gemini", {"text": "x", "thought": True}, mirrored=True)
    message = Message("assistant", (Thinking("x"), mirror))
    assert is_followed_by_pieces(message.parts, 0)
    assert not is_followed_by_pieces(message.parts, 1)
    report = Report()
    body = write_request(Request(messages=(message,), dialect="openai-chat"), Target(), report)
    assert body == {"contents": [{"role": "model", "parts": [{"text": "x", "thought": True}]}]}
    assert not report.losses


def test_nothing_to_join_changes_nothing():
    messages = [Message("assistant", (Text("a"),))]
    assert with_joined_thoughts(messages, {}) is messages
