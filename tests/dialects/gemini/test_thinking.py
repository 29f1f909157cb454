"""Thoughts in pieces, and their signatures."""

import base64
import copy
import json
from typing import Any

import pytest

from sightline.catalog.facts import Facts
from sightline.dialects.dialect import Client, Target
from sightline.dialects.gemini.parts import UNCHECKED, for_client, read_signature, sign_calls
from sightline.dialects.gemini.reply_write import StreamWriter
from sightline.dialects.gemini.request import is_followed_by_pieces, read_request, with_joined_thoughts, write_request
from sightline.errors import Fault
from sightline.model.events import Ended, Finished, SignatureReceived, TextReceived, ThinkingReceived
from sightline.model.message import Message
from sightline.model.parts import Opaque, Text, Thinking, ToolCall, ToolResult
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


def test_an_own_seal_is_carried_exactly():
    assert read_signature({"thoughtSignature": "abc+/="}, "") == ("abc+/=", "gemini", None)
    assert read_signature({"thought_signature": "abc"}, "") == ("abc", "gemini", None)
    assert for_client("abc+/=", "gemini") == "abc+/="
    assert for_client(None, None) is None
    assert read_signature({}, "") == (None, None, None)


def test_a_seal_is_text():
    with pytest.raises(Fault) as caught:
        read_signature({"thought_signature": 5}, "/p")
    assert caught.value.pointer == "/p/thought_signature"


@pytest.mark.parametrize("item", [None, "rs_1"])
@pytest.mark.parametrize("signature", ["ErUB??>>~~", None])
def test_a_foreign_seal_travels_wrapped_in_base64_and_comes_back(signature, item):
    sent: Any = for_client(signature, "anthropic", item)
    if signature is None and item is None:
        assert sent is None
        return
    assert base64.b64decode(sent).startswith(b"sightline:anthropic:")
    assert read_signature({"thoughtSignature": sent}, "") == (signature, "anthropic", item)
    # the vendor's SDK answers in the URL-safe alphabet
    safe = sent.replace("+", "-").replace("/", "_")
    assert read_signature({"thoughtSignature": safe}, "") == (signature, "anthropic", item)


@pytest.mark.parametrize("broken", ["c2lnaHRsaW5lO", "c2lnaHRsaW5lOv8="])
def test_something_that_only_looks_wrapped_stays_as_it_is(broken):
    assert read_signature({"thoughtSignature": broken}, "") == (broken, "gemini", None)


def content(role: str, *kinds: str) -> dict[str, Any]:
    return {"role": role, "parts": [{kind: {}} if kind != "text" else {"text": "x"} for kind in kinds]}


def test_calls_of_the_current_turn_are_signed_where_the_model_demands_it() -> None:
    report = Report()
    own = {"functionCall": {}, "thoughtSignature": "b3du"}
    contents: list[Any] = [
        content("user", "text"),
        content("model", "functionCall"),
        content("user", "functionResponse"),
        content("user", "text"),
        content("model", "text", "functionCall", "functionCall"),
        content("user", "functionResponse", "text"),
        {"role": "model", "parts": [own]},
        content("user", "functionResponse"),
        content("model", "text"),
    ]
    before = copy.deepcopy(contents)
    sign_calls(contents, report)
    before[4]["parts"][1]["thoughtSignature"] = UNCHECKED  # the first call of a step; older turns are not checked
    assert contents == before
    assert [addition.pointer for addition in report.additions] == ["/contents/4/parts/1/thoughtSignature"]
    only = [content("model", "functionCall")]
    sign_calls(only, report)  # type: ignore[arg-type]
    assert only[0]["parts"][0]["thoughtSignature"] == UNCHECKED


@pytest.mark.parametrize("facts", [Facts(signed_calls=True), Facts(), None])
def test_only_models_that_check_signatures_get_one(facts: Facts | None) -> None:
    messages = (Message("user", (Text("a"),)), Message("assistant", (ToolCall("c", "f", "{}"),)))
    request = Request("m", (*messages, Message("tool", (ToolResult("c", (Text("x"),)),))))
    body: Any = write_request(request, Target(facts=facts), Report())
    assert ("thoughtSignature" in body["contents"][1]["parts"][0]) is bool(facts and facts.signed_calls)
