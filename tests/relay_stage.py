"""A relay on loopback: an upstream for each provider, a store that is a list, and a client that takes what comes."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from sightline.catalog.catalog import Catalog
from sightline.catalog.provider import Provider, Route
from sightline.dialects.registry import dialect
from sightline.exchange.caps import Caps
from sightline.exchange.client_request import ClientRequest
from sightline.exchange.client_response import ClientResponse
from sightline.exchange.hub import Hub
from sightline.exchange.memory import Memory
from sightline.exchange.relay import Relay
from sightline.model.exchange import Fact, FrameArrived
from sightline.settings import CapSettings
from sightline.store.caps import FolderCounts
from sightline.store.entries import BodyEntry, Entry, FactEntry, KeptEntry, plain_entries
from sightline.store.summary import price_list
from sightline.transport.embedded.process import EmbeddedModel
from sightline.transport.http.client import HttpClient
from sightline.transport.http.dialling import Trust
from sightline.transport.http.target import Proxies
from sightline.transport.sender import Sender
from tests.fake_clock import FakeClock
from tests.reply_samples import SAYS, whole
from tests.upstream import Upstream, answer

DIALECTS = ("openai-chat", "openai-responses", "anthropic", "gemini")
KEY = "sk-configured-0123456789"
PATHS = {
    "openai-chat": "/v1/chat/completions",
    "openai-responses": "/v1/responses",
    "anthropic": "/v1/messages",
    "gemini": "/v1beta/models/m:generateContent",
}
REQUESTS: Mapping[str, dict[str, Any]] = {
    "openai-chat": {"model": "m", "messages": [{"role": "user", "content": "hi"}]},
    "openai-responses": {"model": "m", "input": "hi"},
    "anthropic": {"model": "m", "max_tokens": 100, "messages": [{"role": "user", "content": "hi"}]},
    "gemini": {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]},
}


def asks(spoken: str, *, stream: bool = False, body: bytes | None = None, **more: Any) -> ClientRequest:
    """A small request of a dialect."""
    document = dict(REQUESTS[spoken])
    path, query = PATHS[spoken], ""
    if stream and spoken == "gemini":
        path, query = path.replace(":generate", ":streamGenerate"), "alt=sse"
    elif stream:
        document["stream"] = True
    data = json.dumps(document).encode() if body is None else body
    fields = {"headers": (("Content-Type", "application/json"),), "path": path, "query": query, "model": "m"}
    return ClientRequest(spoken, data, **{**fields, "is_stream": stream, **more})


@dataclass
class Got:
    """An answer as a client has it at the end."""

    exchange: str
    status: int
    headers: list[tuple[bytes, bytes]]
    pieces: list[bytes] = field(default_factory=list)

    @property
    def body(self) -> bytes:
        return b"".join(self.pieces)

    def json(self) -> Any:
        return json.loads(self.body)

    def header(self, name: str) -> str:
        return next((value.decode() for key, value in self.headers if key.decode().lower() == name), "")


async def taken(relayed: ClientResponse) -> Got:
    """All of an answer."""
    got = Got(relayed.exchange, relayed.status, relayed.headers)
    async with relayed:
        async for piece in relayed:
            got.pieces.append(piece)
    return got


class Stage:
    """A relay with its providers `acme` (keyed) and `open` (without a key), both at the same upstream."""

    def __init__(self, upstream: Upstream, folder: Path, spoken: str, **settings: Any) -> None:
        self.upstream = upstream
        self.clock = settings.pop("clock", None) or FakeClock()
        self.entries: list[Entry] = []
        self.commits: list[Sequence[Entry]] = []
        self.memory = Memory(folder, self.clock.now)
        self.client = HttpClient(trust=Trust(environment={}), proxies=Proxies.of({}))
        self.embedded = EmbeddedModel(environment={}, make_key=lambda: "local-key-1", url=upstream.url)
        self.hub = Hub(self.record)
        routes: tuple[Route, ...] = settings.pop("routes", (Route(provider="acme"),))
        environment = settings.pop("environment", {"ACME_KEY": KEY})
        own = settings.pop("own", frozenset())
        others = settings.pop("others", {})
        models = settings.pop("models", {})
        caps: tuple[CapSettings, ...] = settings.pop("caps", ())
        counts = settings.pop("counts", None) or FolderCounts(folder)
        base = {"dialect": spoken, "base_url": upstream.url, **settings}
        self.providers = {
            "acme": Provider(**{"key_env": "ACME_KEY", **base}),
            "open": Provider(**{**base, "key_env": ""}),
            **others,
        }
        ids = count(1)
        catalog = Catalog(providers=self.providers, models=models, routes=routes)
        self.caps = Caps(caps, counts, price_list(catalog), self.memory, self.clock.now) if caps else None
        self.relay = Relay(
            catalog=catalog,
            environment=environment,
            sender=Sender(self.client, self.clock, lambda: 0.5, self.memory.ledger),
            embedded=self.embedded,
            memory=self.memory,
            hub=self.hub,
            clock=self.clock,
            make_id=lambda: f"x_{next(ids)}",
            own=own,
            caps=self.caps,
        )

    def record(self, entries: Sequence[KeptEntry]) -> None:
        self.commits.append(plain_entries(entries))
        self.entries += plain_entries(entries)

    async def ask(self, asked: ClientRequest) -> Got:
        return await taken(await self.relay.start(asked))

    def facts(self, exchange: str = "x_1") -> list[Fact]:
        """The facts without frames, which must be numbered without a gap."""
        noted = [entry for entry in self.entries if isinstance(entry, FactEntry) and entry.exchange == exchange]
        assert [each.n for each in noted] == list(range(len(noted)))
        return [each.fact for each in noted if not isinstance(each.fact, FrameArrived)]

    def kinds(self, exchange: str = "x_1") -> list[str]:
        return [str(type(fact).__struct_config__.tag) for fact in self.facts(exchange)]

    def raw_reply(self, exchange: str = "x_1") -> bytes:
        return b"".join(
            entry.fact.data
            for entry in self.entries
            if isinstance(entry, FactEntry) and isinstance(entry.fact, FrameArrived) and entry.exchange == exchange
        )

    def bodies(self) -> dict[str, bytes]:
        return {entry.sha256: entry.data for entry in self.entries if isinstance(entry, BodyEntry)}


Story = Callable[[Stage], Coroutine[Any, Any, None]]


@asynccontextmanager
async def open_stage(folder: Path, spoken: str = "openai-chat", **settings: Any) -> AsyncIterator[Stage]:
    """A stage with a provider that speaks this dialect, and answers whole unless it is given another script."""
    async with Upstream([answer(200, whole(spoken, SAYS), [("Content-Type", "application/json")])]) as upstream:
        stage = Stage(upstream, folder, spoken, **settings)
        try:
            yield stage
        finally:
            await stage.client.close()
            await stage.embedded.close()


def play(story: Story, folder: Path, spoken: str = "openai-chat", **settings: Any) -> None:
    """Play a story with a provider that speaks this dialect."""

    async def played() -> None:
        async with open_stage(folder, spoken, **settings) as stage:
            await story(stage)

    asyncio.run(played())


def is_error_of(spoken: str, status: int, body: bytes) -> bool:
    """Whether this is an error body of the dialect."""
    fault = dialect(spoken).read_error(status, json.loads(body), {})
    return status >= 400 and bool(fault.message)
