"""The one place where the program is wired together, and where clock, randomness, environment and files come in."""

import asyncio
import os
import random
import secrets
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from sightline.catalog.catalog import Catalog
from sightline.catalog.facts import Prices
from sightline.catalog.loading import Loaded, load
from sightline.catalog.lookup import facts_of
from sightline.catalog.problem import Problem
from sightline.catalog.provider import Provider
from sightline.catalog.toml import TomlText
from sightline.engine.counting import Counter
from sightline.engine.memory import Memory
from sightline.errors import Code, Fault
from sightline.settings import Settings
from sightline.transport.embedded.diagnosis import Finding, diagnose
from sightline.transport.embedded.process import EmbeddedModel
from sightline.transport.http.client import HttpClient
from sightline.transport.http.proxies import Proxies
from sightline.transport.http.timeouts import Timeouts
from sightline.transport.http.trust import Trust
from sightline.transport.sender import Sender
from sightline.wire.call import HttpRequest

if TYPE_CHECKING:
    from sightline.engine.engine import Engine
    from sightline.engine.hub import Hub, Record
    from sightline.engine.relay import Relay
    from sightline.engine.relayed import Relaying
    from sightline.engine.replaying import Replaying
    from sightline.filter.expression import Expression
    from sightline.server.listening import Listening
    from sightline.store.entries import Entry
    from sightline.store.folding import PriceList
    from sightline.store.store import Store

FILE_NAME = "sightline.toml"
_LONGEST_FILE = 4 << 20
_BUILT_IN = ("providers.toml", "detections.toml", "families.toml", "models.toml")


class SystemClock:
    """The machine's own time."""

    def now(self) -> float:
        """Seconds since 1970."""
        return time.time()

    def elapsed(self) -> float:
        """Seconds since some moment."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)


@dataclass(frozen=True, slots=True)
class Configuration:
    """What is in force: the catalogue and the settings, the file that they came from, and the environment."""

    catalog: Catalog
    settings: Settings
    path: Path | None
    environment: Mapping[str, str]
    problems: tuple[Problem, ...] = ()

    def has_key(self, provider: Provider) -> bool:
        """Whether the provider's key is in the environment, or it takes none."""
        return not provider.key_env or bool(self.environment.get(provider.key_env, "").strip())


def configuration(named: str | None) -> Configuration:
    """The configuration, which must be sound."""
    loaded, path = _loaded(named)
    return _configuration(loaded.sound(), path)


def examined(named: str | None) -> Configuration:
    """The configuration with everything that is wrong with it."""
    loaded, path = _loaded(named)
    return _configuration(loaded, path)


def config_file(named: str | None) -> Path | None:
    """The file that is in use: the one that was named, else the one here, else the user's."""
    named = named or os.environ.get("SIGHTLINE_CONFIG", "").strip()
    if named:
        return Path(named)
    return next((path for path in (Path(FILE_NAME), config_home()) if _is_there(path)), None)


def config_home() -> Path:
    """Where the user's own file is looked for."""
    return _home("XDG_CONFIG_HOME", ".config") / FILE_NAME


def data_folder(named: str | None) -> Path:
    """Where Sightline keeps what it learns."""
    named = named or os.environ.get("SIGHTLINE_DATA", "").strip()
    return Path(named) if named else _home("XDG_DATA_HOME", ".local/share")


def counter(data: str | None) -> Counter:
    """What estimates how many tokens a request has, with what was learned so far."""
    return Counter(Memory(data_folder(data), SystemClock().now))


