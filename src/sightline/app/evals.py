"""Build runs of suites from an engine, a logbook and the configuration."""

import logging
import re
import secrets
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path

from sightline.agent.service.runner import Runner
from sightline.agent.service.toolsets import Toolsets
from sightline.agent.tools.commands import without
from sightline.app.configuration import Configuration, data_folder
from sightline.app.engine import (
    Notice,
    engine_here,
    engine_through,
    means_of,
    open_configured_store,
    running_server,
)
from sightline.app.eval_targets import configuration_for, drawing, root_of
from sightline.app.machine import Ids, SystemClock, chance, is_alive, process_name
from sightline.app.tools import runner_of, tool_surroundings, toolsets_of
from sightline.catalog.loading import variables_of
from sightline.evals.api.calls import EvalCalls, EvalParts
from sightline.evals.core.run_state import EvalBegan
from sightline.evals.service.cluster.remote import Elsewhere, Fleet, Needs
from sightline.evals.service.context import EvalContext
from sightline.evals.service.evaluation import Evaluation
from sightline.exchange.engine import Engine
from sightline.exchange.hub import Hub, Record
from sightline.exchange.outbound import secrets_of_provider
from sightline.exchange.relay import Relay
from sightline.settings import Toolset
from sightline.store.store import Store
from sightline.store.summary import price_list
from sightline.transport.clock import Clock
from sightline.transport.embedded.process import KEY_VARIABLE
from sightline.transport.http.client import HttpClient

_LOG = logging.getLogger("sightline")
_VARIABLE = re.compile(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)")


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
    """What runs of suites need. `root` is the folder that holds the suites and their files. With `elsewhere`, cases run
    on other machines."""
    around = EvalContext(
        catalog=loaded.catalog,
        has_key=loaded.has_key,
        make_id=Ids(time.time_ns, chance()),
        root=root,
        environment=loaded.environment,
        secrets=frozenset({*variables_of(loaded.catalog), KEY_VARIABLE} - {""}),
        default_model=loaded.settings.ask.model,
        process=process_name(),
        is_alive=is_alive,
        store=store,
        prices=price_list(loaded.catalog),
        hub=hub,
        runner=runner,
        open_tools=None if toolsets is None else toolsets.open_toolsets,
        client=client,
        make_token=lambda: secrets.token_urlsafe(32),
        elsewhere=elsewhere,
    )
    return Evaluation(engine, store.logbook, around)


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
    """An evaluation for a command. If a server runs with this data folder, it sends the requests, unless `apart`.
    Raises a Fault if the record cannot be opened, because the run could not be resumed. `cluster` is the address of a
    cluster that runs the cases; its machines send by themselves, because they cannot reach a server that listens on
    this machine's loopback."""
    fleet = _fleet(cluster)
    clock, folder = SystemClock(), data_folder(data)
    async with AsyncExitStack() as stack:
        record = await open_configured_store(loaded, folder, store, clock)
        stack.push_async_callback(record.close)
        means = means_of(loaded, folder, stack)
        server = None if fleet is not None else await running_server(folder, stack, apart=apart)
        there: Elsewhere | None = None
        if server is not None:
            engine = await engine_through(server, loaded, folder, means, stack, notice=notice)
        else:
            engine, hub = await engine_here(loaded, folder, means, record.record, stack, notice=notice)
            there = None if fleet is None else elsewhere(loaded, fleet, hub.record, root)
        toolsets = toolsets_of(loaded)
        stack.push_async_callback(toolsets.close)
        runner = runner_of(loaded, engine, record.logbook, store=record)
        yield evaluation_of(
            loaded, engine, record, root, runner=runner, toolsets=toolsets, client=means.client, elsewhere=there
        )


def elsewhere(loaded: Configuration, fleet: Fleet, record: Record, root: Path) -> Elsewhere:
    """The pool of other machines, with what they need of this configuration."""
    from sightline.app.eval_host import introduction

    config, top = (loaded.path or Path("sightline.toml")).resolve(), root.resolve()
    return Elsewhere(
        fleet,
        record,
        loaded.settings,
        introduction(),
        config=_below(config, top) or config.name,
        toolsets={name: _needs(loaded, table, top) for name, table in loaded.settings.tools.items()},
    )


def _fleet(cluster: str) -> Fleet | None:
    if not cluster:
        return None
    from sightline.app.ray_cluster import RayFleet, ray_address

    return RayFleet(ray_address(cluster))


def _needs(loaded: Configuration, table: Toolset, root: Path) -> Needs:
    """What a toolset needs on another machine: its files below the folder of the suites, and the variables that its MCP
    servers use."""
    around = tool_surroundings(loaded)
    paths = [around.path(text).resolve() for text in (table.python, table.mcp, table.folder, table.hooks) if text]
    # A file of functions has others beside it that it imports; the topmost folder is too much to mean all of it.
    beside = [path.parent for path in paths if path.suffix == ".py" and path.parent != root]
    files = tuple(found for path in (*paths, *beside) if (found := _below(path, root)) is not None)
    mcp = around.path(table.mcp) if table.mcp else None
    text = mcp.read_text("utf-8", "replace") if mcp is not None and mcp.is_file() else ""
    return Needs(files, tuple(dict.fromkeys(_VARIABLE.findall(text))))


def _below(path: Path, root: Path) -> str | None:
    return path.relative_to(root).as_posix() if path == root or root in path.parents else None


def suites_place(loaded: Configuration) -> tuple[Path, str]:
    """The folder below which suites may read files, and the suites' folder as a path relative to it."""
    base = Path.cwd() if loaded.path is None else loaded.path.resolve().parent
    place = (base / loaded.settings.evals.folder).resolve()
    root = root_of(base / "sightline.toml")
    if root != place and root not in place.parents:
        return place, ""
    folder = place.relative_to(root).as_posix()
    return root, "" if folder == "." else folder


def evaluation_for(
    loaded: Configuration, evaluation: Evaluation, relaying: Callable[[Configuration], Relay], began: EvalBegan
) -> Evaluation:
    """The evaluation that can repeat a run. If AgentV's file beside the suite defines providers that the configuration
    does not have, it gets a relay that knows them; everything else is shared."""
    around = evaluation.surroundings
    grown = configuration_for(loaded, around.root, began)
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
        prices=price_list(grown.catalog),
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
    relaying: Callable[[Configuration], Relay] | None = None,
) -> EvalCalls:
    """The handlers of the page's eval calls; the caller closes them. `relaying` makes relays for other
    configurations."""
    providers = loaded.catalog.providers.values()
    return EvalCalls(
        EvalParts(
            evaluation,
            store,
            folder,
            drawing,
            clock.now,
            without(loaded.environment, {*variables_of(loaded.catalog), KEY_VARIABLE} - {""}),
            tuple(dict.fromkeys(key for each in providers for key in secrets_of_provider(each, loaded.environment))),
            None if relaying is None else lambda began: evaluation_for(loaded, evaluation, relaying, began),
        )
    )
