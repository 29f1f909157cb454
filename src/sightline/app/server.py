"""Build the server and everything that it serves, including the proxy for child processes of `run --tls`."""

import asyncio
import logging
import secrets
import tomllib
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec

from sightline.app.configuration import Configuration, data_folder, plugins_named
from sightline.app.engine import (
    RelayResources,
    http_client,
    make_relay,
    means_of,
    nowhere,
    open_configured_store,
    relay_of,
)
from sightline.app.machine import SystemClock
from sightline.app.running_server import ProxyShown, RefusalShown, RefusalsShown, announce, withdraw
from sightline.app.worker import WorkerParameters
from sightline.app.workers import MainParts, Workers, divide_connections
from sightline.catalog.provider import KnownHosts, Provider, addresses_of
from sightline.exchange.client_response import RequestHandler
from sightline.exchange.hub import Hub
from sightline.exchange.interception.store import KeptInterception
from sightline.exchange.memory import Memory, save_regularly
from sightline.exchange.recording.library import Library
from sightline.exchange.recording.records import RETENTION_LOG, Records, Retention, RetentionSettings
from sightline.exchange.relay import Relay
from sightline.exchange.replay_handler import ReplayHandler
from sightline.exchange.resend import Resender, ResendSources
from sightline.filters.expression import Expression
from sightline.gateway.gateway import Gateway
from sightline.server.listener import GRACE, App, ListeningServer, settle_down
from sightline.server.proxy import ProxyServer, ProxySettings
from sightline.server.tunnel import refuse_own_machine
from sightline.settings import StoreSettings
from sightline.store.entries import FactEntry
from sightline.store.store import LoggedValue, Store
from sightline.telemetry.metrics import Metrics
from sightline.transport.http.dialling import Trust
from sightline.transport.http.target import Proxies
from sightline.web.access import LOOPBACK, OriginGuard, host_name, load_token
from sightline.web.bodies import Query, read_body
from sightline.web.routes import ApiCall, Calls
from sightline.workbench.command_relay import CommandCalls
from sightline.workbench.workbench import Access, Example, Workbench

if TYPE_CHECKING:
    from sightline.app.rooms import OpenRooms
    from sightline.workbench.api import Api


@dataclass(frozen=True, slots=True)
class Sending:
    """What sends requests to providers: for clients, for commands that run next to the server, and for the page.
    `aside` records nothing."""

    folder: Path
    means: RelayResources
    relay: Relay
    aside: Relay
    resending: Resender
    commands: CommandCalls
    metrics: Metrics


def _load_rooms() -> "Callable[[Parts], OpenRooms]":
    from sightline.app.rooms import open_rooms

    return open_rooms


@dataclass(slots=True)
class Parts:
    """The parts of a server. One that answers from recorded exchanges holds and sends nothing: its `sending` and
    `example` are None. `record_place` tells the user where the record is."""

    access: Access
    hub: Hub
    store: Store
    memory: Memory
    loaded: Configuration
    address: str
    now: Callable[[], float]
    sending: Sending | None = None
    workers: Workers | None = None
    further: Calls = field(default_factory=dict)
    example: Example | None = None
    retention: Retention | None = None
    record_place: str = ""
    _rooms: "OpenRooms | None" = None
    _opening: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def open_api(self) -> "Api":
        """The calls of the page. The first use loads chat, runs and evals, which are half of the program, so that a
        server whose page is never opened does not need the memory; on a thread, so that clients of the gateway do not
        wait for it."""
        async with self._opening:
            if self._rooms is None:
                open_rooms = await asyncio.to_thread(_load_rooms)
                self._rooms = open_rooms(self)
                settle_down()
        return self._rooms.api

    async def unwritten(self, exchange: str) -> list[FactEntry]:
        """Facts of an exchange in progress, here or in a worker, that are not on record yet."""
        found = [] if self.sending is None else self.sending.relay.unwritten(exchange)
        return found if found or self.workers is None else await self.workers.unwritten(exchange)

    async def wait_until_learned(self) -> None:
        """Wait until the estimates have learned from everything that providers have counted so far."""
        if self.sending is not None:
            await self.sending.relay.wait_until_learned()
        if self.workers is not None:
            await self.workers.wait_until_learned()

    async def close(self, grace: float) -> None:
        """End background work that no client waits for."""
        await self.leave_runs()
        await self.leave_pages()
        if self.sending is not None:
            await self.sending.resending.close(grace)
        if self._rooms is not None:
            await self._rooms.close(grace)
        if self.workers is not None:
            await self.workers.close(grace)

    async def leave_pages(self) -> None:
        """End the event streams, which never end by themselves, and the example."""
        self.hub.close()
        if self.example is not None:
            await self.example.close()

    async def leave_runs(self) -> None:
        """Leave runs in a state from which they can be resumed, before their requests are aborted."""
        if self._rooms is not None:
            await self._rooms.leave_runs()


