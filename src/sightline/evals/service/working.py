"""What cases are run with: targets, graders, and the processes that both start, open for one run."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from sightline.agent.tools.environment import without
from sightline.evals.core.facts import EvalBegan
from sightline.evals.core.options import budget_of, is_cached
from sightline.evals.core.target import TargetSpec
from sightline.evals.service.case_worker import CaseWorker, FileShelf
from sightline.evals.service.context import EvalContext
from sightline.evals.service.eval_log import PREFIX
from sightline.evals.service.grading import Graders
from sightline.evals.service.process import Process
from sightline.evals.service.python_graders import PythonGraders
from sightline.evals.service.sharing import Sharing
from sightline.evals.service.spending import Spending
from sightline.evals.service.suite_files import SuiteFiles
from sightline.evals.service.target import CaseTarget
from sightline.evals.service.targets import Targets
from sightline.exchange.engine import Engine
from sightline.store.logbook import Logbook


@asynccontextmanager
async def working(
    run: str,
    began: EvalBegan,
    specs: Sequence[TargetSpec],
    engine: Engine,
    logbook: Logbook,
    around: EvalContext,
    spending: Spending,
    sharing: Sharing | None = None,
) -> AsyncIterator[CaseWorker]:
    """Whoever runs the cases of these targets in this process. What is wrong with a target is a fault."""
    targets = Targets(
        engine,
        logbook,
        around,
        session=PREFIX + run,
        options=began.options,
        is_cached=is_cached(began.suite, began.options),
        has_budget=budget_of(began.suite, began.options) is not None,
        spending=spending,
        known=(*began.judges, *began.targets),
        sharing=sharing,
    )
    clock, files = engine.clock, SuiteFiles(around.root)
    environment = without(around.environment, around.secrets)
    process, python = Process(clock), PythonGraders(environment)
    opened: dict[str, CaseTarget] = {}
    graders = Graders(
        began.suite.file,
        files,
        targets.judging,
        process,
        python,
        environment,
        clock,
        began.options.judge,
        known=tuple(spec.name for spec in (*began.judges, *began.targets)),
        make_token=around.make_token,
    )
    worker = CaseWorker(began, opened, graders, FileShelf(files), clock)
    try:
        for spec in specs:
            opened[spec.name] = await targets.open_target(spec)
        yield worker
    finally:
        await worker.close()
        await process.close()
        await python.close()
        await targets.close()
