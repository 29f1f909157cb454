"""Build engines, relays and stores, for commands and for the server."""

import asyncio
import random
import secrets
import sys
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from sightline.app.configuration import Configuration, data_folder, plugins_named
from sightline.app.machine import Ids, SystemClock, process_name, random_digits
from sightline.errors import Code, Fault
from sightline.exchange.memory import Memory
from sightline.exchange.request_counter import RequestCounter
from sightline.platform.files import HAS_NAMED_PIPES
from sightline.tokens.text_count import read_vocabulary_from
from sightline.transport.embedded.process import EmbeddedModel
from sightline.transport.http.client import HttpClient, probe
from sightline.transport.http.dialling import CheckAddress, Trust
from sightline.transport.http.target import Proxies, Timeouts
from sightline.transport.sender import Sender
from sightline.wire.call import HttpRequest

if TYPE_CHECKING:
    from sightline.exchange.caps import Caps
    from sightline.exchange.engine import Engine
    from sightline.exchange.hub import Append, Hub, Record
    from sightline.exchange.interception.holds import Holds
    from sightline.exchange.interception.store import KeptInterception
    from sightline.exchange.interception.viewer import Viewer
    from sightline.exchange.outbound import Prepared
    from sightline.exchange.relay import Relay
    from sightline.exchange.remote_relay import RemoteRelay, RunningServer
    from sightline.store.caps import CapCounts
    from sightline.store.entries import KeptEntry
    from sightline.store.recording import RecorderProcess
    from sightline.store.store import Store
    from sightline.telemetry.exporter import Exporter
    from sightline.telemetry.metrics import Metrics
    from sightline.transport.embedded.diagnosis import DiagnosisFinding
    from sightline.transport.sender import Signer


def make_embedded_model(loaded: Configuration) -> EmbeddedModel:
    """The embedded model, not yet started. Its tokens are counted by the vocabulary in its weights."""
    local = loaded.settings.local
    read_vocabulary_from("smollm2", (lambda: b"") if local.url else _read_installed_vocabulary)
    return EmbeddedModel(
        python=sys.executable,
        environment=loaded.environment,
        threads=local.threads,
        context_window=local.context_window,
        url=local.url,
        make_key=lambda: secrets.token_urlsafe(24),
    )


def _read_installed_vocabulary() -> bytes:
    from sightline.transport.embedded.causes import find_weights, read_vocabulary

    return b"" if (weights := find_weights()) is None else read_vocabulary(weights)


def is_installed() -> bool:
    """Whether the engine and the weights of the embedded model are installed."""
    from sightline.transport.embedded.causes import find_weights
    from sightline.transport.embedded.child import ENGINE

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


async def diagnose_embedded(loaded: Configuration) -> "list[DiagnosisFinding]":
    from sightline.transport.embedded.diagnosis import diagnose

    model = make_embedded_model(loaded)
    async with HttpClient(trust=Trust(environment={}), proxies=Proxies.of({})) as client:

        async def post(request: HttpRequest) -> tuple[int, bytes]:
            async with await client.send(request, Timeouts(), past_proxy=True) as response:
                return response.status, await response.read()

        try:
            return await diagnose(model, post)
        finally:
            await model.close()


def http_client(loaded: Configuration, check: CheckAddress | None = None) -> HttpClient:
    network = loaded.settings.network
    return HttpClient(
        trust=Trust(ca_file=network.ca_file, environment=loaded.environment),
        proxies=Proxies.of(loaded.environment),
        max_connections=network.max_connections,
        check=check,
    )


async def open_configured_store(
    loaded: Configuration, folder: Path, url: str, clock: SystemClock, *, has_recorder: bool = False
) -> "Store":
    """Open the record. With `has_recorder`, a separate process imports what is recorded."""
    has_recorder = has_recorder and HAS_NAMED_PIPES  # a named pipe wakes it
    prices = loaded.prices
    url = url or loaded.settings.store.url
    fsync = loaded.settings.store.fsync

    def make_recorder(replica: str) -> "RecorderProcess":
        from sightline.app.recorder import RecorderParameters
        from sightline.store.recording import RecorderProcess

        plugins, plugin_folder = plugins_named(loaded)
        parameters = RecorderParameters(
            str(folder.absolute()), loaded.catalog, url, replica, fsync, plugins, plugin_folder
        )
        return RecorderProcess([sys.executable, "-m", "sightline.app.recorder"], parameters.line())

    if not url:
        from sightline.store.sqlite import open_store

        recorder = make_recorder("") if has_recorder else None
        return await open_store(folder, prices=prices, now=clock.now, recorder=recorder, fsync=fsync)
    if find_spec("asyncpg") is None:
        hint = "Install it: pip install 'sightline[postgresql]' (or asyncpg alone)."
        raise Fault(Code.CONFIG, "a record in PostgreSQL needs the driver asyncpg, which is not installed", hint=hint)
    from sightline.store.postgres import open_postgres

    making = make_recorder if has_recorder else None
    return await open_postgres(url, folder, prices=prices, now=clock.now, make_recorder=making, fsync=fsync)


