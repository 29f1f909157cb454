"""Build runs with tools from an engine, a logbook and the configuration."""

import logging
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from sightline.agent.service.runner import Runner, RunnerOptions
from sightline.agent.service.toolsets import Toolsets
from sightline.agent.tools.mcp.network import McpNetwork
from sightline.agent.tools.opening import Opened, open_toolsets
from sightline.agent.tools.opening import ToolContext as ToolSurroundings
from sightline.app.command_engine import Notice, engine_here, engine_through, running_server
from sightline.app.configuration import Configuration, data_folder
from sightline.app.machine import Ids, SystemClock, chance, is_alive, process_name
from sightline.app.parts import means_of, open_configured_store
from sightline.catalog.loading import variables_of
from sightline.exchange.engine import Engine
from sightline.exchange.hub import Hub
from sightline.store.logbook import Logbook
from sightline.store.store import Store
from sightline.transport.embedded.process import KEY_VARIABLE
from sightline.transport.http.proxies import Proxies
from sightline.transport.http.target import target
from sightline.transport.http.trust import Trust

_LOG = logging.getLogger("sightline")


def runner_of(
    loaded: Configuration, engine: Engine, logbook: Logbook, *, store: Store | None = None, hub: Hub | None = None
) -> Runner:
    """What starts and resumes runs. `store` has the record of the engine's exchanges; `hub` publishes to the page."""
    ids = Ids(time.time_ns, chance())
    return Runner(engine, logbook, RunnerOptions(loaded.catalog, ids, process_name(), is_alive, store, hub))


@asynccontextmanager
async def open_runner(
    loaded: Configuration,
    data: str | None,
    *,
    store: str = "",
    apart: bool = False,
    notice: Notice = _LOG.warning,
) -> AsyncIterator[Runner]:
    """A runner for a command. If a server runs with this data folder, it sends the requests, unless `apart`. Raises a
    Fault if the record cannot be opened, because the run could not be resumed."""
    clock, folder = SystemClock(), data_folder(data)
    async with AsyncExitStack() as stack:
        server = await running_server(folder, stack, apart=apart)
        record = await open_configured_store(loaded, folder, store, clock)
        stack.push_async_callback(record.close)
        means = means_of(loaded, folder, stack)
        if server is not None:
            engine = await engine_through(server, loaded, folder, means, stack, notice=notice)
        else:
            engine, _ = await engine_here(loaded, folder, means, record.record, stack, notice=notice)
        yield runner_of(loaded, engine, record.logbook, store=record)


def tool_surroundings(loaded: Configuration, base: Path | None = None) -> ToolSurroundings:
    """Where tools are opened. Paths are relative to `base`, else to the configuration file, else to the current folder.
    Tools do not get providers' keys."""
    here = Path.cwd()
    file = loaded.path
    secrets = {*variables_of(loaded.catalog), KEY_VARIABLE} - {""}
    where = base or (here if file is None else file.resolve().parent)
    return ToolSurroundings(where, here, loaded.environment, secrets, _network(loaded))


def _network(loaded: Configuration) -> McpNetwork:
    """The trust and proxies for servers elsewhere, the same as for providers."""
    proxies = Proxies.of(loaded.environment)

    def proxy(url: str) -> tuple[str, str] | None:
        found = proxies.for_origin(target(url).origin)
        return None if found is None else (f"{found.scheme}://{found.place}", found.authorization)

    return McpNetwork(Trust(ca_file=loaded.settings.network.ca_file, environment=loaded.environment).context, proxy)


def toolsets_of(loaded: Configuration) -> Toolsets:
    """The toolsets `[tools.NAME]`, opened on first use; the caller closes them."""

    async def opening(names: Sequence[str]) -> Opened:
        return await open_toolsets({name: loaded.settings.tools[name] for name in names}, tool_surroundings(loaded))

    return Toolsets(tuple(loaded.settings.tools), opening)
