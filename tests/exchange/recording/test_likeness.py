import json

import pytest

from sightline.errors import Fault
from sightline.exchange.recording.library import key_of, lines_of, marks_of, shorten

CALL = {"id": "call_1", "type": "function", "function": {"name": "ls", "arguments": '{"b":1, "a":2}'}}
CHAT = {
    "model": "m",
    "max_tokens": 50,
    "temperature": 0,
    "messages": [
        {"role": "system", "content": "Be brief. Today is 2026-11-15."},
        {"role": "user", "content": "list it"},
        {"role": "assistant", "content": "Sure.", "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "call_1", "content": "a.txt"},
    ],
    "tools": [
        {"type": "function", "function": {"name": "ls", "description": "lists", "parameters": {"type": "object"}}}
    ],
}
ANTHROPIC = {
    "model": "m",
    "max_tokens": 50,
    "temperature": 0,
    "stream": True,
    "metadata": {"user_id": "somebody-else"},
    "system": [
        {"type": "text", "text": "Be brief. ", "cache_control": {"type": "ephemeral"}},
        {"type": "text", "text": "Today is 2031-01-02."},
    ],
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "list it"}]},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
                {"type": "text", "text": "Sure."},
                {"type": "tool_use", "id": "toolu_9", "name": "ls", "input": {"a": 2, "b": 1}},
            ],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_9", "content": "a.txt"}]},
    ],
    "tools": [{"name": "ls", "description": "lists", "input_schema": {"type": "object"}}],
}
RESPONSES = {
    "model": "m",
    "max_output_tokens": 50,
    "temperature": 0,
    "instructions": "Be brief. Today is 2026-11-16.",
    "prompt_cache_key": "k",
    "store": False,
    "input": [
        {"role": "user", "content": "list it"},
        {"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": "Sure."}]},
        {"type": "function_call", "id": "fc_1", "call_id": "x", "name": "ls", "arguments": '{"a":2,"b":1}'},
        {"type": "function_call_output", "call_id": "x", "output": "a.txt"},
    ],
    "tools": [{"type": "function", "name": "ls", "description": "lists", "parameters": {"type": "object"}}],
}


def lines(spoken: str, document: object, *, counts: bool = False) -> list[str]:
    return lines_of(spoken, json.dumps(document).encode(), "m", counts=counts)


def test_the_same_request_is_the_same_in_every_dialect_whatever_its_ids_marks_and_dates() -> None:
    chat = lines("openai-chat", CHAT)
    assert chat == lines("anthropic", ANTHROPIC) == lines("openai-responses", RESPONSES)
    assert 'call 1 ls {"a":2,"b":1}' in chat
    assert "result 1 a.txt" in chat
    assert key_of(chat) == key_of(lines("anthropic", ANTHROPIC))
    assert marks_of(chat) == marks_of(lines("anthropic", ANTHROPIC))


@pytest.mark.parametrize(
    "change",
    [
        {"model": "n"},
        {"max_tokens": 51},
        {"tools": []},
        {"tool_choice": "required"},
        {"reasoning_effort": "high"},
        {"response_format": {"type": "json_object"}},
        {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object"}}}},
        {"messages": [{"role": "user", "content": "list it on 2026-11-15"}]},
        {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "http://x/a.png"}}]}]},
    ],
)
def test_what_means_something_makes_a_difference(change: dict[str, object]) -> None:
    assert key_of(lines("openai-chat", {**CHAT, **change})) != key_of(lines("openai-chat", CHAT))


def test_two_pictures_and_two_dates_of_a_users_own_are_not_the_same() -> None:
    def asked(content: object) -> bytes:
        return key_of(lines("openai-chat", {"model": "m", "messages": [{"role": "user", "content": content}]}))

    pictures = [asked([{"type": "image_url", "image_url": {"url": f"http://x/{name}.png"}}]) for name in "ab"]
    assert pictures[0] != pictures[1]
    assert asked("on 2026-11-15") != asked("on 2026-11-16")


def test_what_only_its_own_dialect_knows_is_compared_without_its_ids() -> None:
    def asked(name: str, query: str) -> bytes:
        block = {"type": "server_tool_use", "id": name, "name": "web_search", "input": {"query": query}}
        tool = {"type": "web_search_20250305", "name": "web_search", "cache_control": {"type": "ephemeral"}}
        custom = [{"role": "user", "content": "q"}, {"role": "assistant", "content": [block]}]
        return key_of(lines("anthropic", {"model": "m", "max_tokens": 1, "messages": custom, "tools": [tool]}))

    assert asked("srv_1", "a") == asked("srv_2", "a")
    assert asked("srv_1", "a") != asked("srv_1", "b")


def test_custom_tools_structured_results_and_arguments_that_are_no_json_are_compared_too() -> None:
    grammar = {"type": "grammar", "syntax": "lark", "definition": "start: x"}
    tools = [{"type": "custom", "name": "patch", "format": grammar}, {"type": "custom", "name": "free"}]
    calls = [{"type": "custom_tool_call", "call_id": "a", "name": "patch", "input": "*** Begin"}]
    shown = lines("openai-responses", {"model": "m", "input": calls, "tools": tools})
    assert "call 1 patch *** Begin" in shown
    assert any("start: x" in line for line in shown)
    parts = [
        {"functionCall": {"name": "f", "args": {}}},
        {"functionResponse": {"name": "f", "response": {"z": 1, "a": [{"c": 1, "b": 2}]}}},
    ]
    shown = lines("gemini", {"contents": [{"role": "model", "parts": parts[:1]}, {"role": "user", "parts": parts[1:]}]})
    assert any('{"a":[{"b":2,"c":1}],"z":1}' in line for line in shown)
    assert "model m" in shown


def test_a_count_is_no_question_and_is_a_form_of_its_own_dialect() -> None:
    counted = lines("anthropic", ANTHROPIC, counts=True)
    assert counted[0] == "count anthropic"
    assert counted[1:] == lines("anthropic", ANTHROPIC)[1:]
    contents = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}
    wrapped = lines("gemini", {"generateContentRequest": contents}, counts=True)
    assert wrapped == lines("gemini", contents, counts=True)


def test_what_is_no_request_of_its_dialect_is_like_nothing() -> None:
    with pytest.raises(Fault):
        lines("openai-chat", {"messages": 7})


def test_a_line_for_a_person_is_short() -> None:
    assert shorten("a\n b") == "a b"
    assert len(shorten("x" * 1000)) == 400
