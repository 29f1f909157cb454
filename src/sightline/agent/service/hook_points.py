"""The moments of a run at which hooks are asked, and what is done with their verdicts whatever the moment."""

from collections.abc import Awaitable
from dataclasses import dataclass

from sightline.agent.core.facts import Remarked
from sightline.agent.core.output import ToolOutcome
from sightline.agent.core.steps import RunnableCall
from sightline.agent.service.run_log import RunLog
from sightline.agent.tools.hooks import Hooks, HookVerdict
from sightline.errors import Code, Fault
from sightline.journal.driver import StopSignal
from sightline.model.reply import Reply
from sightline.model.request import Request


@dataclass(frozen=True, slots=True)
class Moments:
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
        """The model has said its last word."""
        return (
            None
            if self.hooks is None
            else await self._record_verdict(self.hooks.stop(self.log.run, number, reply, is_active=is_active))
        )

    async def _record_verdict(self, asked: Awaitable[HookVerdict]) -> HookVerdict:
        verdict = await asked
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
