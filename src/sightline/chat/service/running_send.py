"""An answer of the chat in progress: by a new send, step by step, or by a resumed run."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Generator, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar, assert_never

import msgspec

from sightline.agent.core.limits import Quota, quota_of
from sightline.agent.service.round_sender import Opening
from sightline.catalog.choose import ModelChoice
from sightline.chat.core import sending
from sightline.chat.core.facts import INTERRUPTED, ChatFact, PairAnswered, PairCancelled, PairFailed, RunJoined
from sightline.chat.core.pair import TRIMMED_FOR, ChatAnswer, answer_of, trouble_of
from sightline.chat.core.plan import SendPlan, SendTelemetry, Stage
from sightline.chat.core.rewriting import revise_pairs, revision
from sightline.chat.service.answerer import Answerer, AnswerRequest, AnswerResult, measure
from sightline.chat.service.blocks import Deltas, LiveAnswer, partial_of
from sightline.chat.service.chat import Chat
from sightline.chat.service.views import Looking, ViewSend
from sightline.errors import CancelReason, Code, Fault
from sightline.exchange.engine import Engine
from sightline.exchange.hub import Hub
from sightline.exchange.interception.holds import Changes, changes_while_held
from sightline.exchange.outbound import Prepared, prepare
from sightline.exchange.phase import Cancellation, cancellation
from sightline.journal.journal import StopSignal, drive
from sightline.model.events import Ended, StreamEvent
from sightline.model.exchange import Budgeted, Dropped
from sightline.model.json import JsonObject
from sightline.model.request import Message
from sightline.store.entries import FactEntry
from sightline.transport.waiting import Clock, WorkInterrupted, wait_either

T = TypeVar("T")
_LOG = logging.getLogger(__name__)
_ATTEMPT_STAGES: frozenset[Stage] = frozenset({"attempt", "overflow_retry"})
_STAGES_BEFORE_ATTEMPT: frozenset[Stage] = frozenset({"preflight", "waiting", *_ATTEMPT_STAGES})
"""Stages before an attempt; all others belong to the previous attempt."""


class SendTracing:
    """Records the telemetry of a send with its exchanges. `exchange` is the latest one. `mask` removes secrets from the
    telemetry."""

    def __init__(self, hub: Hub, now: Callable[[], float], mask: Callable[[str], str]) -> None:
        self.exchange = ""
        self.was_dropped = False
        self._hub = hub
        self._now = now
        self._mask = mask
        self._next = 0

    def on_recorded(self, entry: FactEntry) -> None:
        """Called when a fact of an exchange has been recorded."""
        self.exchange = entry.exchange
        self._next = entry.n + 1
        self.was_dropped = isinstance(entry.fact, Dropped)

    def plan_telemetry(self, telemetry: Iterable[SendTelemetry]) -> tuple[JsonObject, ...]:
        """The telemetry of the exchange that is about to begin. The rest is recorded with the previous exchange."""
        telemetry = tuple(telemetry)
        self.add(each for each in telemetry if each.stage not in _STAGES_BEFORE_ATTEMPT)
        return tuple(self._plain(each) for each in telemetry if each.stage in _STAGES_BEFORE_ATTEMPT)

    def add(self, telemetry: Iterable[SendTelemetry]) -> None:
        """Record the outcome of the latest exchange, if there was one."""
        for each in telemetry:
            if self.exchange:
                budgeted = FactEntry(self.exchange, self._next, self._now(), Budgeted(self._plain(each)))
                self._next += 1
                try:
                    self._hub.record([budgeted])
                except Fault as fault:  # the answer matters more than its telemetry
                    _LOG.error("telemetry of %s could not be recorded: %s", self.exchange, fault.message)
                    self._hub.owe([budgeted])

    def _plain(self, telemetry: SendTelemetry) -> JsonObject:
        """The telemetry as JSON. The messages are recorded with their attempt, and not again with its outcome."""
        if telemetry.stage not in _ATTEMPT_STAGES:
            telemetry = msgspec.structs.replace(telemetry, messages=())
        plain: JsonObject = msgspec.json.decode(self._mask(msgspec.json.encode(telemetry).decode()))
        return plain


class AnswerProgress:
    """The answer of `pair` so far. `paused` is the account limit that it waits for."""

    def __init__(self, pair: str, chat: Chat, answerer: Answerer, *, dialect: str = "", run: str = "") -> None:
        self.pair = pair
        self.paused: Quota | None = None
        self._chat = chat
        self._engine = answerer.engine
        self._answerer = answerer
        self._run = run
        self._tracing = SendTracing(chat.hub, self._engine.clock.now, chat.mask)
        self._deltas = Deltas(pair, chat.announce, lambda: chat.hub.is_watched)
        self._live = LiveAnswer(dialect, self._deltas)
        self._changes: Changes = ()
        self._stop = StopSignal()
        self._reason: CancelReason = "user"
        self._cancellation: Cancellation | None = None

    @property
    def so_far(self) -> ChatAnswer:
        return msgspec.structs.replace(self._live.answer, run=self._run)

    def cancel(self, reason: CancelReason = "user") -> None:
        """Abort the answer, even before it has begun."""
        self._reason = reason
        if self._cancellation is not None:
            self._cancellation.reason = reason
        self._stop.stop(now=True)

    async def _abortable(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of the work. Raises `WorkInterrupted` if it is aborted. Code that records the work finds the
        reason in its context."""
        with cancellation(self._reason) as self._cancellation:
            return await self._stop.unless_now(work)

    def _on_recorded(self, entry: FactEntry) -> None:
        self._tracing.on_recorded(entry)
        self._changes += changes_while_held(self._engine.relay.holds, entry)

    def _on_event(self, event: StreamEvent) -> None:
        self._live.add_event(event)
        if self._run and isinstance(event, Ended):
            self._deltas.close()
            self._chat.touch(self.pair)  # the user may have to decide about the calls of the reply

    def _on_rounds(self, messages: tuple[Message, ...]) -> None:
        self._live.went(messages)
        self._chat.touch(self.pair)


