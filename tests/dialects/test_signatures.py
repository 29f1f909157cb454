"""Signatures of another provider, in a request for a provider of the client's own dialect."""

import base64
import json
from typing import Any

import pytest

from sightline.dialects.dialect import Client, Target
from sightline.dialects.signatures import (
    UNCHECKED,
    OriginMarker,
    decode_signature,
    may_hold_signatures,
    with_own_signatures,
    without_foreign_signatures,
    wrap,
)
from sightline.dialects.translate import StreamTranslation, translate_reply, translate_request
from sightline.model.events import PartReceived, SignatureReceived, StreamEvent, TextReceived, ToolCallBegun
from sightline.model.parts import Text, Thinking
from sightline.model.report import Report
from sightline.model.request import Message, Request
from sightline.wire.document import WireDocument
from tests.dialects.reports import losses

FOREIGN = wrap("abc", "openai-responses", "rs_1")
CODED = base64.b64encode(wrap("abc", "anthropic").encode()).decode()


def left(body: Any, spoken: str) -> tuple[Any, list[tuple[str, str]]]:
    report = Report()
    data = json.dumps(body).encode()
    own = without_foreign_signatures(WireDocument(data), spoken, report)
    return json.loads(own.data), losses(report)


def test_a_body_without_our_marks_needs_no_look() -> None:
    assert not may_hold_signatures(b'{"messages":[{"signature":"EqQBCkYIB"}]}', is_coded=True)
    assert may_hold_signatures(json.dumps({"a": FOREIGN}).encode(), is_coded=False)
    assert may_hold_signatures(json.dumps({"a": CODED}).encode(), is_coded=True)
    assert not may_hold_signatures(json.dumps({"a": CODED}).encode(), is_coded=False)


@pytest.mark.parametrize("text", ["EqQB", "c2lnaHRsaW5lO", "c2lnaHRsaW5lOv8="])
def test_what_is_no_wrapped_signature_stays_as_it_is(text: str) -> None:
    assert decode_signature(text) == text


def test_anthropic_gets_no_thinking_of_another_provider() -> None:
    own = {"type": "thinking", "thinking": "a", "signature": "EqQB"}
    words = {"type": "text", "text": "sightline: yes"}
    foreign = {"type": "thinking", "thinking": "b", "signature": FOREIGN}
    redacted = {"type": "redacted_thinking", "data": FOREIGN}
    asked = {"role": "user", "content": "q"}
    body = {
        "messages": [
            asked,
            {"role": "assistant", "content": [own, foreign, redacted, words]},
            {"role": "assistant", "content": [redacted, foreign]},
            asked,
        ]
    }
    kept, losses = left(body, "anthropic")
    assert kept == {"messages": [asked, {"role": "assistant", "content": [own, words]}, asked]}
    assert losses == [
        ("/messages/1/content/1/signature", "identity"),
        ("/messages/1/content/1", "content"),
        ("/messages/1/content/2/data", "identity"),
        ("/messages/2/content/0/data", "identity"),
        ("/messages/2/content/1/signature", "identity"),
        ("/messages/2/content/1", "content"),
    ]


def test_the_responses_api_gets_its_own_signatures_unwrapped_and_no_others() -> None:
    own = {"type": "reasoning", "id": "rs_0", "summary": [], "encrypted_content": FOREIGN}
    bare = {"type": "reasoning", "summary": [], "encrypted_content": wrap("abc", "openai-responses")}
    foreign = {"type": "reasoning", "id": "x", "summary": [{"text": "b"}], "encrypted_content": wrap("s", "gemini")}
    unsigned = {"type": "reasoning", "id": "x", "summary": [], "encrypted_content": wrap(None, "")}
    kept, losses = left({"input": [own, foreign, bare, unsigned, 7]}, "openai-responses")
    assert kept == {
        "input": [{**own, "id": "rs_1", "encrypted_content": "abc"}, {**bare, "encrypted_content": "abc"}, 7]
    }
    assert [pointer for pointer, _ in losses] == [
        "/input/1/encrypted_content",
        "/input/1",
        "/input/3/encrypted_content",
    ]
    assert left({"input": [foreign]}, "openai-responses")[0] == {"input": []}


def test_gemini_keeps_calls_and_words_that_another_provider_has_signed() -> None:
    thought = {"text": "", "thought": True, "thoughtSignature": CODED}
    call = {"functionCall": {"name": "f"}, "thoughtSignature": CODED}
    snake = {"function_call": {"name": "f"}, "thought_signature": CODED}
    words = {"text": "a", "thoughtSignature": CODED}
    own = {"text": "b", "thoughtSignature": "b3du"}
    kept, _ = left({"contents": [{"role": "model", "parts": [thought, call, snake, words, own]}]}, "gemini")
    assert kept["contents"][0]["parts"] == [
        {**call, "thoughtSignature": UNCHECKED},
        {**snake, "thought_signature": UNCHECKED},
        {"text": "a"},
        own,
    ]


