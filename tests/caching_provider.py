"""A provider on loopback that really keeps a prompt cache: prefixes under their hashes, with marks, a look-back, a
shortest length, lifetimes on a clock that the test moves, and evictions. It streams, and counts tokens in its own way.

What it does is taken from the pages "Prompt caching" of Anthropic and OpenAI, and shares no code with what is tested.
"""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.fake_clock import FakeClock
from tests.upstream import Seen, Talk, answer

MARKED_LIFETIMES = {"5m": 300.0, "1h": 3600.0}
AUTOMATIC_LIFETIME = 300.0
LOOKBACK, MOST_MARKS, STEP = 20, 4, 128


@dataclass
class Entry:
    """A prefix in the cache."""

    lifetime: float
    used: float

    def is_alive(self, now: float) -> bool:
        return now - self.used <= self.lifetime


@dataclass(frozen=True)
class Block:
    """A piece of a prompt: what is hashed, how many tokens it has, and the lifetime that its mark asks for."""

    said: bytes
    tokens: int
    mark: str = ""


@dataclass(frozen=True)
class Count:
    """What a request takes: all of it, read from the cache, written to it, and written for an hour."""

    whole: int
    read: int = 0
    written: int = 0
    hour: int = 0


def count_text(text: str) -> int:
    """The tokens of a text in this provider's measure."""
    return -(-len(text.encode()) * 10 // 37)


def block_of(value: Any, *context: Any) -> Block:
    """A value without its mark."""
    plain = (
        {name: each for name, each in value.items() if name != "cache_control"} if isinstance(value, dict) else value
    )
    mark = value.get("cache_control") if isinstance(value, dict) else None
    text = json.dumps(plain)
    return Block(json.dumps([plain, *context]).encode(), count_text(text), mark.get("ttl", "5m") if mark else "")


def marked_blocks(body: dict[str, Any]) -> list[Block]:
    """The blocks of a Messages request in the order in which they are cached."""
    blocks = [block_of(tool) for tool in body.get("tools", [])]
    blocks += [block_of(part) for part in body.get("system", [])]
    settings = json.dumps([body.get("thinking"), body.get("tool_choice")]).encode()
    blocks.append(Block(settings, 0))
    for message in body["messages"]:
        content = message["content"]
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        blocks += [block_of(part, message["role"]) for part in parts]
    if body.get("cache_control"):
        last = blocks[-1]
        blocks[-1] = Block(last.said, last.tokens, body["cache_control"].get("ttl", "5m"))
    return blocks


@dataclass
class CachingProvider:
    """Answers Messages and Chat Completions. The account is what comes with the key."""

    clock: FakeClock
    minimum: int = 1024
    entries: dict[bytes, Entry] = field(default_factory=dict)
    prompts: dict[tuple[str, bytes], Entry] = field(default_factory=dict)
    last: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The latest requests by the id of their reply, for diagnoses."""

    async def play(self, talk: Talk) -> None:
        """One step of a script, for any request."""
        seen = talk.upstream.seen[-1]
        count = self.take(seen)
        stream = self._messages(seen.json(), count) if seen.target.endswith("/messages") else self._chat(count)
        account = organisation(seen.header("authorization"))
        headers = [("content-type", "text/event-stream"), (self._header(seen), account)]
        await answer(200, b"".join(stream), headers)(talk)

    @staticmethod
    def _header(seen: Seen) -> str:
        return "anthropic-organization-id" if seen.target.endswith("/messages") else "openai-organization"

    def take(self, seen: Seen, *, is_kept: bool = True) -> Count:
        """Look a request up, and cache it; without `is_kept`, only look."""
        if seen.target.endswith("/messages"):
            return self._take_marked(seen, is_kept=is_kept)
        return self._take_whole(seen, is_kept=is_kept)

    def evict(self) -> None:
        """Forget everything."""
        self.entries.clear()
        self.prompts.clear()

    def _take_marked(self, seen: Seen, *, is_kept: bool) -> Count:
        body, now = seen.json(), self.clock.now()
        state = hashlib.sha256()
        for part in (organisation(seen.header("authorization")), body["model"]):
            state.update(part.encode() + b"\0")
        state.update((seen.header("anthropic-version") + "\0" + seen.header("anthropic-beta")).encode())
        prefixes: list[tuple[bytes, int, str]] = []
        tokens = 0
        for block in marked_blocks(body):
            state.update(hashlib.sha256(block.said).digest())
            tokens += block.tokens
            if block.tokens:
                prefixes.append((state.digest(), tokens, block.mark))
        marks = [index for index, (_, _, mark) in enumerate(prefixes) if mark][:MOST_MARKS]
        found = [
            index
            for mark in marks
            for index in range(max(0, mark - LOOKBACK + 1), mark + 1)
            if (known := self.entries.get(prefixes[index][0])) is not None and known.is_alive(now)
        ]
        read = prefixes[max(found)][1] if found else 0
        written = hour = 0
        for index in marks:
            name, length, mark = prefixes[index]
            if length < self.minimum:
                continue
            written = max(written, length - read)
            hour = max(hour, length - read) if mark == "1h" else hour
            if is_kept:
                known = self.entries.get(name)
                lifetime = MARKED_LIFETIMES[mark]
                self.entries[name] = Entry(max(lifetime, known.lifetime if known else 0.0), now)
        if is_kept and found:
            self.entries[prefixes[max(found)][0]].used = now
        return Count(tokens, read, max(0, written), max(0, hour))

    def _take_whole(self, seen: Seen, *, is_kept: bool) -> Count:
        body, now = seen.json(), self.clock.now()
        order = [body.get("response_format"), body.get("tools"), *body["messages"]]
        said = json.dumps(order)
        # Tokens of nearly four characters, so that a prefix of the text is a prefix of the tokens.
        text = said.encode()
        whole = len(text) * 10 // 37
        account = json.dumps(
            [organisation(seen.header("authorization")), body["model"], body.get("prompt_cache_key"),
             body.get("service_tier"), body.get("reasoning_effort")]
        )  # fmt: skip
        read = 0
        for (owner, known), entry in self.prompts.items():
            if owner == account and entry.is_alive(now):
                read = max(read, common(known, text) * 10 // 37 // STEP * STEP)
        read = read if read >= self.minimum else 0
        if is_kept and whole >= self.minimum:
            self.prompts[account, text] = Entry(AUTOMATIC_LIFETIME, now)
        return Count(whole, read)

    def _messages(self, body: dict[str, Any], count: Count) -> Iterator[bytes]:
        name = f"msg_{len(self.last)}"
        usage = {
            "input_tokens": count.whole - count.read - count.written,
            "cache_read_input_tokens": count.read,
            "cache_creation_input_tokens": count.written,
            "cache_creation": {
                "ephemeral_5m_input_tokens": count.written - count.hour,
                "ephemeral_1h_input_tokens": count.hour,
            },
            "output_tokens": 1,
        }
        message = {"id": name, "type": "message", "role": "assistant", "model": body["model"], "content": [],
                   "stop_reason": None, "stop_sequence": None, "usage": usage}  # fmt: skip
        if "diagnostics" in body:
            message["diagnostics"] = self._diagnose(body)
        self.last[name] = body
        yield event({"type": "message_start", "message": message})
        yield event({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}})
        yield event({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Yes."}})
        yield event({"type": "content_block_stop", "index": 0})
        delta = {"stop_reason": "end_turn", "stop_sequence": None}
        yield event({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 2}})
        yield event({"type": "message_stop"})

    def _diagnose(self, body: dict[str, Any]) -> dict[str, Any]:
        """What Anthropic says about the first difference to the request that the client names."""
        before = self.last.get(body["diagnostics"].get("previous_message_id") or "")
        if before is None:
            return {"cache_miss_reason": None}
        for name in ("model", "tools", "system"):
            if strip(before.get(name)) != strip(body.get(name)):
                return {"cache_miss_reason": {"type": f"{name}_changed", "cache_missed_input_tokens": 1}}
        old, new = strip(before["messages"]), strip(body["messages"])
        if new[: len(old)] != old:
            return {"cache_miss_reason": {"type": "messages_changed", "cache_missed_input_tokens": 1}}
        return {"cache_miss_reason": None}

    @staticmethod
    def _chat(count: Count) -> Iterator[bytes]:
        head = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
        yield event({**head, "choices": [{"index": 0, "delta": {"role": "assistant", "content": "Yes."}}]})
        yield event({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
        usage = {"prompt_tokens": count.whole, "completion_tokens": 2, "total_tokens": count.whole + 2,
                 "prompt_tokens_details": {"cached_tokens": count.read}}  # fmt: skip
        yield event({**head, "choices": [], "usage": usage})
        yield b"data: [DONE]\n\n"


def organisation(key: str) -> str:
    """The account of a key."""
    return f"org-{hashlib.sha256(key.encode()).hexdigest()[:8]}"


def strip(value: Any) -> Any:
    """A value without cache marks."""
    if isinstance(value, list):
        return [strip(each) for each in value]
    if isinstance(value, dict):
        return {name: strip(each) for name, each in value.items() if name != "cache_control"}
    return value


def common(one: bytes, other: bytes) -> int:
    """How many bytes both begin with."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[:middle] == other[:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def event(data: dict[str, Any]) -> bytes:
    """A frame of a stream."""
    name = f"event: {data['type']}\n" if "type" in data else ""
    return f"{name}data: {json.dumps(data)}\n\n".encode()
