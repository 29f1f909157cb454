"""What cases are run with: targets, graders, and the processes that both start, open for one run."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import msgspec

from sightline.agent.core.approval import Denied, Policy
from sightline.agent.core.facts import RequestStarted, RunFact, ToolFinished, ToolStarted
from sightline.agent.core.limits import RunLimits
from sightline.agent.core.plan import RunPlan
from sightline.agent.core.steps import RunnableCall
from sightline.agent.service.policy_approver import Judging, Said
from sightline.agent.service.round_sender import RunGate
from sightline.agent.service.runner import Runner
from sightline.agent.tools.environment import without
from sightline.catalog.choose import ModelChoice
from sightline.chat.service.tool_answerer import Equipment
from sightline.editing.conversation_changes import SectionChange
from sightline.errors import Code, Fault
from sightline.evals.core.facts import EvalBegan
from sightline.evals.core.observation import CaseObservation
from sightline.evals.core.options import RunOptions, budget_of, is_cached
from sightline.evals.core.target import TargetSpec
from sightline.evals.service.case_worker import CaseWorker, FileShelf
from sightline.evals.service.command_target import CommandTarget
from sightline.evals.service.context import EvalContext
from sightline.evals.service.eval_log import PREFIX
from sightline.evals.service.grading import Graders
from sightline.evals.service.model_target import ModelAccess, ModelTarget
from sightline.evals.service.observation import observe_reply, observe_run
from sightline.evals.service.process import Process
from sightline.evals.service.python_graders import PythonGraders
from sightline.evals.service.rates import LONGEST, limit_choice
from sightline.evals.service.sharing import OwnSharing, Sharing
from sightline.evals.service.spending import Spending, check_priced
from sightline.evals.service.suite_files import SuiteFiles
from sightline.evals.service.target import CaseQuestion, CaseTarget, TargetAnswer, no_answer, refuse_tools
from sightline.exchange.engine import Engine
from sightline.exchange.interception.hold_changes import apply_changes, changes_while_held
from sightline.exchange.prepare import Prepared
from sightline.exchange.recording.library import Library
from sightline.exchange.recording.likeness import lines_of
from sightline.exchange.replay_handler import no_recording
from sightline.filters.fields import FilterScope
from sightline.filters.parsing import parse
from sightline.model.message import Message
from sightline.model.parts import Text
from sightline.model.usage import Usage
from sightline.store.logbook import Logbook

DENIED = "This tool is not allowed in evals."


@dataclass(slots=True)
class _Heard:
    """What the facts of a run tell beside its end: its exchanges, how long each call took, and what a person changed in
    its requests."""

    elapsed: Callable[[], float]
    exchanges: list[str] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    changes: list[tuple[SectionChange, ...]] = field(default_factory=list)
    _begun: dict[str, float] = field(default_factory=dict)

    def __call__(self, fact: RunFact) -> None:
        match fact:
            case RequestStarted(exchange=exchange):
                self.exchanges.append(exchange)
            case ToolStarted(key):
                self._begun[key] = self.elapsed()
            case ToolFinished(key):
                self.seconds[key] = self.elapsed() - self._begun.pop(key, self.elapsed())
            case _:
                pass


class ToolsTarget:
    """Runs with the tools of `toolsets`. What their tables allow runs; the rest is denied with a reason, unless
    everything is approved. A run is never taken from an earlier one: its tools may have effects."""

    def __init__(
        self, model: ModelTarget, runner: Runner, tools: Equipment, means: ModelAccess, *, approves: bool
    ) -> None:
        self._model = model
        self._runner = runner
        self._tools = tools
        self._means = means
        self._approver = Judging("yes" if approves else _deny)

    @property
    def spec(self) -> TargetSpec:
        """How it was described."""
        return self._model.spec

    async def answer(self, wanted: CaseQuestion) -> TargetAnswer:
        """What the run came to. Its rounds wait for the provider's limits as any request does."""
        run, choice, spec = self._runner.make_id(), self._model.choice, self.spec
        heard = _Heard(self._means.engine.clock.monotonic)
        limits = RunLimits() if spec.requests is None else RunLimits(requests=spec.requests)
        try:
            refuse_tools(wanted, spec.name, "runs tools of its own")
        except Fault as fault:
            return no_answer(wanted, fault, cost=0.0)
        try:
            ended = await self._runner.run(
                self._model.prompt(wanted.messages),
                choice,
                RunPlan(dialect=choice.dialect, policy=Policy(self._tools.rules), limits=limits),
                self._tools,
                self._approver,
                hooks=self._tools.hooks,
                session=self._means.session,
                run=run,
                origin={
                    "kind": "eval",
                    "eval": self._means.session.partition(":")[2],
                    "case": wanted.case,
                    "target": spec.name,
                    "trial": wanted.trial,
                    "toolsets": list(spec.toolsets),
                },
                on_fact=heard,
                noted=lambda noted: heard.changes.extend(changes_while_held(self._means.engine.relay.holds, noted)),
                gate=RunGate(self._admit, LONGEST),
            )
            observation = observe_run(ended, run, choice, heard.seconds)
        except Fault as fault:
            self._means.spending.spend(None)
            return no_answer(wanted, fault)
        self._means.spending.spend(observation.cost)
        changes = tuple(heard.changes)
        return TargetAnswer(
            msgspec.structs.replace(
                observation,
                messages=apply_changes(observation.messages, changes),
                asked=apply_changes(wanted.messages, changes),
                question=wanted.question,
                exchanges=tuple(heard.exchanges),
            ),
            changes=changes,
        )

    async def _admit(self, ready: Prepared) -> Callable[[], None]:
        return (await self._model.admit(ready)).release

    async def close(self) -> None:
        """Tools are closed by whoever opened them."""


