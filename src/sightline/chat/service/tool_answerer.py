"""Answers by a run with tools, for questions whose topic has some."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeAlias

import msgspec

from sightline.agent.core.account import total_usage
from sightline.agent.core.approval import ApprovalRule, Policy
from sightline.agent.core.facts import RequestStarted, RunFact, ToolFinished, ToolStarted
from sightline.agent.core.limits import RunLimits
from sightline.agent.core.plan import RunPlan
from sightline.agent.core.rounds import CallRecord, FinishedRun, Round
from sightline.agent.core.steps import Replied
from sightline.agent.core.tool import Toolbox
from sightline.agent.service.approval_store import KeptRules
from sightline.agent.service.round_sender import Opening
from sightline.agent.service.runner import Runner
from sightline.agent.tools.hooks import Hooks
from sightline.agent.tools.tools import Tools
from sightline.chat.service.answerer import SESSION, AnswerRequest, AnswerResult, DirectAnswerer, Going, TakenRun
from sightline.errors import Code, Fault
from sightline.exchange.answer_reading import Heard
from sightline.exchange.cancellation import cancel_reason
from sightline.exchange.engine import Engine
from sightline.exchange.recorder import FactObserver as Telling
from sightline.model.message import Message
from sightline.model.parts import Part, Text, ToolCall, ToolResult
from sightline.model.reply import Reply
from sightline.model.tools import Tool
from sightline.wire.jsontext import encode


class Equipment(Tools, Protocol):
    """Tools that are open, with the rules and the hooks that are configured for them."""

    @property
    def rules(self) -> tuple[ApprovalRule, ...]:
        """What may run unasked."""
        ...

    @property
    def places(self) -> Mapping[str, str]:
        """Where each tool comes from, by its name."""
        ...

    @property
    def hooks(self) -> Hooks | None:
        """Who looks at what the run does."""
        ...


Equipping: TypeAlias = Callable[[tuple[str, ...]], Awaitable[Equipment]]
"""The tools of these names, opened before or now, and closed by whoever opens them; a fault where that cannot be."""


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
    """What a run has come to: its last reply, and the rounds before it. Calls of the last reply are a round, too."""
    if not ended.rounds:
        raise Fault(Code.CANCELLED, "the run ended before anything was asked", hint="Ask again.")
    *before, last = ended.rounds
    rounds, reply = messages_of(before), _with_run_fault(last.reply, ended)
    if last.calls:
        rounds += _messages_of_round(last)
        reply = msgspec.structs.replace(reply, choices=(msgspec.structs.replace(reply.choice, parts=()),))
    return AnswerResult(reply, tuple(rounds), run, total_usage(each.usage for each in ended.rounds))


def messages_of(rounds: Sequence[Round]) -> list[Message]:
    """Rounds as they stand in an answer."""
    return [message for each in rounds for message in _messages_of_round(each)]


def _messages_of_round(round_: Round) -> list[Message]:
    """A round as messages: what the model said, what came of its calls, under the ids that were sent, and what hooks
    had it told besides."""
    records = iter(round_.calls)
    parts: list[Part] = []
    results: list[Part] = []
    for part in round_.reply.choice.parts:
        part = msgspec.structs.replace(part, at="", extras={})
        if isinstance(part, ToolCall) and (record := next(records, None)) is not None:
            part = msgspec.structs.replace(part, id=record.sent_id or record.id, arguments=_arguments(record))
            if (came := record.outcome) is not None:
                results.append(
                    ToolResult(
                        part.id,
                        came.parts,
                        part.name,
                        is_error=came.is_error or None,
                        kind=part.kind,
                        structured=came.structured,
                    )
                )
        parts.append(part)
    context = (Text(round_.context),) if round_.context.strip() else ()
    said = (Message("assistant", tuple(parts)), Message("tool", tuple(results)), Message("user", context))
    return [message for message in said if message.parts]


def _arguments(record: CallRecord) -> str:
    """As the model wrote them; of a call that a person or a hook changed, what ran."""
    if not record.is_edited or record.ran is None:
        return record.arguments
    return record.ran if isinstance(record.ran, str) else encode(record.ran).decode()


def _with_run_fault(reply: Reply, ended: FinishedRun) -> Reply:
    """The reply, with the fault that a run has that did not come to its own end."""
    if reply.fault is not None or ended.why not in ("cancelled", "limit"):
        return reply
    if ended.why == "cancelled":
        return msgspec.structs.replace(
            reply, fault=Fault(Code.CANCELLED, "the run was stopped", hint="Ask again.", reason=ended.reason)
        )
    reached = "one of its limits is reached" if ended.reached is None else ended.reached.words
    hint = "Look at the run, and ask again; what it has done stands above."
    return msgspec.structs.replace(reply, fault=Fault(Code.USAGE, f"the run has no answer: {reached}", hint=hint))
