"""Starts, resumes, reruns, stops and shows runs of suites."""

import asyncio
import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from sightline.errors import Code, Fault
from sightline.evals.core.delivery import Delivery, turn_messages
from sightline.evals.core.reading.files import files_of
from sightline.evals.core.result import CaseObservation, CaseResult, CaseScore, replace_media
from sightline.evals.core.run_state import (
    NOT_RUN,
    CaseDone,
    CaseStarted,
    EndedWhy,
    EvalBegan,
    EvalEnded,
    EvalFact,
    EvalState,
    EvalTaken,
    Key,
    Reopened,
    RunOptions,
    Schedule,
    budget_of,
    cost_limit_of,
    file_form_of,
    result_of,
    select_cases,
)
from sightline.evals.core.suite import Case, Suite
from sightline.evals.core.summary import amount_of, costs_of
from sightline.evals.core.target import TargetSpec
from sightline.evals.service.case_worker import Worker, deliver_case
from sightline.evals.service.cluster.pool import open_worker
from sightline.evals.service.context import EvalContext, EvalRun, Rates
from sightline.evals.service.eval_log import (
    PREFIX,
    Brief,
    EvalLog,
    EvalObserver,
    Meter,
    PastEvals,
    ProgressListener,
    State,
)
from sightline.evals.service.model_target import ModelAccess, ModelTarget
from sightline.evals.service.suite_files import SuiteFiles
from sightline.evals.service.target import Spending
from sightline.exchange.engine import Engine
from sightline.exchange.outbound import Prepared, prepare
from sightline.store.store import Logbook
from sightline.transport.waiting import Clock


class CaseScheduler:
    """Schedules one run. `widths` is how many cases each target takes at once."""

    def __init__(
        self, log: EvalLog, worker: Worker, widths: Mapping[str, int], spending: Spending, clock: Clock
    ) -> None:
        self.log = log
        self._worker = worker
        self._widths = widths
        self._spending = spending
        self._clock = clock
        self._schedule = Schedule(log.standing)
        began = log.standing.began
        self._suite = began.suite
        self._budget = budget_of(began.suite, began.options)
        self._closing: EndedWhy | None = None
        self._news = {name: asyncio.Event() for name in widths}
        self._trials_cost: dict[tuple[str, str], float] = {}
        for result in log.standing.results:
            self._charge(result)

    def stop(self, why: EndedWhy = "stopped") -> None:
        """Start no more cases; those under way are completed."""
        self._closing = self._closing or why
        for news in self._news.values():
            news.set()

    async def run_all(self) -> EndedWhy:
        """Run all remaining cases and return why the run ended. A fault outside of a case aborts the run."""
        failed: Fault | None = None
        try:
            async with asyncio.TaskGroup() as group:
                left = Counter(target for _, target, _ in self.log.standing.left)
                for target, width in self._widths.items():
                    for _ in range(min(width, left[target])):
                        group.create_task(self._work(target))
        except* Fault as faults:
            failed = _first(faults)
        if failed is not None:  # early versions of Python 3.11 would wrap it in a group again if raised above
            raise failed
        return "finished" if not self.log.standing.left else self._closing or "stopped"

    async def _work(self, target: str) -> None:
        schedule, news = self._schedule, self._news[target]
        while not schedule.is_over(target):
            if self._budget is not None and self._spending.spent >= self._budget:
                self.stop("budget")
            if self._closing is not None:
                return
            key = schedule.next(target)
            if key is None:
                news.clear()
                await news.wait()
                continue
            result = self._skip_result(key)
            if result is None:
                self.log.note(CaseStarted(*key))
                result = await self._worker.run(key)
            self._charge(result)
            # Store the result before starting the next case: a crash then loses only the cases under way.
            await self.log.append(CaseDone(replace_media(result)))
            schedule.finish(key)
            news.set()
            if result.status == "execution_error" and self._suite.execution.fail_on_error:
                self.stop()

    def _skip_result(self, key: Key) -> CaseResult | None:
        """The result of a case that is skipped because of its dependencies or its cost limit; None if it runs."""
        case = self.log.standing.cases[key[0]]
        failures = self._schedule.failures(key) if case.on_dependency_failure != "run" else ()
        if failures:
            why = f"it depends on {', '.join(failures)}, which could not be carried out"
            if case.on_dependency_failure == "fail":
                seen = CaseObservation(requests=0, cost=0.0, error_code=NOT_RUN)
                score = CaseScore(verdict="fail", score=0.0, reason=why)
                return result_of(self._suite, case, key, score, seen, at=self._clock.now())
            return self._skip(case, key, why)
        limit = cost_limit_of(case, self._suite)
        if limit is not None and self._trials_cost.get(key[:2], 0.0) >= limit:
            why = f"the trials before it have cost the {limit:g} dollars that they may"
            return self._skip(case, key, why)
        return None

    def _skip(self, case: Case, key: Key, why: str) -> CaseResult:
        score, seen = CaseScore(verdict="skip", reason=why), CaseObservation(requests=0, cost=0.0)
        return result_of(self._suite, case, key, score, seen, status="skipped", at=self._clock.now())

    def _charge(self, result: CaseResult) -> None:
        key = result.case, result.target
        self._trials_cost[key] = self._trials_cost.get(key, 0.0) + amount_of(costs_of(result)).at_least


