"""One coding agent's session, told in four dialects: the same request, as each provider's client would send it.

`request(dialect, size)` grows the number of rounds until the body has about `size` bytes. Everything comes from one
seed, so two runs measure the same bytes.
"""

import base64
import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Object = dict[str, Any]

WORDS = (
    "the file request parser returns header value when test fails line token buffer stream reads module function caller"
    " expects empty list instead branch covers error case change keeps order of fields window after patch and then run"
).split()
VERBS = "read write list search run edit move diff test fetch format lint build open close count".split()
NOUNS = "file folder symbol branch process page note table image job".split()
TOOL_COUNT = 25


@dataclass(frozen=True)
class Round:
    """What happens between two words of the user's: some thinking, a sentence, a call and its result."""

    asked: str | None
    thought: str
    signature: str
    said: str
    call_id: str
    tool: str
    arguments: Object
    result: str


@dataclass(frozen=True)
class Story:
    system: str
    tools: list[Object]
    rounds: list[Round]
    last_words: str


def story(rounds: int) -> Story:
    """The session with so many calls of tools."""
    chance = random.Random(20260101)
    tools = [_tool(chance, index) for index in range(TOOL_COUNT)]
    return Story(
        system="\n\n".join(_prose(chance, 90) for _ in range(24)),
        tools=tools,
        rounds=[_round(chance, index, tools) for index in range(rounds)],
        last_words=_prose(chance, 30),
    )


def _prose(chance: random.Random, words: int) -> str:
    return " ".join(chance.choice(WORDS) for _ in range(words)).capitalize() + "."


def _listing(chance: random.Random, lines: int) -> str:
    indented = (f"{number:>6}\t{'    ' * chance.randrange(4)}{_prose(chance, 8)}" for number in range(1, lines + 1))
    return "\n".join([*indented, 'print("naïve – \\"quoted\\"\\t✓")'])


def _tool(chance: random.Random, index: int) -> Object:
    properties = {
        noun: {"type": chance.choice(["string", "integer", "boolean"]), "description": _prose(chance, 12)}
        for noun in chance.sample(NOUNS, 4)
    }
    return {
        "name": f"{VERBS[index % len(VERBS)]}_{NOUNS[index % len(NOUNS)]}_{index}",
        "description": _prose(chance, 60),
        "schema": {
            "type": "object",
            "properties": properties,
            "required": list(properties)[:2],
            "additionalProperties": False,
        },
    }


def _round(chance: random.Random, index: int, tools: list[Object]) -> Round:
    tool = chance.choice(tools)
    return Round(
        asked=_prose(chance, 25) if index % 10 == 0 else None,
        thought=_prose(chance, 50),
        signature=base64.b64encode(chance.randbytes(180)).decode(),
        said=_prose(chance, 18),
        call_id=f"call_{index:06d}",
        tool=tool["name"],
        arguments={name: _prose(chance, 4) for name in tool["schema"]["required"]}
        | {"depth": index % 7, "ratio": 0.25},
        result=_listing(chance, 18),
    )


# --- the four tellings ----------------------------------------------------------------------------


def anthropic(story: Story) -> Object:
    messages: list[Object] = []
    waiting: list[Object] = []
    for each in story.rounds:
        if each.asked:
            waiting.append({"type": "text", "text": each.asked})
        messages.append({"role": "user", "content": waiting})
        said = [
            {"type": "thinking", "thinking": each.thought, "signature": each.signature},
            {"type": "text", "text": each.said},
            {"type": "tool_use", "id": each.call_id, "name": each.tool, "input": each.arguments},
        ]
        messages.append({"role": "assistant", "content": said})
        waiting = [{"type": "tool_result", "tool_use_id": each.call_id, "content": each.result}]
    last = {"type": "text", "text": story.last_words, "cache_control": {"type": "ephemeral"}}
    messages.append({"role": "user", "content": [*waiting, last]})
    return {
        "model": "claude-sonnet-4-5",
        "max_tokens": 32000,
        "stream": True,
        "system": [{"type": "text", "text": story.system, "cache_control": {"type": "ephemeral"}}],
        "thinking": {"type": "enabled", "budget_tokens": 16000},
        "tools": [
            {"name": tool["name"], "description": tool["description"], "input_schema": tool["schema"]}
            for tool in story.tools
        ],
        "messages": messages,
    }


