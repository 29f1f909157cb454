"""The calls of a round: ask hooks about them, let people decide, and run those that may run."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

import msgspec

from sightline.agent.core.approval import Allowed, Decision, Denied, Policy
from sightline.agent.core.facts import Remarked, ToolFinished, ToolStarted
from sightline.agent.core.steps import Approve, RunnableCall, Use, batches
from sightline.agent.core.tool import Cap, ResultPart, ToolOutcome, cap_outcome, text_outcome
from sightline.agent.service.run_log import RunLog
from sightline.agent.tools.hooks import Event, Hooks, HookSubject, HookVerdict
from sightline.agent.tools.tools import Tools
from sightline.catalog.facts import Facts
from sightline.catalog.fitting import refusals
from sightline.errors import Code, Fault
from sightline.journal.journal import StopSignal
from sightline.model.json import Json
from sightline.model.parts import Text
from sightline.model.request import Message, Request


@dataclass(frozen=True, slots=True)
class HookPoints:
    """Asks the hooks of a run, if it has any. Their problems are logged; a hook that wants to end the run ends it like
    a person does."""

    hooks: Hooks | None
    log: RunLog
    stop_signal: StopSignal

    async def ask(self, event: Event, number: int, **subjects: HookSubject) -> HookVerdict | None:
        """The verdict of the hooks on an event of this round; None if there are no hooks."""
        if self.hooks is None:
            return None
        verdict = await self.hooks.ask(event, self.log.run, number, **subjects)
        remarks = list(verdict.warnings)
        if verdict.stop is not None:
            remarks.append(f"a hook ended the run: {verdict.stop}" if verdict.stop else "a hook ended the run")
        if remarks:
            await self.log.note(*(Remarked(words) for words in remarks))
        if verdict.stop is not None:
            self.stop_signal.stop(now=False)
        return verdict


def refusal_fault(what: str, verdict: HookVerdict) -> Fault:
    """The fault of a run that a hook does not let continue."""
    hint = "Look at the hooks of this run."
    if verdict.has_failed:
        return Fault(Code.PERMISSION, f"a hook could not judge {what}: {'; '.join(verdict.warnings)}", hint=hint)
    return Fault(Code.PERMISSION, f"a hook refused {what}: {verdict.reason or 'it gave no reason'}", hint=hint)


@dataclass
class CallApproval:
    """Decides about calls: `look` asks the hooks about one call, `decide` asks a person about several. `contexts` has
    the hooks' texts for the model, by the key of the call. `by_hook` has the arguments that hooks wrote; the person
    sees them, and they are used unless the person changes them."""

    look: Callable[[int, RunnableCall], Awaitable[HookVerdict | None]]
    decide: Callable[[Approve], Awaitable[Mapping[str, Decision]]]
    policy: Policy
    contexts: dict[str, str] = field(default_factory=dict)
    by_hook: dict[str, dict[str, Json] | str] = field(default_factory=dict)

    async def approve(self, step: Approve) -> dict[str, Decision]:
        """The decisions, by the key of the call. Calls about which no decision was made are left out."""
        decisions: dict[str, Decision] = {}
        shown: list[RunnableCall] = []
        for call in step.calls:
            objection = step.objections.get(call.key)
            decision = (
                self._hook_objection(call.key, objection) if objection else await self._automatic_decision(step, call)
            )
            if decision is not None:
                decisions[call.key] = decision
            else:
                changed = self.by_hook.get(call.key)
                shown.append(call if changed is None else msgspec.structs.replace(call, arguments=changed, repairs=()))
        if shown:
            objections = {call.key: step.objections[call.key] for call in shown if call.key in step.objections}
            decided = await self.decide(Approve(step.round, tuple(shown), objections))
            decisions |= {
                call.key: self._merge_hook_change(call.key, decided[call.key]) for call in shown if call.key in decided
            }
        return decisions

    def _hook_objection(self, key: str, objection: str) -> Decision | None:
        """Deny a call whose arguments a hook changed to invalid ones; None for invalid arguments of a person, who is
        asked again."""
        if self.by_hook.pop(key, None) is None:
            return None
        return Denied(f"It changed the arguments to some that cannot be used: {objection}", by="hook")

    async def _automatic_decision(self, step: Approve, call: RunnableCall) -> Decision | None:
        """The decision of the hooks and the rules; None if a person has to decide."""
        verdict = await self.look(step.round, call)
        is_allowed = call.key in step.allowed
        if verdict is None:
            return Allowed() if is_allowed else None
        self.contexts[call.key] = verdict.context
        if verdict.decision == "deny":
            return Denied(verdict.reason, by="hook")
        if verdict.arguments is not None:
            self.by_hook[call.key] = verdict.arguments
            # A rule that allows the original arguments does not cover others.
            is_allowed = self.policy.ruling(call.name, verdict.arguments).ruling == "allow"
        if verdict.decision == "allow" or (is_allowed and verdict.decision != "ask"):
            return Allowed(verdict.arguments)
        return None

    def _merge_hook_change(self, key: str, decision: Decision) -> Decision:
        """Use the arguments that a hook wrote, unless the person has replaced them."""
        if not isinstance(decision, Allowed):
            return decision
        if decision.arguments is not None:
            self.by_hook.pop(key, None)
            return decision
        return msgspec.structs.replace(decision, arguments=self.by_hook.get(key))


INTERRUPTED = "This call was interrupted, and it is not known how far it got. It was not run again."


@dataclass
class ToolRunner:
    """Runs calls. `facts` describes the model that gets the results; `after` asks hooks about an outcome. `outcomes`
    and `contexts` are those of the current round so far."""

    tools: Tools
    log: RunLog
    stop_signal: StopSignal
    cap: Cap
    facts: Facts
    after: Callable[[int, RunnableCall, ToolOutcome], Awaitable[HookVerdict | None]]
    progress: Callable[[str, str], None]
    outcomes: dict[str, ToolOutcome] = field(default_factory=dict)
    contexts: dict[str, str] = field(default_factory=dict)

    def begin(self, outcomes: dict[str, ToolOutcome], contexts: dict[str, str]) -> None:
        """Start a round with the results that an earlier process has already recorded."""
        self.outcomes, self.contexts = dict(outcomes), {**contexts}

    async def use(self, step: Use) -> None:
        """Run the calls that have no outcome yet. None is started once the run is to stop."""
        for batch in batches(step.calls):
            todo = [call for call in batch if call.key not in self.outcomes]
            if self.stop_signal.is_set:
                return
            failed: Fault | None = None
            try:
                async with asyncio.TaskGroup() as group:
                    for call in todo:
                        group.create_task(self._run(step.round, call))
            except* Fault as faults:
                failed = _first(faults)
            if failed is not None:  # raising it above wraps it in a group again in early versions of Python 3.11
                raise failed

    async def skip(self, calls: tuple[RunnableCall, ...]) -> None:
        """Do not run these interrupted calls, and tell the model so."""
        for call in calls:
            await self._finish(call.key, text_outcome(INTERRUPTED, is_error=True), "")

    @property
    def context(self) -> str:
        """The text for the model in addition to the results."""
        return "\n".join(words for words in self.contexts.values() if words)

    async def _run(self, number: int, call: RunnableCall) -> None:
        await self.log.note(ToolStarted(call.key))
        began = self.log.now()
        outcome = self.log.mask(await self.tools.use(call, lambda words: self.progress(call.key, words)))
        self.log.observe_tool(call, began, outcome)
        outcome = self.outcomes[call.key] = cap_outcome(_supported_parts(outcome, self.facts), self.cap)
        verdict = await self.after(number, call, outcome)
        context = [self.contexts.get(call.key, "")]
        if verdict is not None:
            context += [verdict.context, verdict.reason if verdict.decision == "deny" else ""]
        await self._finish(call.key, outcome, "\n".join(filter(None, context)))

    async def _finish(self, key: str, outcome: ToolOutcome, context: str) -> None:
        self.outcomes[key] = outcome
        self.contexts[key] = context
        await self.log.note(ToolFinished(key, outcome, context))


def _supported_parts(outcome: ToolOutcome, facts: Facts) -> ToolOutcome:
    """Replace the parts that the model is known not to accept: its provider would refuse the whole request."""
    parts: list[ResultPart] = []
    for part in outcome.parts:
        found = next(refusals(Request(messages=(Message("user", (part,)),)), facts), None)
        parts.append(Text(f"[left out: of the model it is known that {found.message}]") if found else part)
    return msgspec.structs.replace(outcome, parts=tuple(parts))


def _first(faults: BaseExceptionGroup[Fault]) -> Fault:
    found = faults.exceptions[0]
    return _first(found) if isinstance(found, BaseExceptionGroup) else found
