"""Exchanges to record: small, lifelike, and different from each other only where a test says so."""

import hashlib
import json
from collections.abc import Sequence

from sightline.catalog.facts import Prices
from sightline.model.exchange import AttemptStarted, ExchangeFinished, Fact, FrameArrived, Received
from sightline.model.reply import Usage
from sightline.store.entries import BodyEntry, Entry, FactEntry

NOON = 1_790_000_000.0


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def prices(provider: str, model: str) -> Prices | None:
    return Prices(input=3.0, output=15.0) if (provider, model) == ("acme", "large") else None


def noted(exchange: str, facts: Sequence[Fact], *, at: float = NOON, first: int = 0) -> list[Entry]:
    return [FactEntry(exchange, first + n, at + n, fact) for n, fact in enumerate(facts)]


def chat_body(*words: str, system: str = "", tools: Sequence[str] = (), **fields: object) -> bytes:
    """A Chat Completions body: what was said, by the user and the model in turn."""
    messages = [{"role": ("user", "assistant")[n % 2], "content": text} for n, text in enumerate(words)]
    if system:
        messages.insert(0, {"role": "system", "content": system})
    offered = [{"type": "function", "function": {"name": name, "parameters": {}}} for name in tools]
    return json.dumps(
        {"model": "large", "messages": messages} | ({"tools": offered} if tools else {}) | fields
    ).encode()


def chat_stream(*words: str) -> list[bytes]:
    """The frames of a streamed answer that says these words."""
    chunks = [{"index": 0, "delta": {"content": word}} for word in words]
    chunks.append({"index": 0, "delta": {}, "finish_reason": "stop"})  # type: ignore[dict-item]
    frames = [
        b"data: " + json.dumps({"id": "c1", "object": "chat.completion.chunk", "choices": [chunk]}).encode() + b"\n\n"
        for chunk in chunks
    ]
    return [*frames, b"data: [DONE]\n\n"]


def received(exchange: str, body: bytes, *, at: float = NOON, session: str = "s", **fields: object) -> list[Entry]:
    """A client asked."""
    fact = Received("openai-chat", "large", sha256(body), session=session, path="/v1/chat/completions", **fields)  # type: ignore[arg-type]
    return [BodyEntry(fact.sha256, body, session), *noted(exchange, [fact], at=at)]


def answered(
    exchange: str,
    body: bytes,
    frames: Sequence[bytes] = (),
    *,
    at: float = NOON,
    first: int = 1,
    tools: tuple[str, ...] = (),
    status: int = 200,
) -> list[Entry]:
    """It was sent, and the answer came whole."""
    usage = Usage(input_tokens=1000, output_tokens=100, cached_tokens=0)
    end = ExchangeFinished(
        "stop",
        status,
        (("content-type", "text/event-stream"),),
        sha256(b"".join(frames)),
        "large",
        usage,
        tools,
        0.2,
        0.9,
    )
    arrived = [FrameArrived(frame, 0.1 * n) for n, frame in enumerate(frames)]
    facts: list[Fact] = [AttemptStarted(1, "acme", sha256(body), model="large"), *arrived, end]
    return noted(exchange, facts, at=at + 1, first=first)


def whole(
    exchange: str, body: bytes, *said: str, at: float = NOON, session: str = "s", **fields: object
) -> list[Entry]:
    """An exchange from beginning to end."""
    return [
        *received(exchange, body, at=at, session=session, **fields),
        *answered(exchange, body, chat_stream(*said), at=at),
    ]


def responded(
    exchange: str, previous: str, own: str, *, is_stream: bool = True, at: float = NOON, session: str = "s"
) -> list[Entry]:
    """An exchange of the Responses API that continues the reply with this id, and whose own reply has that one."""
    asked = {"model": "large", "input": f"turn {own}"} | ({"previous_response_id": previous} if previous else {})
    body = json.dumps(asked).encode()
    output = [{"type": "message", "id": "m", "role": "assistant", "content": [{"type": "output_text", "text": own}]}]
    reply = {"id": own, "object": "response", "model": "large", "status": "completed", "output": output}
    begun = {"type": "response.created", "response": {**reply, "status": "in_progress", "output": []}}
    ended = {"type": "response.completed", "response": reply}
    frames = [b"data: " + json.dumps(each).encode() + b"\n\n" for each in (begun, ended)]
    fact = Received("openai-responses", "large", sha256(body), session=session, path="/v1/responses")
    return [
        BodyEntry(fact.sha256, body, session),
        *noted(exchange, [fact], at=at),
        *answered(exchange, body, frames if is_stream else [json.dumps(reply).encode()], at=at),
    ]