def _first(faults: BaseExceptionGroup[Fault]) -> Fault:
    found = faults.exceptions[0]
    return _first(found) if isinstance(found, BaseExceptionGroup) else found


EVENT = "eval"
"""The name of the event that announces changes of runs."""


@dataclass(frozen=True, slots=True)
class RunSnapshot:
    """A run as stored. `version` counts its facts."""

    run: str
    state: State
    standing: EvalState
    version: int


@dataclass(frozen=True, slots=True)
class CasePreview:
    """What a target would receive for a case, with the exact request if the target is a model."""

    delivery: Delivery
    prepared: Prepared | None = None


@dataclass
class Evaluation:
    """The runs of this process. There is one instance."""

    engine: Engine
    logbook: Logbook
    surroundings: EvalContext
    files: SuiteFiles = field(init=False)
    _past: PastEvals = field(init=False)
    _drives: dict[str, CaseScheduler] = field(default_factory=dict)

    def __post_init__(self) -> None:
        around = self.surroundings
        self.files = SuiteFiles(around.root)
        self._past = PastEvals(self.logbook, lambda name: name != around.process and around.is_alive(name))

    def make_id(self) -> str:
        """A new run id; ids sort by creation time."""
        return f"e_{self.surroundings.make_id().removeprefix('x_')}"

    # --- running ---

    async def run(
        self,
        suite: Suite,
        targets: Sequence[TargetSpec],
        options: RunOptions,
        on_progress: ProgressListener,
        *,
        judges: Sequence[TargetSpec] = (),
        run: str = "",
    ) -> EvalState:
        """Start a run and drive it to its end. Raises a fault, without a run, if it cannot be started.

        `judges` are further targets that may judge. `on_progress` is called for every stored result. Cancelling aborts
        the cases under way; the run can be resumed.
        """
        _check_names(targets)
        wanted = msgspec.structs.replace(suite, cases=select_cases(suite, options))
        began = EvalBegan(
            suite=wanted,
            targets=tuple(targets),
            judges=tuple(judges),
            options=options,
            files=self._hashes(wanted.cases),
            at=self.engine.clock.now(),
        )
        return await self._drive(run or self.make_id(), EvalState(began), (began,), on_progress)

    async def resume(self, run: str, on_progress: ProgressListener, options: RunOptions | None = None) -> EvalState:
        """Resume a run that is not being driven; existing results are kept.

        Of `options` only budget, workers, cache and approval may differ from those of the run.
        """
        standing = await self._read_idle_run(run)
        return await self._drive(run, standing, _options_change(standing, options), on_progress)

    async def rerun(
        self,
        run: str,
        on_progress: ProgressListener,
        *,
        keys: Sequence[Key] | None = None,
        options: RunOptions | None = None,
    ) -> EvalState:
        """Rerun these cases, or by default all that did not pass, and those that are left. Earlier results stay in the
        log.

        The cache is not used: it would return the answers in question.
        """
        standing = await self._read_idle_run(run)
        options = options or RunOptions()
        changed = _options_change(standing, msgspec.structs.replace(options, cache=bool(options.cache)))
        wanted = tuple(standing.failed if keys is None else keys)
        unknown = [key for key in wanted if key not in set(standing.keys)]
        if unknown:
            names = ", ".join(f"{case} on {target}" for case, target, _ in unknown)
            raise Fault(Code.USAGE, f"the run {run} has no {names}", hint="See `sightline eval show`.", status=404)
        return await self._drive(run, standing, (*changed, *((Reopened(wanted),) if wanted else ())), on_progress)

    def stop(self, run: str) -> None:
        """Stop a run of this process: start no more cases, and complete those under way."""
        drive = self._drives.get(run)
        if drive is None:
            hint = "A run of another process is stopped there."
            raise Fault(Code.USAGE, f"the run {run!r} is not in progress here", hint=hint, status=409)
        drive.stop()

    # --- looking ---

    async def show(self, run: str) -> RunSnapshot:
        standing = await self._past.standing(run)
        return RunSnapshot(run, self._state(run, standing), standing, standing.version)

    async def list_runs(self, limit: int, suite: str = "") -> list[Brief]:
        briefs = await self._past.list_runs(limit, suite)
        return [msgspec.structs.replace(each, state="running") if each.run in self._drives else each for each in briefs]

    def preview(self, suite: Suite, case: str, spec: TargetSpec, options: RunOptions) -> CasePreview:
        """What a target would receive first for a case."""
        spec.check()
        found = next((each for each in suite.cases if each.id == case), None)
        if found is None:
            known = ", ".join(each.id for each in suite.cases[:8])
            raise Fault(Code.USAGE, f"{suite.file} has no case {case!r}", hint=f"It has: {known}.")
        messages = turn_messages(found, 0, ()) if found.turns else found.messages
        form = file_form_of(found, suite, options, spec)
        delivery = deliver_case(found, messages, spec.system, self.files, form)
        if spec.kind not in ("model", "replay"):
            return CasePreview(delivery)
        rates = Rates(self.engine.memory.ledger, self.engine.clock)
        means = ModelAccess(self.engine, rates, Spending(), PREFIX, self.surroundings.make_id)
        model = ModelTarget(spec, self.surroundings.choice(spec.model), means)
        return CasePreview(delivery, model.final(prepare(model.prompt(delivery.messages, found.tools), model.choice)))

    # --- parts ---

    async def _drive(
        self, run: str, standing: EvalState, first: Sequence[EvalFact], on_progress: ProgressListener
    ) -> EvalState:
        """Open the worker, store the first facts, and run all cases that are left."""

        def on_write(fact: EvalFact) -> None:
            if isinstance(fact, CaseDone):
                on_progress(meter.add(fact.result))
            if observer is not None:
                observer.observe_eval(run, fact, log.standing)
            if isinstance(fact, EvalEnded):
                self._drives.pop(run, None)  # subscribers to the end must see the run as ended
            self._announce(run, log.standing)

        clock, secrets = self.engine.clock, self.engine.relay.secrets
        watching = self.engine.relay.observer
        observer = watching if isinstance(watching, EvalObserver) else None
        log = EvalLog(self.logbook, run, standing, now=clock.now, secrets=secrets, written=on_write)
        spending = Spending(cost for result in standing.results for cost in costs_of(result))
        driven = EvalRun(run, standing.began, self.engine, self.logbook, self.surroundings, spending)
        async with open_worker(driven) as (worker, widths):
            for fact in (*first, EvalTaken(self.surroundings.process)):
                log.note(fact)
            await log.flush()
            meter = Meter(run, standing, spending, clock.monotonic)
            drive = self._drives[run] = CaseScheduler(log, worker, widths, spending, clock)
            on_progress(meter.progress())
            why: EndedWhy = "stopped"
            try:
                why = await drive.run_all()
            finally:
                # Also if it was cancelled or failed: finished cases are stored, and the rest can be resumed.
                try:
                    log.note(EvalEnded(why))
                    await log.flush()
                finally:
                    self._drives.pop(run, None)
        return standing

    async def _read_idle_run(self, run: str) -> EvalState:
        """Load a run that is not being driven. Raises a fault if its case files have changed since: the results would
        be of different cases."""
        standing = await self._past.load(run)
        if self._state(run, standing) == "running":
            raise Fault(Code.USAGE, f"the run {run} is under way", hint="Wait for it, or stop it.", status=409)
        now = self._hashes(standing.began.suite.cases)
        changed = [path for path, sha256 in standing.began.files.items() if now.get(path) != sha256]
        if changed:
            hint = "Put it back as it was, or begin another run."
            message = f"{', '.join(changed)} changed since the run {run} began"
            raise Fault(Code.USAGE, message, hint=hint, status=409)
        return standing

    def _hashes(self, cases: Sequence[Case]) -> dict[str, str]:
        paths = dict.fromkeys(path for case in cases for path in files_of(case))
        contents = ((path, self.files.read(path)) for path in paths)
        return {path: hashlib.sha256(data).hexdigest() for path, data in contents if data is not None}

    def _state(self, run: str, standing: EvalState) -> State:
        return "running" if run in self._drives else self._past.state(standing)

    def _announce(self, run: str, standing: EvalState) -> None:
        hub = self.surroundings.hub
        if hub is not None:
            of = len(standing.keys)
            hub.announce(EVENT, {"run": run, "version": standing.version, "done": standing.done, "of": of})


def _options_change(standing: EvalState, options: RunOptions | None) -> tuple[EvalFact, ...]:
    """The fact that records changed options; empty if nothing changes."""
    if options is None:
        return ()
    before = standing.began.options
    now = msgspec.structs.replace(
        before,
        budget_usd=before.budget_usd if options.budget_usd is None else options.budget_usd,
        workers=before.workers if options.workers is None else options.workers,
        cache=before.cache if options.cache is None else options.cache,
        approve=before.approve or options.approve,
    )
    if now == before:
        return ()
    # Apply it now, because the worker is opened with these options.
    standing.began = msgspec.structs.replace(standing.began, options=now)
    return (standing.began,)


def _check_names(targets: Sequence[TargetSpec]) -> None:
    if not targets:
        raise Fault(Code.USAGE, "no target is named", hint="Name one with --target, or in the suite under execution.")
    names = [spec.name for spec in targets]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise Fault(Code.USAGE, f"two targets are named {', '.join(twice)}", hint="Give each a name of its own.")
