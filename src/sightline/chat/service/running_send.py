"""One send while it is under way: the steps of the pure core, carried out one by one."""

import asyncio
from collections.abc import Generator
from dataclasses import dataclass
from typing import assert_never

import msgspec

from sightline.agent.core.limits import quota_of
from sightline.catalog.choose import ModelChoice
from sightline.chat.core.facts import INTERRUPTED, PairAnswered, PairCancelled, PairFailed, RunJoined
from sightline.chat.core.pair import TRIMMED_FOR, ChatAnswer, answer_of, trouble_of
from sightline.chat.core.plan import SendPlan
from sightline.chat.core.sending import (
    Attempt,
    AttemptRefused,
    Cancelled,
    Delivered,
    Outcome,
    Pause,
    Resumed,
    SendEnding,
    Step,
)
from sightline.chat.service.answer_progress import AnswerProgress, revise
from sightline.chat.service.answerer import SESSION, Answerer, AnswerRequest, AnswerResult, conversation_in, measure
from sightline.chat.service.chat import Chat
from sightline.chat.service.live_answer import LiveAnswer, partial_of
from sightline.chat.service.views import Looking, ViewSend
from sightline.errors import Code, Fault
from sightline.exchange.engine import Engine
from sightline.exchange.hub import Hub
from sightline.exchange.prepare import Prepared, prepare
from sightline.journal.driver import drive
from sightline.model.json import JsonObject
from sightline.transport.clock import Clock
from sightline.transport.race import WorkInterrupted, wait_either

Steps = Generator[Step, Outcome, SendEnding]


@dataclass(frozen=True, slots=True)
class SendOrder:
    """What was decided before the send began, and nothing changes any more: not the plan, nor whom it is for. `first`
    is the very request of the first attempt; with `expect_sha256` it is refused if it would go out as another body."""

    looking: Looking
    plan: SendPlan
    choice: ModelChoice
    first: Prepared
    hold: bool = False
    step: bool = False
    toolsets: tuple[str, ...] = ()
    expect_sha256: str = ""


