"""Targets, opened by their descriptions: those of a run, and those that judge, when they are first wanted."""

import asyncio
from collections.abc import Sequence

import msgspec

from sightline.agent.tools.environment import without
from sightline.catalog.choose import ModelChoice
from sightline.errors import Code, Fault
from sightline.evals.core.options import RunOptions
from sightline.evals.core.target import TargetSpec
from sightline.evals.service.command_target import CommandTarget
from sightline.evals.service.context import EvalContext
from sightline.evals.service.mock_target import MockTarget
from sightline.evals.service.model_target import ModelAccess, ModelTarget
from sightline.evals.service.rates import limit_choice
from sightline.evals.service.replay_target import ReplayTarget
from sightline.evals.service.sharing import OwnSharing, Sharing
from sightline.evals.service.spending import Spending, check_priced
from sightline.evals.service.suite_files import SuiteFiles
from sightline.evals.service.target import CaseTarget
from sightline.evals.service.tools_target import ToolsTarget
from sightline.exchange.engine import Engine
from sightline.exchange.recording.library import Library
from sightline.filters.fields import FilterScope
from sightline.filters.parsing import parse
from sightline.store.logbook import Logbook


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
