"""After an edit only the item that changed is read again, and the reading is the same as if all of it were."""

import pytest

from sightline.editing.places import with_change
from sightline.editing.reading import DocumentReading
from sightline.model.json import Json
from sightline.wire.pointer import parse_pointer
from tests.editing.bodies import round_of_tools, said, text

THOUGHT = {"text": "hm", "thought": True}
CHAT: Json = {"messages": [said("system", "s"), said("user", [text("a")]), said("assistant", "b")]}
ANTHROPIC: Json = {"system": "s", "messages": [said("user", "a"), *round_of_tools(), said("user", "c")]}
GEMINI: Json = {
    "systemInstruction": "s",
    "contents": [{"parts": [{"text": "a"}]}, {"role": "model", "parts": [THOUGHT, {"text": "b"}]}],
}
CALL = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
RESPONSES: Json = {"instructions": "s", "input": [CALL, {"type": "additional_tools", "tools": []}]}
SHELL = {"type": "shell_call", "call_id": "d", "action": {}}
SHELLS: Json = {"input": [SHELL, {"type": "shell_call_output", "call_id": "d", "output": []}]}
RAW: Json = {"messages": [{"role": 1, "content": "a"}]}


@pytest.mark.parametrize(
    ("name", "document", "pointer", "value", "is_one"),
    [
        ("openai-chat", CHAT, "/messages/1/content/0/text", "z", True),
        ("openai-chat", CHAT, "/messages/2", said("user", "z"), True),
        ("openai-chat", CHAT, "/messages", [], False),
        ("openai-chat", CHAT, "/messages/1/role", "nobody", False),
        ("openai-chat", CHAT, "/messages/1/content", 5, False),
        ("anthropic", ANTHROPIC, "/messages/3/content", "z", True),
        ("anthropic", ANTHROPIC, "/system", "z", False),
        ("anthropic", ANTHROPIC, "/messages/2/content/0/content", "z", True),
        ("anthropic", ANTHROPIC, "/messages/2/content/0/tool_use_id", "z", True),
        ("gemini", GEMINI, "/contents/0/parts/0/text", "z", True),
        ("gemini", GEMINI, "/contents/0/parts", [], False),
        ("gemini", GEMINI, "/contents/1/parts/1/text", "z", False),
        ("openai-responses", RESPONSES, "/input/0/arguments", "z", True),
        ("openai-responses", RESPONSES, "/input/1/tools", [], False),
        ("openai-responses", RESPONSES, "/input", "words", False),
        ("openai-responses", SHELLS, "/input/0/action", 5, False),
        ("raw", RAW, "/messages/0/content", "z", False),
        ("raw", [{"role": 1, "content": "a"}], "/0/content", "z", False),
    ],
)
def test_reading_again(name: str, document: Json, pointer: str, value: Json, is_one: bool) -> None:
    before = DocumentReading.of(name, document)
    assert len(before.pairs) == (name == "anthropic" or document is SHELLS)
    changed = with_change(document, parse_pointer(pointer), lambda _: value)
    after, anew = before.reread(changed, pointer), DocumentReading.of(name, changed)
    assert (after.request, after.fault) == (anew.request, anew.fault)
    assert [(one.at, two.at) for one, two in after.pairs] == [(one.at, two.at) for one, two in anew.pairs]
    assert bool(after.changed) == is_one


def test_what_cannot_be_read_says_why_and_may_be_mended() -> None:
    broken = DocumentReading.of("openai-chat", {"messages": 5})
    assert broken.request is None
    assert broken.fault is not None
    assert broken.pairs == ()
    assert broken.reread(CHAT, "/messages").request is not None


def test_the_conversation_is_a_list_somewhere() -> None:
    assert DocumentReading.of("openai-responses", RESPONSES).container == "/input"
    assert DocumentReading.of("raw", []).container == ""
