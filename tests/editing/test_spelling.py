"""How each dialect spells words and roles that an edit writes."""

import pytest

from sightline.editing.changes import with_role
from sightline.errors import Fault
from sightline.model.json import JsonObject
from sightline.model.message import Message
from sightline.model.parts import Text, ToolCall

WORDS = Message("user", (Text("x"),))


@pytest.mark.parametrize(
    ("name", "item", "role", "changed"),
    [
        ("openai-chat", {"role": "user", "content": "x"}, "developer", {"role": "developer"}),
        ("openai-chat", {"role": "user", "content": "x"}, "user", {}),
        ("gemini", {"parts": []}, "assistant", {"role": "model"}),
        ("raw", {"role": 1, "content": []}, "assistant", {"role": 2}),
        ("openai-responses", {"role": "user", "content": "x"}, "assistant", {"role": "assistant"}),
        ("openai-responses", {"role": "user", "content": [1]}, "assistant", {"role": "assistant"}),
        (
            "openai-responses",
            {"role": "user", "content": [{"type": "input_text", "text": "x"}, {"type": "input_image"}]},
            "assistant",
            {
                "role": "assistant",
                "content": [{"type": "output_text", "text": "x", "annotations": []}, {"type": "input_image"}],
            },
        ),
        (
            "openai-responses",
            {"role": "assistant", "content": [{"type": "output_text", "text": "x", "annotations": [], "logprobs": []}]},
            "user",
            {"role": "user", "content": [{"type": "input_text", "text": "x"}]},
        ),
        (
            "openai-responses",
            {"role": "user", "content": [{"type": "input_text", "text": "x"}]},
            "system",
            {"role": "system"},
        ),
    ],
)
def test_another_role(name: str, item: JsonObject, role: str, changed: JsonObject) -> None:
    assert with_role(name, WORDS, item, role) == changed


@pytest.mark.parametrize(
    ("name", "message", "item", "role"),
    [
        ("gemini", WORDS, {"role": "user"}, "system"),
        ("raw", WORDS, {"role": 1}, "tool"),
        ("openai-chat", Message("assistant", (ToolCall("c", "f", "{}"),)), {"role": "assistant"}, "user"),
        ("openai-responses", WORDS, {"type": "compaction"}, "user"),
    ],
)
def test_a_role_that_cannot_be_given(name: str, message: Message, item: JsonObject, role: str) -> None:
    with pytest.raises(Fault) as refused:
        with_role(name, message, item, role)
    assert refused.value.status == 422
