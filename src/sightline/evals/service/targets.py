"""Opens targets by their specs: those of a run at its start, judges on first use. Targets with tools, replayed and mock
answers are here too."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec

from sightline.agent.core.approval import Denied, Policy
from sightline.agent.core.facts import RequestStarted, RunFact, ToolFinished, ToolStarted
from sightline.agent.core.limits import RunLimits
from sightline.agent.core.run import RunPlan
from sightline.agent.core.steps import RunnableCall
from sightline.agent.service.approvers import Judging, Said
from sightline.agent.service.driver import RunParticipants
from sightline.agent.service.round_sender import RunGate
from sightline.agent.service.run_answer import RunTools
from sightline.agent.service.runner import NewRun, Runner
from sightline.agent.tools.commands import without
from sightline.catalog.choose import ModelChoice
from sightline.editing.comparing import SectionChange
from sightline.errors import Code, Fault
from sightline.evals.core.result import CaseObservation
from sightline.evals.core.run_state import budget_of
from sightline.evals.core.target import TargetSpec
from sightline.evals.service.command_target import CommandTarget
from sightline.evals.service.context import LONGEST, EvalRun, Sharing, limit_choice
from sightline.evals.service.eval_log import PREFIX
from sightline.evals.service.model_target import ModelAccess, ModelTarget
from sightline.evals.service.suite_files import SuiteFiles
from sightline.evals.service.target import (
    CaseQuestion,
    CaseTarget,
    TargetAnswer,
    check_priced,
    no_answer,
    observe_reply,
    observe_run,
    refuse_tools,
)
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

DENIED = "This tool is not allowed in evals."


@dataclass(slots=True)
class _RunTrace:
    """Collects from the facts of a run its exchanges, the duration of each call, and what a user changed in its
    requests."""

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
    """Runs a model with the tools of `toolsets`. Tools that their policies do not allow are denied, unless everything
    is approved. Answers are never cached, because tools may have effects."""

    def __init__(
        self, model: ModelTarget, runner: Runner, tools: RunTools, access: ModelAccess, *, approves: bool
    ) -> None:
        self._model = model
        self._runner = runner
        self._tools = tools
        self._access = access
        self._approver = Judging("yes" if approves else _deny)

    @property
    def spec(self) -> TargetSpec:
        return self._model.spec

    async def answer(self, wanted: CaseQuestion) -> TargetAnswer:
        """Run until the model has answered. Each request waits for the provider's limits."""
        run, choice, spec = self._runner.make_id(), self._model.choice, self.spec
        trace = _RunTrace(self._access.engine.clock.monotonic)
        limits = RunLimits() if spec.requests is None else RunLimits(requests=spec.requests)
        try:
            refuse_tools(wanted, spec.name, "runs tools of its own")
        except Fault as fault:
            return no_answer(wanted, fault, cost=0.0)
        try:
            new = NewRun(
                self._model.prompt(wanted.messages),
                choice,
                RunPlan(dialect=choice.dialect, policy=Policy(self._tools.rules), limits=limits),
                self._access.session,
                run,
                origin={
                    "kind": "eval",
                    "eval": self._access.session.partition(":")[2],
                    "case": wanted.case,
                    "target": spec.name,
                    "trial": wanted.trial,
                    "toolsets": list(spec.toolsets),
                },
            )
            holds = self._access.engine.relay.holds
            company = RunParticipants(
                self._tools,
                self._approver,
                self._tools.hooks,
                on_recorded=lambda entry: trace.changes.extend(changes_while_held(holds, entry)),
                on_fact=trace,
                gate=RunGate(self._admit, LONGEST),
            )
            ended = await self._runner.run(new, company)
            observation = observe_run(ended, run, choice, trace.seconds)
        except Fault as fault:
            self._access.spending.spend(None)
            return no_answer(wanted, fault)
        self._access.spending.spend(observation.cost)
        changes = tuple(trace.changes)
        return TargetAnswer(
            msgspec.structs.replace(
                observation,
                messages=apply_changes(observation.messages, changes),
                asked=apply_changes(wanted.messages, changes),
                question=wanted.question,
                exchanges=tuple(trace.exchanges),
            ),
            changes=changes,
        )

    async def _admit(self, ready: Prepared) -> Callable[[], None]:
        return (await self._model.admit(ready)).release

    async def close(self) -> None:
        """Does nothing: the tools belong to their opener."""