def make_workbench(parts: Parts) -> Workbench:
    """The workbench of the page. Its files, events and commands are available at once; its API is loaded with the first
    call."""

    def trouble() -> str:
        fault = parts.store.trouble
        return "" if fault is None else fault.message

    commands = None if parts.sending is None else parts.sending.commands
    return Workbench(parts.access, parts.open_api, parts.hub, trouble, commands, parts.example)


@asynccontextmanager
async def open_server(
    loaded: Configuration,
    data: str | None,
    *,
    host: str,
    port: int,
    store: str = "",
    replay: Expression | None = None,
    fast: bool = False,
    has_recorder: bool = False,
    workers: int = 1,
) -> AsyncIterator[tuple[ListeningServer, str]]:
    """A server for sockets at this address, and the link that opens its page. `store` is the URL of a database that
    replaces the configured one. With `replay`, clients get the answers of these recorded exchanges and nothing is sent
    to a provider; with `fast`, without the recorded delays. With `has_recorder`, a separate process imports what is
    recorded. `workers` is how many processes serve clients, including this one."""
    clock, folder = SystemClock(), data_folder(data)
    token = load_token(folder, lambda: secrets.token_urlsafe(24))
    async with AsyncExitStack() as stack:
        record = await open_configured_store(loaded, folder, store, clock, has_recorder=has_recorder)
        stack.push_async_callback(record.close)
        retention = _start_retention(record, clock, loaded.settings.store, stack)
        address, guard = _entrance(loaded, host, port)
        parts = partial(
            Parts,
            access=Access(token, port),
            store=record,
            loaded=loaded,
            address=address,
            now=clock.now,
            retention=retention,
            record_place=_record_place(store or loaded.settings.store.url, folder),
        )
        handler: RequestHandler
        relay: Relay | None
        # It is called only after the gateway and the server exist.
        proxy = make_proxy(loaded, folder, token, lambda: (gateway, listening))
        stack.push_async_callback(proxy.close)
        if replay is None:
            example = _make_example(folder, Access(token, port), address, guard)
            parts = partial(parts, further=proxy_calls(proxy, loaded), example=example)
            served = await open_parts(
                loaded, folder, record, stack, parts, at=(host, port), guard=guard, workers=workers, store=store
            )
            assert served.sending is not None
            handler = relay = served.sending.relay
        else:
            library = Library(record)
            await library.fill(replay, now=clock.now())
            handler, relay = ReplayHandler(library, clock, fast=fast), None
            served = parts(hub=Hub(record.record), memory=Memory(folder, clock.now))

        async def ending() -> None:
            withdraw(folder, address)  # no command may begin now, as it would be aborted
            if served.workers is not None:
                served.workers.begin_end()
            await served.leave_pages()
            await proxy.close()
            await served.leave_runs()
            commands = () if served.sending is None else (served.sending.commands.close(GRACE),)
            await asyncio.gather(handler.close(GRACE), *commands)

        longest = loaded.settings.server.max_message_mb << 20
        gateway = Gateway(handler, loaded.catalog, loaded.has_key, clock.monotonic, relay, longest)
        # The relay tells each client to end; only a client that does not react is disconnected.
        app = App(guard, gateway, make_workbench(served))
        listening = ListeningServer(app, ending=ending, grace=GRACE + 2, begin=gateway.begin)

        stack.push_async_callback(lambda: served.close(0 if listening.force_exit else GRACE))
        if served.workers is not None:
            await served.workers.start(listening)
        if replay is None:  # a server that answers from the record sends nothing for commands
            announce(folder, address)
            stack.callback(withdraw, folder, address)
        yield listening, f"{address}/?token={token}"