def _deny(_call: RunnableCall) -> Said:
    return Denied(DENIED, by="nobody")


class ReplayTarget:
    """The trial says which of several recordings of the same request answers; behind the last, the last again."""

    def __init__(self, model: ModelTarget, library: Library) -> None:
        self._model = model
        self._library = library

    @property
    def spec(self) -> TargetSpec:
        """How it was described."""
        return self._model.spec

    async def answer(self, wanted: CaseQuestion) -> TargetAnswer:
        """The recorded answer; where there is none, the nearest recording and in what it differs."""
        try:
            ready = self._model.final(self._model.prepare(wanted.messages, wanted.tools))
            lines = lines_of(ready.dialect, ready.body, ready.choice.model)
            recorded = await self._library.at(lines, wanted.trial, ready.dialect)
            if recorded is None:
                raise await no_recording(self._library, lines)
            reply = recorded.reply()
        except Fault as fault:
            return no_answer(wanted, fault, cost=0.0)
        seconds = recorded.frames[-1].after if recorded.frames else None
        observation = msgspec.structs.replace(
            observe_reply(reply, self._model.choice),
            asked=wanted.messages,
            question=wanted.question,
            exchanges=(recorded.id,),
            request_sha256=ready.sha256,
            seconds=seconds,
        )
        return TargetAnswer(observation, is_cached=True)

    async def close(self) -> None:
        """Nothing was started."""


class MockTarget:
    """Answers the same to everything, at no cost."""

    def __init__(self, spec: TargetSpec) -> None:
        self.spec = spec

    async def answer(self, wanted: CaseQuestion) -> TargetAnswer:
        """The words."""
        text = self.spec.mock or ""
        return TargetAnswer(
            CaseObservation(
                asked=wanted.messages,
                messages=(Message("assistant", (Text(text),)),),
                text=text,
                finish="stop",
                usage=Usage(input_tokens=0, output_tokens=0),
                cost=0.0,
                seconds=0.0,
                requests=0,
                model="mock",
                question=wanted.question,
            )
        )

    async def close(self) -> None:
        """Nothing was started."""


