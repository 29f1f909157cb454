"""Build runs with tools from an engine, a logbook and the configuration, and resolve the tools that a run names."""

import logging
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, get_args

import msgspec

from sightline.agent.service.runner import Runner, RunnerOptions
from sightline.agent.tools.mcp.config import McpNetwork
from sightline.agent.tools.opening import OpenToolsets, Toolsets, open_toolsets
from sightline.agent.tools.opening import ToolContext as ToolSurroundings
from sightline.app.configuration import Configuration, data_folder
from sightline.app.engine import (
    Notice,
    RelayResources,
    engine_here,
    engine_through,
    means_of,
    open_configured_store,
    running_server,
)
from sightline.app.machine import Ids, SystemClock, is_alive, process_name, random_digits
from sightline.catalog.catalog import Catalog
from sightline.catalog.loading import variables_of
from sightline.errors import Code, Fault
from sightline.exchange.engine import Engine
from sightline.exchange.hub import Hub
from sightline.model.json import JsonObject
from sightline.settings import BuiltinName, Toolset
from sightline.store.store import Logbook, Store
from sightline.transport.embedded.process import KEY_VARIABLE
from sightline.transport.http.dialling import Trust
from sightline.transport.http.target import Proxies, target

_LOG = logging.getLogger("sightline")


def runner_of(
    loaded: Configuration, engine: Engine, logbook: Logbook, *, store: Store | None = None, hub: Hub | None = None
) -> Runner:
    """The runner, which starts and resumes runs. `store` has the record of the engine's exchanges; `hub` publishes to
    the page."""
    ids = Ids(time.time_ns, random_digits())
    return Runner(engine, logbook, RunnerOptions(loaded.catalog, ids, process_name(), is_alive, store, hub))


class RecordedEngine(NamedTuple):
    """An engine with its record and the resources of its relays. `hub` is None if a server sends the requests."""

    engine: Engine
    record: Store
    means: RelayResources
    hub: Hub | None


@asynccontextmanager
async def open_recorded_engine(
    loaded: Configuration, data: str | None, store: str, *, apart: bool, notice: Notice
) -> AsyncIterator[RecordedEngine]:
    """An engine for a command. If a server runs with this data folder, it sends the requests, unless `apart`. Raises a
    Fault if the record cannot be opened, because a run could not be resumed."""
    folder = data_folder(data)
    async with AsyncExitStack() as stack:
        record = await open_configured_store(loaded, folder, store, SystemClock())
        stack.push_async_callback(record.close)
        means = means_of(loaded, folder, stack)
        if (server := await running_server(folder, stack, apart=apart)) is not None:
            engine = await engine_through(server, loaded, folder, means, stack, notice=notice)
            yield RecordedEngine(engine, record, means, None)
        else:
            engine, hub = await engine_here(loaded, folder, means, record.record, stack, notice=notice)
            yield RecordedEngine(engine, record, means, hub)


@asynccontextmanager
async def open_runner(
    loaded: Configuration, data: str | None, *, store: str = "", apart: bool = False, notice: Notice = _LOG.warning
) -> AsyncIterator[Runner]:
    """A runner for a command; see `open_recorded_engine`."""
    async with open_recorded_engine(loaded, data, store, apart=apart, notice=notice) as (engine, record, _, _):
        yield runner_of(loaded, engine, record.logbook, store=record)


def secret_names(catalog: Catalog) -> frozenset[str]:
    """The variables that hold keys, which tools, commands and suites do not get."""
    return frozenset({*variables_of(catalog), KEY_VARIABLE} - {""})


def tool_surroundings(loaded: Configuration, base: Path | None = None) -> ToolSurroundings:
    """The context in which tools are opened. Paths are relative to `base`, otherwise to the configuration file,
    otherwise to the current folder. Tools do not get the keys of providers."""
    here = Path.cwd()
    file = loaded.path
    where = base or (here if file is None else file.resolve().parent)
    functions = {} if loaded.plugins is None else {each.name: each.tools for _, each in loaded.plugins.working()}
    return ToolSurroundings(where, here, loaded.environment, secret_names(loaded.catalog), _network(loaded), functions)


def _network(loaded: Configuration) -> McpNetwork:
    """The trust and proxies for remote MCP servers, the same as for providers."""
    proxies = Proxies.of(loaded.environment)

    def proxy(url: str) -> tuple[str, str] | None:
        found = proxies.for_origin(target(url).origin)
        return None if found is None else (f"{found.scheme}://{found.place}", found.authorization)

    return McpNetwork(Trust(ca_file=loaded.settings.network.ca_file, environment=loaded.environment).context, proxy)


def toolsets_of(loaded: Configuration, folder: Path | None = None) -> Toolsets:
    """The toolsets `[tools.NAME]`, opened on first use; the caller closes them. They run in this folder, by default in
    the current one."""

    async def opening(names: Sequence[str]) -> OpenToolsets:
        where = tool_surroundings(loaded, None if loaded.path else folder)
        toolsets = {name: loaded.settings.tools[name] for name in names}
        return await open_toolsets(toolsets, replace(where, folder=folder or where.folder))

    return Toolsets(tuple(loaded.settings.tools), opening)


