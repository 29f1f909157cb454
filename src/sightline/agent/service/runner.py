"""Runs of the tool loop: start, resume, stop and show them."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import msgspec

from sightline.agent.core.facts import RunBegan, RunTaken, TimedFact, begin_run, run_state_of
from sightline.agent.core.rounds import FinishedRun, Round
from sightline.agent.core.run import RunPlan
from sightline.agent.core.steps import AskModel
from sightline.agent.core.tool import Toolbox
from sightline.agent.service.approvers import Questions
from sightline.agent.service.driver import RunDriver, RunParticipants
from sightline.agent.service.round_sender import Opening
from sightline.agent.service.run_log import FactListener, PastRuns, RunLog
from sightline.agent.service.run_view import LiveState, RunBrief, RunShown, State, show_run, so_far
from sightline.agent.tools.tools import Tools
from sightline.catalog.catalog import Catalog, facts_of, family_of
from sightline.catalog.choose import ModelChoice, prices_of
from sightline.catalog.compose import Prompt
from sightline.catalog.problem import quote_word
from sightline.errors import CancelReason, Code, Fault
from sightline.exchange.engine import Engine
from sightline.exchange.hub import RUN_PREFIX, Hub
from sightline.exchange.outbound import compose_request, write_prepared
from sightline.model.json import JsonObject
from sightline.model.request import Request
from sightline.store.store import Logbook, Store

EVENT = "run"
"""The name of the events about runs."""


@dataclass(frozen=True, slots=True)
class RunnerOptions:
    """What runs need in addition to an engine and a logbook. `make_id` names exchanges.

    `process` is the name of this process; `is_alive` tells whether the process with a given name is still running.
    """

    catalog: Catalog
    make_id: Callable[[], str]
    process: str = ""
    is_alive: Callable[[str], bool] = lambda _process: False
    store: Store | None = None
    hub: Hub | None = None


@dataclass(frozen=True, slots=True)
class NewRun:
    """A run to start: its request, the model that answers, and the rules and limits of its tools.

    The dialect of the plan is set to that of the choice. A plan without tools gets all tools of the participants; one
    without prices gets those of the model. `session` and `origin` are recorded. `id` names the run (generated if
    empty). `opening` is how the first request is sent. With `is_stepping`, each request is held.
    """

    request: Prompt | Request
    choice: ModelChoice
    plan: RunPlan
    session: str
    id: str = ""
    origin: JsonObject = field(default_factory=dict)
    opening: Opening = field(default_factory=Opening)
    is_stepping: bool = False


@dataclass
class Runner:
    """Starts and drives the runs of a process. `questions` is the approver that asks on the page, for runs that have no
    other."""

    engine: Engine
    logbook: Logbook
    surroundings: RunnerOptions
    questions: Questions = field(init=False)
    _past: PastRuns = field(init=False)
    _drives: dict[str, RunDriver] = field(default_factory=dict)
    _tasks: "set[asyncio.Task[object]]" = field(default_factory=set)

    def __post_init__(self) -> None:
        self.questions = Questions(self._announce_change)
        around = self.surroundings
        # Runs that this process drives are known here; any other run under its name, it has left.
        self._past = PastRuns(self.logbook, lambda name: name != around.process and around.is_alive(name))

    def make_id(self) -> str:
        """A new name for a run. Names sort by the time they were made."""
        return f"{RUN_PREFIX}{self.surroundings.make_id().removeprefix('x_')}"

    # --- running ---

    async def run(self, new: NewRun, company: RunParticipants) -> FinishedRun:
        """Start a run and drive it to its end. If its request cannot be sent, this raises a fault and no run begins.

        Cancelling leaves a run that can be resumed.
        """
        choice, request = new.choice, new.request
        plan = _complete_plan(new.plan, choice, company.tools, is_hooked=company.hooks is not None)
        if isinstance(request, Prompt):
            request = compose_request(replace(request, tools=plan.toolbox.tools_for(request.tools)), choice)
        began = RunBegan(request, plan, choice.provider_name, new.session, dict(new.origin), choice.route)
        standing, log = begin_run(began), self._log(new.id or self.make_id(), company.on_fact)
        if isinstance(standing.step, AskModel):
            write_prepared(standing.step.request, choice, stream=bool(request.options.stream))
        around = self.surroundings
        await log.note(began, RunTaken(around.process))
        drive = RunDriver(
            standing, log, choice, self.engine, around.make_id, around.store, company, new.is_stepping, new.opening
        )
        return await self._driven(drive)

    async def resume(self, run: str, company: RunParticipants, begun: Callable[[], None] = lambda: None) -> FinishedRun:
        """Resume a run where its last process left it. No tool that has an outcome runs again; the user is asked about
        tools that were running. `begun` is called once the run is in progress."""
        known = await self._past.facts(run)
        state = "running" if run in self._drives else self._past.state(known)
        if state == "ended":
            raise Fault(Code.USAGE, f"the run {run} has ended", hint="Begin another.", status=409)
        if state != "interrupted":
            hint = "Only a run whose process has ended can be resumed."
            raise Fault(Code.USAGE, f"the run {run} is under way", hint=hint, status=409)
        standing = run_state_of([each.fact for each in known])
        log = self._log(run, company.on_fact, known)
        choice = self._choice(standing.began)
        around = self.surroundings
        await log.note(RunTaken(around.process))
        before = max(getattr(each.fact, "elapsed", 0.0) for each in known)
        drive = RunDriver(standing, log, choice, self.engine, around.make_id, around.store, company, before=before)
        return await self._driven(drive, begun)

    async def _driven(self, drive: RunDriver, begun: Callable[[], None] = lambda: None) -> FinishedRun:
        run = drive.log.run
        drive.changed = lambda: self._announce_change(run)
        self._drives[run] = drive
        self._announce_change(run)
        begun()
        task = asyncio.current_task()
        assert task is not None  # a coroutine runs in a task
        self._tasks.add(task)
        try:
            return await drive.through()
        finally:
            self._tasks.discard(task)
            del self._drives[run]
            self._announce(run, len(drive.log.timed_facts), self._past.state(drive.log.timed_facts))

    async def leave_all(self) -> None:
        """Leave every run, because the process ends. Running work is interrupted, and the runs can be resumed."""
        tasks = list(self._tasks)
        for drive in self._drives.values():
            drive.cancel_because("shutdown")
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def stop(self, run: str, *, now: bool) -> None:
        """End a run that is driven here, at once or after the work in progress has ended."""
        self._drive(run).stop_signal.stop(now=now)

    def leave(self, run: str, *, now: bool = False, reason: CancelReason = "user") -> None:
        """Leave a run that is driven here so that it can be resumed, at once or after the work in progress has
        ended."""
        drive = self._drive(run)
        drive.cancel_because(reason)
        drive.stop_signal.leave(now=now)

    def cancel_because(self, run: str, reason: CancelReason) -> None:
        """Set the reason before the run is cancelled."""
        self._drive(run).cancel_because(reason)

    def step(self, run: str, *, is_on: bool) -> None:
        """Hold each request of a run from now on, or stop holding them."""
        self._drive(run).is_stepping = is_on
        self._announce_change(run)

    # --- looking ---

    async def show(self, run: str) -> RunShown:
        drive = self._drives.get(run)
        if drive is None:
            return await self._past.show(run)
        is_page = drive.company.approver is self.questions
        looked = LiveState(
            _state(drive),
            drive.waits_for,
            self.questions.open_keys(run) if is_page and drive.waits_for else None,
            drive.held,
            drive.progress,
            drive.is_stepping,
            drive.paused,
        )
        return show_run(run, drive.log.timed_facts, drive.standing, looked)

    def rounds(self, run: str) -> tuple[Round, ...]:
        """The finished rounds of a run that is driven here."""
        return self._drive(run).standing.run.rounds

    def so_far(self, run: str) -> tuple[Round, ...]:
        """The rounds of a run that is driven here, including the current one."""
        drive = self._drive(run)
        return so_far(drive.log.timed_facts, drive.standing)

    async def result_of(self, run: str) -> tuple[tuple[Round, ...], FinishedRun | None]:
        """The rounds of a run that is not driven here, and its end; None if it has not ended."""
        facts = await self._past.facts(run)
        standing = run_state_of([each.fact for each in facts])
        return so_far(facts, standing), standing.ended

    async def list_runs(self, limit: int) -> list[RunBrief]:
        return await self._past.list_runs(limit, self._state)

    async def began(self, run: str) -> RunBegan:
        return run_state_of([each.fact for each in await self._past.facts(run)]).began

    # --- parts ---

    def _log(self, run: str, tell: FactListener | None, facts: Sequence[TimedFact] = ()) -> RunLog:
        clock, secrets = self.engine.clock, self.engine.relay.secrets
        return RunLog(
            self.logbook,
            run,
            now=clock.now,
            secrets=secrets,
            facts=facts,
            changed=lambda: self._announce_change(run),
            tell=tell,
            observer=self.engine.relay.observer,
        )

    def _choice(self, began: RunBegan) -> ModelChoice:
        """The model that a run was started with, and its provider as it is configured now."""
        name, model, catalog = began.provider, began.request.model, self.surroundings.catalog
        provider = catalog.providers.get(name)
        if provider is None or provider.dialect != began.plan.dialect:
            message = f"the provider {quote_word(name)} of this run is not configured as it was"
            hint = f"Add it to sightline.toml; it speaks {began.plan.dialect}."
            raise Fault(Code.CONFIG, message, hint=hint)
        facts, family = facts_of(catalog, name, model), family_of(catalog, name, model)
        prices = partial(prices_of, catalog, name)
        return ModelChoice(name, provider, model, facts, family, began.route, price_list=prices)

    def _drive(self, run: str) -> RunDriver:
        drive = self._drives.get(run)
        if drive is None:
            hint = "GET /api/runs/{id} shows its state; stop a run of another process there."
            raise Fault(Code.USAGE, f"the run {run!r} is not in progress here", hint=hint, status=409)
        return drive

    def _state(self, run: str) -> State | None:
        drive = self._drives.get(run)
        return None if drive is None else _state(drive)

    def _announce_change(self, run: str) -> None:
        drive = self._drives.get(run)
        if drive is not None:
            self._announce(run, len(drive.log.timed_facts), _state(drive))

    def _announce(self, run: str, version: int, state: State) -> None:
        hub = self.surroundings.hub
        if hub is not None:
            hub.announce(EVENT, {"run": run, "version": version, "state": state})


def _complete_plan(plan: RunPlan, choice: ModelChoice, tools: Tools, *, is_hooked: bool) -> RunPlan:
    return msgspec.structs.replace(
        plan,
        dialect=choice.dialect,
        toolbox=plan.toolbox if plan.toolbox.definitions else Toolbox(tools.definitions),
        prices=plan.prices or choice.facts.prices,
        is_hooked=is_hooked,
    )


def _state(drive: RunDriver) -> State:
    return "waiting" if drive.waits_for is not None or drive.held else "running"
