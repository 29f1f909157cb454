"""Reruns started from the page. They continue in the background."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence

import msgspec

from sightline.errors import Code, Fault
from sightline.evals.api.shapes import RerunWanted
from sightline.evals.core.run_state import EvalBegan, EvalState, Key
from sightline.evals.core.suite import Suite
from sightline.evals.service.evaluation import Evaluation, RunSnapshot
from sightline.evals.service.progress import Progress, Telling
from sightline.evals.service.suite_files import sound, suite_in
from sightline.transport.race import wait_started

_LOG = logging.getLogger("sightline.evals")


class Reruns:
    """Drives runs in this process. `environment` is what suites may refer to; `grown` returns the evaluation for a
    rerun if it is not `evaluation`."""

    def __init__(
        self,
        evaluation: Evaluation,
        environment: Mapping[str, str],
        grown: Callable[[EvalBegan], Evaluation] | None = None,
    ) -> None:
        self._evaluation = evaluation
        self._grown = grown or (lambda _began: evaluation)
        self._environment = environment
        self._tasks: dict[str, asyncio.Task[EvalState]] = {}

    def is_here(self, run: str) -> bool:
        """Whether this server drives the run."""
        return run in self._tasks

    async def again(self, run: str, body: RerunWanted) -> str:
        """Rerun cases, and return the run's id. If the suite's file has changed, a new run is started, because a run
        keeps the suite it was started with."""
        shown = await self._evaluation.show(run)
        keys = _keys_to_rerun(shown.standing, body)
        changed = await asyncio.to_thread(self._newer_suite, shown)
        if changed is not None:
            failed = shown.standing.failed if keys is None else keys
            names = body.cases or tuple(dict.fromkeys(key[0] for key in failed))
            return await self._anew(shown, changed, names, body.target)
        evaluation = self._grown(shown.standing.began)
        await self._start(run, lambda on_progress: evaluation.rerun(run, on_progress, keys=keys))
        return run

    async def stop(self, run: str) -> None:
        """Stop a run."""
        await self._evaluation.show(run)
        self._evaluation.stop(run)

    async def close(self) -> None:
        """Interrupt all runs; they can be resumed."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _newer_suite(self, shown: RunSnapshot) -> Suite | None:
        """The suite as its file is now; None if that is what the run was started with."""
        began = shown.standing.began.suite
        if not began.sha256 or self._evaluation.files.read(began.file) is None:
            return None
        now = suite_in(self._evaluation.files, began.file, self._environment)
        return None if now.suite is not None and now.suite.sha256 == began.sha256 else sound(now, began.file)

    async def _anew(self, shown: RunSnapshot, suite: Suite, names: Sequence[str], target: str) -> str:
        began = shown.standing.began
        known = {case.id for case in suite.cases}
        gone = [name for name in names if name not in known]
        if gone or not names:
            message = f"the suite no longer has {', '.join(gone)}" if gone else "there is nothing to run again"
            raise Fault(Code.USAGE, message, hint="Run the suite anew: sightline eval run.", status=409)
        evaluation = self._grown(began)
        run = evaluation.make_id()
        options = msgspec.structs.replace(began.options, cases=tuple(names), tags=(), exclude_tags=(), cache=False)
        targets = [spec for spec in began.targets if target in ("", spec.name)]

        async def driven(on_progress: Telling) -> EvalState:
            return await evaluation.run(suite, targets, options, on_progress, judges=began.judges, run=run)

        await self._start(run, driven)
        return run

    async def _start(self, run: str, drive: Callable[[Telling], Coroutine[object, object, EvalState]]) -> None:
        """Start driving a run, and wait until its start is stored or has failed."""
        if run in self._tasks:
            raise Fault(Code.USAGE, f"the run {run} is under way", hint="Wait for it, or stop it.", status=409)
        loop = asyncio.get_running_loop()
        begun: asyncio.Future[None] = loop.create_future()

        def confirm_start(_progress: Progress) -> None:
            if not begun.done():
                begun.set_result(None)

        task = self._tasks[run] = loop.create_task(drive(confirm_start))
        task.add_done_callback(lambda task: self._over(run, task))
        await wait_started(begun, task)

    def _over(self, run: str, task: "asyncio.Task[EvalState]") -> None:
        self._tasks.pop(run, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            _LOG.warning("a run of a suite has stopped: %s", error)  # its log says how far it got


def _keys_to_rerun(standing: EvalState, body: RerunWanted) -> tuple[Key, ...] | None:
    """The trials to rerun; None means everything that did not pass."""
    targets = [spec.name for spec in standing.began.targets]
    if body.target and body.target not in targets:
        hint = f"It has {', '.join(targets)}."
        raise Fault(Code.USAGE, f"the run has no target {body.target!r}", hint=hint, status=404)
    if body.cases is not None:
        return standing.keys_of(body.cases, body.target)
    return tuple(key for key in standing.failed if key[1] == body.target) if body.target else None