async def revise(
    chat: Chat, pair: str, sent: tuple[str, ...], answer: ChatAnswer | None, changes: Changes
) -> ChatAnswer | None:
    """Apply these changes to the pair and to those that were `sent` with it. Returns the answer, whose rounds with
    tools may have been changed too."""
    history = chat.history
    if not changes or not history.is_live(pair):
        return answer
    current = msgspec.structs.replace(history.get(pair), answer=answer)
    earlier = (history.get(name) for name in sent if name != pair and history.is_live(name))
    before = {each.id: each for each in (*earlier, current)}
    after = dict(before)
    for each in changes:
        after |= revise_pairs(list(after.values()), pair, each)
    for name, now in after.items():
        if name == pair:
            answer = now.answer
            now = msgspec.structs.replace(now, answer=before[name].answer)
        if now != before[name]:
            await chat.happen(revision(before[name], now))
    return answer


Steps = Generator[sending.Step, sending.Outcome, sending.SendEnding]


@dataclass(frozen=True, slots=True)
class SendJob:
    """What was decided before the send began, and does not change later. `first` is the exact request of the first
    attempt. With `expect_sha256`, it is refused if its body would differ."""

    looking: Looking
    plan: SendPlan
    choice: ModelChoice
    first: Prepared
    hold: bool = False
    step: bool = False
    toolsets: tuple[str, ...] = ()
    expect_sha256: str = ""


def quota_for(pause: sending.Pause, choice: ModelChoice, engine: Engine) -> Quota:
    """The account limit that makes a send wait."""
    last = pause.telemetry[-1]
    tokens = last.attempt_total_tokens + last.system_tokens + last.tool_tokens
    return quota_of(engine.memory.ledger, choice.provider_name, choice.model, tokens, engine.clock.now(), choice.facts)


