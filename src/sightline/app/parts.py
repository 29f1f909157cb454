"""The parts that more than one way of running the program needs: what sends, what is sent through, what records."""

import random
import secrets
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from sightline.app.configuration import Configuration
from sightline.app.machine import Ids, SystemClock, chance
from sightline.catalog.catalog import Catalog
from sightline.catalog.facts import Prices
from sightline.catalog.lookup import facts_of
from sightline.errors import Code, Fault
from sightline.exchange.memory import Memory
from sightline.transport.embedded.diagnosis import DiagnosisFinding, diagnose
from sightline.transport.embedded.process import EmbeddedModel
from sightline.transport.http.client import HttpClient
from sightline.transport.http.proxies import Proxies
from sightline.transport.http.timeouts import Timeouts
from sightline.transport.http.trust import Trust
from sightline.transport.probing import probe
from sightline.transport.sender import Sender
from sightline.wire.call import HttpRequest

if TYPE_CHECKING:
    from sightline.exchange.hub import Hear, Hub, Record
    from sightline.exchange.interception.holds import Holds
    from sightline.exchange.interception.store import KeptInterception
    from sightline.exchange.relay import Relay
    from sightline.store.entries import Entry
    from sightline.store.folding import PriceList
    from sightline.store.store import Store
    from sightline.telemetry.exporter import Exporter


def make_embedded_model(loaded: Configuration) -> EmbeddedModel:
    """The embedded model, not yet started."""
    local = loaded.settings.local
    return EmbeddedModel(
        python=sys.executable,
        environment=loaded.environment,
        threads=local.threads,
        context_window=local.context_window,
        url=local.url,
        make_key=lambda: secrets.token_urlsafe(24),
    )


def is_installed() -> bool:
    """Whether the embedded model can be started: its engine and its weights are there."""
    from sightline.transport.embedded.child import ENGINE
    from sightline.transport.embedded.weights import find_weights

    return find_spec(ENGINE) is not None and find_weights() is not None


async def why_no_embedded_model(model: EmbeddedModel, client: HttpClient) -> str:
    """Why the embedded model does not answer at this moment; nothing where it does."""
    if model.elsewhere is not None:
        headers = (("authorization", f"Bearer {model.elsewhere.key}"),)
        return await probe(client, HttpRequest("GET", f"{model.elsewhere.url}/v1/models", headers, b""))
    if model.is_up:
        return ""
    if is_installed():
        return "It starts with its first request."
    return "It is not installed. `sightline doctor` says what is missing."


async def diagnose_embedded(loaded: Configuration) -> list[DiagnosisFinding]:
    """What is right and wrong with the embedded model."""
    model = make_embedded_model(loaded)
    async with HttpClient(trust=Trust(environment={}), proxies=Proxies.of({})) as client:

        async def post(request: HttpRequest) -> tuple[int, bytes]:
            async with await client.send(request, Timeouts(), direct=True) as response:
                return response.status, await response.read()

        try:
            return await diagnose(model, post)
        finally:
            await model.close()


def http_client(loaded: Configuration) -> HttpClient:
    network = loaded.settings.network
    return HttpClient(
        trust=Trust(ca_file=network.ca_file, environment=loaded.environment),
        proxies=Proxies.of(loaded.environment),
        max_connections=network.max_connections,
    )


async def open_configured_store(loaded: Configuration, folder: Path, url: str, clock: SystemClock) -> "Store":
    prices = price_list(loaded.catalog)
    url = url or loaded.settings.store.url
    if not url:
        from sightline.store.sqlite import open_store

        return await open_store(folder, prices=prices, now=clock.now)
    if find_spec("asyncpg") is None:
        hint = "Install it: pip install 'sightline[postgresql]' (or asyncpg alone)."
        raise Fault(Code.CONFIG, "a record in PostgreSQL needs the driver asyncpg, which is not installed", hint=hint)
    from sightline.store.postgres import open_postgres

    return await open_postgres(url, folder, prices=prices, now=clock.now)


