"""How a question of the chat gets its answer: by one request, or by a run with tools if its topic has some."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, replace
from typing import TypeAlias

from sightline.agent.core.approval import Policy
from sightline.agent.core.facts import RequestStarted, RunFact, ToolFinished, ToolStarted
from sightline.agent.core.limits import RunLimits
from sightline.agent.core.rounds import FinishedRun, answer_of, messages_of
from sightline.agent.core.run import RunPlan
from sightline.agent.core.steps import Replied
from sightline.agent.core.tool import Toolbox
from sightline.agent.service.approvers import SavedRules
from sightline.agent.service.driver import RunParticipants
from sightline.agent.service.round_sender import Opening
from sightline.agent.service.runner import NewRun, Runner
from sightline.agent.tools.opening import OpenToolsets, ToolOpener
from sightline.errors import Code, Fault
from sightline.exchange.engine import Engine, EventObserver
from sightline.exchange.outbound import Prepared
from sightline.exchange.phase import cancel_reason
from sightline.exchange.recorder import FactObserver
from sightline.model.exchange import AttemptStarted
from sightline.model.reply import Reply, Usage
from sightline.model.request import Message, Tool
from sightline.tokens.cost import cost_of
from sightline.tokens.estimate import Estimate
from sightline.tokens.ledger import Wait

Going: TypeAlias = Callable[[tuple[Message, ...]], None]
"""Gets all rounds of a run so far, whenever there is a new call or result."""


async def measure(engine: Engine, final: Prepared) -> Estimate:
    """The number of tokens of the final body: counted by the embedded model itself, otherwise estimated by the
    calibration."""
    try:
        return await engine.measure_prompt(final, asks_provider=False, tried=_ignore)
    except Fault:  # the embedded model does not start, which the send will report
        return engine.estimate(final)


@dataclass(frozen=True, slots=True)
class AnswerRequest:
    """One attempt to answer the pair `pair`. `opening` is how its first request is sent: it never waits for the
    account's limits, because the chat has already done so. With `toolsets`, the model may call those tools; with
    `step`, the user inspects each round. `began` is called with the id of a run before the run begins, `went` with its
    rounds so far. `chat` is the chat's id, `session` the label of its exchanges, and `conversation` the name of the
    recorded conversation."""

    pair: str
    prepared: Prepared
    opening: Opening
    chat: str
    session: str
    step: bool
    toolsets: tuple[str, ...]
    began: Callable[[str], Awaitable[None]]
    went: Going
    conversation: str


@dataclass(frozen=True, slots=True)
class AnswerResult:
    """The last reply, the rounds with tools before it, and the run that they belong to, if there was one. `usage` and
    `cost` (in US dollars) cover all of its replies; `seconds` is how long it took in all processes together."""

    reply: Reply
    rounds: tuple[Message, ...] = ()
    run: str = ""
    usage: Usage | None = None
    seconds: float | None = None
    cost: float | None = None


def _ignore(_value: AttemptStarted | Wait) -> None:
    """Ignored: attempts are recorded elsewhere, and a chat's request never waits here."""


