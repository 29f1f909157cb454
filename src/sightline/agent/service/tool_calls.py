"""The calls of one round, run: those that may run beside each other at once, the others in turn."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeAlias

import msgspec

from sightline.agent.core.facts import ToolFinished, ToolStarted
from sightline.agent.core.output import Cap, ResultPart, ToolOutcome, cap_outcome, text_outcome
from sightline.agent.core.steps import RunnableCall, Use, batches
from sightline.agent.service.run_log import RunLog
from sightline.agent.tools.hooks import HookVerdict
from sightline.agent.tools.tools import Tools
from sightline.catalog.capabilities import refusals
from sightline.catalog.facts import Facts
from sightline.errors import Fault
from sightline.journal.driver import StopSignal
from sightline.model.message import Message
from sightline.model.parts import Text
from sightline.model.request import Request

INTERRUPTED = "This call was interrupted, and it is not known how far it got. It was not run again."

After: TypeAlias = Callable[[int, RunnableCall, ToolOutcome], Awaitable[HookVerdict | None]]
"""What hooks say of an outcome."""


@dataclass
class ToolRunner:
    """Runs calls. `facts` are those of the model that gets the results. `outcomes` and `contexts` are what is known so
    far of the round under way."""

    tools: Tools
    log: RunLog
    stop_signal: StopSignal
    cap: Cap
    facts: Facts
    after: After
    progress: Callable[[str, str], None]
    outcomes: dict[str, ToolOutcome] = field(default_factory=dict)
    contexts: dict[str, str] = field(default_factory=dict)

    def begin(self, outcomes: dict[str, ToolOutcome], contexts: dict[str, str]) -> None:
        """A round with what an earlier process has done of it."""
        self.outcomes, self.contexts = dict(outcomes), {**contexts}

    async def use(self, step: Use) -> None:
        """Run what has no outcome yet; none is started once the run is to stop."""
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
            if failed is not None:  # raised above, early versions of Python 3.11 make a group of it again
                raise failed

    async def skip(self, calls: tuple[RunnableCall, ...]) -> None:
        """Do not run these, which were interrupted, and say so to the model."""
        for call in calls:
            await self._finish(call.key, text_outcome(INTERRUPTED, is_error=True), "")

    @property
    def context(self) -> str:
        """The text for the model besides the results."""
        return "\n".join(words for words in self.contexts.values() if words)

    async def _run(self, number: int, call: RunnableCall) -> None:
        await self.log.note(ToolStarted(call.key))
        began = self.log.now()
        outcome = self.log.mask(await self.tools.use(call, lambda words: self.progress(call.key, words)))
        self.log.observe_tool(call, began, outcome)
        outcome = self.outcomes[call.key] = cap_outcome(_perceptible(outcome, self.facts), self.cap)
        verdict = await self.after(number, call, outcome)
        context = [self.contexts.get(call.key, "")]
        if verdict is not None:
            context += [verdict.context, verdict.reason if verdict.decision == "deny" else ""]
        await self._finish(call.key, outcome, "\n".join(filter(None, context)))

    async def _finish(self, key: str, outcome: ToolOutcome, context: str) -> None:
        self.outcomes[key] = outcome
        self.contexts[key] = context
        await self.log.note(ToolFinished(key, outcome, context))


def _perceptible(outcome: ToolOutcome, facts: Facts) -> ToolOutcome:
    """The outcome without what this model is known not to take in: its provider would refuse the whole request."""
    parts: list[ResultPart] = []
    for part in outcome.parts:
        found = refusals(Request(messages=(Message("user", (part,)),)), facts)
        parts.append(Text(f"[left out: of the model it is known that {found[0].message}]") if found else part)
    return msgspec.structs.replace(outcome, parts=tuple(parts))


def _first(faults: BaseExceptionGroup[Fault]) -> Fault:
    found = faults.exceptions[0]
    return _first(found) if isinstance(found, BaseExceptionGroup) else found
