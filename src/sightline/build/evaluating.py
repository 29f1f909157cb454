"""Runs of suites, put together from an engine, a logbook and the configuration."""

import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from sightline.build.configured import Configuration, data_folder
from sightline.build.machine import Ids, SystemClock, chance, is_alive, process_name
from sightline.build.parts import means_of, nowhere, opened_relay, opened_store, price_list
from sightline.build.running import runner_of, toolsets_of
from sightline.catalog.loading import variables_of
from sightline.engine.counting import Counter
from sightline.engine.engine import Engine
from sightline.engine.evaluating.evaluation import Evaluation
from sightline.engine.evaluating.surroundings import Surroundings
from sightline.engine.hub import Hub
from sightline.engine.running.runner import Runner
from sightline.engine.running.toolsets import Toolsets
from sightline.store.store import Store
from sightline.transport.embedded.process import KEY_VARIABLE
from sightline.transport.http.client import HttpClient


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
) -> Evaluation:
    """What runs of suites are begun with. `root` is the folder below which suites and their files are."""
    around = Surroundings(
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
        equipping=None if toolsets is None else toolsets.opened,
        client=client,
    )
    return Evaluation(engine, store.logbook, around)


@asynccontextmanager
async def open_evaluation(
    loaded: Configuration, data: str | None, root: Path, *, store: str = ""
) -> AsyncIterator[Evaluation]:
    """The same without a server. Its record must open: a run that nobody could go on with is not begun."""
    clock, folder = SystemClock(), data_folder(data)
    async with AsyncExitStack() as stack:
        record = await opened_store(loaded, folder, store, clock)
        stack.push_async_callback(record.close)
        means = means_of(loaded, folder, stack)
        aside, _ = await opened_relay(loaded, means, nowhere, stack)
        relay, _ = await opened_relay(loaded, means, record.record, stack, is_told=True)
        engine = Engine(relay, aside, Counter(means.memory), means.memory, clock)
        toolsets = toolsets_of(loaded)
        stack.push_async_callback(toolsets.close)
        runner = runner_of(loaded, engine, record.logbook, store=record)
        yield evaluation_of(loaded, engine, record, root, runner=runner, toolsets=toolsets, client=means.client)
