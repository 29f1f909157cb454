"""Home's services for hosts: the record, rate limits, cached answers, logs and spending of a run."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import msgspec

from sightline.errors import Fault
from sightline.evals.service.cluster import messages
from sightline.evals.service.context import OwnSharing, Release
from sightline.evals.service.target import Spending
from sightline.exchange.hub import Record
from sightline.exchange.memory import Memory
from sightline.store.entries import KeptEntry
from sightline.store.store import Logbook
from sightline.tokens.ledger import SentRequest
from sightline.transport.waiting import Clock
from sightline.wire.cache import BoundedCache

_LOG = logging.getLogger(__name__)

MOST_REMEMBERED = 4096
"""How many requests of a host can still be settled; older ones have been by then."""

_ENDLESS = 1e12


@dataclass(frozen=True, slots=True)
class Home:
    """What all hosts of a run share. `record` stores entries."""

    record: Record
    logbook: Logbook
    memory: Memory
    clock: Clock
    sharing: OwnSharing
    spending: Spending


@dataclass
class HostService:
    """Serves one host. `reply` sends a message to it."""

    home: Home
    reply: Callable[[messages.HomeAnswer], None]
    _reserved: dict[int, Release] = field(default_factory=dict)
    _sent: BoundedCache[int, SentRequest] = field(default_factory=lambda: BoundedCache(MOST_REMEMBERED))
    _questions: "set[asyncio.Task[None]]" = field(default_factory=set)

    async def handle(self, message: messages.Business) -> None:
        """Handle a message of the host. Questions are answered in the background."""
        home = self.home
        match message:
            case messages.RecordEntries(entries):
                self._record(entries)
            case messages.CostSpent(cost):
                home.spending.spend(cost)
            case messages.Learned(provider, model, raw, usage, tools, media, window):
                home.memory.learn(provider, model, raw, usage, tools=tools, media=media, window=window)
            case messages.Keep(target, key, exchange):
                answers = await home.sharing.answers(target)
                if answers is not None:
                    answers.keep(key, exchange)
            case messages.HostQuestion(n, question):
                task = asyncio.get_running_loop().create_task(self._answer(n, question))
                self._questions.add(task)
                task.add_done_callback(self._questions.discard)
            case _:
                self._count(message)

    def _record(self, entries: Sequence[KeptEntry]) -> None:
        try:
            self.home.record(entries)
        except Exception as error:  # noqa: BLE001 - whatever is wrong with the record, cases are run, as they are here
            _LOG.error("entries of a host could not be recorded: %r", error)

    def _count(self, message: messages.Counting) -> None:
        ledger, now = self.home.memory.ledger, self.home.clock.now()
        match message:
            case messages.RequestReleased(n):
                if n in self._reserved:
                    self._reserved.pop(n)()
            case messages.RequestCounted(n, provider, model, tokens):
                self._sent.put(n, ledger.add_request(provider, model, tokens, now))
            case messages.Settled(n, tokens):
                if (sent := self._sent.get(n)) is not None:
                    self._sent.put(n, ledger.settle(sent, tokens, now))
            case messages.Uncounted(n):
                if (sent := self._sent.pop(n)) is not None:
                    ledger.unsent(sent, now)
            case messages.Observed(provider, model, headers):
                ledger.observe_headers(provider, model, headers, now)

    async def close(self) -> None:
        """Cancel unanswered questions and release the reservations of a host that is gone."""
        tasks = list(self._questions)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for release in self._reserved.values():
            release()
        self._reserved.clear()

    async def _answer(self, n: int, question: messages.Question) -> None:
        try:
            value = await self._answer_to(n, question)
        except Fault as fault:
            self.reply(messages.HomeAnswer(n, fault=messages.HostFault.of(fault)))
        else:
            self.reply(messages.HomeAnswer(n, msgspec.Raw(messages.pack(value))))

    async def _answer_to(self, n: int, question: messages.Question) -> object:
        home = self.home
        match question:
            case messages.Admit(provider, model, tokens, facts):
                self._reserved[n] = await home.sharing.rates.admit_model(provider, model, facts, tokens)
                return True
            case messages.HowLong(provider, model, tokens, facts):
                wait = home.memory.ledger.wait(provider, model, tokens, home.clock.now(), facts)
                return replace(wait, seconds=min(wait.seconds, _ENDLESS))
            case messages.Find(target, key):
                answers = await home.sharing.answers(target)
                exchange, entries = ("", ()) if answers is None else await answers.facts(key)
                return messages.FindAnswer(exchange, tuple(entries))
            case messages.Append(log, after, data, at):
                await home.logbook.append(log, after, data, at)
                return True
            case messages.ReadLines(log, after):
                return tuple(await home.logbook.lines(log, after))
            case messages.ListLogs(prefix):
                return tuple(await home.logbook.logs(prefix))
