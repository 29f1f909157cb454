"""Build the server and everything that it serves."""

import asyncio
import logging
import secrets
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from sightline.agent.api.runs import Approvals, Runs, run_calls
from sightline.agent.service.toolsets import KeptRules
from sightline.app.chats import open_chat
from sightline.app.configuration import Configuration, data_folder, plugins_named
from sightline.app.engine import RelayResources as SendingMeans
from sightline.app.engine import (
    make_relay,
    means_of,
    nowhere,
    open_configured_store,
    relay_of,
    why_no_embedded_model,
)
from sightline.app.evals import evals_of, evaluation_of, suites_place
from sightline.app.machine import SystemClock
from sightline.app.proxy import make_proxy, proxy_calls
from sightline.app.running_server import announce, withdraw
from sightline.app.tools import runner_of, toolsets_of
from sightline.app.worker import WorkerParameters
from sightline.app.workers import MainParts, Workers, divide_connections
from sightline.catalog.catalog import Catalog
from sightline.catalog.provider import Provider
from sightline.chat.api.calls import ChatParts, chat_calls
from sightline.chat.service.answerer import ToolAnswerer
from sightline.evals.api.calls import EvalCalls, eval_calls
from sightline.exchange.caps import Caps
from sightline.exchange.client_response import RequestHandler
from sightline.exchange.engine import Engine
from sightline.exchange.hub import Hub
from sightline.exchange.interception.holds import Holds
from sightline.exchange.interception.store import KeptInterception
from sightline.exchange.interception.viewer import Viewer
from sightline.exchange.memory import Memory, save_regularly
from sightline.exchange.recording.library import Library
from sightline.exchange.recording.records import RETENTION_LOG, Records, Retention, RetentionSettings
from sightline.exchange.relay import Relay
from sightline.exchange.replay_handler import ReplayHandler
from sightline.exchange.request_counter import RequestCounter
from sightline.exchange.resend import Resender, ResendSources
from sightline.filters.expression import Expression
from sightline.gateway.gateway import Gateway
from sightline.plugins.loading import Plugins, list_panels, plugin_calls
from sightline.server.listener import GRACE, App, ListeningServer
from sightline.settings import StoreSettings
from sightline.store.entries import FactEntry
from sightline.store.store import LoggedValue, Store
from sightline.store.summary import PriceList, price_list
from sightline.telemetry.metrics import TEXT_FORMAT, Metrics
from sightline.transport.http.client import probe
from sightline.web.access import LOOPBACK, OriginGuard, host_name, load_token
from sightline.web.asgi import WebResponse
from sightline.web.bodies import Query
from sightline.web.replies import GUARDED
from sightline.web.routes import Calls
from sightline.workbench.api import Api, Providers, about, calibration_calls
from sightline.workbench.cache_report import CacheReports
from sightline.workbench.cache_turns import TurnExaminer
from sightline.workbench.caps import cap_calls
from sightline.workbench.command_relay import CommandCalls
from sightline.workbench.context import ContextMeter
from sightline.workbench.costs import CostReport
from sightline.workbench.exchange_views import Showing
from sightline.workbench.exchanges import Documents, Exchanges, Forgetting, Replays
from sightline.workbench.interceptions import HoldDecisions, Interceptions
from sightline.workbench.page_settings import RecordCalls, SavedTrafficFilters
from sightline.workbench.session_lines import SessionLines
from sightline.workbench.sessions import Sessions
from sightline.workbench.shapes import Place
from sightline.workbench.sharing import SharingCalls
from sightline.workbench.workbench import Access, ExampleRecord, Workbench


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of a workbench. A server that answers from recorded exchanges holds and sends nothing: there `relay`,
    `resending`, `chat`, `runs`, `evals`, `commands`, `metrics` and `example` are None."""

    access: Access
    hub: Hub
    store: Store
    memory: Memory
    catalog: Catalog
    has_key: Callable[[Provider], bool]
    address: str
    now: Callable[[], float]
    prices: PriceList
    relay: Relay | None = None
    resending: Resender | None = None
    chat: ChatParts | None = None
    runs: Runs | None = None
    evals: EvalCalls | None = None
    commands: CommandCalls | None = None
    providers: Providers | None = None
    metrics: Metrics | None = None
    toolsets: Sequence[str] = ()
    workers: Workers | None = None
    further: Calls = field(default_factory=dict)
    example: ExampleRecord | None = None
    caps: Caps | None = None
    plugins: Plugins | None = None
    redacted_patterns: Sequence[str] = ()
    record: RecordCalls | None = None

    async def unwritten(self, exchange: str) -> list[FactEntry]:
        """Facts of an exchange under way, here or in a worker, that are not on record yet."""
        found = [] if self.relay is None else self.relay.unwritten(exchange)
        return found if found or self.workers is None else await self.workers.unwritten(exchange)

    async def wait_until_learned(self) -> None:
        """Wait until the estimates have learned from everything that providers have counted so far."""
        if self.relay is not None:
            await self.relay.wait_until_learned()
        if self.workers is not None:
            await self.workers.wait_until_learned()

    async def close(self, grace: float) -> None:
        """End background work that no client waits for."""
        await self.leave_runs()
        await self.leave_pages()
        if self.resending is not None:
            await self.resending.close(grace)
        if self.chat is not None:
            await self.chat.chats.close(grace)
        if self.workers is not None:
            await self.workers.close(grace)

    async def leave_pages(self) -> None:
        """End the streams of events, which never end by themselves, and the example."""
        self.hub.close()
        if self.example is not None:
            await self.example.close()

    async def leave_runs(self) -> None:
        """Leave runs in a state from which they can be resumed, before their requests are aborted."""
        if self.evals is not None:
            await self.evals.close()
        if self.runs is not None:
            await self.runs.close()


def assemble_workbench(parts: Parts) -> Workbench:
    """Build the workbench."""
    relay, providers, metrics, record = parts.relay, parts.providers, parts.metrics, parts.record
    holds = Holds(parts.memory, parts.now) if relay is None else relay.holds
    records = Records(parts.store, parts.now, parts.prices, parts.unwritten)
    exchanges = Exchanges(records, parts.now, holds)
    viewing = Viewer(holds, records, parts.catalog, parts.memory)
    showing = Showing(holds, records, viewing)
    meter = ContextMeter(viewing, parts.now)
    examiner = TurnExaminer(viewing, parts.now)
    caches = CacheReports(examiner)
    costs = CostReport(parts.store, parts.prices, parts.now)
    sessions = Sessions(examiner, parts.now)
    lines = SessionLines(records, parts.now)
    filters = SavedTrafficFilters(parts.store.logbook, parts.now)
    sharing = SharingCalls(parts.store, parts.catalog, parts.now, parts.redacted_patterns, parts.plugins)
    api = Api(
        exchanges=exchanges,
        showing=showing,
        replays=Replays(exchanges, parts.resending),
        documents=Documents(parts.resending),
        forgetting=Forgetting(records, parts.hub, parts.now, None if parts.chat is None else parts.chat.chats.erase),
        about=lambda: about(
            version("sightline"),
            parts.address,
            parts.catalog,
            parts.has_key,
            places=_places(parts),
            toolsets=parts.toolsets,
            workers=1 if parts.workers is None else parts.workers.serving,
            panels=list_panels(parts.plugins),
            formats=sharing.formats,
        ),
        deciding=None if relay is None else HoldDecisions(holds, records, viewing, showing),
        interceptions=None if relay is None else Interceptions(holds, parts.hub),
        further={
            **calibration_calls(parts.memory, parts.wait_until_learned),
            "cache": {"GET": lambda call: caches.read(Query(call.query))},
            "context": {"GET": lambda call: meter.read(Query(call.query))},
            "filters": {"GET": lambda _call: filters.read(), "PUT": lambda call: filters.replace(call.receive)},
            **(
                {}
                if record is None
                else {
                    "record": {
                        "GET": lambda _call: record.read(),
                        "PUT": lambda call: record.replace(call.receive),
                    }
                }
            ),
            "share": {"POST": lambda call: sharing.share(call.receive)},
            "import": {"POST": lambda call: sharing.import_file(call.receive)},
            "sessions": {"GET": lambda call: lines.list(Query(call.query))},
            "sessions/*": {"GET": lambda call: sessions.read(call.name)},
            "turns": {"GET": lambda call: sessions.details(Query(call.query))},
            "exchanges/*/conversation": {"GET": lambda call: showing.conversation(call.name)},
            "exchanges/*/place": {"GET": lambda call: sessions.place(call.name)},
            "costs": {"GET": lambda call: costs.read(Query(call.query))},
            **({} if metrics is None else {"metrics": {"GET": lambda _call: _scrape(metrics, parts.workers)}}),
            **cap_calls(parts.caps),
            **({} if parts.chat is None else chat_calls(parts.chat, records)),
            **({} if parts.runs is None else run_calls(parts.runs)),
            **({} if parts.evals is None else eval_calls(parts.evals)),
            **({} if providers is None else {"providers": {"GET": lambda _call: providers.list_providers()}}),
            **plugin_calls(parts.plugins),
            **parts.further,
        },
    )
    return Workbench(parts.access, api, parts.hub, lambda: exchanges.trouble, parts.commands, parts.example)


async def _scrape(metrics: Metrics, workers: Workers | None) -> WebResponse:
    """The metrics of all processes as Prometheus reads them; they are counted from the first time on."""
    metrics.is_counting = True
    if workers is not None:
        together = Metrics(0)
        for packed in (metrics.pack(), *await workers.metrics()):
            together.add(packed)
        metrics = together
    return WebResponse(200, metrics.prometheus().encode(), [(b"content-type", TEXT_FORMAT), *GUARDED])


def _places(parts: Parts) -> tuple[Place, ...]:
    """The views that this server's page offers."""
    others: tuple[tuple[Place, object], ...] = (
        ("chat", parts.chat),
        ("runs", parts.runs),
        ("evals", parts.evals),
        ("example", parts.example),
    )
    return ("traffic", *(place for place, part in others if part is not None))


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
    replaces the data folder's own. With `replay`, clients get the answers of these recorded exchanges and nothing is
    sent to a provider; with `fast`, without the recorded delays. With `has_recorder`, a process of its own stores what
    is recorded. `workers` is how many processes serve clients, this one among them."""
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
            catalog=loaded.catalog,
            has_key=loaded.has_key,
            address=address,
            now=clock.now,
            prices=price_list(loaded.catalog),
            toolsets=tuple(loaded.settings.tools),
            plugins=loaded.plugins,
            redacted_patterns=loaded.settings.export.patterns,
            record=RecordCalls(retention, _record_place(store or loaded.settings.store.url, folder)),
        )
        handler: RequestHandler
        # It is asked for when the gateway and the server are there.
        proxy = make_proxy(loaded, folder, token, lambda: (gateway, listening))
        stack.push_async_callback(proxy.close)
        if replay is None:
            example = _make_example(folder, Access(token, port), address, guard)
            parts = partial(parts, further=proxy_calls(proxy, loaded), example=example)
            served = await open_parts(
                loaded, folder, record, stack, parts, at=(host, port), guard=guard, workers=workers, store=store
            )
            assert served.relay is not None
            handler = served.relay
        else:
            library = Library(record)
            await library.fill(replay, now=clock.now())
            handler = ReplayHandler(library, clock, fast=fast)
            served = parts(hub=Hub(record.record), memory=Memory(folder, clock.now))

        async def ending() -> None:
            withdraw(folder, address)  # no command begins now that would be aborted
            if served.workers is not None:
                served.workers.begin_end()
            await served.leave_pages()
            await proxy.close()
            await served.leave_runs()
            commands = () if served.commands is None else (served.commands.close(GRACE),)
            await asyncio.gather(handler.close(GRACE), *commands)

        longest = loaded.settings.server.max_message_mb << 20
        gateway = Gateway(handler, loaded.catalog, loaded.has_key, clock.monotonic, served.relay, longest)
        # The relay tells each client that it has to end; only a client that does not react is disconnected.
        listening = ListeningServer(App(guard, gateway, assemble_workbench(served)), ending=ending, grace=GRACE + 2)

        async def end() -> None:
            await served.close(0 if listening.force_exit else GRACE)

        stack.push_async_callback(end)
        if served.workers is not None:
            await served.workers.start(listening)
        if replay is None:  # one that answers from the record sends nothing for a command
            announce(folder, address)
            stack.callback(withdraw, folder, address)
        yield listening, f"{address}/?token={token}"


def _start_retention(record: Store, clock: SystemClock, keep: StoreSettings, stack: AsyncExitStack) -> Retention:
    """What forgets old exchanges, from now on until the server ends."""
    kept = LoggedValue(record.logbook, RETENTION_LOG, RetentionSettings, clock.now)
    retention = Retention(record, clock, keep.keep_days, keep.keep_mb, kept)
    stack.push_async_callback(_cancel, asyncio.ensure_future(retention.run()))
    return retention


def _record_place(url: str, folder: Path) -> str:
    """Where the record is: its folder, or its database without the password."""
    if not url:
        return str(folder.absolute())
    at = urlsplit(url)
    return at._replace(netloc=at.netloc.rpartition("@")[2], query="").geturl()


def _entrance(loaded: Configuration, host: str, port: int) -> tuple[str, OriginGuard]:
    """The address as a user would type it, and the guard for it."""
    name = host_name(host)
    origins = frozenset(map(str.lower, loaded.settings.server.allowed_origins))
    # Every address of the machine is none that a browser can open.
    shown = {"localhost": "127.0.0.1", "0.0.0.0": "127.0.0.1", "[::]": "[::1]"}.get(name, name)
    address = f"http://{shown}:{port}"
    return address, OriginGuard(port, frozenset({*LOOPBACK, name}), origins)


def _make_example(folder: Path, access: Access, address: str, guard: OriginGuard) -> ExampleRecord:
    """The example that this server's page can show."""
    from sightline.app.example import Example, open_example  # few ever ask for it

    return Example(lambda: open_example(folder, access, address, guard))


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
    """A relay to the providers, and everything that sends through it. `at` is where the server listens."""
    (loaded, for_worker), own = divide_connections(loaded, workers), frozenset({at})
    clock, means = SystemClock(), means_of(loaded, folder, stack, store)
    stack.callback(asyncio.create_task(save_regularly(means.memory)).cancel)
    kept = KeptInterception(folder)
    # A collector gets everything from the start; Prometheus what comes after it has asked for the first time.
    is_counting = bool(loaded.settings.telemetry.otlp_endpoint)
    metrics = Metrics(clock.now(), price_list(loaded.catalog), is_counting=is_counting)
    relay, hub = await make_relay(
        loaded, means, record.record, stack, own=own, is_told=True, interception=kept, metrics=metrics
    )
    records = Records(record, clock.now, price_list(loaded.catalog))
    relay.read_from(records)
    if means.caps is not None:
        means.caps.on_notice = partial(hub.announce, "cap")
    resending = Resender(relay, record, ResendSources(loaded.catalog, loaded.environment), clock)
    aside, _ = await make_relay(loaded, means, nowhere, stack, own=own)
    engine = Engine(relay, aside, RequestCounter(means.memory), means.memory, clock)
    runner, toolsets = runner_of(loaded, engine, record.logbook, store=record, hub=hub), toolsets_of(loaded)
    stack.push_async_callback(toolsets.close)
    rules = KeptRules(folder)
    answering = ToolAnswerer(engine, runner, toolsets.open_toolsets, rules)
    chat = open_chat(loaded, engine, hub, record.logbook, answering)
    root, suites = suites_place(loaded)
    evaluation = evaluation_of(
        loaded, engine, record, root, hub=hub, runner=runner, toolsets=toolsets, client=means.client
    )
    evals = evals_of(
        loaded,
        evaluation,
        record,
        suites,
        clock,
        relaying=lambda other: relay_of(other, means, hub, relay.holds, own),
    )
    chat.chats.main.chat.warm()
    on_cap = None if means.caps is None else means.caps.notice
    shared = MainParts(
        hub, relay.holds, means.memory.ledger, means.embedded, record.facts, records.read, clock.now, on_cap
    )
    return parts(
        hub=hub,
        memory=means.memory,
        relay=relay,
        resending=resending,
        chat=chat,
        runs=Runs(runner, toolsets, chat.chats.resume_run, Approvals(rules)),
        evals=evals,
        commands=_command_calls(loaded, means, relay, hub, aside),
        caps=means.caps,
        workers=None if workers == 1 else _make_workers(for_worker, folder, workers - 1, at, guard, shared, store),
        metrics=metrics,
        providers=Providers(
            loaded.catalog,
            loaded.has_key,
            loaded.environment,
            probe=lambda request: probe(means.client, request),
            embedded=lambda: why_no_embedded_model(means.embedded, means.client),
        ),
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
    """So many workers with this configuration, for the server that listens at this address."""

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


def _command_calls(loaded: Configuration, means: SendingMeans, relay: Relay, hub: Hub, aside: Relay) -> CommandCalls:
    """What sends the requests of commands that run beside this server."""
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