def _start_retention(record: Store, clock: SystemClock, keep: StoreSettings, stack: AsyncExitStack) -> Retention:
    """Start the removal of old exchanges, which runs until the server ends."""
    kept = LoggedValue(record.logbook, RETENTION_LOG, RetentionSettings, clock.now)
    retention = Retention(record, clock, keep.keep_days, keep.keep_mb, kept)
    stack.push_async_callback(_cancel, asyncio.ensure_future(retention.run()))
    return retention


def _record_place(url: str, folder: Path) -> str:
    """Where the record is: its folder, or the URL of its database without the password."""
    if not url:
        return str(folder.absolute())
    at = urlsplit(url)
    return at._replace(netloc=at.netloc.rpartition("@")[2], query="").geturl()


def _entrance(loaded: Configuration, host: str, port: int) -> tuple[str, OriginGuard]:
    """The address as a user would type it, and the guard for it."""
    name = host_name(host)
    origins = frozenset(map(str.lower, loaded.settings.server.allowed_origins))
    # A browser cannot open the address for all interfaces.
    shown = {"localhost": "127.0.0.1", "0.0.0.0": "127.0.0.1", "[::]": "[::1]"}.get(name, name)
    address = f"http://{shown}:{port}"
    return address, OriginGuard(port, frozenset({*LOOPBACK, name}), origins)


def _make_example(folder: Path, access: Access, address: str, guard: OriginGuard) -> Example:
    """The example that this server's page can show."""

    def open_workbench() -> AbstractAsyncContextManager[Workbench]:
        from sightline.app.example import open_example  # rarely used

        return open_example(folder, access, address, guard)

    return Example(open_workbench)


async def open_parts(
    loaded: Configuration,
    folder: Path,
    record: Store,
    stack: AsyncExitStack,
    parts: Callable[..., Parts],
    *,
    at: tuple[str, int],
    guard: OriginGuard,
    workers: int,
    store: str,
) -> Parts:
    """Open a relay to the providers, and everything that sends through it. `at` is where the server listens."""
    (loaded, for_worker), own = divide_connections(loaded, workers), frozenset({at})
    clock, means = SystemClock(), means_of(loaded, folder, stack, store)
    stack.callback(asyncio.create_task(save_regularly(means.memory)).cancel)
    kept = KeptInterception(folder)
    # A collector gets everything from the start; Prometheus gets what is counted after its first scrape.
    is_counting = bool(loaded.settings.telemetry.otlp_endpoint)
    metrics = Metrics(clock.now(), loaded.prices, is_counting=is_counting)
    relay, hub = await make_relay(
        loaded,
        means,
        record.record,
        stack,
        own=own,
        is_observed=True,
        interception=kept,
        metrics=metrics,
        append=record.append,
    )
    records = Records(record, clock.now, loaded.prices)
    relay.read_from(records)
    if means.caps is not None:
        means.caps.on_notice = partial(hub.announce, "cap")
    resending = Resender(relay, record, ResendSources(loaded.catalog, loaded.environment), clock)
    aside, _ = await make_relay(loaded, means, nowhere, stack, own=own)
    on_cap = None if means.caps is None else means.caps.notice
    shared = MainParts(
        hub, relay.holds, means.memory.ledger, means.embedded, record.facts, records.read, clock.now, on_cap
    )
    commands = _command_calls(loaded, means, relay, hub, aside)
    return parts(
        loaded=loaded,
        hub=hub,
        memory=means.memory,
        sending=Sending(folder, means, relay, aside, resending, commands, metrics),
        workers=None if workers == 1 else _make_workers(for_worker, folder, workers - 1, at, guard, shared, store),
    )