class Targets:
    """The targets of one run. `session` labels their exchanges. `sharing` is what other processes may have a part in;
    without one it is this process's own."""

    def __init__(
        self,
        engine: Engine,
        logbook: Logbook,
        around: EvalContext,
        *,
        session: str,
        options: RunOptions,
        is_cached: bool,
        has_budget: bool,
        spending: Spending,
        known: Sequence[TargetSpec],
        sharing: Sharing | None = None,
    ) -> None:
        self._engine = engine
        self._around = around
        self._options = options
        self._has_budget = has_budget
        self._known = {spec.name: spec for spec in known}
        self._purse = spending
        self._sharing = sharing or OwnSharing(engine, logbook, around, is_cached=is_cached)
        self._means = ModelAccess(engine, self._sharing.rates, spending, session, around.make_id)
        self._open: dict[tuple[str, str], CaseTarget] = {}
        self._opening = asyncio.Lock()

    async def open_target(self, spec: TargetSpec) -> CaseTarget:
        """A target that answers cases. What is wrong with it is a fault, before anything is asked."""
        spec.check()
        if spec.toolsets:
            return await self._with_tools(spec)
        return await self._plain(spec)

    async def judging(self, name: str, model: str) -> CaseTarget:
        """A target that judges, by its name or as the model of this name; it has no tools."""
        async with self._opening:
            found = self._open.get((name, model))
            if found is None:
                spec = self._known.get(name) or TargetSpec(name=name, model=name)
                if model:
                    spec = TargetSpec(name=f"{name}:{model}", model=model, rpm=spec.rpm, tpm=spec.tpm)
                spec.check()
                found = self._open[name, model] = await self._plain(msgspec.structs.replace(spec, toolsets=()))
            return found

    async def close(self) -> None:
        """Close the judges, and keep what is to be remembered."""
        for target in self._open.values():
            await target.close()
        await self._sharing.close()

    async def _plain(self, spec: TargetSpec) -> CaseTarget:
        match spec.kind:
            case "model":
                return ModelTarget(spec, self._choice(spec), self._means, await self._sharing.answers(spec.name))
            case "mock":
                return MockTarget(spec)
            case "replay":
                return await self._replay(spec)
            case "cli":
                return await self._command(spec)

    def _choice(self, spec: TargetSpec) -> ModelChoice:
        choice = limit_choice(self._around.choice(spec.model), spec.rpm, spec.tpm)
        if self._has_budget:
            check_priced(choice)
        return choice

    async def _with_tools(self, spec: TargetSpec) -> CaseTarget:
        around = self._around
        if around.runner is None or around.equipping is None:
            raise Fault(Code.USAGE, f"{spec.name} has toolsets, and nothing here runs tools", hint="Leave them out.")
        tools = await around.equipping(spec.toolsets)
        model = ModelTarget(spec, self._choice(spec), self._means)
        approves = spec.approve or self._options.approve
        return ToolsTarget(model, around.runner, tools, self._means, approves=approves)

    async def _replay(self, spec: TargetSpec) -> CaseTarget:
        store = self._around.require_store(f"{spec.name} answers out of it")
        await store.settle()
        library = Library(store)
        await library.fill(parse(spec.replay or "", scope=FilterScope.TRAFFIC), now=self._engine.clock.now())
        return ReplayTarget(ModelTarget(spec, self._choice(spec), self._means), library)

    async def _command(self, spec: TargetSpec) -> CaseTarget:
        around = self._around
        passed = {
            name: around.environment[name] for name in (spec.cli.env if spec.cli else ()) if name in around.environment
        }
        environment = {**without(around.environment, around.secrets), **passed}
        target = CommandTarget(spec, SuiteFiles(around.root), environment, self._engine.clock, self._purse)
        try:
            await target.check_health(around.client)
        except Fault:
            await target.close()
            raise
        return target


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
