"""A run on a cluster: what is packed, who is told what, and how many cases are under way at once."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from sightline.catalog.loading import variables_of
from sightline.errors import Code, Fault
from sightline.evals.core.options import DEFAULT_WORKERS, is_cached, workers_of
from sightline.evals.core.run_state import EvalBegan, write
from sightline.evals.core.target import TargetSpec
from sightline.evals.service.cluster.bundle import pack_files
from sightline.evals.service.cluster.home import Home
from sightline.evals.service.cluster.messages import Begin
from sightline.evals.service.cluster.pool import ClusterOrders, ClusterWorker
from sightline.evals.service.cluster.remote import Elsewhere, Needs
from sightline.evals.service.context import EvalContext
from sightline.evals.service.sharing import OwnSharing
from sightline.evals.service.spending import Spending
from sightline.evals.service.suite_files import SuiteFiles
from sightline.evals.service.workers import Worker
from sightline.evals.service.working import working
from sightline.exchange.engine import Engine
from sightline.store.store import Logbook


@dataclass(frozen=True, slots=True)
class Crew:
    """Who runs the cases of a run, and how many of them at once on each target."""

    worker: Worker
    widths: dict[str, int]


@asynccontextmanager
async def crew(
    run: str, began: EvalBegan, engine: Engine, logbook: Logbook, around: EvalContext, spending: Spending
) -> AsyncIterator[Crew]:
    """Whoever runs the cases: this process, or a cluster where one was named and something is asked of anybody."""
    there = around.elsewhere
    if there is None or all(_is_here(spec) for spec in began.targets):
        usual = workers_of(began.suite, began.options)
        async with working(run, began, began.targets, engine, logbook, around, spending) as worker:
            yield Crew(worker, _widths(began, usual))
        return
    _check_judges(began)
    sharing = OwnSharing(engine, logbook, around, is_cached=is_cached(began.suite, began.options))
    # Models are opened here too: what is wrong with their names, keys and prices is told before anybody is hired.
    specs = [spec for spec in began.targets if spec.kind != "cli" and not spec.toolsets]
    async with working(run, began, specs, engine, logbook, around, spending, sharing) as own:
        home = Home(there.record, logbook, engine.memory, engine.clock, sharing, spending)
        pool = ClusterWorker(began, _orders(run, began, engine, around, there), there.fleet, home, own)
        try:
            files = [path for needs in _needs(began, there) for path in needs.files]
            hosts = await pool.open(pack_files(SuiteFiles(around.root), began, files))
            widths = _widths(began, began.suite.execution.workers or DEFAULT_WORKERS * hosts)
            far = {spec.name for spec in began.targets if not _is_here(spec)}
            pool.set_capacity({name: width for name, width in widths.items() if name in far}, hosts)
            yield Crew(pool, widths)
        finally:
            await pool.close()


def _orders(run: str, began: EvalBegan, engine: Engine, around: EvalContext, there: Elsewhere) -> ClusterOrders:
    named = (name for spec in began.targets if spec.cli is not None for name in spec.cli.env)
    tools = (name for needs in _needs(began, there) for name in needs.variables)
    names = dict.fromkeys((*variables_of(around.catalog), *tools, *named))
    begin = Begin(
        run=run,
        began=write(began),
        catalog=around.catalog,
        settings=there.settings,
        targets=tuple(spec.name for spec in began.targets if not _is_here(spec)),
        process=around.process,
        config=there.config,
        calibration=engine.memory.calibration.to_json(),
        variables={name: around.environment[name] for name in names if name in around.environment},
        masks=engine.relay.holds.masks,
    )
    return ClusterOrders(begin, there.ours, frozenset(spec.name for spec in began.targets if _is_here(spec)))


def _check_judges(began: EvalBegan) -> None:
    """Who judges does so on a host, where there is no record to answer from."""
    named = {began.options.judge, *(spec.judge for spec in began.targets), *(spec.name for spec in began.judges)}
    for spec in (*began.judges, *began.targets):
        if spec.kind == "replay" and spec.name in named:
            message = f"{spec.name} judges out of the record, which a cluster does not have"
            raise Fault(Code.USAGE, message, hint="Name another judge, or run the suite without a cluster.")


def _needs(began: EvalBegan, there: Elsewhere) -> list[Needs]:
    names = dict.fromkeys(name for spec in began.targets for name in spec.toolsets)
    return [there.toolsets[name] for name in names if name in there.toolsets]


def _is_here(spec: TargetSpec) -> bool:
    """Whether a target asks nobody: fixed words, and answers out of the record, which is here."""
    return spec.kind in ("mock", "replay")


def _widths(began: EvalBegan, usual: int) -> dict[str, int]:
    return {spec.name: spec.concurrency or usual for spec in began.targets}