@asynccontextmanager
async def open_engine(loaded: Configuration, data: str | None, *, is_recorded: bool = True) -> AsyncIterator["Engine"]:
    """An engine that is ready to send, and is closed with all that it started. A record that cannot be opened keeps
    nobody from an answer: the engine says what is wrong with it."""
    from sightline.engine.engine import Engine

    clock, folder = SystemClock(), data_folder(data)
    unrecorded: Fault | None = None
    async with AsyncExitStack() as stack:
        record: Record = _nowhere
        if is_recorded:
            try:
                store = await _store(loaded, folder, "", clock)
            except Fault as fault:
                unrecorded = fault
            else:
                stack.push_async_callback(store.close)
                record = store.record
        means = _means(loaded, folder, stack)
        aside, _ = await _relay(loaded, means, _nowhere, stack)
        relay, _ = await _relay(loaded, means, record, stack, is_told=is_recorded)
        yield Engine(relay, aside, Counter(means.memory), means.memory, clock, unrecorded)


@asynccontextmanager
async def open_record(loaded: Configuration, data: str | None, store: str = "") -> AsyncIterator["Store"]:
    """The record, also while a server writes to it. `store` is the URL of a database in place of the folder's own."""
    record = await _store(loaded, data_folder(data), store, SystemClock())
    try:
        await record.settle()
        yield record
    finally:
        await record.close()


@asynccontextmanager
async def open_relay(
    loaded: Configuration, data: str | None, *, store: str = ""
) -> AsyncIterator[tuple["Relay", "Store"]]:
    """A relay without a server, and the record that it writes to."""
    clock, folder = SystemClock(), data_folder(data)
    async with AsyncExitStack() as stack:
        record = await _store(loaded, folder, store, clock)
        stack.push_async_callback(record.close)
        relay, _ = await _relay(loaded, _means(loaded, folder, stack), record.record, stack, is_told=True)
        yield relay, record


@asynccontextmanager
async def open_server(
    loaded: Configuration,
    data: str | None,
    *,
    host: str,
    port: int,
    store: str = "",
    replay: "Expression | None" = None,
    fast: bool = False,
) -> AsyncIterator[tuple["Listening", str]]:
    """A server for sockets at this address, and the link that opens its page. `store` is the URL of a database in place
    of the data folder's own. With `replay`, clients are answered from these exchanges of the record and nothing is
    sent to anybody; `fast` does so without the waits that there were."""
    # Commands that serve nobody start without all of this.
    from sightline.engine.hub import Hub
    from sightline.engine.resending import Means, Resending
    from sightline.engine.retention import Retention
    from sightline.server.app import App
    from sightline.server.gateway.gateway import Gateway
    from sightline.server.guard import LOOPBACK, Guard, host_name
    from sightline.server.listening import GRACE, Listening
    from sightline.server.token import kept_token
    from sightline.server.workbench.access import Access
    from sightline.server.workbench.exchanges import Exchanges
    from sightline.server.workbench.replays import Replays
    from sightline.server.workbench.workbench import Workbench

    clock, folder = SystemClock(), data_folder(data)
    token = kept_token(folder, lambda: secrets.token_urlsafe(24))
    async with AsyncExitStack() as stack:
        record = await _store(loaded, folder, store, clock)
        stack.push_async_callback(record.close)
        keep = loaded.settings.store
        tending = asyncio.ensure_future(Retention(record, clock, keep.keep_days, keep.keep_mb).run())
        stack.push_async_callback(_ended, tending)
        relay: Relaying
        resending: Resending | None = None
        if replay is None:
            means = _means(loaded, folder, stack)
            own = frozenset({(host, port)})
            relay, hub = await _relay(loaded, means, record.record, stack, own=own, is_told=True)
            resending = Resending(relay, record, Means(loaded.catalog, loaded.environment), clock)
        else:
            relay, hub = await _replaying(record, replay, clock, fast=fast), Hub(record.record)
        address = f"http://{LOOPBACK[0] if host_name(host) == 'localhost' else host_name(host)}:{port}"
        guard = Guard(
            port,
            frozenset({*LOOPBACK, host_name(host)}),
            frozenset(map(str.lower, loaded.settings.server.allowed_origins)),
        )
        exchanges = Exchanges(record, clock.now, _prices(loaded.catalog))
        workbench = Workbench(Access(token, port), exchanges, hub, address, Replays(exchanges, resending))

        async def ending() -> None:
            hub.close()  # listeners never end by themselves
            await relay.close(GRACE)

        app = App(guard, Gateway(relay, loaded.catalog, loaded.has_key, clock.elapsed), workbench)
        # The relay tells each client that it has to end; only who does not hear it is cut off.
        listening = Listening(app, ending=ending, grace=GRACE + 2)

        async def ended() -> None:
            if resending is not None:  # what no client waits for is not among the server's requests
                await resending.close(0 if listening.force_exit else GRACE)

        stack.push_async_callback(ended)
        yield listening, f"{address}/?token={token}"


