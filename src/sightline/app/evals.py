"""Builds runs of suites from an engine, a logbook and the configuration, on this machine and on those of a cluster."""

import asyncio
import importlib
import logging
import os
import platform
import random
import re
import secrets
import shutil
import threading
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec

from sightline.agent.service.runner import Runner, RunnerOptions
from sightline.agent.tools.commands import without_variables
from sightline.agent.tools.opening import Toolsets
from sightline.app.configuration import Configuration
from sightline.app.engine import Notice, RelayResources, http_client, make_embedded_model, make_relay, nowhere
from sightline.app.machine import Ids, SystemClock, is_alive, process_name, random_digits
from sightline.app.tools import open_recorded_engine, runner_of, secret_names, tool_surroundings, toolsets_of
from sightline.catalog.loading import variables_of
from sightline.evals.api.calls import EvalCalls
from sightline.evals.api.suites import EvalParts
from sightline.evals.core.run_state import EvalBegan, is_cached, read
from sightline.evals.core.statistics.intervals import Draw
from sightline.evals.service.case_worker import Worker, open_case_worker
from sightline.evals.service.cluster import host
from sightline.evals.service.cluster.host_pool import Elsewhere, HostPool, Needs
from sightline.evals.service.cluster.messages import Begin, Introduction, host_folder, pack, unpack
from sightline.evals.service.context import EvalContext, EvalRun
from sightline.evals.service.evaluation import Evaluation
from sightline.evals.service.suite_files import SuiteFiles
from sightline.evals.service.suite_targets import KnownTargets, SuiteTargets
from sightline.exchange.engine import Engine
from sightline.exchange.hub import Hub, Record
from sightline.exchange.outbound import secrets_of_provider
from sightline.exchange.relay import Relay
from sightline.exchange.request_counter import RequestCounter
from sightline.settings import Toolset
from sightline.store.store import Store
from sightline.transport.http.client import HttpClient
from sightline.transport.waiting import Clock

_SEED = 20_091_215
_LOG = logging.getLogger("sightline")
_VARIABLE = re.compile(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)")


def random_draws() -> Draw:
    """The random source for confidence intervals. Its seed is fixed, so that the same results give the same numbers."""
    source = random.Random(_SEED)
    return lambda below, count: source.choices(range(below), k=count)


def root_of(file: Path) -> Path:
    """The folder below which a suite may read files: its repository, otherwise the current folder if the suite is below
    it, otherwise the suite's own folder."""
    path, here = file.resolve(), Path.cwd()
    for folder in path.parents:
        if (folder / ".git").exists():
            return folder
    return here if here in path.parents else path.parent


def configuration_for(loaded: Configuration, root: Path, began: EvalBegan) -> Configuration:
    """The configuration with the providers that AgentV's file next to the suite defines for the targets of this run."""
    known = targets_for(loaded, SuiteFiles(root), began.suite.file)
    known.describe(began.suite)
    for spec in (*began.targets, *began.judges):
        if spec.name in known.names:
            known.spec(spec.name)
    return with_targets(loaded, known)


def targets_for(loaded: Configuration, files: SuiteFiles, suite: str) -> KnownTargets:
    """The targets that a suite can name with this configuration."""
    return KnownTargets(loaded.catalog, loaded.settings.evals, loaded.environment, files, suite)


def with_targets(loaded: Configuration, known: KnownTargets | SuiteTargets) -> Configuration:
    """The configuration with the providers and variables of these targets."""
    return replace(loaded, catalog=known.catalog, environment=known.environment)


def evaluation_of(
    loaded: Configuration,
    engine: Engine,
    store: Store,
    root: Path,
    *,
    hub: Hub | None = None,
    runner: Runner | None = None,
    toolsets: Toolsets | None = None,
    client: HttpClient | None = None,
    elsewhere: Elsewhere | None = None,
) -> Evaluation:
    """An `Evaluation`, which runs suites. `root` is the folder that contains the suites and their files. With
    `elsewhere`, cases run on other machines."""
    around = replace(
        _context(loaded, root),
        store=store,
        hub=hub,
        runner=runner,
        open_tools=None if toolsets is None else toolsets.open_toolsets,
        client=client,
        elsewhere=elsewhere,
    )
    return Evaluation(engine, store.logbook, around)


def _context(loaded: Configuration, root: Path) -> EvalContext:
    return EvalContext(
        catalog=loaded.catalog,
        has_key=loaded.has_key,
        make_id=Ids(time.time_ns, random_digits()),
        root=root,
        environment=loaded.environment,
        secrets=secret_names(loaded.catalog),
        default_model=loaded.settings.ask.model,
        process=process_name(),
        is_alive=is_alive,
        prices=loaded.prices,
        make_token=lambda: secrets.token_urlsafe(32),
    )


