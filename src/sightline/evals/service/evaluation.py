"""Runs of suites for everybody who wants one: begun, gone on with, run again in part, stopped, and looked at."""

import asyncio
import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from sightline.errors import Code, Fault
from sightline.evals.core.delivery.delivery import Delivery, turn_messages
from sightline.evals.core.options import RunOptions, budget_of, cost_limit_of, file_form_of, select_cases
from sightline.evals.core.reading.files import files_of
from sightline.evals.core.result import CaseObservation, CaseResult, CaseScore, Status, replace_media
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
    Schedule,
    fold_facts,
    read,
)
from sightline.evals.core.suite import Case, Suite
from sightline.evals.core.summary import amount_of, costs_of
from sightline.evals.core.target import TargetSpec
from sightline.evals.service.case_worker import FileShelf, deliver_case
from sightline.evals.service.cluster.provisioning import Crew, crew
from sightline.evals.service.context import EvalContext
from sightline.evals.service.eval_log import PREFIX, EvalLog
from sightline.evals.service.model_target import ModelAccess, ModelTarget
from sightline.evals.service.past_evals import Brief, PastEvals, State
from sightline.evals.service.progress import Meter, Telling
from sightline.evals.service.rates import Rates
from sightline.evals.service.spending import Spending
from sightline.evals.service.suite_files import SuiteFiles
from sightline.evals.service.workers import Worker
from sightline.exchange.engine import Engine
from sightline.exchange.prepare import Prepared
from sightline.store.store import Logbook
from sightline.transport.clock import Clock


class CaseScheduler:
    """Drives one run. `widths` is how many cases each target takes at once."""

    def __init__(
        self, log: EvalLog, worker: Worker, widths: Mapping[str, int], spending: Spending, clock: Clock
    ) -> None:
        self.log = log
        self._worker = worker
        self._widths = widths
        self._purse = spending
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
        """Begin nothing more; what is under way comes to its end."""
        self._closing = self._closing or why
        for news in self._news.values():
            news.set()

    async def through(self) -> EndedWhy:
        """Do all that is left. A fault that is no case's ends everything."""
        failed: Fault | None = None
        try:
            async with asyncio.TaskGroup() as group:
                left = Counter(target for _, target, _ in self.log.standing.left)
                for target, width in self._widths.items():
                    for _ in range(min(width, left[target])):
                        group.create_task(self._work(target))
        except* Fault as faults:
            failed = _first(faults)
        if failed is not None:  # raised above, early versions of Python 3.11 make a group of it again
            raise failed
        return "finished" if not self.log.standing.left else self._closing or "stopped"

    async def _work(self, target: str) -> None:
        schedule, news = self._schedule, self._news[target]
        while not schedule.is_over(target):
            if self._budget is not None and self._purse.spent >= self._budget:
                self.stop("budget")
            if self._closing is not None:
                return
            key = schedule.next(target)
            if key is None:
                news.clear()
                await news.wait()
                continue
            result = self._forgone(key)
            if result is None:
                self.log.note(CaseStarted(*key))
                result = await self._worker.run(key)
            self._charge(result)
            # Nothing new is begun before this lasts: a process that ends loses what is under way, and no more.
            await self.log.append(CaseDone(replace_media(result)))
            schedule.finish(key)
            news.set()
            if result.status == "execution_error" and self._suite.execution.fail_on_error:
                self.stop()

    def _forgone(self, key: Key) -> CaseResult | None:
        """The result of a case that is not run, because of what it depends on or of what its trials cost."""
        case = self.log.standing.cases[key[0]]
        failures = self._schedule.failures(key) if case.on_dependency_failure != "run" else ()
        if failures:
            why = f"it depends on {', '.join(failures)}, which could not be carried out"
            if case.on_dependency_failure == "fail":
                return self._make_result(
                    key, "quality_failure", CaseScore(verdict="fail", score=0.0, reason=why), code=NOT_RUN
                )
            return self._make_result(key, "skipped", CaseScore(verdict="skip", reason=why))
        limit = cost_limit_of(case, self._suite)
        if limit is not None and self._trials_cost.get(key[:2], 0.0) >= limit:
            why = f"the trials before it have cost the {limit:g} dollars that they may"
            return self._make_result(key, "skipped", CaseScore(verdict="skip", reason=why))
        return None

    def _make_result(self, key: Key, status: Status, score: CaseScore, code: str = "") -> CaseResult:
        case = self.log.standing.cases[key[0]]
        return CaseResult(
            case=key[0],
            target=key[1],
            trial=key[2],
            suite=self._suite.name,
            group=case.group,
            tags=case.tags,
            status=status,
            score=score,
            observation=CaseObservation(requests=0, cost=0.0, error_code=code),
            at=self._clock.now(),
        )

    def _charge(self, result: CaseResult) -> None:
        key = result.case, result.target
        self._trials_cost[key] = self._trials_cost.get(key, 0.0) + amount_of(costs_of(result)).at_least