@dataclass(frozen=True, slots=True)
class _Means:
    """What relays send with, which all of a program's relays share."""

    memory: Memory
    embedded: EmbeddedModel
    client: HttpClient


def _means(loaded: Configuration, folder: Path, stack: AsyncExitStack) -> _Means:
    """They start nothing before they are needed; the stack closes them."""
    means = _Means(Memory(folder, SystemClock().now), embedded_model(loaded), _client(loaded))
    stack.callback(means.memory.save)
    stack.push_async_callback(means.embedded.close)
    stack.push_async_callback(means.client.close)
    return means


async def _relay(
    loaded: Configuration,
    means: _Means,
    record: "Record",
    stack: AsyncExitStack,
    *,
    own: frozenset[tuple[str, int]] = frozenset(),
    is_told: bool = False,
) -> tuple["Relay", "Hub"]:
    """A relay to the providers, and the hub that tells what it does; what `is_told` goes to the collector too."""
    from sightline.engine.hub import Hub
    from sightline.engine.relay import Relay

    if is_told and loaded.settings.telemetry.otlp_endpoint:
        record = _also(record, await _telemetry(loaded, means.client, stack))
    clock, hub = SystemClock(), Hub(record)
    relay = Relay(
        catalog=loaded.catalog,
        environment=loaded.environment,
        sender=Sender(means.client, clock, random.random, means.memory.ledger),
        embedded=means.embedded,
        memory=means.memory,
        hub=hub,
        clock=clock,
        make_id=Ids(time.time_ns, _chance()),
        own=own,
    )
    return relay, hub


def _also(record: "Record", told: "Record") -> "Record":
    """Recording, of which another hears once it is done."""

    def recorded(entries: Sequence["Entry"]) -> None:
        record(entries)
        told(entries)

    return recorded


def _nowhere(_entries: Sequence["Entry"]) -> None:
    """For what is on no record."""


async def _replaying(record: "Store", wanted: "Expression", clock: SystemClock, *, fast: bool) -> "Replaying":
    from sightline.engine.recording.library import Library
    from sightline.engine.replaying import Replaying

    library = Library(record)
    await library.fill(wanted, now=clock.now())
    return Replaying(library, clock, fast=fast)


async def _telemetry(loaded: Configuration, client: HttpClient, stack: AsyncExitStack) -> "Record":
    """What tells a collector of everything that is recorded."""
    from importlib.metadata import version

    from sightline.engine.telemetry.exporter import Exporter

    told = loaded.settings.telemetry
    values = {name: loaded.environment.get(variable, "").strip() for name, variable in told.env_headers.items()}
    headers = {name: value for name, value in values.items() if value}
    exporter = Exporter(
        client, told.otlp_endpoint, version=version("sightline"), headers=headers, with_content=told.content
    )
    await stack.enter_async_context(exporter)
    return exporter.took


def _chance() -> Callable[[], str]:
    """Six hexadecimal digits at a time. Nothing hangs on their being guessed, so that the system is asked only once."""
    source = random.Random(secrets.randbits(128))
    return lambda: f"{source.getrandbits(24):06x}"


