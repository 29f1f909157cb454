"""A model with tools: each question is a run of the tool loop, which is on record as any other."""

from collections.abc import Callable
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
from sightline.chat.service.tool_answerer import Equipment
from sightline.editing.conversation_changes import SectionChange
from sightline.errors import Fault
from sightline.evals.core.target import TargetSpec
from sightline.evals.service.model_target import ModelAccess, ModelTarget
from sightline.evals.service.observation import observe_run
from sightline.evals.service.rates import LONGEST
from sightline.evals.service.target import CaseQuestion, TargetAnswer, no_answer, refuse_tools
from sightline.exchange.hold_changes import apply_changes, changes_while_held
from sightline.exchange.prepare import Prepared

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