def _first(faults: BaseExceptionGroup[Fault]) -> Fault:
    found = faults.exceptions[0]
    return _first(found) if isinstance(found, BaseExceptionGroup) else found


EVENT = "eval"
"""How the news of runs are called."""


@dataclass(frozen=True, slots=True)
class RunSnapshot:
    """A run as it is written down. `version` counts its facts."""

    run: str
    state: State
    standing: EvalState
    version: int


@dataclass(frozen=True, slots=True)
class CasePreview:
    """What a target would be sent of a case; the exact request where the target is a model."""

    delivery: Delivery
    prepared: Prepared | None = None


@dataclass
class Evaluation:
    """One for a process."""

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
        """A name for a run; it sorts as it was made."""
        return f"e_{self.surroundings.make_id().removeprefix('x_')}"

    # --- running ---

    async def run(
        self,
        suite: Suite,
        targets: Sequence[TargetSpec],
        options: RunOptions,
        on_progress: Telling,
        *,
        judges: Sequence[TargetSpec] = (),
        run: str = "",
    ) -> EvalState:
        """Begin a run and drive it. What cannot even be begun is a fault, and no run.

        `judges` are further targets that may judge. `told` hears of every result that is written down. To be cancelled
        cuts off what is under way; the run can be gone on with.
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
        return await self._driven(run or self.make_id(), EvalState(began), (began,), on_progress)

    async def resume(self, run: str, on_progress: Telling, options: RunOptions | None = None) -> EvalState:
        """Do what is left of a run that nobody drives. What has a result keeps it.

        Of other `options` count those that do not make it another run: budget, workers, cache and approval.
        """
        standing = await self._read_idle_run(run)
        return await self._driven(run, standing, _options_change(standing, options), on_progress)

    async def rerun(
        self, run: str, on_progress: Telling, *, keys: Sequence[Key] | None = None, options: RunOptions | None = None
    ) -> EvalState:
        """Run these again, else all that did not pass, and what is left. The earlier results stay in the log.

        They are asked again: an answer of the cache would be the very one that is doubted."""
        standing = await self._read_idle_run(run)
        changed = _options_change(standing, _asking_again(options or RunOptions()))
        wanted = tuple(standing.failed if keys is None else keys)
        unknown = [key for key in wanted if key not in set(standing.keys)]
        if unknown:
            names = ", ".join(f"{case} on {target}" for case, target, _ in unknown)
            raise Fault(Code.USAGE, f"the run {run} has no {names}", hint="See `sightline eval show`.", status=404)
        return await self._driven(run, standing, (*changed, *((Reopened(wanted),) if wanted else ())), on_progress)

    def stop(self, run: str) -> None:
        """Begin nothing more of a run that is driven here; what is under way comes to its end."""
        drive = self._drives.get(run)
        if drive is None:
            hint = "A run of another process is stopped there."
            raise Fault(Code.USAGE, f"the run {run!r} is not under way here", hint=hint, status=409)
        drive.stop()

    # --- looking ---

    async def show(self, run: str) -> RunSnapshot:
        """How a run stands."""
        standing = await self._past.standing(run)
        return RunSnapshot(run, self._state(run, standing), standing, standing.version)

    async def list_runs(self, limit: int, suite: str = "") -> list[Brief]:
        """The newest runs."""
        briefs = await self._past.list_runs(limit, suite)
        return [msgspec.structs.replace(each, state="running") if each.run in self._drives else each for each in briefs]

    def preview(self, suite: Suite, case: str, spec: TargetSpec, options: RunOptions) -> CasePreview:
        """What the target would be sent first of a case."""
        spec.check()
        found = next((each for each in suite.cases if each.id == case), None)
        if found is None:
            known = ", ".join(each.id for each in suite.cases[:8])
            raise Fault(Code.USAGE, f"{suite.file} has no case {case!r}", hint=f"It has: {known}.")
        said = turn_messages(found, 0, ()) if found.turns else found.messages
        form = file_form_of(found, suite, options, spec)
        delivery = deliver_case(found, said, spec.system, FileShelf(self.files), form)
        if spec.kind not in ("model", "replay"):
            return CasePreview(delivery)
        means = ModelAccess(self.engine, self._rates, Spending(), PREFIX, self.surroundings.make_id)
        model = ModelTarget(spec, self.surroundings.choice(spec.model), means)
        return CasePreview(delivery, model.final(model.prepare(delivery.messages, found.tools)))

    # --- parts ---

    async def _driven(
        self, run: str, standing: EvalState, first: Sequence[EvalFact], on_progress: Telling
    ) -> EvalState:
        purse = Spending(cost for result in standing.results for cost in costs_of(result))
        async with crew(run, standing.began, self.engine, self.logbook, self.surroundings, purse) as who:
            return await self._drive_and_log(run, standing, first, who, purse, on_progress)

    async def _drive_and_log(
        self,
        run: str,
        standing: EvalState,
        first: Sequence[EvalFact],
        who: Crew,
        spending: Spending,
        on_progress: Telling,
    ) -> EvalState:
        meter = Meter(run, standing, spending, self.engine.clock.monotonic)

        def on_write(fact: EvalFact) -> None:
            if isinstance(fact, CaseDone):
                on_progress(meter.add(fact.result))
            if isinstance(fact, EvalEnded):
                self._drives.pop(run, None)  # whoever hears of the end reads it as one
            self._announce(run, log.standing)

        clock, secrets = self.engine.clock, self.engine.relay.secrets
        log = EvalLog(self.logbook, run, standing, now=clock.now, secrets=secrets, written=on_write)
        for fact in (*first, EvalTaken(self.surroundings.process)):
            log.note(fact)
        await log.flush()
        meter = Meter(run, standing, spending, clock.monotonic)
        drive = self._drives[run] = CaseScheduler(log, who.worker, who.widths, spending, clock)
        on_progress(meter.progress())
        try:
            try:
                why = await drive.through()
            except BaseException:
                # Cut off, or ended by a fault: what is done is written down, and the rest can be gone on with.
                log.note(EvalEnded("stopped"))
                await log.flush()
                raise
            log.note(EvalEnded(why))
            await log.flush()
        finally:
            self._drives.pop(run, None)
        return standing

    async def _read_idle_run(self, run: str) -> EvalState:
        """A run that nobody drives, read anew. Its files must be as they were: half of it would be of other cases."""
        lines = await self.logbook.lines(PREFIX + run)
        if not lines:
            hint = "`sightline eval show` lists the runs."
            raise Fault(Code.USAGE, f"there is no run {run!r} of evals", hint=hint, status=404)
        standing = fold_facts(read(line.data) for line in lines)
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

    @property
    def _rates(self) -> Rates:
        return Rates(self.engine.memory.ledger, self.engine.clock)

    def _announce(self, run: str, standing: EvalState) -> None:
        hub = self.surroundings.hub
        if hub is not None:
            of = len(standing.keys)
            hub.announce(EVENT, {"run": run, "version": standing.version, "done": standing.done, "of": of})


def _asking_again(options: RunOptions) -> RunOptions:
    return options if options.cache else msgspec.structs.replace(options, cache=False)


def _options_change(standing: EvalState, options: RunOptions | None) -> tuple[EvalFact, ...]:
    """How the run began, as it is wanted now; nothing where that is the same."""
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
    # Known at once: what is opened for the run goes by it.
    standing.began = msgspec.structs.replace(standing.began, options=now)
    return (standing.began,)


def _check_names(targets: Sequence[TargetSpec]) -> None:
    if not targets:
        raise Fault(Code.USAGE, "no target is named", hint="Name one with --target, or in the suite under execution.")
    names = [spec.name for spec in targets]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise Fault(Code.USAGE, f"two targets are named {', '.join(twice)}", hint="Give each a name of its own.")
