"""A run that goes on for the pair that it was begun for, until the pair has ended."""

import asyncio
from collections.abc import Callable

import msgspec

from sightline.agent.core.quota import Quota
from sightline.chat.core.facts import ChatFact, PairAnswered, PairCancelled, PairFailed
from sightline.chat.core.lifecycle import INTERRUPTED
from sightline.chat.core.pair import ChatAnswer, answer_of
from sightline.chat.core.trouble import trouble_of
from sightline.chat.service.abortable import Breaking, BrokenOff
from sightline.chat.service.answerer import Answerer, AnswerResult, TakenRun
from sightline.chat.service.chat import Chat
from sightline.chat.service.deltas import Deltas
from sightline.chat.service.live_answer import LiveAnswer, partial_of
from sightline.chat.service.revisions import revise
from sightline.chat.service.tracing import Tracing
from sightline.errors import CancelReason, Code, Fault
from sightline.exchange.engine import Engine
from sightline.exchange.hub import Hub
from sightline.exchange.interception.hold_changes import Changes, changes_while_held
from sightline.model.events import Ended, StreamEvent
from sightline.model.message import Message
from sightline.store.entries import FactEntry


class TakenUp:
    """Drives `run`. `fault` is why it did not go on, where it did not."""

    paused: Quota | None = None

    def __init__(self, pair: str, run: str, *, chat: Chat, engine: Engine, hub: Hub, answering: Answerer) -> None:
        self.pair = pair
        self.fault: Fault | None = None
        self._run = run
        self._chat = chat
        self._engine = engine
        self._answering = answering
        self._breaking = Breaking()
        self._tracing = Tracing(hub, engine.clock.now, chat.mask)
        self._deltas = Deltas(pair, chat.announce, lambda: chat.is_watched)
        self._live = LiveAnswer("", self._deltas)
        self._begun = asyncio.Event()
        self._changes: Changes = ()

    @property
    def so_far(self) -> ChatAnswer:
        """What has come of the answer, with what an earlier process had of it."""
        return msgspec.structs.replace(self._live.answer, run=self._run)

    def cancel(self, reason: CancelReason = "user") -> None:
        """Break it off again."""
        self._breaking.break_off(reason)

    def resume(self, *, anyway: bool) -> None:
        """It never waits for the account's limits as a question does."""
        raise Fault(Code.USAGE, "no send is waiting", hint="The run is under way.", status=409)

    async def wait_until_begun(self) -> None:
        """Wait until it goes on; why it does not is a fault."""
        await self._begun.wait()
        if self.fault is not None:
            raise self.fault

    async def run(self) -> None:
        """Go on to the end of it."""
        fact: ChatFact = PairFailed(self.pair, INTERRUPTED)
        try:
            fact = await self._run_to_end()
        finally:
            self._deltas.close()
            if self._chat.history.sending == self.pair:
                await self._chat.happen(fact)
            self._begun.set()

    async def _run_to_end(self) -> ChatFact:
        taken = TakenRun(self._run, self._begun.set, self._went)
        try:
            given = await self._breaking.run(self._answering.take_up(taken, self._on_event, self._on_recorded))
        except BrokenOff:
            partial, reason = self._partial("cancelled"), self._breaking.reason
            return PairCancelled(self.pair, partial, self._tracing.exchange, reason)
        except Fault as fault:
            if not self._begun.is_set():
                self.fault = fault
            if fault.code is Code.CANCELLED:
                partial, reason = self._partial("cancelled"), fault.reason or "user"
                return PairCancelled(self.pair, partial, self._tracing.exchange, reason)
            return PairFailed(self.pair, trouble_of(fault), self._partial("error"), self._tracing.exchange)
        fact = ending_fact(self.pair, given, self._tracing.exchange, self._engine.clock.now())
        if isinstance(fact, PairAnswered):
            answer = await revise(self._chat, self.pair, (), fact.answer, self._changes)
            fact = PairAnswered(self.pair, answer or fact.answer)
        return fact

    def _on_recorded(self, noted: FactEntry) -> None:
        self._tracing.on_recorded(noted)
        self._changes += changes_while_held(self._engine.relay.holds, noted)

    def _on_event(self, event: StreamEvent) -> None:
        self._live.add_event(event)
        if isinstance(event, Ended):
            self._deltas.close()
            self._chat.touch(self.pair)

    def _went(self, messages: tuple[Message, ...]) -> None:
        self._live.went(messages)
        self._chat.touch(self.pair)

    def _partial(self, finish: str) -> ChatAnswer | None:
        """What has come; where it did not go on at all, what had come before."""
        came = partial_of(self.so_far, finish, self._tracing.exchange, self._engine.clock.now())
        before = self._chat.history.get(self.pair).answer
        is_beginning = before is not None and before.run == self._run and before.is_partial
        return before if came is None and is_beginning else came


def ending_fact(pair: str, given: AnswerResult, exchange: str, now: float) -> ChatFact:
    """How a pair ends whose run has come to this."""
    answer = answer_of(given.reply, rounds=given.rounds, exchange=exchange, at=now)
    answer = msgspec.structs.replace(answer, run=given.run, seconds=given.seconds, usage=given.usage)
    fault = given.reply.fault
    if fault is None:
        return PairAnswered(pair, answer)
    if fault.code is Code.CANCELLED:
        return PairCancelled(pair, partial_of(answer, "cancelled", exchange, now), exchange, fault.reason or "user")
    return PairFailed(pair, trouble_of(fault), partial_of(answer, "error", exchange, now), exchange)


async def interrupted_ending(answering: Answerer, now: Callable[[], float], ended: PairFailed, run: str) -> ChatFact:
    """How a pair ends whose process has gone: with what its run has come to, which may be all."""
    given = await answering.result_of_run(run)
    if given is None:
        return ended
    if given.reply.fault is None:
        return ending_fact(ended.id, given, "", now())
    answer = msgspec.structs.replace(answer_of(given.reply, rounds=given.rounds), run=run)
    trouble = msgspec.structs.replace(ended.trouble, hint="Take its run up, ask again, or delete it.")
    return msgspec.structs.replace(ended, trouble=trouble, partial=partial_of(answer, "error", "", now()))