BUILTIN: tuple[BuiltinName, ...] = get_args(BuiltinName)
ORIGIN = "tools"
"""The key in a run's origin. If there are only toolsets, they are under `toolsets`, as in runs of the page."""


class ToolsWanted(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    """The tools of a run. `toolsets` are names in the configuration; everything else is an absolute path. `here` is the
    folder in which tools run."""

    here: str
    toolsets: tuple[str, ...] = ()
    python: tuple[str, ...] = ()
    mcp: tuple[str, ...] = ()
    folder: str = ""
    builtin: tuple[BuiltinName, ...] = ()
    hooks: tuple[str, ...] = ()

    @property
    def origin(self) -> JsonObject:
        """The value that a run stores, so that it can be resumed with the same tools."""
        if self == ToolsWanted(here=self.here, toolsets=self.toolsets):
            return {"toolsets": list(self.toolsets), "here": self.here}
        return {ORIGIN: msgspec.to_builtins(self)}


def parse_tools(
    loaded: Configuration,
    *,
    tools: Sequence[str] = (),
    mcp: Sequence[str] = (),
    folder: str = "",
    builtin: Iterable[str] = (),
    hooks: Sequence[str] = (),
    here: Path | None = None,
) -> ToolsWanted:
    """Parse the names of tools. Each of `tools` is a toolset of the configuration, otherwise a Python file. Raises a
    Fault for an unknown name."""
    here = (here or Path.cwd()).absolute()
    names = tuple(_builtin(name) for name in builtin)
    known = loaded.settings.tools
    return ToolsWanted(
        here=str(here),
        toolsets=tuple(dict.fromkeys(word for word in tools if word in known)),
        python=tuple(dict.fromkeys(_file(word, here, tuple(known)) for word in tools if word not in known)),
        mcp=tuple(dict.fromkeys(str(here / file) for file in mcp)),
        folder=str(here / folder) if folder or names else "",
        builtin=names,
        hooks=tuple(dict.fromkeys(str(here / file) for file in hooks)),
    )


def tools_of_run(origin: JsonObject) -> ToolsWanted:
    """The tools of an earlier run. Raises a Fault if they exist only in the program that started it."""
    names, kept = origin.get("toolsets"), origin.get(ORIGIN)
    try:
        if kept is not None:
            return msgspec.convert(kept, ToolsWanted)
        if names:
            here = origin.get("here") or str(Path.cwd())
            return msgspec.convert({"here": here, "toolsets": names}, ToolsWanted)
    except msgspec.ValidationError as error:
        raise Fault(Code.CONFIG, f"the run's tools cannot be read: {error}", hint="Start another run.") from None
    hint = "Its tools are functions of the program that started it; start another run there."
    raise Fault(Code.USAGE, "the run was not started on the command line or the page", hint=hint)


async def open_tools(loaded: Configuration, wanted: ToolsWanted) -> OpenToolsets:
    """Open the tools; the caller closes the result."""
    unknown = [name for name in wanted.toolsets if name not in loaded.settings.tools]
    if unknown:
        raise _no_toolset(unknown[0], tuple(loaded.settings.tools))
    around = tool_surroundings(loaded)
    where = replace(around, folder=Path(wanted.here))
    toolsets = {name: loaded.settings.tools[name] for name in wanted.toolsets}
    toolsets |= {file: Toolset(python=file) for file in wanted.python}
    toolsets |= {file: Toolset(mcp=file) for file in wanted.mcp}
    if wanted.folder:
        toolsets[wanted.folder] = Toolset(folder=wanted.folder, builtin=wanted.builtin)
    return await open_toolsets(toolsets, where, wanted.hooks)


def _builtin(name: str) -> BuiltinName:
    found = next((each for each in BUILTIN if each == name), None)
    if found is None:
        raise Fault(Code.USAGE, f"there is no built-in tool {name!r}", hint=f"There are {', '.join(BUILTIN)}.")
    return found


def _file(word: str, here: Path, known: tuple[str, ...]) -> str:
    if not (here / word).is_file():
        raise _no_toolset(word, known)
    if word.endswith(".json"):  # it would run as Python and look like a file without functions
        hint = f"For a file of MCP servers: --mcp {word}, or mcp = {word!r} in a table [tools.NAME] of sightline.toml."
        raise Fault(Code.USAGE, f"{word!r} is no Python file", hint=hint)
    return str(here / word)


def _no_toolset(word: str, known: tuple[str, ...]) -> Fault:
    configured = f"Configured are: {', '.join(known)}." if known else "None is configured as [tools.NAME]."
    return Fault(Code.USAGE, f"{word!r} is neither a toolset nor a file", hint=f"{configured} Or name a Python file.")