def _deny(_call: RunnableCall) -> Said:
    return Denied(DENIED, by="nobody")


class ReplayTarget:
    """Answers from the record. If a request was recorded several times, the trial's number selects one; beyond the
    last, the last."""

    def __init__(self, model: ModelTarget, library: Library) -> None:
        self._model = model
        self._library = library

    @property
    def spec(self) -> TargetSpec:
        return self._model.spec

    async def answer(self, wanted: CaseQuestion) -> TargetAnswer:
        """The recorded answer. If there is none, the error names the nearest recording and its differences."""
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
        """Does nothing."""


class MockTarget:
    """Gives the same answer to everything, at no cost."""

    def __init__(self, spec: TargetSpec) -> None:
        self.spec = spec

    async def answer(self, wanted: CaseQuestion) -> TargetAnswer:
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
        """Does nothing."""


class Targets:
    """The targets of one run. `sharing` is shared with other processes; by default this process has its own."""

    def __init__(self, run: EvalRun, sharing: Sharing | None = None) -> None:
        began = run.began
        self._run = run
        self._known = {spec.name: spec for spec in (*began.judges, *began.targets)}
        self._has_budget = budget_of(began.suite, began.options) is not None
        self._sharing = sharing or run.own_sharing()
        self._access = ModelAccess(run.engine, self._sharing.rates, run.spending, PREFIX + run.id, run.context.make_id)
        self._open: dict[tuple[str, str], CaseTarget] = {}
        self._opening = asyncio.Lock()

    async def open_target(self, spec: TargetSpec) -> CaseTarget:
        """Open a target. Raises a fault if its spec is wrong, before anything is sent."""
        spec.check()
        if spec.toolsets:
            return await self._with_tools(spec)
        return await self._plain(spec)

    async def judging(self, name: str, model: str) -> CaseTarget:
        """The target that judges, by its name or by a model's name. A judge has no tools."""
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
        """Close the judges and flush the cache."""
        for target in self._open.values():
            await target.close()
        await self._sharing.close()

    async def _plain(self, spec: TargetSpec) -> CaseTarget:
        match spec.kind:
            case "model":
                return ModelTarget(spec, self._choice(spec), self._access, await self._sharing.answers(spec.name))
            case "mock":
                return MockTarget(spec)
            case "replay":
                return await self._replay(spec)
            case "cli":
                return await self._command(spec)

    def _choice(self, spec: TargetSpec) -> ModelChoice:
        choice = limit_choice(self._run.context.choice(spec.model), spec.rpm, spec.tpm)
        if self._has_budget:
            check_priced(choice)
        return choice

    async def _with_tools(self, spec: TargetSpec) -> CaseTarget:
        context = self._run.context
        if context.runner is None or context.open_tools is None:
            raise Fault(Code.USAGE, f"{spec.name} has toolsets, and nothing here runs tools", hint="Leave them out.")
        tools = await context.open_tools(spec.toolsets)
        model = ModelTarget(spec, self._choice(spec), self._access)
        approves = spec.approve or self._run.began.options.approve
        return ToolsTarget(model, context.runner, tools, self._access, approves=approves)

    async def _replay(self, spec: TargetSpec) -> CaseTarget:
        store = self._run.context.require_store(f"{spec.name} answers out of it")
        await store.settle()
        library = Library(store)
        await library.fill(parse(spec.replay or "", scope=FilterScope.TRAFFIC), now=self._run.engine.clock.now())
        return ReplayTarget(ModelTarget(spec, self._choice(spec), self._access), library)

    async def _command(self, spec: TargetSpec) -> CaseTarget:
        context = self._run.context
        passed = {
            name: context.environment[name]
            for name in (spec.cli.env if spec.cli else ())
            if name in context.environment
        }
        environment = {**without(context.environment, context.secrets), **passed}
        target = CommandTarget(spec, SuiteFiles(context.root), environment, self._run.engine.clock, self._run.spending)
        try:
            await target.check_health(context.client)
        except Fault:
            await target.close()
            raise
        return target
