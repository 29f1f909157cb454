"""Home: what hosts write down, count and ask for, by the one process that drives a run."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import msgspec

from sightline.errors import Fault
from sightline.evals.service.cluster.messages import (
    Admit,
    Answer,
    Append,
    Ask,
    Counted,
    Find,
    Findings,
    HowLong,
    Keep,
    Learned,
    ListLogs,
    Observed,
    Question,
    ReadLines,
    Recorded,
    Released,
    Settled,
    Spent,
    Told,
    Uncounted,
    Waiting,
    packed,
)
from sightline.evals.service.purse import Purse
from sightline.evals.service.rates import Reservation
from sightline.evals.service.sharing import OwnSharing
from sightline.exchange.hub import Record
from sightline.exchange.memory import Memory
from sightline.store.entries import Entry
from sightline.store.logbook import Logbook
from sightline.tokens.ledger import Sent
from sightline.transport.clock import Clock

_LOG = logging.getLogger(__name__)

MOST_REMEMBERED = 4096
"""Requests of a host whose tokens can still be settled; those before have been."""

_ENDLESS = 1e12

Business: TypeAlias = Recorded | Spent | Released | Counted | Settled | Uncounted | Observed | Learned | Keep | Ask
"""What a host says that is not about its cases."""


@dataclass(frozen=True, slots=True)
class Home:
    """What there is one of, for all hosts together. `record` writes entries down."""

    record: Record
    logbook: Logbook
    memory: Memory
    clock: Clock
    sharing: OwnSharing
    purse: Purse


@dataclass
class Desk:
    """Serves one host. `reply` takes what it is answered."""

    home: Home
    reply: Callable[[Answer], None]
    _reserved: dict[int, Reservation] = field(default_factory=dict)
    _sent: dict[int, Sent] = field(default_factory=dict)
    _asked: "set[asyncio.Task[None]]" = field(default_factory=set)

    async def hear(self, message: Business) -> None:
        """Do what the host says; its questions are answered when they can be."""
        home = self.home
        match message:
            case Recorded(entries):
                self._record(entries)
            case Spent(cost):
                home.purse.spend(cost)
            case Learned(provider, model, raw, usage, tools, media, window):
                home.memory.learn(provider, model, raw, usage, tools=tools, media=media, window=window)
            case Keep(target, key, exchange):
                answers = await home.sharing.answers(target)
                if answers is not None:
                    answers.keep(key, exchange)
            case Ask(n, question):
                task = asyncio.get_running_loop().create_task(self._answer(n, question))
                self._asked.add(task)
                task.add_done_callback(self._asked.discard)
            case Released() | Counted() | Settled() | Uncounted() | Observed():
                self._count(message)

    def _record(self, entries: Sequence[Entry]) -> None:
        try:
            self.home.record(entries)
        except Exception as error:  # noqa: BLE001 - whatever is wrong with the record, cases are run, as they are here
            _LOG.error("what a host told could not be recorded: %r", error)

    def _count(self, message: Released | Counted | Settled | Uncounted | Observed) -> None:
        ledger, now = self.home.memory.ledger, self.home.clock.now()
        match message:
            case Released(n):
                if n in self._reserved:
                    self._reserved.pop(n).release()
            case Counted(n, provider, model, tokens):
                self._sent[n] = ledger.sent(provider, model, tokens, now)
                if len(self._sent) > MOST_REMEMBERED:
                    del self._sent[next(iter(self._sent))]
            case Settled(n, tokens):
                if n in self._sent:
                    self._sent[n] = ledger.settled(self._sent[n], tokens, now)
            case Uncounted(n):
                if n in self._sent:
                    ledger.unsent(self._sent.pop(n), now)
            case Observed(provider, model, headers):
                ledger.observed(provider, model, headers, now)

    async def close(self) -> None:
        """The host is gone: nobody waits for answers, and what it was to send it will not."""
        tasks = list(self._asked)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for reservation in self._reserved.values():
            reservation.release()
        self._reserved.clear()

    async def _answer(self, n: int, question: Question) -> None:
        try:
            value = await self._found(n, question)
        except Fault as fault:
            self.reply(Answer(n, fault=Told.of(fault)))
        else:
            self.reply(Answer(n, msgspec.Raw(packed(value))))

    async def _found(self, n: int, question: Question) -> object:
        home = self.home
        match question:
            case Admit(provider, model, tokens, facts):
                self._reserved[n] = await home.sharing.rates.let_go(provider, model, facts, tokens)
                return True
            case HowLong(provider, model, tokens, facts):
                wait = home.memory.ledger.wait(provider, model, tokens, home.clock.now(), facts)
                return Waiting(min(wait.seconds, _ENDLESS), wait.reason, wait.limit, wait.allowed)
            case Find(target, key):
                answers = await home.sharing.answers(target)
                exchange, noted = ("", ()) if answers is None else await answers.facts(key)
                return Findings(exchange, tuple(noted))
            case Append(log, after, data, at):
                await home.logbook.append(log, after, data, at)
                return True
            case ReadLines(log, after):
                return tuple(await home.logbook.lines(log, after))
            case ListLogs(prefix):
                return tuple(await home.logbook.logs(prefix))