class RunningSend(AnswerProgress):
    """Drives `steps` from its first step on, until the pair has ended."""

    def __init__(
        self, order: SendOrder, steps: Steps, pair: str, *, chat: Chat, engine: Engine, hub: Hub, answerer: Answerer
    ) -> None:
        super().__init__(pair, chat=chat, engine=engine, hub=hub, answerer=answerer, dialect=order.first.dialect)
        self.sent = ViewSend(pair, order.looking.view)
        self._order = order
        self._steps = steps
        self._result: AnswerResult | None = None
        self._final: Fault | None = None
        self._recorded = 0
        self._predicted: int | None = None
        self._sent: tuple[str, ...] = ()
        self._began = engine.clock.monotonic()
        self._resumed: asyncio.Future[Resumed] | None = None

    def resume(self, *, anyway: bool) -> None:
        """Wait no longer; a fault where it does not wait."""
        if self._resumed is None or self._resumed.done():
            raise Fault(Code.USAGE, "no send is waiting", hint="It was sent, or aborted.", status=409)
        self._resumed.set_result(Resumed(anyway))

    async def run(self, step: Step) -> None:
        """Carry it out, from this step on."""
        has_ended = False
        try:
            ending = await self._carry_out(step)
            self._deltas.close()
            self.sent.ending = ending
            await self._conclude(ending)
            has_ended = True
        finally:
            self._deltas.close()
            self.paused = None
            if not has_ended and self._chat.history.sending == self.pair:
                await self._chat.happen(PairFailed(self.pair, INTERRUPTED, self._partial("error")))

    async def _carry_out(self, step: Step) -> SendEnding:
        ending = await drive(self._steps, self._handle, lambda: Cancelled() if self._stop.is_set else None, first=step)
        self.sent.telemetry = ending.telemetry
        self._tracing.add(ending.telemetry[self._recorded :])
        return ending

    async def _handle(self, step: Step) -> Outcome:
        self.sent.telemetry += step.telemetry
        try:
            match step:
                case Attempt():
                    return await self._attempt(step)
                case Pause():
                    return await self._pause(step)
                case unreachable:
                    assert_never(unreachable)
        except WorkInterrupted:
            return Cancelled()

    # --- an attempt ---

    async def _attempt(self, attempt: Attempt) -> Outcome:
        telemetry = self.sent.telemetry
        budgeted, self._recorded = self._tracing.plan_telemetry(telemetry[self._recorded :]), len(telemetry)
        self._deltas.restart()
        self._result, self._changes, self._sent = None, (), attempt.ids
        try:
            given = await self._request_answer(attempt, budgeted)
        except Fault as fault:
            return self._outcome_of_fault(fault)
        self._result = given
        if given.reply.fault is not None:
            return self._outcome_of_fault(given.reply.fault)
        return Delivered(given.reply.usage)

    async def _request_answer(self, attempt: Attempt, budgeted: tuple[JsonObject, ...]) -> AnswerResult:
        order = self._order
        ready = order.first if attempt.number == 1 else prepare(attempt.prompt, order.choice)
        self._live = LiveAnswer(ready.dialect, self._deltas)
        self._predicted = (await measure(self._engine, self._engine.final(ready, session=SESSION))).tokens
        conversation = conversation_in(self._chat.history.get(self.pair).topic)
        wanted = AnswerRequest(
            self.pair,
            ready,
            order.hold,
            order.step,
            order.toolsets,
            budgeted,
            self._begin_run,
            self._on_rounds,
            conversation,
            order.expect_sha256 if attempt.number == 1 else "",
        )
        return await self._abortable(self._answerer.answer(wanted, self._on_event, self._on_recorded))

    async def _begin_run(self, run: str) -> None:
        """The pair knows its run before that begins: who is there when this process is not must find it."""
        self._run = run
        await self._chat.happen(RunJoined(self.pair, run))

    def _outcome_of_fault(self, fault: Fault) -> Outcome:
        """What came of it. To drop what one wanted to look at is to break it off. An answer of which words have come is
        not asked for again in their place."""
        is_dropped = self._tracing.was_dropped and self._order.hold
        if is_dropped or self._stop.is_set or fault.code is Code.CANCELLED:
            return Cancelled()
        plan, looking = self._order.plan, self._order.looking
        is_same = looking.view.filter_version == self.sent.filter_version
        if fault.code in TRIMMED_FOR and not self._live.is_empty:
            self._final = fault
            fault = Fault(Code.UPSTREAM_ERROR, fault.message, hint=fault.hint, status=fault.status)
        return AttemptRefused(fault, plan.filter_version if is_same else -1)

    # --- a pause ---

    async def _pause(self, pause: Pause) -> Outcome:
        clock, choice = self._engine.clock, self._order.choice
        last = pause.telemetry[-1]
        tokens = last.attempt_total_tokens + last.system_tokens + last.tool_tokens
        ledger = self._engine.memory.ledger
        self.paused = quota_of(ledger, choice.provider_name, choice.model, tokens, clock.now(), choice.facts)
        self._chat.announce(
            {"kind": "paused", "pair": self.pair, "line": self.paused.line, "can_go_at": self.paused.can_go_at}
        )
        self._resumed = asyncio.get_running_loop().create_future()
        seconds = None if pause.wait.is_endless else pause.wait.seconds
        try:
            return await self._abortable(_wait_for_resume(self._resumed, seconds, clock))
        finally:
            self.paused = self._resumed = None

    # --- its end ---

    async def _conclude(self, ending: SendEnding) -> None:
        exchange = self._tracing.exchange
        answer = None
        if ending.kind == "delivered":
            assert self._result is not None
            answer = self._answer(self._result, exchange)
        answer = await revise(self._chat, self.pair, self._sent, answer, self._changes)
        if answer is not None:
            await self._chat.happen(PairAnswered(self.pair, answer))
        elif ending.kind == "failed":
            assert ending.fault is not None
            trouble, partial = trouble_of(self._final or ending.fault), self._partial("error")
            await self._chat.happen(PairFailed(self.pair, trouble, partial, exchange))
        else:
            partial, reason = self._partial("cancelled"), self._reason
            await self._chat.happen(PairCancelled(self.pair, partial, exchange, reason))

    def _answer(self, given: AnswerResult, exchange: str) -> ChatAnswer:
        clock = self._engine.clock
        answer = answer_of(given.reply, rounds=given.rounds, exchange=exchange, at=clock.now())
        seconds = clock.monotonic() - self._began
        answer = msgspec.structs.replace(answer, predicted=self._predicted, seconds=seconds, run=given.run)
        return msgspec.structs.replace(answer, usage=given.usage) if given.run else answer

    def _partial(self, finish: str) -> ChatAnswer | None:
        """The partial answer; that of a run has the results of its tools."""
        given, exchange, now = self._result, self._tracing.exchange, self._engine.clock.now()
        came = self._live.answer if given is None else answer_of(given.reply, rounds=given.rounds)
        answer = partial_of(came, finish, exchange, now)
        return None if answer is None else msgspec.structs.replace(answer, predicted=self._predicted, run=self._run)


async def _wait_for_resume(person: "asyncio.Future[Resumed]", seconds: float | None, clock: Clock) -> Resumed:
    """What a person decides, or the end of the wait."""
    if seconds is None:
        return await person
    await wait_either(person, clock.sleep(seconds))
    return person.result() if person.done() else Resumed()
