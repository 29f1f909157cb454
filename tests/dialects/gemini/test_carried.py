"""Thoughts of other models on the calls that follow them."""

import base64
from typing import Any

import pytest

from sightline.dialects.dialect import Target
from sightline.dialects.gemini.parts import is_carried, pack_thoughts
from sightline.dialects.gemini.request import read_request, write_request
from sightline.dialects.signatures import wrap
from sightline.model.parts import Part, Text, Thinking, ToolCall
from sightline.model.report import Report

SEALED = Thinking("I look.", signature="abc", signed_by="anthropic")
REDACTED = Thinking(signature="xyz", signed_by="anthropic", redacted=True)
REFERRED = Thinking("b", id="rs_1", signed_by="openai-responses")


def call(seal: str | None) -> dict[str, Any]:
    return {"functionCall": {"name": "f", "args": {}}, **({} if seal is None else {"thoughtSignature": seal})}


def read(*parts: dict[str, Any]) -> tuple[Part, ...]:
    return read_request({"contents": [{"role": "model", "parts": list(parts)}]}).messages[0].parts


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        (SEALED, True),
        (REDACTED, True),
        (REFERRED, True),
        (Thinking("a"), False),
        (Thinking("a", signature="s", signed_by="gemini"), False),
        (Thinking("a", signature="s", signed_by=""), False),
        (Text("a", signature="s", signed_by="anthropic"), False),
    ],
)
def test_thoughts_that_another_provider_wants_back_are_carried(part: Part, expected: bool) -> None:
    assert is_carried(part) is expected


def test_thoughts_come_back_before_the_words_that_led_to_the_call() -> None:
    packed = pack_thoughts([SEALED, REDACTED, REFERRED])
    earlier, words, *thoughts_and_call = read(call(None), {"text": "So"}, call(packed))
    assert isinstance(earlier, ToolCall)
    assert [type(part) for part in (words, *thoughts_and_call)] == [Thinking, Thinking, Thinking, Text, ToolCall]
    at = "/contents/0/parts/2/thoughtSignature"
    assert words == Thinking("I look.", signature="abc", signed_by="anthropic", at=at)
    assert thoughts_and_call[0] == Thinking(signature="xyz", signed_by="anthropic", redacted=True, at=at)
    assert thoughts_and_call[1] == Thinking("b", id="rs_1", signed_by="openai-responses", at=at)
    made = thoughts_and_call[-1]
    assert isinstance(made, ToolCall)
    assert (made.signature, made.signed_by) == (None, None)


def test_a_thought_that_the_client_sends_back_itself_comes_once() -> None:
    own = base64.b64encode(wrap("abc", "anthropic").encode()).decode()
    parts = read({"text": "I look.", "thought": True, "thoughtSignature": own}, call(pack_thoughts([SEALED])))
    assert [type(part) for part in parts] == [Thinking, ToolCall]


def test_nothing_to_carry_is_no_signature() -> None:
    assert pack_thoughts([]) is None
    assert pack_thoughts([Text("a")]) is None


@pytest.mark.parametrize("text", ["no json", "[1]", ""])
def test_what_a_client_has_changed_carries_nothing(text: str) -> None:
    broken = base64.b64encode(wrap(text, "carried").encode()).decode()
    (made,) = read(call(broken))
    assert isinstance(made, ToolCall)
    assert made.signature is None


def test_google_gets_none_of_them() -> None:
    request = read_request({"contents": [{"role": "model", "parts": [{"text": "So"}, call(pack_thoughts([SEALED]))]}]})
    written: Any = write_request(request, Target(), Report())
    assert written["contents"][0]["parts"] == [{"text": "So"}, call(None)]