class RunningSend(AnswerProgress):
    """Drives `steps` from its first step on, until the pair has ended."""

    def __init__(self, order: SendJob, steps: Steps, pair: str, chat: Chat, answerer: Answerer) -> None:
        super().__init__(pair, chat, answerer, dialect=order.first.dialect)
        self.sent = ViewSend(pair, order.looking.view)
        self._order = order
        self._steps = steps
        self._result: AnswerResult | None = None
        self._final: Fault | None = None
        self._recorded = 0
        self._predicted: int | None = None
        self._sent: tuple[str, ...] = ()
        self._began = self._engine.clock.monotonic()
        self._resumed: asyncio.Future[sending.Resumed] | None = None

    def resume(self, *, anyway: bool) -> None:
        """End the wait. Raises a fault if the send is not waiting."""
        if self._resumed is None or self._resumed.done():
            raise Fault(Code.USAGE, "no send is waiting", hint="It was sent, or aborted.", status=409)
        self._resumed.set_result(sending.Resumed(anyway))

    async def run(self, step: sending.Step) -> None:
        has_ended = False
        try:
            ending = await drive(
                self._steps, self._handle, lambda: sending.Cancelled() if self._stop.is_set else None, first=step
            )
            self.sent.telemetry = ending.telemetry
            self._tracing.add(ending.telemetry[self._recorded :])
            self._deltas.close()
            self.sent.ending = ending
            await self._conclude(ending)
            has_ended = True
        finally:
            self._deltas.close()
            self.paused = None
            if not has_ended and self._chat.history.sending == self.pair:
                await self._chat.happen(PairFailed(self.pair, INTERRUPTED, self._partial("error")))

    async def _handle(self, step: sending.Step) -> sending.Outcome:
        self.sent.telemetry += step.telemetry
        try:
            match step:
                case sending.Attempt():
                    return await self._attempt(step)
                case sending.Pause():
                    return await self._pause(step)
                case unreachable:
                    assert_never(unreachable)
        except WorkInterrupted:
            return sending.Cancelled()

    # --- an attempt ---

    async def _attempt(self, attempt: sending.Attempt) -> sending.Outcome:
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
        return sending.Delivered(given.reply.usage)

    async def _request_answer(self, attempt: sending.Attempt, budgeted: tuple[JsonObject, ...]) -> AnswerResult:
        order = self._order
        ready = order.first if attempt.number == 1 else prepare(attempt.prompt, order.choice)
        self._live = LiveAnswer(ready.dialect, self._deltas)
        chat = self._chat
        self._predicted = (await measure(self._engine, self._engine.final(ready, session=chat.session))).tokens
        expected = order.expect_sha256 if attempt.number == 1 else ""
        wanted = AnswerRequest(
            self.pair,
            ready,
            Opening(order.hold, waits=False, budgeted=budgeted, expect_sha256=expected),
            chat.id,
            chat.session,
            order.step,
            order.toolsets,
            self._begin_run,
            self._on_rounds,
            chat.conversation_in(chat.history.get(self.pair).topic),
        )
        return await self._abortable(self._answerer.answer(wanted, self._on_event, self._on_recorded))

    async def _begin_run(self, run: str) -> None:
        """Record the run with its pair before it begins, so that another process finds it if this one ends."""
        self._run = run
        await self._chat.happen(RunJoined(self.pair, run))

    def _outcome_of_fault(self, fault: Fault) -> sending.Outcome:
        """The outcome of a fault. Dropping a request that the user wanted to inspect counts as cancelling it. If part
        of an answer has arrived, it is not requested again."""
        is_dropped = self._tracing.was_dropped and self._order.hold
        if is_dropped or self._stop.is_set or fault.code is Code.CANCELLED:
            return sending.Cancelled()
        plan, looking = self._order.plan, self._order.looking
        is_same = looking.view.filter_version == self.sent.filter_version
        if fault.code in TRIMMED_FOR and not self._live.is_empty:
            self._final = fault
            fault = Fault(Code.UPSTREAM_ERROR, fault.message, hint=fault.hint, status=fault.status)
        return sending.AttemptRefused(fault, plan.filter_version if is_same else -1)

    # --- a pause ---

    async def _pause(self, pause: sending.Pause) -> sending.Outcome:
        self.paused = quota_for(pause, self._order.choice, self._engine)
        self._chat.announce(
            {"kind": "paused", "pair": self.pair, "line": self.paused.line, "can_go_at": self.paused.can_go_at}
        )
        self._resumed = asyncio.get_running_loop().create_future()
        seconds = None if pause.wait.is_endless else pause.wait.seconds
        try:
            return await self._abortable(_wait_for_resume(self._resumed, seconds, self._engine.clock))
        finally:
            self.paused = self._resumed = None

    # --- its end ---

    async def _conclude(self, ending: sending.SendEnding) -> None:
        exchange = self._tracing.exchange
        answer = None
        if ending.kind == "delivered":
            assert self._result is not None
            clock = self._engine.clock
            answer = msgspec.structs.replace(
                answer_from(self._result, exchange, clock.now()),
                predicted=self._predicted,
                seconds=clock.monotonic() - self._began,
            )
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

    def _partial(self, finish: str) -> ChatAnswer | None:
        """The partial answer. That of a run includes the results of its tools."""
        given, exchange, now = self._result, self._tracing.exchange, self._engine.clock.now()
        came = self._live.answer if given is None else answer_of(given.reply, rounds=given.rounds)
        answer = partial_of(came, finish, exchange, now)
        return None if answer is None else msgspec.structs.replace(answer, predicted=self._predicted, run=self._run)


