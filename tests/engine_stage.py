"""An engine on loopback: relays to one provider, a record that is a list, and what the engine told."""

from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any

from sightline.catalog.catalog import Catalog
from sightline.catalog.choose import choose
from sightline.catalog.compose import Prompt
from sightline.catalog.facts import Model
from sightline.catalog.provider import Provider
from sightline.exchange.engine import Engine
from sightline.exchange.hub import Hub
from sightline.exchange.memory import Memory
from sightline.exchange.outbound import Prepared, prepare
from sightline.exchange.relay import Relay
from sightline.exchange.request_counter import RequestCounter
from sightline.model.events import StreamEvent
from sightline.model.exchange import AttemptStarted, Fact, FrameArrived
from sightline.model.parts import Text
from sightline.model.request import Message
from sightline.store.entries import BodyEntry, Entry, FactEntry, KeptEntry, plain_entries
from sightline.tokens.ledger import Wait
from sightline.transport.embedded.process import EmbeddedModel
from sightline.transport.http.client import HttpClient
from sightline.transport.http.dialling import Trust
from sightline.transport.http.target import Proxies
from sightline.transport.sender import Sender
from tests.fake_clock import FakeClock


class EngineStage:
    """Its one provider is `acme`; `entries` is what was recorded, `aside` what was sent without a record."""

    def __init__(self, folder: Path, provider: Provider) -> None:
        self.clock = FakeClock()
        self.memory = Memory(folder, self.clock.now)
        self.client = HttpClient(trust=Trust(environment={}), proxies=Proxies.of({}))
        self.embedded = EmbeddedModel(environment={}, make_key=lambda: "k")
        self.environment = {"ACME_KEY": "the-secret"}
        self.providers = {"acme": provider}
        self.entries: list[Entry] = []
        self.aside: list[Entry] = []
        self.heard: list[StreamEvent] = []
        self.tried: list[AttemptStarted] = []
        self.paused: list[Wait] = []
        self.engine = Engine(
            self._relay(self.entries), self._relay(self.aside), RequestCounter(self.memory), self.memory, self.clock
        )

    def _relay(self, entries: list[Entry]) -> Relay:
        def record(some: Sequence[KeptEntry]) -> None:
            entries.extend(plain_entries(some))

        ids = count(1)
        return Relay(
            catalog=Catalog(providers=self.providers),
            environment=self.environment,
            sender=Sender(self.client, self.clock, lambda: 0.5, self.memory.ledger),
            embedded=self.embedded,
            memory=self.memory,
            hub=Hub(record),
            clock=self.clock,
            make_id=lambda: f"x_{next(ids)}",
        )

    def ready(
        self, text: str = "hi", *, name: str = "m", max_tokens: int | None = None, stream: bool = True, **model: Any
    ) -> Prepared:
        """A small request for `acme`."""
        catalog = Catalog(providers=self.providers, models={name: Model(providers=("acme",), **model)})
        prompt = Prompt(messages=(Message("user", (Text(text),)),), max_tokens=max_tokens, stream=stream)
        return prepare(prompt, choose(catalog, name, has_key=lambda _: True))

    async def ask(self, ready: Prepared | None = None, **more: Any) -> Any:
        """The reply; what was told meanwhile is kept."""
        told = {"on_event": self.heard.append, "tried": self.tried.append, "paused": self.paused.append}
        return await self.engine.ask(ready or self.ready(), **(told | more))

    async def measure(self, ready: Prepared | None = None, *, asks_provider: bool = False) -> Any:
        """The size of a prompt."""
        return await self.engine.measure_prompt(
            ready or self.ready(), asks_provider=asks_provider, tried=self.tried.append
        )

    def facts(self, exchange: str = "x_1") -> list[Fact]:
        """What is on record of an exchange, without its frames."""
        noted = [entry for entry in self.entries if isinstance(entry, FactEntry) and entry.exchange == exchange]
        return [each.fact for each in noted if not isinstance(each.fact, FrameArrived)]

    def kinds(self, exchange: str = "x_1") -> list[str]:
        """What kinds of facts those are."""
        return [str(type(fact).__struct_config__.tag) for fact in self.facts(exchange)]

    def bodies(self) -> dict[str, bytes]:
        """The bodies on record."""
        return {entry.sha256: entry.data for entry in self.entries if isinstance(entry, BodyEntry)}

    async def close(self) -> None:
        """Close what was opened."""
        await self.client.close()
        await self.embedded.close()