@dataclass(frozen=True, slots=True)
class RelayResources:
    """What all relays of a program share."""

    memory: Memory
    embedded: EmbeddedModel
    client: HttpClient
    caps: "Caps | None" = None


def means_of(loaded: Configuration, folder: Path, stack: AsyncExitStack, store: str = "") -> RelayResources:
    """Create what relays share. Nothing starts before it is needed; the stack closes it. `store` is the URL of a
    database that replaces the configured one."""
    memory = Memory(folder, SystemClock().now)
    caps = make_caps(loaded, folder, memory, stack, store)
    means = RelayResources(memory, make_embedded_model(loaded), http_client(loaded), caps)
    stack.callback(means.memory.save)
    stack.push_async_callback(means.embedded.close)
    stack.push_async_callback(means.client.close)
    return means


def make_caps(
    loaded: Configuration, folder: Path, memory: Memory, stack: AsyncExitStack, store: str = ""
) -> "Caps | None":
    """The configured caps; None if there are none. The counts are stored where the record is: in the data folder, or in
    the database that replicas share."""
    settings, url = loaded.settings.caps, store or loaded.settings.store.url
    if not settings:
        return None
    from sightline.exchange.caps import Caps

    counts: CapCounts
    if url:
        from sightline.store.postgres_caps import PostgresCounts

        counts = PostgresCounts(url)
    else:
        from sightline.store.caps import FolderCounts

        counts = FolderCounts(folder)
    caps = Caps(settings, counts, loaded.prices, memory, SystemClock.now)
    stack.push_async_callback(caps.close)
    return caps


async def make_relay(
    loaded: Configuration,
    means: RelayResources,
    record: "Record",
    stack: AsyncExitStack,
    *,
    own: frozenset[tuple[str, int]] = frozenset(),
    is_observed: bool = False,
    interception: "KeptInterception | None" = None,
    unattended: "Callable[[], None] | None" = None,
    metrics: "Metrics | None" = None,
    append: "Append | None" = None,
) -> tuple["Relay", "Hub"]:
    """A relay to the providers, and the hub that publishes its exchanges. With `is_observed`, they are also exported to
    a collector; with `metrics`, they are counted there. The rules and masks of `interception` apply. With `unattended`,
    no one can release a request that a rule would hold: it is sent, and `unattended` is called. `append` is `record`
    for encoded entries, and is used if nothing else looks at them."""
    from sightline.exchange.hub import Hub
    from sightline.exchange.interception.holds import Holds

    exporter = await open_exporter(loaded, means.client, stack, metrics) if is_observed else None
    if is_observed and loaded.plugins is not None and any(plugin.hooks for _, plugin in loaded.plugins.working()):
        from sightline.plugins.hooks import open_hooks

        record, append = _record_and_observe(record, stack.enter_context(open_hooks(loaded.plugins))), None
    observer = exporter or metrics  # the exporter also counts
    if observer is not None:
        record = _record_and_observe(record, observer.took)
        append = None if exporter is not None or metrics is None else metrics.append_or_count(append, record)
    hub = Hub(record, append)
    hub.observer = observer
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
        sender=Sender(means.client, clock, random.random, means.memory.ledger, _signers(loaded, means.client)),
        embedded=means.embedded,
        memory=means.memory,
        hub=hub,
        clock=clock,
        make_id=Ids(time.time_ns, random_digits()),
        own=own,
        holds=holds,
        raw_kept=loaded.settings.store.raw_body_mb << 20,
        caps=means.caps,
    )


