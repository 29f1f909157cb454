"""Twenty turns of an agent through a translation, at providers that really keep a prefix of what they have seen.

What is read from the cache is compared with what the same session reads when its client speaks to such a provider
directly.
"""

import hashlib
import json
from typing import Any

import pytest

from sightline.catalog.facts import Facts
from sightline.dialects.dialect import Target
from sightline.dialects.translate import translate_request, write_request
from sightline.model.parts import Text, ToolCall, ToolResult
from sightline.model.report import Report
from sightline.model.request import FunctionTool, Message, Options, Reasoning, Request
from sightline.wire.jsontext import decode, encode

TURNS = 20
SHORTEST = 1024
CLAUDE = Facts(thinking=("adaptive",), efforts=("low", "high"), cache_minimum=SHORTEST, chars_per_token=4)


def words(seed: str, count: int) -> str:
    """A text of its own, always the same for a seed."""
    return " ".join(hashlib.sha256(f"{seed}{number}".encode()).hexdigest()[:7] for number in range(count))


def session(spoken: str) -> list[dict[str, Any]]:
    """The bodies of an agent that speaks this dialect: every turn calls tools, and every fifth is a new question."""
    tools = tuple(
        FunctionTool(f"tool_{number}", words(f"t{number}", 60), {"type": "object", "properties": {}})
        for number in range(12)
    )
    messages = [Message("system", (Text(words("system", 900)),)), Message("user", (Text(words("ask", 60)),))]
    bodies: list[dict[str, Any]] = []
    for turn in range(TURNS):
        request = Request(
            "m", tuple(messages), tools, options=Options(max_tokens=9000, reasoning=Reasoning(effort="low"))
        )
        body = decode(write_request(request, spoken, Target(), Report()))
        assert isinstance(body, dict)
        bodies.append(body)
        ids = [f"call_{turn}_{number}" for number in range(1 + turn % 3)]
        calls = [ToolCall(each, f"tool_{turn % 12}", '{"a":1}') for each in ids]
        messages.append(Message("assistant", (Text(words(f"a{turn}", 20)), *calls)))
        messages.append(
            Message("tool", tuple(ToolResult(each, (Text(words(each, 150)),), f"tool_{turn % 12}") for each in ids))
        )
        if turn % 5 == 4:
            messages.append(Message("assistant", (Text(words(f"b{turn}", 20)),)))
            messages.append(Message("user", (Text(words(f"u{turn}", 30)),)))
    return bodies


def tokens(text: str) -> int:
    return len(text) // 4


class MarkedCache:
    """As Anthropic's: a prefix is kept where a mark stands, and found from a mark up to twenty blocks before it."""

    def __init__(self) -> None:
        self._kept: set[str] = set()
        self.read = self.whole = 0

    def ask(self, body: dict[str, Any]) -> None:
        blocks: list[tuple[str, bool]] = [self._block("tool", tool) for tool in body.get("tools", ())]
        blocks += [self._block("system", block) for block in self._blocks(body.get("system", ""))]
        for message in body["messages"]:
            blocks += [self._block(message["role"], block) for block in self._blocks(message["content"])]
        prefixes, text = [], ""
        for block, _ in blocks:
            text += block
            prefixes.append((hashlib.sha256(text.encode()).hexdigest(), tokens(text)))
        marks = [index for index, (_, is_marked) in enumerate(blocks) if is_marked]
        assert len(marks) <= 4
        found = [
            prefixes[at][1]
            for mark in marks
            for at in range(max(0, mark - 20), mark + 1)
            if prefixes[at][0] in self._kept
        ]
        self.read += max(found, default=0)
        self.whole += prefixes[-1][1]
        for mark in marks:
            assert prefixes[mark][1] >= SHORTEST * 0.9, "a mark on what is not cached"
            self._kept.add(prefixes[mark][0])

    @staticmethod
    def _blocks(content: Any) -> list[Any]:
        return [{"type": "text", "text": content}] if isinstance(content, str) else content

    @staticmethod
    def _block(role: str, block: dict[str, Any]) -> tuple[str, bool]:
        bare = {key: value for key, value in block.items() if key != "cache_control"}
        return f"{role}:{json.dumps(bare, sort_keys=True)}", "cache_control" in block


class PrefixCache:
    """As OpenAI's and Google's: the longest common beginning with a request before, in steps of 128 tokens."""

    def __init__(self) -> None:
        self._seen: list[str] = []
        self.read = self.whole = 0

    def ask(self, body: dict[str, Any]) -> None:
        order = ("tools", "instructions", "systemInstruction", "messages", "input", "contents")
        pieces = [body[key] for key in order if key in body]
        text = "".join(
            f"{json.dumps(each, sort_keys=True)};"
            for piece in pieces
            for each in (piece if isinstance(piece, list) else [piece])
        )
        common = max((tokens(text[: self._common(text, other)]) for other in self._seen), default=0)
        self.read += common - common % 128 if common >= SHORTEST else 0
        self.whole += tokens(text)
        self._seen.append(text)

    @staticmethod
    def _common(one: str, other: str) -> int:
        least = min(len(one), len(other))
        return next((at for at in range(least) if one[at] != other[at]), least)


def share(cache: MarkedCache | PrefixCache, bodies: list[dict[str, Any]]) -> float:
    """How much of all prompts came from the cache."""
    for body in bodies:
        cache.ask(body)
    return cache.read / cache.whole


def translated(bodies: list[dict[str, Any]], source: str, target: str, settings: Target) -> list[dict[str, Any]]:
    return [decode(translate_request(encode(body), source, target, settings=settings).data) for body in bodies]  # type: ignore[misc]


def claude_code() -> list[dict[str, Any]]:
    """The session as Claude Code sends it: a billing line that is never the same, a mark on the system prompt and one
    on the last block."""
    bodies = session("anthropic")
    for turn, body in enumerate(bodies):
        line = f"x-anthropic-billing-header: cc_version=2.1.197.{turn:03x}; cch={words(str(turn), 1)};"
        prompt = {**body["system"][0], "cache_control": {"type": "ephemeral"}}
        body["system"] = [{"type": "text", "text": line}, prompt]
        last = body["messages"][-1]
        if isinstance(last["content"], str):
            last["content"] = [{"type": "text", "text": last["content"]}]
        last["content"][-1]["cache_control"] = {"type": "ephemeral"}
    return bodies


def direct_claude() -> float:
    """What a client reads that speaks to Anthropic itself, as Claude Code does; Anthropic ignores its billing line."""
    bodies = claude_code()
    for body in bodies:
        del body["system"][0]
    return share(MarkedCache(), bodies)


@pytest.mark.parametrize("client", ["openai-responses", "openai-chat", "gemini"])
def test_an_agent_of_another_api_reads_as_much_from_anthropics_cache(client: str) -> None:
    bodies = translated(session(client), client, "anthropic", Target(facts=CLAUDE))
    direct, through = direct_claude(), share(MarkedCache(), bodies)
    assert direct > 0.85
    assert through > direct - 0.01
    off = translated(session(client), client, "anthropic", Target(facts=CLAUDE, cache="off"))
    assert share(MarkedCache(), off) == 0


@pytest.mark.parametrize("provider", ["openai-responses", "openai-chat", "gemini"])
def test_claude_code_reads_as_much_from_the_cache_of_others(provider: str) -> None:
    direct = share(PrefixCache(), session(provider))
    facts = Facts(signed_calls=True)
    through = share(PrefixCache(), translated(claude_code(), "anthropic", provider, Target(facts=facts)))
    assert direct > 0.85
    assert through > direct - 0.01