def openai_chat(story: Story) -> Object:
    messages: list[Object] = [{"role": "system", "content": story.system}]
    for each in story.rounds:
        if each.asked:
            messages.append({"role": "user", "content": each.asked})
        function = {"name": each.tool, "arguments": json.dumps(each.arguments)}
        call = {"id": each.call_id, "type": "function", "function": function}
        messages.append(
            {"role": "assistant", "content": each.said, "reasoning_content": each.thought, "tool_calls": [call]}
        )
        messages.append({"role": "tool", "tool_call_id": each.call_id, "content": each.result})
    messages.append({"role": "user", "content": [{"type": "text", "text": story.last_words}]})
    return {
        "model": "gpt-5.2",
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_completion_tokens": 32000,
        "reasoning_effort": "medium",
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": tool["name"],
                    "description": tool["description"],
                    "parameters": tool["schema"],
                },
            }
            for tool in story.tools
        ],
        "messages": messages,
    }


def openai_responses(story: Story) -> Object:
    items: list[Object] = []
    for index, each in enumerate(story.rounds):
        if each.asked:
            asked = [{"type": "input_text", "text": each.asked}]
            items.append({"type": "message", "role": "user", "content": asked})
        said = [{"type": "output_text", "text": each.said, "annotations": []}]
        items += [
            {
                "type": "reasoning",
                "id": f"rs_{index:06d}",
                "summary": [{"type": "summary_text", "text": each.thought}],
                "encrypted_content": each.signature,
            },
            {"type": "message", "role": "assistant", "id": f"msg_{index:06d}", "status": "completed", "content": said},
            {
                "type": "function_call",
                "call_id": each.call_id,
                "name": each.tool,
                "arguments": json.dumps(each.arguments),
            },
            {"type": "function_call_output", "call_id": each.call_id, "output": each.result},
        ]
    last = [{"type": "input_text", "text": story.last_words}]
    items.append({"type": "message", "role": "user", "content": last})
    return {
        "model": "gpt-5.2",
        "stream": True,
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "max_output_tokens": 32000,
        "reasoning": {"effort": "medium", "summary": "auto"},
        "instructions": story.system,
        "tools": [
            {
                "type": "function",
                "name": tool["name"],
                "description": tool["description"],
                "parameters": tool["schema"],
                "strict": False,
            }
            for tool in story.tools
        ],
        "input": items,
    }


def gemini(story: Story) -> Object:
    contents: list[Object] = []
    waiting: list[Object] = []
    for each in story.rounds:
        if each.asked:
            waiting.append({"text": each.asked})
        contents.append({"role": "user", "parts": waiting})
        call = {"id": each.call_id, "name": each.tool, "args": each.arguments}
        said = [
            {"text": each.thought, "thought": True},
            {"text": each.said},
            {"functionCall": call, "thoughtSignature": each.signature},
        ]
        contents.append({"role": "model", "parts": said})
        answer = {"id": each.call_id, "name": each.tool, "response": {"output": each.result}}
        waiting = [{"functionResponse": answer}]
    contents.append({"role": "user", "parts": [*waiting, {"text": story.last_words}]})
    return {
        "systemInstruction": {"parts": [{"text": story.system}]},
        "tools": [
            {
                "functionDeclarations": [
                    {
                        "name": tool["name"],
                        "description": tool["description"],
                        "parametersJsonSchema": tool["schema"],
                    }
                    for tool in story.tools
                ]
            }
        ],
        "contents": contents,
        "generationConfig": {
            "maxOutputTokens": 32000,
            "thinkingConfig": {"thinkingBudget": 16000, "includeThoughts": True},
        },
    }


TELLINGS: Mapping[str, Callable[[Story], Object]] = {
    "anthropic": anthropic,
    "openai-chat": openai_chat,
    "openai-responses": openai_responses,
    "gemini": gemini,
}

# Where each telling keeps the user's last words: the place of the surgical edit.
LAST_WORDS: Mapping[str, str] = {
    "anthropic": "/messages/{last}/content/1/text",
    "openai-chat": "/messages/{last}/content/0/text",
    "openai-responses": "/input/{last}/content/0/text",
    "gemini": "/contents/{last}/parts/1/text",
}


def request(dialect: str, size: int) -> bytes:
    """The session as a body of about `size` bytes."""
    tell = TELLINGS[dialect]
    few, many = (len(_encoded(tell(story(rounds)))) for rounds in (10, 20))
    rounds = max(1, round(10 + (size - few) / ((many - few) / 10)))
    return _encoded(tell(story(rounds)))


def last_words_pointer(dialect: str, document: Any) -> str:
    """The JSON pointer to the text of the last message."""
    pointer = LAST_WORDS[dialect]
    key = pointer.split("/")[1]
    return pointer.format(last=len(document[key]) - 1)


def _encoded(document: Object) -> bytes:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