def price_list(catalog: Catalog) -> "PriceList":
    @lru_cache(maxsize=1024)
    def prices(provider: str, model: str) -> Prices | None:
        return facts_of(catalog, provider, model).prices

    return prices


@dataclass(frozen=True, slots=True)
class RelayResources:
    """What relays send with, which all of a program's relays share."""

    memory: Memory
    embedded: EmbeddedModel
    client: HttpClient


def means_of(loaded: Configuration, folder: Path, stack: AsyncExitStack) -> RelayResources:
    """They start nothing before they are needed; the stack closes them."""
    means = RelayResources(Memory(folder, SystemClock().now), make_embedded_model(loaded), http_client(loaded))
    stack.callback(means.memory.save)
    stack.push_async_callback(means.embedded.close)
    stack.push_async_callback(means.client.close)
    return means


async def make_relay(
    loaded: Configuration,
    means: RelayResources,
    record: "Record",
    stack: AsyncExitStack,
    *,
    own: frozenset[tuple[str, int]] = frozenset(),
    is_told: bool = False,
    interception: "KeptInterception | None" = None,
    unattended: "Callable[[], None] | None" = None,
) -> tuple["Relay", "Hub"]:
    """A relay to the providers, and the hub that tells what it does; what `is_told` goes to the collector too. The
    rules and masks of `interception` apply; with `unattended` nobody can release what a rule would hold, and it is
    called for each such request instead."""
    from sightline.exchange.hub import Hub
    from sightline.exchange.interception.holds import Holds

    exporter = await open_exporter(loaded, means.client, stack) if is_told else None
    if exporter is not None:
        record = _also(record, exporter.took)
    hub = Hub(record)
    hub.observer = exporter
    holds = Holds(means.memory, SystemClock.now, interception, unattended)
    return relay_of(loaded, means, hub, holds, own), hub


def relay_of(
    loaded: Configuration, means: RelayResources, hub: "Hub", holds: "Holds", own: frozenset[tuple[str, int]]
) -> "Relay":
    """A relay to the providers of this configuration, for whoever has a hub and holds."""
    from sightline.exchange.relay import Relay

    clock = SystemClock()
    return Relay(
        catalog=loaded.catalog,
        environment=loaded.environment,
        sender=Sender(means.client, clock, random.random, means.memory.ledger),
        embedded=means.embedded,
        memory=means.memory,
        hub=hub,
        clock=clock,
        make_id=Ids(time.time_ns, chance()),
        own=own,
        holds=holds,
    )


def hearing(store: "Store") -> "Hear | None":
    """Where to say what replies say, if this store wants to know before it looks for itself."""
    from sightline.store.sqlite import SqliteStore

    return store.hear if isinstance(store, SqliteStore) else None


def _also(record: "Record", export: "Record") -> "Record":
    """Recording, of which another hears once it is done."""

    def record_both(entries: Sequence["Entry"]) -> None:
        record(entries)
        export(entries)

    return record_both


def nowhere(_entries: Sequence["Entry"]) -> None:
    """For what is on no record."""


async def open_exporter(loaded: Configuration, client: HttpClient, stack: AsyncExitStack) -> "Exporter | None":
    """What tells a collector of everything that is recorded, and of runs; None where none is configured."""
    if not loaded.settings.telemetry.otlp_endpoint:
        return None
    from importlib.metadata import version

    from sightline.telemetry.exporter import Exporter

    told = loaded.settings.telemetry
    values = {name: loaded.environment.get(variable, "").strip() for name, variable in told.env_headers.items()}
    headers = {name: value for name, value in values.items() if value}
    exporter = Exporter(
        client,
        told.otlp_endpoint,
        version=version("sightline"),
        headers=headers,
        with_content=told.content,
        now=SystemClock.now,
    )
    return await stack.enter_async_context(exporter)