def _signers(loaded: Configuration, client: HttpClient) -> "dict[str, Signer]":
    """The signers for providers that name one under `sign`."""
    if not any(provider.sign for provider in loaded.catalog.providers.values()):
        return {}
    from sightline.plugins.loading import Plugins

    async def fetch(request: HttpRequest) -> tuple[int, bytes]:
        async with await client.send(request, Timeouts()) as response:
            return response.status, await response.read()

    plugins = loaded.plugins or Plugins()
    return plugins.signers(loaded.catalog.providers, loaded.environment, SystemClock.now, fetch)


def _record_and_observe(record: "Record", took: "Record") -> "Record":
    """Record first, then notify the observer, so that everything it sees is on record."""

    def record_both(entries: Sequence["KeptEntry"]) -> None:
        record(entries)
        took(entries)

    return record_both


def nowhere(_entries: Sequence["KeptEntry"]) -> None:
    """Record nothing."""


async def open_exporter(
    loaded: Configuration, client: HttpClient, stack: AsyncExitStack, metrics: "Metrics | None" = None
) -> "Exporter | None":
    """The exporter to the configured OpenTelemetry collector; None if none is configured. Without `metrics`, it uses
    its own."""
    if not loaded.settings.telemetry.otlp_endpoint:
        return None
    from importlib.metadata import version

    from sightline.telemetry.exporter import Exporter
    from sightline.telemetry.metrics import Metrics

    telemetry = loaded.settings.telemetry
    values = {name: loaded.environment.get(variable, "").strip() for name, variable in telemetry.env_headers.items()}
    headers = {name: value for name, value in values.items() if value}
    exporter = Exporter(
        client,
        telemetry.otlp_endpoint,
        metrics or Metrics(SystemClock.now(), loaded.prices),
        SystemClock.now,
        version=version("sightline"),
        instance=process_name(),
        headers=headers,
        with_content=telemetry.content,
    )
    return await stack.enter_async_context(exporter)


Notice = Callable[[str], None]
"""Takes one line for the user of the command."""


async def running_server(folder: Path, stack: AsyncExitStack, *, apart: bool) -> "RunningServer | None":
    """The server to send through; None with `apart`, or if none runs with this data folder. A server that was started
    for runs stays up as long as the stack is open."""
    if apart:
        return None
    from sightline.app.running_server import find_server, keep_server

    found = await asyncio.to_thread(find_server, folder)
    return found if found is not None and stack.enter_context(keep_server(folder)) else None


async def engine_through(
    server: "RunningServer",
    loaded: Configuration,
    folder: Path,
    means: RelayResources,
    stack: AsyncExitStack,
    *,
    notice: Notice,
    is_recorded: bool = True,
) -> "Engine":
    """An engine whose requests this server sends."""
    from sightline.exchange.engine import Engine
    from sightline.exchange.interception.store import KeptInterception
    from sightline.exchange.remote_relay import RemoteRelay

    # The server counts what was used, so this process must not add it a second time.
    stack.callback(means.memory.ledger.mark_saved)

    def on_hold(link: str) -> None:
        notice(f"note: held until you decide: {link}")

    _, masks = KeptInterception(folder).read()
    observer = await open_exporter(loaded, means.client, stack)

    def relay(*, is_recorded: bool) -> "RemoteRelay":
        return RemoteRelay(
            server,
            means.client,
            catalog=loaded.catalog,
            environment=loaded.environment,
            ledger=means.memory.ledger,
            clock=SystemClock(),
            on_held=on_hold,
            masks=masks,
            observer=observer,
            is_recorded=is_recorded,
        )

    through, aside = relay(is_recorded=is_recorded), relay(is_recorded=False)
    return Engine(through, aside, RequestCounter(means.memory), means.memory, SystemClock(), limits=through.wait)


async def engine_here(
    loaded: Configuration,
    folder: Path,
    means: RelayResources,
    record: "Record",
    stack: AsyncExitStack,
    *,
    notice: Notice,
    is_observed: bool = True,
) -> tuple["Engine", "Hub"]:
    """An engine in this process, and the hub that publishes its exchanges. The masks and rules of the data folder
    apply. No one can release a request that a rule would hold, so it is sent, and the user gets one notice."""
    from sightline.exchange.engine import Engine
    from sightline.exchange.interception.store import KeptInterception

    has_said: list[str] = []

    def warn_unattended() -> None:
        if not has_said:
            has_said.append("said")
            notice("note: interception is on, but no server is running to hold the request; it was sent")

    aside, _ = await make_relay(loaded, means, nowhere, stack)
    kept = KeptInterception(folder, is_borrowed=True)
    relay, hub = await make_relay(
        loaded, means, record, stack, is_observed=is_observed, interception=kept, unattended=warn_unattended
    )
    return Engine(relay, aside, RequestCounter(means.memory), means.memory, SystemClock()), hub