@dataclass(frozen=True, slots=True)
class Answerer:
    """Answers by one request through the engine, or by a run if the topic has tools. Cancelling means that the user has
    aborted the send; a run can then be resumed. `kept` has the rules that the user has set for all runs."""

    engine: Engine
    runner: Runner
    open_tools: ToolOpener
    kept: SavedRules | None = None

    async def tools(self, toolsets: tuple[str, ...]) -> tuple[Tool, ...]:
        """The tools as the model sees them. Raises a fault if one of the toolsets is not available."""
        return Toolbox((await self.open_tools(toolsets)).definitions).tools_for()

    async def answer(self, wanted: AnswerRequest, on_event: EventObserver, on_recorded: FactObserver) -> AnswerResult:
        """Carry out the attempt, after the chat has waited for the account's limits. `on_event` gets each event,
        `on_recorded` each fact of its exchanges except frames."""
        if wanted.toolsets:
            return await self._run(wanted, on_event, on_recorded)
        reply = await self.engine.ask(
            wanted.prepared,
            on_event=on_event,
            tried=_ignore,
            paused=_ignore,
            session=wanted.session,
            hold=wanted.opening.hold,
            waits=wanted.opening.waits,
            on_recorded=on_recorded,
            budgeted=wanted.opening.budgeted,
            conversation=wanted.conversation,
            expect_sha256=wanted.opening.expect_sha256,
        )
        cost = None
        if reply.usage is not None:
            cost = cost_of(reply.usage, wanted.prepared.choice.prices_for(reply.model or ""))
        return AnswerResult(reply, usage=reply.usage, cost=None if cost is None else cost.dollars)

    async def _run(self, wanted: AnswerRequest, on_event: EventObserver, on_recorded: FactObserver) -> AnswerResult:
        """Run until the model has answered."""
        tools = await self.open_tools(wanted.toolsets)
        run = self.runner.make_id()
        await wanted.began(run)
        prepared = wanted.prepared
        kept = () if self.kept is None else self.kept.of(tools.places)
        rules = (*tools.rules, *(each.rule for each in kept))
        new = NewRun(
            prepared.request,
            prepared.choice,
            RunPlan(dialect=prepared.dialect, policy=Policy(rules), limits=RunLimits(behaviour="confirm")),
            wanted.session,
            run,
            origin={
                "kind": "chat",
                "chat": wanted.chat,
                "pair": wanted.pair,
                "toolsets": list(wanted.toolsets),
                "conversation": wanted.conversation,
            },
            opening=wanted.opening,
            is_stepping=wanted.step,
        )
        company = self._participants(run, tools, on_event, on_recorded, wanted.went)
        return answer_result_of(await self._drive(run, self.runner.run(new, company)), run)

    async def resume_run(
        self, run: str, begun: Callable[[], None], went: Going, on_event: EventObserver, on_recorded: FactObserver
    ) -> AnswerResult:
        """Resume a run until the model has answered; if the run has ended meanwhile, return its answer. `begun` is
        called once the run continues, `went` with its rounds so far."""
        _, ended = await self.runner.result_of(run)
        if ended is not None:  # another process has resumed it
            return answer_result_of(ended, run)
        names = (await self.runner.began(run)).origin.get("toolsets")
        tools = await self.open_tools(tuple(map(str, names)) if isinstance(names, list) else ())

        def report_start() -> None:
            went(self._so_far(run))
            begun()

        company = self._participants(run, tools, on_event, on_recorded, went)
        ended = await self._drive(run, self.runner.resume(run, company, report_start))
        return replace(answer_result_of(ended, run), seconds=ended.spent.seconds)

    async def result_of_run(self, run: str) -> AnswerResult | None:
        """The result so far of a run that is not driven here. It has a fault unless the run has ended by itself. None
        if there is no such run."""
        try:
            rounds, ended = await self.runner.result_of(run)
        except Fault:
            return None
        if ended is not None and ended.rounds:
            return replace(answer_result_of(ended, run), seconds=ended.spent.seconds)
        fault = Fault(Code.CANCELLED, "the run was interrupted", hint="Resume it.", reason="interrupted")
        return AnswerResult(Reply(fault=fault), tuple(messages_of(rounds)), run)

    async def _drive(self, run: str, work: Coroutine[object, object, FinishedRun]) -> FinishedRun:
        """Wait for the end of the run. Cancelling leaves the run, so that it can be resumed."""
        running = asyncio.get_running_loop().create_task(work)
        try:
            await asyncio.wait({running})
        except asyncio.CancelledError:
            try:
                self.runner.leave(run, now=True, reason=cancel_reason())
            except Fault:  # the run has not begun, or has just ended
                running.cancel()
        return await running

    def _participants(
        self, run: str, tools: OpenToolsets, on_event: EventObserver, on_recorded: FactObserver, went: Going
    ) -> RunParticipants:
        def on_fact(fact: RunFact) -> None:
            """Report results of tools and changed calls as soon as they are known."""
            if isinstance(fact, RequestStarted | Replied | ToolStarted | ToolFinished):
                went(self._so_far(run))

        return RunParticipants(tools, self.runner.questions, tools.hooks, on_event, on_recorded, on_fact)

    def _so_far(self, run: str) -> tuple[Message, ...]:
        return tuple(messages_of(self.runner.so_far(run)))


def answer_result_of(ended: FinishedRun, run: str) -> AnswerResult:
    """The result of a run. Raises a fault if the run ended before its first reply."""
    answer = answer_of(ended)
    return AnswerResult(answer.reply, answer.rounds, run, answer.usage, cost=ended.spent.known_cost)