class Ids:
    """Names for exchanges, which sort as they were made: microseconds since 1970, never twice the same, and some chance
    for those who share a record."""

    def __init__(self, nanoseconds: Callable[[], int], chance: Callable[[], str]) -> None:
        self._nanoseconds = nanoseconds
        self._chance = chance
        self._last = 0

    def __call__(self) -> str:
        """The next one."""
        self._last = max(self._last + 1, self._nanoseconds() // 1000)
        return f"x_{self._last:014x}{self._chance()}"


def embedded_model(loaded: Configuration) -> EmbeddedModel:
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


async def diagnosed(loaded: Configuration) -> list[Finding]:
    """What is right and wrong with the embedded model."""
    model = embedded_model(loaded)
    async with HttpClient(trust=Trust(environment={}), proxies=Proxies.of({})) as client:

        async def post(request: HttpRequest) -> tuple[int, bytes]:
            async with await client.send(request, Timeouts(), direct=True) as response:
                return response.status, await response.read()

        try:
            return await diagnose(model, post)
        finally:
            await model.close()


def _client(loaded: Configuration) -> HttpClient:
    network = loaded.settings.network
    return HttpClient(
        trust=Trust(ca_file=network.ca_file, environment=loaded.environment),
        proxies=Proxies.of(loaded.environment),
        max_connections=network.max_connections,
    )


async def _ended(task: "asyncio.Future[None]") -> None:
    """Stop it, and wait until it has."""
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def _store(loaded: Configuration, folder: Path, url: str, clock: SystemClock) -> "Store":
    prices = _prices(loaded.catalog)
    url = url or loaded.settings.store.url
    if not url:
        from sightline.store.sqlite import open_store

        return await open_store(folder, prices=prices, now=clock.now)
    from sightline.store.postgres import open_postgres

    return await open_postgres(url, folder, prices=prices, now=clock.now)


def _prices(catalog: Catalog) -> "PriceList":
    @lru_cache(maxsize=1024)
    def prices(provider: str, model: str) -> Prices | None:
        return facts_of(catalog, provider, model).prices

    return prices


def _loaded(named: str | None) -> tuple[Loaded[Settings], Path | None]:
    path = config_file(named)
    folder = files("sightline.catalog") / "data"
    documents = [TomlText(name, (folder / name).read_text("utf-8"), builtin=True) for name in _BUILT_IN]
    if path is not None:
        documents.append(TomlText(str(path), _text(path)))
    return load(documents, os.environ, Settings), path


def _configuration(loaded: Loaded[Settings], path: Path | None) -> Configuration:
    catalog, window = loaded.catalog, loaded.settings.local.context_window
    served = {provider.default_model for provider in catalog.providers.values() if provider.embedded}
    models = {
        name: msgspec.structs.replace(model, context_window=window) if name in served else model
        for name, model in catalog.models.items()
    }
    catalog = msgspec.structs.replace(catalog, models=models)
    return Configuration(catalog, loaded.settings, path, dict(os.environ), loaded.problems)


def _is_there(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # somebody else's folder: there is nothing in it for us
        return False


def _text(path: Path) -> str:
    try:
        with path.open(encoding="utf-8") as file:
            text = file.read(_LONGEST_FILE + 1)
        if len(text) > _LONGEST_FILE:
            raise Fault(Code.CONFIG, f"{path}: too long for a configuration", hint="Is it another file?")
        return text
    except OSError as error:
        hint = "Check the path, or leave --config out."
        raise Fault(Code.CONFIG, f"{path}: {error.strerror}", hint=hint) from None
    except UnicodeDecodeError as error:
        raise Fault(Code.CONFIG, f"{path}: not UTF-8 (byte {error.start})", hint="Save it as UTF-8.") from None


def _home(variable: str, otherwise: str) -> Path:
    """The user's folder for Sightline, by the desktop's convention."""
    named = os.environ.get(variable, "").strip()
    if named:
        return Path(named) / "sightline"
    try:
        return Path.home() / otherwise / "sightline"
    except RuntimeError:
        raise Fault(
            Code.CONFIG,
            "this user has no home folder",
            hint=f"Set HOME or {variable}, or name the file with --config and the folder with --data.",
        ) from None
