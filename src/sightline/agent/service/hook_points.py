"""Where a run asks hooks, and how hooks, rules and a person together decide about calls."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import msgspec

from sightline.agent.core.approval import Allowed, Decision, Denied, Policy
from sightline.agent.core.facts import Remarked
from sightline.agent.core.output import ToolOutcome
from sightline.agent.core.steps import Approve, RunnableCall
from sightline.agent.service.run_log import RunLog
from sightline.agent.tools.hooks import Hooks, HookVerdict
from sightline.errors import Code, Fault
from sightline.journal.driver import StopSignal
from sightline.model.json import Json
from sightline.model.reply import Reply
from sightline.model.request import Request


@dataclass(frozen=True, slots=True)
class HookPoints:
    """Asks the hooks of a run, if it has any. What goes wrong with them is noted, and one that wants the run to end
    ends it as a person would."""

    hooks: Hooks | None
    log: RunLog
    stop_signal: StopSignal

    async def before_request(self, number: int, request: Request) -> HookVerdict | None:
        """A request is about to be sent."""
        return (
            None
            if self.hooks is None
            else await self._record_verdict(self.hooks.before_request(self.log.run, number, request))
        )

    async def after_reply(self, number: int, reply: Reply) -> HookVerdict | None:
        """A reply has come."""
        return (
            None
            if self.hooks is None
            else await self._record_verdict(self.hooks.after_reply(self.log.run, number, reply))
        )

    async def before_tool(self, number: int, call: RunnableCall) -> HookVerdict | None:
        """A call is about to be decided on."""
        return (
            None
            if self.hooks is None
            else await self._record_verdict(self.hooks.before_tool(self.log.run, number, call))
        )

    async def after_tool(self, number: int, call: RunnableCall, outcome: ToolOutcome) -> HookVerdict | None:
        """A tool has answered."""
        return (
            None
            if self.hooks is None
            else await self._record_verdict(self.hooks.after_tool(self.log.run, number, call, outcome))
        )

    async def stop(self, number: int, reply: Reply, *, is_active: bool) -> HookVerdict | None:
        """Before the end of the run, after the last reply."""
        return (
            None
            if self.hooks is None
            else await self._record_verdict(self.hooks.stop(self.log.run, number, reply, is_active=is_active))
        )

    async def _record_verdict(self, verdict_awaited: Awaitable[HookVerdict]) -> HookVerdict:
        verdict = await verdict_awaited
        remarks = list(verdict.warnings)
        if verdict.stop is not None:
            remarks.append(f"a hook ended the run: {verdict.stop}" if verdict.stop else "a hook ended the run")
        if remarks:
            await self.log.note(*(Remarked(words) for words in remarks))
        if verdict.stop is not None:
            self.stop_signal.stop(now=False)
        return verdict


def refusal_fault(what: str, verdict: HookVerdict) -> Fault:
    """The fault of a run that a hook does not let go on."""
    hint = "Look at the hooks of this run."
    if verdict.has_failed:
        return Fault(Code.PERMISSION, f"a hook could not judge {what}: {'; '.join(verdict.warnings)}", hint=hint)
    return Fault(Code.PERMISSION, f"a hook refused {what}: {verdict.reason or 'it gave no reason'}", hint=hint)


Looking: TypeAlias = Callable[[int, RunnableCall], Awaitable[HookVerdict | None]]
"""What hooks say of a call; nothing where there are none."""

Deciding: TypeAlias = Callable[[Approve], Awaitable[Mapping[str, Decision]]]
"""What a person says of calls."""


@dataclass
class CallApproval:
    """Decides about calls. `contexts` are texts of hooks for the model, by the key of the call; `by_hook` the arguments
    that they wrote, which the person sees, and which run unless the person changes them."""

    look: Looking
    decide: Deciding
    policy: Policy
    contexts: dict[str, str] = field(default_factory=dict)
    by_hook: dict[str, dict[str, Json] | str] = field(default_factory=dict)

    async def approve(self, step: Approve) -> dict[str, Decision]:
        """A decision for every call about which one was made."""
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
                shown.append(self._as_shown(call))
        if shown:
            objections = {call.key: step.objections[call.key] for call in shown if call.key in step.objections}
            question = Approve(step.round, tuple(shown), objections)
            decided = await self.decide(question)
            decisions |= {
                call.key: self._merge_hook_change(call.key, decided[call.key]) for call in shown if call.key in decided
            }
        return decisions

    def _hook_objection(self, key: str, objection: str) -> Decision | None:
        """Deny a call whose arguments a hook changed to invalid ones. Invalid arguments of a person are asked about
        again."""
        if self.by_hook.pop(key, None) is None:
            return None
        return Denied(f"It changed the arguments to some that cannot be used: {objection}", by="hook")

    async def _automatic_decision(self, step: Approve, call: RunnableCall) -> Decision | None:
        """What the hooks and the rules decide; None where a person has to."""
        verdict = await self.look(step.round, call)
        is_allowed = call.key in step.allowed
        if verdict is None:
            return Allowed() if is_allowed else None
        self.contexts[call.key] = verdict.context
        if verdict.decision == "deny":
            return Denied(verdict.reason, by="hook")
        if verdict.arguments is not None:
            self.by_hook[call.key] = verdict.arguments
            # A rule that allows the arguments as they were says nothing of others.
            is_allowed = self.policy.ruling(call.name, verdict.arguments).ruling == "allow"
        if verdict.decision == "allow" or (is_allowed and verdict.decision != "ask"):
            return Allowed(verdict.arguments)
        return None

    def _as_shown(self, call: RunnableCall) -> RunnableCall:
        changed = self.by_hook.get(call.key)
        return call if changed is None else msgspec.structs.replace(call, arguments=changed, repairs=())

    def _merge_hook_change(self, key: str, decision: Decision) -> Decision:
        """What a person leaves as a hook has changed it runs so; what the person changes is the person's."""
        if not isinstance(decision, Allowed):
            return decision
        if decision.arguments is not None:
            self.by_hook.pop(key, None)
            return decision
        return msgspec.structs.replace(decision, arguments=self.by_hook.get(key))
