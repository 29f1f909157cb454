"""What a decision does to a call, and to the policy from then on."""

from typing import assert_never

from sightline.agent.core.approval import Allowed, AnsweredByHand, ApprovalRule, Decision, Denied, Policy, Ruling
from sightline.agent.core.arguments import RefusedArguments, check_edited
from sightline.agent.core.output import Cap, ToolOutcome
from sightline.agent.core.pending import Pending
from sightline.agent.core.steps import RunnableCall
from sightline.agent.core.tool import Definition
from sightline.model.json import JsonObject


class RunPolicy:
    """The policy of a run, which grows with what people decide for more than one call."""

    def __init__(self, policy: Policy, cap: Cap) -> None:
        self._policy = policy
        self._cap = cap

    def ruling(self, pending: Pending, call: RunnableCall) -> Ruling:
        """Whether the call may run, or somebody must be asked; if a rule denies it, it is settled with that."""
        rule = self._policy.ruling(call.name, call.arguments)
        if rule.ruling == "deny":
            pending.deny(rule.reason, self._cap, "rule")
        return rule.ruling

    def decide(self, pending: Pending, decision: Decision | None, definition: Definition) -> str:
        """Follow a decision; why it cannot be followed, if it cannot. Where there is none, the call is cancelled."""
        match decision:
            case None:
                pending.cancel(self._cap)
            case Denied(reason, rule, by):
                pending.deny(reason, self._cap, by)
                self._grow(rule)
            case AnsweredByHand(parts, is_error):
                pending.settle("answered", ToolOutcome(parts, is_error=is_error), self._cap)
            case Allowed(arguments, rule):
                objection = "" if arguments is None else self._edit(pending, arguments, definition)
                if objection:
                    return objection
                self._grow(rule)
            case unreachable:
                assert_never(unreachable)
        return ""

    def _edit(self, pending: Pending, arguments: JsonObject | str, definition: Definition) -> str:
        read = check_edited(arguments, definition)
        if isinstance(read, RefusedArguments):
            return read.text
        rule = self._policy.ruling(definition.name, read.arguments)
        if rule.ruling == "deny":
            return f"A rule denies this call. {rule.reason}".strip()
        pending.edit(read.arguments)
        return ""

    def _grow(self, rule: ApprovalRule | None) -> None:
        if rule is not None:
            self._policy = self._policy.prepend(rule)