def secret_values(loaded: Configuration) -> tuple[str, ...]:
    """The values that no case may contain."""
    providers = loaded.catalog.providers.values()
    return tuple(dict.fromkeys(key for each in providers for key in secrets_of_provider(each, loaded.environment)))


@asynccontextmanager
async def open_evaluation(
    loaded: Configuration,
    data: str | None,
    root: Path,
    *,
    store: str = "",
    cluster: str = "",
    apart: bool = False,
    notice: Notice = _LOG.warning,
) -> AsyncIterator[Evaluation]:
    """An evaluation for a command; see `open_recorded_engine`. `cluster` is the address of a cluster that runs the
    cases. Its machines send requests themselves, because they cannot reach a server on this machine's loopback."""
    host_pool = _host_pool(cluster)
    apart = apart or host_pool is not None
    async with AsyncExitStack() as stack:
        opened = await stack.enter_async_context(open_recorded_engine(loaded, data, store, apart=apart, notice=notice))
        engine, record, means, hub = opened
        there = None if host_pool is None or hub is None else elsewhere(loaded, host_pool, hub.record, root)
        toolsets = toolsets_of(loaded)
        stack.push_async_callback(toolsets.close)
        runner = runner_of(loaded, engine, record.logbook, store=record)
        yield evaluation_of(
            loaded, engine, record, root, runner=runner, toolsets=toolsets, client=means.client, elsewhere=there
        )


def elsewhere(loaded: Configuration, host_pool: HostPool, record: Record, root: Path) -> Elsewhere:
    """The pool of other machines, with the parts of this configuration that they need."""
    config, top = (loaded.path or Path("sightline.toml")).resolve(), root.resolve()
    return Elsewhere(
        host_pool,
        record,
        loaded.settings,
        introduction(),
        config=_relative_path(config, top) or config.name,
        toolsets={name: _needs(loaded, table, top) for name, table in loaded.settings.tools.items()},
    )


def _host_pool(cluster: str) -> HostPool | None:
    if not cluster:
        return None
    from sightline.evals.service.cluster.host_pool import RayHostPool, ray_address

    return RayHostPool(ray_address(cluster), HostProcess, introduction(), import_ray)


def import_ray() -> Any:
    """Import Ray. Raises an ImportError if it is not installed."""
    # Otherwise Ray would start its own cluster on this machine when the connection to the named one is lost.
    os.environ["RAY_ENABLE_AUTO_CONNECT"] = "0"
    return importlib.import_module("ray")


def _needs(loaded: Configuration, table: Toolset, root: Path) -> Needs:
    """What a toolset needs on another machine: its files below `root`, and the variables that its MCP servers use."""
    around = tool_surroundings(loaded)
    paths = [around.path(text).resolve() for text in (table.python, table.mcp, table.folder, table.hooks) if text]
    # A file of functions may import others next to it. The topmost folder is not included as a whole: it is too much.
    beside = [path.parent for path in paths if path.suffix == ".py" and path.parent != root]
    files = tuple(found for path in (*paths, *beside) if (found := _relative_path(path, root)) is not None)
    mcp = around.path(table.mcp) if table.mcp else None
    text = mcp.read_text("utf-8", "replace") if mcp is not None and mcp.is_file() else ""
    return Needs(files, tuple(dict.fromkeys(_VARIABLE.findall(text))))


def _relative_path(path: Path, root: Path) -> str | None:
    return path.relative_to(root).as_posix() if path == root or root in path.parents else None


def suites_place(loaded: Configuration) -> tuple[Path, str]:
    """The folder below which suites may read files, and the folder of the suites, relative to it."""
    base = Path.cwd() if loaded.path is None else loaded.path.resolve().parent
    place = (base / loaded.settings.evals.folder).resolve()
    root = root_of(base / "sightline.toml")
    if root != place and root not in place.parents:
        return place, ""
    folder = place.relative_to(root).as_posix()
    return root, "" if folder == "." else folder


def evaluation_for(
    loaded: Configuration, evaluation: Evaluation, relaying: Callable[[Configuration], Relay], grown: Configuration
) -> Evaluation:
    """The evaluation for the configuration `grown`. If the suite, or AgentV's file next to it, defines providers that
    the configuration does not have, the evaluation gets a relay that knows them; everything else is shared."""
    around = evaluation.surroundings
    if grown.catalog is loaded.catalog:
        return evaluation
    engine = replace(evaluation.engine, relay=relaying(grown))
    runner = around.runner
    if runner is not None:
        runner = replace(runner, engine=engine, surroundings=replace(runner.surroundings, catalog=grown.catalog))
    around = replace(
        around,
        catalog=grown.catalog,
        has_key=grown.has_key,
        environment=grown.environment,
        secrets=around.secrets | frozenset(variables_of(grown.catalog)),
        prices=grown.prices,
        runner=runner,
    )
    return replace(evaluation, engine=engine, surroundings=around)


