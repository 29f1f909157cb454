"""A run that goes on for the pair that it was begun for, until the pair has ended."""

import asyncio
from collections.abc import Callable

import msgspec

from sightline.chat.core.facts import INTERRUPTED, ChatFact, PairAnswered, PairCancelled, PairFailed
from sightline.chat.core.pair import ChatAnswer, answer_of, trouble_of
from sightline.chat.service.answer_progress import AnswerProgress, revise
from sightline.chat.service.answerer import Answerer, AnswerResult, RunToResume
from sightline.chat.service.chat import Chat
from sightline.chat.service.live_answer import partial_of
from sightline.errors import Code, Fault
from sightline.exchange.engine import Engine
from sightline.exchange.hub import Hub
from sightline.transport.race import WorkInterrupted


class ResumedRun(AnswerProgress):
    """Drives `run`. `fault` is why it could not be resumed."""

    def __init__(self, pair: str, run: str, *, chat: Chat, engine: Engine, hub: Hub, answerer: Answerer) -> None:
        super().__init__(pair, chat=chat, engine=engine, hub=hub, answerer=answerer, run=run)
        self.fault: Fault | None = None
        self._begun = asyncio.Event()

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
        resumption = RunToResume(self._run, self._begun.set, self._on_rounds)
        try:
            given = await self._abortable(self._answerer.resume_run(resumption, self._on_event, self._on_recorded))
        except WorkInterrupted:
            partial, reason = self._partial("cancelled"), self._reason
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


async def ending_of_interrupted_pair(
    answering: Answerer, now: Callable[[], float], ended: PairFailed, run: str
) -> ChatFact:
    """How a pair ends whose process has gone: with what its run has come to, which may be all."""
    given = await answering.result_of_run(run)
    if given is None:
        return ended
    if given.reply.fault is None:
        return ending_fact(ended.id, given, "", now())
    answer = msgspec.structs.replace(answer_of(given.reply, rounds=given.rounds), run=run)
    trouble = msgspec.structs.replace(ended.trouble, hint="Take its run up, ask again, or delete it.")
    return msgspec.structs.replace(ended, trouble=trouble, partial=partial_of(answer, "error", "", now()))