def counter(data: str | None) -> RequestCounter:
    """A counter that estimates the tokens of requests, with the calibration of this data folder."""
    return RequestCounter(Memory(data_folder(data), SystemClock().now))


def with_kept_edits(prepared: "Prepared", data: str | None, *, session: str) -> "Prepared":
    """The request as an engine of this data folder would send it, with the kept edits applied. Opens nothing."""
    from sightline.exchange.interception.kept_edits import final_body
    from sightline.exchange.interception.store import KeptInterception

    _, masks = KeptInterception(data_folder(data)).read()
    body = final_body(prepared.body, prepared.dialect, prepared.choice.model, masks, session=session)
    return prepared.with_body(body.data)


@asynccontextmanager
async def open_engine(
    loaded: Configuration,
    data: str | None,
    *,
    is_recorded: bool = True,
    apart: bool = False,
    notice: Notice = lambda _line: None,
) -> AsyncIterator["Engine"]:
    """An engine that is ready to send; everything that it started is closed afterwards. If a server runs with this data
    folder, it sends the requests, unless `apart`. If the record cannot be opened, the engine works without it and
    reports why. `notice` takes lines for the user."""
    from dataclasses import replace

    clock, folder = SystemClock(), data_folder(data)
    unrecorded: Fault | None = None
    async with AsyncExitStack() as stack:
        server = await running_server(folder, stack, apart=apart)
        if server is not None:
            means = means_of(loaded, folder, stack)
            yield await engine_through(server, loaded, folder, means, stack, notice=notice, is_recorded=is_recorded)
            return
        record: Record = nowhere
        if is_recorded:
            try:
                store = await open_configured_store(loaded, folder, "", clock)
            except Fault as fault:
                unrecorded = fault
            else:
                stack.push_async_callback(store.close)
                record = store.record
        means = means_of(loaded, folder, stack)
        engine, _ = await engine_here(loaded, folder, means, record, stack, notice=notice, is_observed=is_recorded)
        yield replace(engine, unrecorded=unrecorded)


@asynccontextmanager
async def open_record(loaded: Configuration, data: str | None, store: str = "") -> AsyncIterator["Store"]:
    """The record, to which a server may be writing. `store` is the URL of a database that replaces the configured
    one."""
    record = await open_configured_store(loaded, data_folder(data), store, SystemClock())
    try:
        await record.settle()
        yield record
    finally:
        await record.close()


@asynccontextmanager
async def open_viewer(loaded: Configuration, data: str | None, store: str = "") -> AsyncIterator["Viewer"]:
    """A viewer that shows and measures recorded exchanges, for a command that only reads them."""
    from sightline.exchange.interception.holds import Holds
    from sightline.exchange.interception.viewer import Viewer
    from sightline.exchange.recording.records import Records

    now, memory = SystemClock().now, counter(data).memory
    async with open_record(loaded, data, store) as record:
        records = Records(record, now, loaded.prices)
        yield Viewer(Holds(memory, now), records, loaded.catalog, memory)


@asynccontextmanager
async def open_relay(
    loaded: Configuration, data: str | None, *, store: str = "", unattended: Callable[[], None] | None = None
) -> AsyncIterator[tuple["Relay", "Store"]]:
    """A relay without a server, and the record that it writes to. With `unattended`, a request that a rule would hold
    is sent, and `unattended` is called."""
    from sightline.exchange.interception.store import KeptInterception
    from sightline.exchange.recording.records import Records

    clock, folder = SystemClock(), data_folder(data)
    async with AsyncExitStack() as stack:
        record = await open_configured_store(loaded, folder, store, clock)
        stack.push_async_callback(record.close)
        means, kept = means_of(loaded, folder, stack), KeptInterception(folder, is_borrowed=True)
        relay, _ = await make_relay(
            loaded, means, record.record, stack, is_observed=True, interception=kept, unattended=unattended
        )
        relay.read_from(Records(record, clock.now, loaded.prices))
        yield relay, record