def evals_of(
    loaded: Configuration,
    evaluation: Evaluation,
    store: Store,
    folder: str,
    clock: Clock,
    *,
    relaying: Callable[[Configuration], Relay],
) -> EvalCalls:
    """The handlers of the page's eval calls; the caller closes them. `relaying` creates relays for other
    configurations."""
    make = partial(evaluation_for, loaded, evaluation, relaying)
    parts = EvalParts(
        evaluation,
        store,
        folder,
        random_draws,
        clock.now,
        without_variables(loaded.environment, secret_names(loaded.catalog)),
        secret_values(loaded),
        grown=lambda began: make(configuration_for(loaded, evaluation.surroundings.root, began)),
        grown_for=lambda answering: make(with_targets(loaded, answering)),
        targets=lambda file: targets_for(loaded, evaluation.files, file),
        judge=loaded.settings.evals.judge,
    )
    return EvalCalls(parts)


_NO_FOLDER = ".sightline-keeps-nothing"


def introduction() -> Introduction:
    """The versions and the name of this process."""
    python = ".".join(platform.python_version_tuple()[:2])
    return Introduction(version("sightline"), python, process_name())


@asynccontextmanager
async def open_host(
    begin: Begin, line: host.HomeConnection, root: Path, environment: Mapping[str, str]
) -> AsyncIterator[Worker]:
    """A worker that runs cases below `root`. It uses the keys that the main process sends, never those of this
    machine."""
    began = read(begin.began)
    assert isinstance(began, EvalBegan)
    around = without_variables(environment, secret_names(begin.catalog)) | begin.variables
    loaded = Configuration(begin.catalog, begin.settings, root / begin.config if begin.config else None, around)
    clock, where = SystemClock(), _context(loaded, root)
    async with AsyncExitStack() as stack:
        memory = host.RemoteMemory(line, begin.calibration, root / _NO_FOLDER, clock.now)
        means = RelayResources(memory, make_embedded_model(loaded), http_client(loaded))
        stack.push_async_callback(means.embedded.close)
        stack.push_async_callback(means.client.close)
        aside, _ = await make_relay(loaded, means, nowhere, stack)
        relay, _ = await make_relay(loaded, means, partial(host.recording, line), stack)
        relay.holds.set_masks(msgspec.to_builtins(begin.masks))
        sharing = host.FarSharing(line, where.prices, is_cached=is_cached(began.suite, began.options))
        engine = Engine(relay, aside, RequestCounter(memory), memory, clock, limits=sharing.rates.wait)
        logbook, options = host.FarLogbook(line), RunnerOptions(begin.catalog, where.make_id, begin.process, is_alive)
        toolsets = toolsets_of(loaded, root)
        stack.push_async_callback(toolsets.close)
        where = replace(
            where,
            process=begin.process,
            runner=Runner(engine, logbook, options),
            open_tools=toolsets.open_toolsets,
            client=means.client,
        )
        specs = [spec for spec in began.targets if spec.name in begin.targets]
        run = EvalRun(begin.run, began, engine, logbook, where, host.FarSpending(line))
        async with open_case_worker(run, specs, sharing) as worker:
            yield worker


class HostProcess:
    """A process on another machine of a cluster: a host with its own event loop, which the cluster can call from any
    thread. It stores nothing, and calls `end` when the main process no longer listens.

    None of its methods is a coroutine: if one were, Ray would call all of them on one thread, and messages of the main
    process would wait until `listen` returns.
    """

    def __init__(self, end: Callable[[int], object] = os._exit) -> None:
        self._end = end
        self._folder = host_folder(process_name(), is_alive)
        self._root = self._folder / "files"
        self._root.mkdir()
        self._loop = asyncio.new_event_loop()
        self._host = host.Host(self._open, SystemClock())
        self.thread = threading.Thread(target=self._live, name="sightline-host", daemon=True)
        self.thread.start()

    def introduce(self) -> bytes:
        """The versions and the name of this process, encoded."""
        return pack(introduction())

    def unpack(self, bundle: bytes) -> None:
        unpack(bundle, self._root)

    def tell(self, data: bytes) -> None:
        self._loop.call_soon_threadsafe(self._host.receive, data)

    def listen(self) -> bytes:
        """The next batch for the main process; empty if there is nothing for a while."""
        return asyncio.run_coroutine_threadsafe(self._host.next(), self._loop).result()

    def _live(self) -> None:
        try:
            self._loop.run_until_complete(self._host.watch())
        finally:
            self._loop.close()
            self._end(0)

    @asynccontextmanager
    async def _open(self, begin: Begin, line: host.HomeConnection) -> AsyncIterator[Worker]:
        try:
            async with open_host(begin, line, self._root, os.environ) as worker:
                yield worker
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)
