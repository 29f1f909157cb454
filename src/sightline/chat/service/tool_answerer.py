"""Answers by a run with tools, for questions whose topic has some."""

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, replace

from sightline.agent.core.approval import Policy
from sightline.agent.core.facts import RequestStarted, RunFact, ToolFinished, ToolStarted
from sightline.agent.core.limits import RunLimits
from sightline.agent.core.plan import RunPlan
from sightline.agent.core.rounds import FinishedRun
from sightline.agent.core.steps import Replied
from sightline.agent.core.tool import Toolbox
from sightline.agent.service.approval_store import KeptRules
from sightline.agent.service.round_sender import Opening
from sightline.agent.service.run_answer import Equipment, Equipping, answer_of, messages_of
from sightline.agent.service.runner import Runner
from sightline.chat.service.answerer import SESSION, AnswerRequest, AnswerResult, DirectAnswerer, Going, TakenRun
from sightline.errors import Code, Fault
from sightline.exchange.answer_reading import Heard
from sightline.exchange.cancellation import cancel_reason
from sightline.exchange.engine import Engine
from sightline.exchange.observed_hub import Telling
from sightline.model.message import Message
from sightline.model.reply import Reply
from sightline.model.tools import Tool


@dataclass(frozen=True, slots=True)
class WithTools:
    """Questions without tools are asked as ever. `kept` is what a person has allowed for all runs."""

    engine: Engine
    runner: Runner
    equipping: Equipping
    kept: KeptRules | None = None

    async def tools(self, toolsets: tuple[str, ...]) -> tuple[Tool, ...]:
        """What a model is told of these tools."""
        return Toolbox((await self.equipping(toolsets)).definitions).tools_for()

    async def answer(self, wanted: AnswerRequest, heard: Heard, noted: Telling) -> AnswerResult:
        """Run until the model has answered. A person who breaks it off leaves a run that can be taken up."""
        if not wanted.toolsets:
            return await DirectAnswerer(self.engine).answer(wanted, heard, noted)
        tools = await self.equipping(wanted.toolsets)
        run = self.runner.make_id()
        await wanted.began(run)
        return answer_result_of(await self._driven(run, self._run(wanted, tools, run, heard, noted)), run)

    async def take_up(self, taken: TakenRun, heard: Heard, noted: Telling) -> AnswerResult:
        """Go on with a run until the model has answered."""
        run = taken.run
        _, ended = await self.runner.result_of(run)
        if ended is not None:  # somebody has taken it up elsewhere
            return answer_result_of(ended, run)
        names = (await self.runner.began(run)).origin.get("toolsets")
        tools = await self.equipping(tuple(map(str, names)) if isinstance(names, list) else ())

        def report_start() -> None:
            taken.went(self._so_far(run))
            taken.begun()

        resumed = self.runner.resume(
            run,
            tools,
            hooks=tools.hooks,
            heard=heard,
            noted=noted,
            begun=report_start,
            on_fact=lambda fact: self._on_fact(run, fact, taken.went),
        )
        ended = await self._driven(run, resumed)
        return replace(answer_result_of(ended, run), seconds=ended.spent.seconds)

    async def result_of_run(self, run: str) -> AnswerResult | None:
        """What a run has come to; None where it never began."""
        try:
            rounds, ended = await self.runner.result_of(run)
        except Fault:
            return None
        if ended is not None and ended.rounds:
            return replace(answer_result_of(ended, run), seconds=ended.spent.seconds)
        fault = Fault(Code.CANCELLED, "the run was broken off", hint="Take it up.", reason="interrupted")
        return AnswerResult(Reply(fault=fault), tuple(messages_of(rounds)), run)

    async def _driven(self, run: str, work: Coroutine[object, object, FinishedRun]) -> FinishedRun:
        """How the run ends. To be cancelled is to leave it."""
        running = asyncio.get_running_loop().create_task(work)
        try:
            await asyncio.wait({running})
        except asyncio.CancelledError:
            try:
                self.runner.leave(run, now=True, reason=cancel_reason())
            except Fault:  # it has not begun, or has just ended
                running.cancel()
        return await running

    def _on_fact(self, run: str, fact: RunFact, went: Going) -> None:
        """What a tool said, and how its call was changed, is told as soon as it is known."""
        if isinstance(fact, RequestStarted | Replied | ToolStarted | ToolFinished):
            went(self._so_far(run))

    def _so_far(self, run: str) -> tuple[Message, ...]:
        return tuple(messages_of(self.runner.so_far(run)))

    async def _run(
        self, wanted: AnswerRequest, tools: Equipment, run: str, heard: Heard, noted: Telling
    ) -> FinishedRun:
        prepared = wanted.prepared
        kept = () if self.kept is None else self.kept.of(tools.places)
        rules = (*tools.rules, *(each.rule for each in kept))
        return await self.runner.run(
            prepared.request,
            prepared.choice,
            RunPlan(dialect=prepared.dialect, policy=Policy(rules), limits=RunLimits(behaviour="confirm")),
            tools,
            hooks=tools.hooks,
            session=SESSION,
            run=run,
            heard=heard,
            noted=noted,
            is_stepping=wanted.step,
            opening=Opening(
                hold=wanted.hold, waits=False, budgeted=wanted.budgeted, expect_sha256=wanted.expect_sha256
            ),
            origin={
                "kind": "chat",
                "pair": wanted.pair,
                "toolsets": list(wanted.toolsets),
                "conversation": wanted.conversation,
            },
            on_fact=lambda fact: self._on_fact(run, fact, wanted.went),
        )


def answer_result_of(ended: FinishedRun, run: str) -> AnswerResult:
    """The answer of a run for the chat. Raises a fault if the run ended before its first reply."""
    answer = answer_of(ended)
    return AnswerResult(answer.reply, answer.rounds, run, answer.usage)
