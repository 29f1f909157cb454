"""What is decided about the calls of a round: by hooks first, then by a person, where a rule does not do."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import msgspec

from sightline.agent.core.approval import Allowed, Decision, Denied, Policy
from sightline.agent.core.steps import Approve, RunnableCall
from sightline.agent.tools.hooks import HookVerdict
from sightline.model.json import Json

Looking: TypeAlias = Callable[[int, RunnableCall], Awaitable[HookVerdict | None]]
"""What hooks say of a call; nothing where there are none."""

Deciding: TypeAlias = Callable[[Approve], Awaitable[Mapping[str, Decision]]]
"""What a person says of calls."""


@dataclass
class Approving:
    """Decides. `contexts` are what hooks have the model told, by the key of the call; `by_hook` the arguments that they
    wrote, which are shown to the person and run if nobody objects."""

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
            asked = Approve(step.round, tuple(shown), objections)
            told = await self.decide(asked)
            decisions |= {
                call.key: self._merge_hook_change(call.key, told[call.key]) for call in shown if call.key in told
            }
        return decisions

    def _hook_objection(self, key: str, objection: str) -> Decision | None:
        """Arguments of a hook that cannot be used are nobody's to correct; a person's are asked about again."""
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
