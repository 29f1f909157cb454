"""Parts that several commands and the server share: what sends, and what records."""

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
    from sightline.exchange.holds import Holds
    from sightline.exchange.hub import Hear, Hub, Record
    from sightline.exchange.interception_store import KeptInterception
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
    """Whether the engine and the weights of the embedded model are installed."""
    from sightline.transport.embedded.child import ENGINE
    from sightline.transport.embedded.weights import find_weights

    return find_spec(ENGINE) is not None and find_weights() is not None


async def why_no_embedded_model(model: EmbeddedModel, client: HttpClient) -> str:
    """Why the embedded model does not answer now; empty if it does."""
    if model.elsewhere is not None:
        headers = (("authorization", f"Bearer {model.elsewhere.key}"),)
        return await probe(client, HttpRequest("GET", f"{model.elsewhere.url}/v1/models", headers, b""))
    if model.is_up:
        return ""
    if is_installed():
        return "It starts with its first request."
    return "It is not installed. `sightline doctor` says what is missing."


async def diagnose_embedded(loaded: Configuration) -> list[DiagnosisFinding]:
    """Check the embedded model and report what was found."""
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
    """What all relays of a program share."""

    memory: Memory
    embedded: EmbeddedModel
    client: HttpClient


def means_of(loaded: Configuration, folder: Path, stack: AsyncExitStack) -> RelayResources:
    """Make what relays share. Nothing starts before it is needed; the stack closes it."""
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
    """A relay to the providers, and the hub that publishes what it does. With `is_told`, a collector gets it too. The
    rules and masks of `interception` apply. With `unattended`, no one can release what a rule would hold: it is sent,
    and this is called for each such request."""
    from sightline.exchange.holds import Holds
    from sightline.exchange.hub import Hub

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
    """A relay to the providers of this configuration, with an existing hub and existing holds."""
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
    """Where to report what replies say, if this store takes it."""
    from sightline.store.sqlite import SqliteStore

    return store.hear if isinstance(store, SqliteStore) else None


def _also(record: "Record", export: "Record") -> "Record":
    """Record, then export."""

    def record_both(entries: Sequence["Entry"]) -> None:
        record(entries)
        export(entries)

    return record_both


def nowhere(_entries: Sequence["Entry"]) -> None:
    """Record nothing."""


async def open_exporter(loaded: Configuration, client: HttpClient, stack: AsyncExitStack) -> "Exporter | None":
    """The exporter to the configured OpenTelemetry collector; None where none is configured."""
    if not loaded.settings.telemetry.otlp_endpoint:
        return None
    from importlib.metadata import version

    from sightline.telemetry.exporter import Exporter

    telemetry = loaded.settings.telemetry
    values = {name: loaded.environment.get(variable, "").strip() for name, variable in telemetry.env_headers.items()}
    headers = {name: value for name, value in values.items() if value}
    exporter = Exporter(
        client,
        telemetry.otlp_endpoint,
        version=version("sightline"),
        headers=headers,
        with_content=telemetry.content,
        now=SystemClock.now,
    )
    return await stack.enter_async_context(exporter)
