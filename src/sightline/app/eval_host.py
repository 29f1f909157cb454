"""A process that runs cases on another machine of a cluster. Its engine is built from what the main process sends; it
stores nothing."""

import asyncio
import os
import platform
import secrets
import shutil
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from pathlib import Path

import msgspec

from sightline.agent.service.runner import Runner
from sightline.agent.service.runner import RunnerOptions as RunSurroundings
from sightline.agent.service.toolsets import Toolsets
from sightline.agent.tools.opening import Opened, open_toolsets
from sightline.app.configuration import Configuration
from sightline.app.engine import RelayResources, http_client, make_embedded_model, make_relay, nowhere
from sightline.app.machine import Ids, SystemClock, chance, is_alive, process_name
from sightline.app.tools import tool_surroundings
from sightline.catalog.loading import variables_of
from sightline.evals.core.options import is_cached
from sightline.evals.core.run_state import EvalBegan, read
from sightline.evals.service.case_worker import Worker, open_case_worker
from sightline.evals.service.cluster.bundle import unpack
from sightline.evals.service.cluster.host import Host
from sightline.evals.service.cluster.host_services import (
    FarLogbook,
    FarMemory,
    FarSharing,
    FarSpending,
    HostLine,
    recording,
)
from sightline.evals.service.cluster.messages import Begin, Introduction, pack
from sightline.evals.service.context import EvalContext, EvalRun
from sightline.exchange.engine import Engine
from sightline.exchange.request_counter import RequestCounter
from sightline.store.summary import price_list
from sightline.transport.embedded.process import KEY_VARIABLE

_PREFIX = "sightline-host-"
_OWNER = "owner"
_NO_FOLDER = ".sightline-keeps-nothing"


def introduction() -> Introduction:
    """The versions and the name of this process."""
    python = ".".join(platform.python_version_tuple()[:2])
    return Introduction(version("sightline"), python, process_name())


@asynccontextmanager
async def open_host(begin: Begin, line: HostLine, root: Path, environment: Mapping[str, str]) -> AsyncIterator[Worker]:
    """A worker that runs cases below `root`. It uses the keys that the main process sends, never those of this
    machine."""
    began = read(begin.began)
    assert isinstance(began, EvalBegan)
    known = frozenset({*variables_of(begin.catalog), KEY_VARIABLE} - {""})
    around = {name: value for name, value in environment.items() if name not in known} | begin.variables
    loaded = Configuration(begin.catalog, begin.settings, root / begin.config if begin.config else None, around)
    clock, prices = SystemClock(), price_list(begin.catalog)
    async with AsyncExitStack() as stack:
        memory = FarMemory(line, begin.calibration, root / _NO_FOLDER, clock.now)
        means = RelayResources(memory, make_embedded_model(loaded), http_client(loaded))
        stack.push_async_callback(means.embedded.close)
        stack.push_async_callback(means.client.close)
        aside, _ = await make_relay(loaded, means, nowhere, stack)
        relay, _ = await make_relay(loaded, means, partial(recording, line), stack)
        relay.holds.set_masks(msgspec.to_builtins(begin.masks))
        sharing = FarSharing(line, prices, is_cached=is_cached(began.suite, began.options))
        engine = Engine(relay, aside, RequestCounter(memory), memory, clock, limits=sharing.rates.wait)
        logbook, ids = FarLogbook(line), Ids(time.time_ns, chance())
        toolsets = _toolsets(loaded, root)
        stack.push_async_callback(toolsets.close)
        where = EvalContext(
            catalog=begin.catalog,
            has_key=loaded.has_key,
            make_id=ids,
            root=root,
            environment=around,
            secrets=known,
            default_model=begin.settings.ask.model,
            process=begin.process,
            is_alive=is_alive,
            prices=prices,
            runner=Runner(engine, logbook, RunSurroundings(begin.catalog, ids, begin.process, is_alive)),
            open_tools=toolsets.open_toolsets,
            client=means.client,
            make_token=lambda: secrets.token_urlsafe(32),
        )
        specs = [spec for spec in began.targets if spec.name in begin.targets]
        run = EvalRun(begin.run, began, engine, logbook, where, FarSpending(line))
        async with open_case_worker(run, specs, sharing) as worker:
            yield worker


def _toolsets(loaded: Configuration, root: Path) -> Toolsets:
    """The toolsets of the configuration, run in the folder of the suites."""

    async def opening(names: Sequence[str]) -> Opened:
        where = replace(tool_surroundings(loaded, None if loaded.path else root), folder=root)
        return await open_toolsets({name: loaded.settings.tools[name] for name in names}, where)

    return Toolsets(tuple(loaded.settings.tools), opening)


def _folder() -> Path:
    """Make a folder for this process. Folders left by killed processes of this machine are removed."""
    machine = process_name().partition(":")[0]
    for left in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        try:
            owner = (left / _OWNER).read_text()
        except OSError:
            continue  # another user's, or just created
        if owner.partition(":")[0] == machine and not is_alive(owner):
            shutil.rmtree(left, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
    (folder / _OWNER).write_text(process_name())
    return folder


class HostProcess:
    """A host with its own event loop, which the cluster can call from any thread. It calls `end` when the main process
    no longer listens."""

    def __init__(self, end: Callable[[int], object] = os._exit) -> None:
        self._end = end
        self._folder = _folder()
        self._root = self._folder / "files"
        self._root.mkdir()
        self._loop = asyncio.new_event_loop()
        self._is_up = threading.Event()
        self._host: Host | None = None
        self.thread = threading.Thread(target=self._live, name="sightline-host", daemon=True)
        self.thread.start()
        self._is_up.wait()

    def introduce(self) -> bytes:
        """The versions and the name of this process, encoded."""
        return pack(introduction())

    def unpack(self, bundle: bytes) -> None:
        """Unpack these files."""
        unpack(bundle, self._root)

    def tell(self, data: bytes) -> None:
        """Pass on a message from the main process."""
        self._loop.call_soon_threadsafe(self._here.receive, data)

    def listen(self) -> bytes:
        """The next batch for the main process; empty if there is nothing for a while."""
        return asyncio.run_coroutine_threadsafe(self._here.next(), self._loop).result()

    @property
    def _here(self) -> Host:
        assert self._host is not None  # it is up
        return self._host

    def _live(self) -> None:
        try:
            self._loop.run_until_complete(self._watch())
        finally:
            self._loop.close()
            self._end(0)

    async def _watch(self) -> None:
        self._host = Host(self._open, SystemClock())
        self._is_up.set()
        await self._host.watch()

    @asynccontextmanager
    async def _open(self, begin: Begin, line: HostLine) -> AsyncIterator[Worker]:
        try:
            async with open_host(begin, line, self._root, os.environ) as worker:
                yield worker
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)
