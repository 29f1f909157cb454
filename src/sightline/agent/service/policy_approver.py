"""A function that decides about calls, where no person does."""

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Literal, TypeAlias

from sightline.agent.core.approval import Allowed, AnsweredByHand, Decision, Denied
from sightline.agent.core.steps import Approve, Confirm, RunnableCall
from sightline.agent.service.participants import Interrupted
from sightline.model.json import Json

Said: TypeAlias = bool | str | dict[str, Json] | Decision
"""What can be said of a call: yes or no, why not, other arguments to run it with, or a decision in full."""

Judge: TypeAlias = Callable[[RunnableCall], Said | Awaitable[Said]]
Approval: TypeAlias = Literal["yes"] | Judge


class Judging:
    """Decides by `approve`, raises no limit, and runs nothing again that may have had effects unless `interrupted` says
    so. Arguments that the function wrote and that cannot be used deny the call: it is not asked a second time."""

    def __init__(self, approve: Approval, *, interrupted: Interrupted = "skip") -> None:
        self._approve = approve
        self._interrupted: Interrupted = interrupted

    async def approve(self, run: str, step: Approve) -> Mapping[str, Decision]:
        """What the function says of each call."""
        return {call.key: await self._decide(call, step.objections.get(call.key, "")) for call in step.calls}

    async def confirm(self, run: str, step: Confirm) -> bool:
        """A limit is a limit."""
        return False

    async def mid_flight(self, run: str, calls: Sequence[RunnableCall]) -> Mapping[str, Interrupted]:
        """The same for all."""
        return {call.key: self._interrupted for call in calls}

    async def _decide(self, call: RunnableCall, objection: str) -> Decision:
        if objection:
            return Denied(objection)
        if self._approve == "yes":
            return Allowed()
        said = self._approve(call)
        return _decision(await said if inspect.isawaitable(said) else said)


def deny_unattended(_call: RunnableCall) -> Said:
    """Decides where there is nobody who could: a hook may want a person even for what a rule allows."""
    return Denied(by="nobody")


def _decision(said: Said) -> Decision:
    match said:
        case Allowed() | Denied() | AnsweredByHand():
            return said
        case bool():
            return Allowed() if said else Denied()
        case str():
            return Denied(said)
        case dict():
            return Allowed(said)
