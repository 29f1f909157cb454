"""A provider on loopback that really keeps a prompt cache: prefixes under their hashes, with marks, a look-back, a
shortest length, lifetimes on a clock that the test moves, and evictions. It streams, and counts tokens in its own way.

What it does is taken from the pages "Prompt caching" of Anthropic and OpenAI and "Context caching" of Google. It shares
no code with what is tested.
"""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.fake_clock import FakeClock
from tests.upstream import Seen, Talk, answer

MARKED_LIFETIMES = {"5m": 300.0, "1h": 3600.0}
AUTOMATIC_LIFETIME, GOOGLES_LIFETIME, OWN_MARKS_LIFETIME = 300.0, 86_400.0, 1800.0
OWN_MARKS = "marking"
"""The model that is cached at marks, one of them its own at the end of the newest message."""
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
        if is_messages(seen):
            stream = self._messages(seen.json(), count)
        elif is_responses(seen):
            stream = self._responses(seen.json(), count)
        elif is_gemini(seen):
            stream = self._gemini(count)
        else:
            stream = self._chat(count)
        headers = [("content-type", "text/event-stream")]
        if not is_gemini(seen):
            name = "anthropic-organization-id" if is_messages(seen) else "openai-organization"
            headers.append((name, organisation(seen.header("authorization"))))
        await answer(200, b"".join(stream), headers)(talk)

    def take(self, seen: Seen, *, is_kept: bool = True) -> Count:
        """Look a request up, and cache it; without `is_kept`, only look."""
        if is_messages(seen):
            return self._take_marked(seen, is_kept=is_kept)
        if seen.json().get("model") == OWN_MARKS:
            return self._take_own_marks(seen, is_kept=is_kept)
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
        # Tokens of nearly four characters, so that a prefix of the text is a prefix of the tokens.
        text = json.dumps(prompt_of(seen)).encode()
        named = body.get("cachedContent")
        whole = len(text) * 10 // 37 + (NAMED_TOKENS if named else 0)
        account = account_of(seen)
        if named:  # what was created by name is kept, and nothing else
            return Count(whole, NAMED_TOKENS)
        step = 1 if is_gemini(seen) else STEP
        read = 0
        for (owner, known), entry in self.prompts.items():
            if owner == account and entry.is_alive(now):
                read = max(read, common(known, text) * 10 // 37 // step * step)
        minimum = GOOGLES_MINIMUM if is_gemini(seen) else self.minimum
        read = read if read >= minimum else 0
        if is_kept and whole >= minimum:
            self.prompts[account, text] = Entry(GOOGLES_LIFETIME if is_gemini(seen) else AUTOMATIC_LIFETIME, now)
        return Count(whole, read)

    def _take_own_marks(self, seen: Seen, *, is_kept: bool) -> Count:
        """A prompt is found again at the end of a message that was the newest once, or at a mark of the request."""
        body, now = seen.json(), self.clock.now()
        is_explicit = body.get("prompt_cache_options", {}).get("mode") == "explicit"
        state, tokens = hashlib.sha256(account_of(seen).encode()), 0
        read = written = 0
        *head, items = *prompt_of(seen)[:3], body["input"]
        for number, item in enumerate([head, *items]):
            text = json.dumps(strip(item, "prompt_cache_breakpoint"))
            state.update(hashlib.sha256(text.encode()).digest())
            tokens += count_text(text)
            entry = self.entries.get(state.digest())
            if entry is not None and entry.is_alive(now):
                read = tokens
                entry.used = now if is_kept else entry.used
            is_marked = "prompt_cache_breakpoint" in json.dumps(item) or (not is_explicit and number == len(items))
            if is_marked and tokens >= self.minimum:
                written = tokens
                if is_kept:
                    self.entries[state.digest()] = Entry(OWN_MARKS_LIFETIME, now)
        return Count(tokens, read, max(0, written - read))

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

    def _responses(self, body: dict[str, Any], count: Count) -> Iterator[bytes]:
        name = f"resp_{len(self.last)}"
        said = {"type": "output_text", "text": "Yes.", "annotations": []}
        item = {"id": "m1", "type": "message", "role": "assistant", "status": "completed", "content": [said]}
        details = {"cached_tokens": count.read}
        if body["model"] == OWN_MARKS:
            details["cache_write_tokens"] = count.written
        usage = {"input_tokens": count.whole, "input_tokens_details": details, "output_tokens": 2,
                 "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": count.whole + 2}  # fmt: skip
        response = {"id": name, "object": "response", "created_at": 1, "model": body["model"], "status": "in_progress",
                    "output": []}  # fmt: skip
        compared = self.last.get(body.get("prompt_cache_options", {}).get("comparison_response_id") or "")
        self.last[name] = body
        yield event({"type": "response.created", "response": response})
        yield event({"type": "response.output_item.added", "output_index": 0, "item": {**item, "content": []}})
        place = {"item_id": "m1", "output_index": 0, "content_index": 0}
        yield event({"type": "response.content_part.added", **place, "part": {**said, "text": ""}})
        yield event({"type": "response.output_text.delta", **place, "delta": "Yes."})
        yield event({"type": "response.output_text.done", **place, "text": "Yes."})
        yield event({"type": "response.content_part.done", **place, "part": said})
        yield event({"type": "response.output_item.done", "output_index": 0, "item": item})
        done = {**response, "status": "completed", "output": [item], "usage": usage}
        if compared is not None:
            done["prompt_cache_diagnostics"] = compare_responses(compared, body)
        yield event({"type": "response.completed", "response": done})

    @staticmethod
    def _gemini(count: Count) -> Iterator[bytes]:
        usage = {"promptTokenCount": count.whole, "candidatesTokenCount": 2, "totalTokenCount": count.whole + 2}
        if count.read:
            usage["cachedContentTokenCount"] = count.read
        parts = {"role": "model", "parts": [{"text": "Yes."}]}
        yield event({"candidates": [{"index": 0, "content": parts, "finishReason": "STOP"}], "usageMetadata": usage})

    @staticmethod
    def _chat(count: Count) -> Iterator[bytes]:
        head = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
        yield event({**head, "choices": [{"index": 0, "delta": {"role": "assistant", "content": "Yes."}}]})
        yield event({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
        usage = {"prompt_tokens": count.whole, "completion_tokens": 2, "total_tokens": count.whole + 2,
                 "prompt_tokens_details": {"cached_tokens": count.read}}  # fmt: skip
        yield event({**head, "choices": [], "usage": usage})
        yield b"data: [DONE]\n\n"


NAMED_TOKENS = 5000
GOOGLES_MINIMUM = 4096


def is_messages(seen: Seen) -> bool:
    return seen.target.endswith("/messages")


def is_responses(seen: Seen) -> bool:
    return seen.target.endswith("/responses")


def is_gemini(seen: Seen) -> bool:
    return "GenerateContent" in seen.target


def prompt_of(seen: Seen) -> list[Any]:
    """What is cached of a request that needs no marks, in its order."""
    body = seen.json()
    if is_gemini(seen):
        return [body.get("systemInstruction"), body.get("tools"), *body["contents"]]
    if is_responses(seen):
        return [body.get("text", {}).get("format"), body.get("tools"), body.get("instructions"), *body["input"]]
    return [body.get("response_format"), body.get("tools"), *body["messages"]]


def account_of(seen: Seen) -> str:
    """Whose cache it is, and which one of theirs."""
    body = seen.json()
    key = seen.header("x-goog-api-key") if is_gemini(seen) else seen.header("authorization")
    model = seen.target.partition(":")[0] if is_gemini(seen) else body["model"]
    effort = body.get("reasoning_effort"), body.get("reasoning")
    return json.dumps([organisation(key), model, body.get("prompt_cache_key"), body.get("service_tier"), effort])


def compare_responses(before: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
    """What OpenAI says about the first difference to the response that the client names."""
    for name in ("model", "service_tier", "tools", "prompt_cache_key"):
        if before.get(name) != body.get(name):
            return {"type": "cache_miss", "reason": f"{name}_changed", "cache_missed_tokens": 7}
    if body["instructions"] != before["instructions"] or body["input"][: len(before["input"])] != before["input"]:
        return {"type": "cache_miss", "reason": "input_changed", "cache_missed_tokens": 7}
    return {"type": "cache_hit"}


def organisation(key: str) -> str:
    """The account of a key."""
    return f"org-{hashlib.sha256(key.encode()).hexdigest()[:8]}"


def strip(value: Any, mark: str = "cache_control") -> Any:
    """A value without cache marks."""
    if isinstance(value, list):
        return [strip(each, mark) for each in value]
    if isinstance(value, dict):
        return {name: strip(each, mark) for name, each in value.items() if name != mark}
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