def _make_workers(
    loaded: Configuration,
    folder: Path,
    count: int,
    at: tuple[str, int],
    guard: OriginGuard,
    parts: MainParts,
    store: str,
) -> Workers:
    """A number of workers with this configuration, for the server that listens at this address."""

    _, plugin_folder = plugins_named(loaded)

    def parameters(channel: int, memory: int) -> bytes:
        return msgspec.json.encode(
            WorkerParameters(
                folder=str(folder.absolute()),
                catalog=loaded.catalog,
                settings=loaded.settings,
                channel=channel,
                memory=memory,
                host=at[0],
                port=at[1],
                hosts=tuple(guard.hosts),
                origins=tuple(guard.origins),
                log_level=logging.getLogger().level,
                store=store,
                plugin_folder=plugin_folder,
            )
        )

    return Workers(count, parts, folder, loaded, parameters)


def _command_calls(loaded: Configuration, means: RelayResources, relay: Relay, hub: Hub, aside: Relay) -> CommandCalls:
    """The calls that send requests for commands that run next to this server."""
    unrecorded = Hub(nowhere)

    def make_relay(name: str, provider: Provider, environment: Mapping[str, str], like: Relay) -> Relay:
        catalog = msgspec.structs.replace(loaded.catalog, providers={**loaded.catalog.providers, name: provider})
        other = replace(loaded, catalog=catalog, environment=environment)
        return relay_of(other, means, hub if like is relay else unrecorded, like.holds, relay.own)

    return CommandCalls(
        relay,
        aside,
        catalog=loaded.catalog,
        environment=loaded.environment,
        make_relay=make_relay,
        ledger=means.memory.ledger,
        clock=SystemClock(),
    )


async def _cancel(task: "asyncio.Future[None]") -> None:
    """Cancel a task and wait for its end."""
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


class ProxyWanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of a call that opens a proxy for a run; `session` labels its traffic."""

    session: str


def hosts_to_open(loaded: Configuration) -> KnownHosts:
    """The hosts of the configured and of the built-in providers, and those that the user has named."""
    text = (files("sightline.catalog") / "data" / "providers.toml").read_text("utf-8")
    built_in = {
        name: msgspec.convert(table, Provider) for name, table in tomllib.loads(text).get("providers", {}).items()
    }
    # The user's provider may have another address than the vendor's, but clients may still use the vendor's.
    named = (
        *addresses_of(loaded.catalog.providers, loaded.environment),
        *addresses_of(built_in, loaded.environment),
    )
    return KnownHosts(named, loaded.settings.server.tls_hosts)


def make_proxy(
    loaded: Configuration, folder: Path, token: str, served: Callable[[], tuple[Gateway, ListeningServer]]
) -> ProxyServer:
    """The proxy of this server. `served` is called when the first run needs it."""
    configured = loaded.settings.server

    def make_settings() -> ProxySettings:
        from sightline.server.certificates import Authority

        gateway, listening = served()
        hosts = hosts_to_open(loaded)
        return ProxySettings(
            gateway=gateway,
            hosts=hosts,
            authority=Authority(folder / "ca", hosts.names, SystemClock.now),
            token=token,
            client=http_client(loaded),
            outside=http_client(loaded, refuse_own_machine),
            trust=Trust(ca_file=loaded.settings.network.ca_file, environment=loaded.environment),
            proxies=Proxies.of(loaded.environment),
            connections=listening.connections,
            tunnels_refused=configured.tls_refused == "tunnel",
        )

    return ProxyServer(make_settings, configured.proxy_port)


def proxy_calls(proxy: ProxyServer, loaded: Configuration) -> Calls:
    """The calls that open the proxy and list rejected certificates."""

    async def open_proxy(call: ApiCall) -> ProxyShown:
        wanted = await read_body(call.receive, ProxyWanted)
        url, certificate = await proxy.open(wanted.session)
        return ProxyShown(url, certificate, hosts_to_open(loaded).names)

    async def list_refusals(call: ApiCall) -> RefusalsShown:
        is_tunnelled = loaded.settings.server.tls_refused == "tunnel"
        found = proxy.refusals(Query(call.query).text("session"))
        return RefusalsShown(tuple(RefusalShown(each.host, each.why, is_tunnelled) for each in found))

    return {"proxy": {"GET": list_refusals, "POST": open_proxy}}