def test_chat_keeps_the_message() -> None:
    message = {"role": "assistant", "content": "a", "reasoning_content": "t", "reasoning_opaque": FOREIGN}
    kept, losses = left({"messages": [message]}, "openai-chat")
    assert kept == {"messages": [{"role": "assistant", "content": "a", "reasoning_content": "t"}]}
    assert losses == [("/messages/0/reasoning_opaque", "identity")]


@pytest.mark.parametrize(
    "body",
    [
        [],
        {"messages": "a"},
        {"messages": [{"content": FOREIGN}], "metadata": {"signature": FOREIGN}},
        {"messages": [{"content": [{"type": "tool_use", "input": {"signature": FOREIGN}}]}]},
        {"messages": [{"content": [{"type": "thinking", "signature": 7}]}]},
    ],
)
def test_nothing_else_is_touched(body: Any) -> None:
    assert left(body, "anthropic") == (body, [])


# --- which provider of a dialect ---


@pytest.mark.parametrize(
    ("event", "marked"),
    [
        (SignatureReceived(0, "s", "anthropic"), SignatureReceived(0, "s", "anthropic@a%3Ab")),
        (SignatureReceived(1, "s", "gemini"), SignatureReceived(1, "s", "gemini")),
        (SignatureReceived(0, None, ""), SignatureReceived(0, None, "")),
        (PartReceived(0, Thinking(signed_by="x")), PartReceived(0, Thinking(signed_by="x@a%3Ab"))),
        (PartReceived(0, Thinking(signed_by="")), PartReceived(0, Thinking(signed_by=""))),
        (PartReceived(0, Thinking("a")), PartReceived(0, Thinking("a"))),
        (PartReceived(0, Text("a")), PartReceived(0, Text("a"))),
        (TextReceived(0, "a"), TextReceived(0, "a")),
    ],
)
def test_the_signature_of_a_thought_names_its_provider(event: StreamEvent, marked: StreamEvent) -> None:
    marker = OriginMarker("a:b")
    call = ToolCallBegun(1, "c", "f")
    assert marker.mark(call) == call
    assert marker.mark(event) == marked


@pytest.mark.parametrize(
    ("provider", "signed_by", "expected"),
    [
        ("acme", "anthropic@acme", "anthropic"),
        ("other", "anthropic@acme", "anthropic@acme"),
        ("", "anthropic@acme", "anthropic"),
        ("acme", "anthropic", "anthropic"),
        ("acme", None, None),
    ],
)
def test_a_provider_gets_its_own_signatures_back(provider: str, signed_by: str | None, expected: str | None) -> None:
    unmarked = Thinking("c", signature="t", signed_by="gemini")
    parts = (Text("a"), Thinking("b", signature="s", signed_by=signed_by), unmarked)
    told = with_own_signatures(Request("m", (Message("assistant", parts),)), provider).messages[0].parts
    assert told == (Text("a"), Thinking("b", signature="s", signed_by=expected), unmarked)
    words = Request("m", (Message("user", (Text("a"),)),))
    assert with_own_signatures(words, provider) is words


REPLY = {
    "id": "m1",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "content": [{"type": "thinking", "thinking": "t", "signature": "sig"}, {"type": "text", "text": "a"}],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 1, "output_tokens": 1},
}


def test_another_provider_of_the_same_dialect_does_not_get_a_signature() -> None:
    client = Client(provider="acme")
    whole = json.loads(translate_reply(json.dumps(REPLY).encode(), "anthropic", "openai-responses", client=client).data)
    assert whole["output"][0]["encrypted_content"] == "sightline:anthropic@acme::sig"
    stream = StreamTranslation("anthropic", "openai-responses", client=client)
    start = {"type": "content_block_start", "index": 0, "content_block": REPLY["content"][0]}  # type: ignore[index]
    head = {"type": "message_start", "message": {**REPLY, "content": []}}
    frames = b"".join(
        f"event: {each['type']}\ndata: {json.dumps(each)}\n\n".encode()
        for each in (head, start, {"type": "content_block_stop", "index": 0})
    )
    assert b"sightline:anthropic@acme::sig" in stream.feed(frames) + stream.close()
    assert stream.reply.choices[0].parts[0].signed_by == "anthropic"  # type: ignore[union-attr]
    asked = json.dumps({"model": "m", "input": [*whole["output"], {"role": "user", "content": "b"}]}).encode()
    for provider, is_sent in (("acme", True), ("other", False)):
        target = Target(provider=provider)
        sent = translate_request(asked, "openai-responses", "anthropic", settings=target).data
        assert (b'"signature":"sig"' in sent) is is_sent