async def _wait_for_resume(
    person: "asyncio.Future[sending.Resumed]", seconds: float | None, clock: Clock
) -> sending.Resumed:
    """Wait for the user's decision or the end of the wait."""
    if seconds is None:
        return await person
    await wait_either(person, clock.sleep(seconds))
    return person.result() if person.done() else sending.Resumed()


class ResumedRun(AnswerProgress):
    """Drives `run`. `fault` is why it could not be resumed."""

    def __init__(self, pair: str, run: str, chat: Chat, answerer: Answerer) -> None:
        super().__init__(pair, chat, answerer, run=run)
        self.fault: Fault | None = None
        self._begun = asyncio.Event()

    def resume(self, *, anyway: bool) -> None:
        """Raise a fault: a resumed run never waits for the account's limits the way a question does."""
        raise Fault(Code.USAGE, "no send is waiting", hint="The run is in progress.", status=409)

    async def wait_until_begun(self) -> None:
        """Wait until the run continues. Raises a fault if it does not."""
        await self._begun.wait()
        if self.fault is not None:
            raise self.fault

    async def run(self) -> None:
        fact: ChatFact = PairFailed(self.pair, INTERRUPTED)
        try:
            fact = await self._run_to_end()
        finally:
            self._deltas.close()
            if self._chat.history.sending == self.pair:
                await self._chat.happen(fact)
            self._begun.set()

    async def _run_to_end(self) -> ChatFact:
        resumed = self._answerer.resume_run(
            self._run, self._begun.set, self._on_rounds, self._on_event, self._on_recorded
        )
        try:
            given = await self._abortable(resumed)
        except WorkInterrupted:
            stopped = Fault(Code.CANCELLED, "the run was stopped", reason=self._reason)
            return ending_of_fault(self.pair, stopped, self._partial, self._tracing.exchange)
        except Fault as fault:
            if not self._begun.is_set():
                self.fault = fault
            return ending_of_fault(self.pair, fault, self._partial, self._tracing.exchange)
        fact = ending_fact(self.pair, given, self._tracing.exchange, self._engine.clock.now())
        if isinstance(fact, PairAnswered):
            answer = await revise(self._chat, self.pair, (), fact.answer, self._changes)
            fact = PairAnswered(self.pair, answer or fact.answer)
        return fact

    def _partial(self, finish: str) -> ChatAnswer | None:
        """The partial answer; if the run did not continue at all, the one from before."""
        came = partial_of(self.so_far, finish, self._tracing.exchange, self._engine.clock.now())
        before = self._chat.history.get(self.pair).answer
        is_beginning = before is not None and before.run == self._run and before.is_partial
        return before if came is None and is_beginning else came


def answer_from(given: AnswerResult, exchange: str, now: float) -> ChatAnswer:
    answer = answer_of(given.reply, rounds=given.rounds, exchange=exchange, at=now)
    return msgspec.structs.replace(answer, run=given.run, seconds=given.seconds, usage=given.usage, cost=given.cost)


def ending_fact(pair: str, given: AnswerResult, exchange: str, now: float) -> ChatFact:
    answer = answer_from(given, exchange, now)
    if given.reply.fault is None:
        return PairAnswered(pair, answer)
    return ending_of_fault(pair, given.reply.fault, lambda end: partial_of(answer, end, exchange, now), exchange)


def ending_of_fault(pair: str, fault: Fault, partial: Callable[[str], ChatAnswer | None], exchange: str) -> ChatFact:
    """The fact that ends a pair with this fault. `partial` returns what has arrived, marked with how it ended."""
    if fault.code is Code.CANCELLED:
        return PairCancelled(pair, partial("cancelled"), exchange, fault.reason or "user")
    return PairFailed(pair, trouble_of(fault), partial("error"), exchange)


async def ending_of_interrupted_pair(
    answering: Answerer, now: Callable[[], float], ended: PairFailed, run: str
) -> ChatFact:
    """The fact that ends a pair whose process has died: with the result of its run so far, which may be complete."""
    given = await answering.result_of_run(run)
    if given is None:
        return ended
    if given.reply.fault is None:
        return ending_fact(ended.id, given, "", now())
    answer = msgspec.structs.replace(answer_of(given.reply, rounds=given.rounds), run=run)
    trouble = msgspec.structs.replace(ended.trouble, hint="Resume its run, ask again, or delete it.")
    return msgspec.structs.replace(ended, trouble=trouble, partial=partial_of(answer, "error", "", now()))
