"""Cached answers, found by the whole request, its target, and the number of the sample.

A log for each target contains the ids of the exchanges that answered. The answers themselves are in the record; if one
is no longer there, the request is sent again.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import msgspec

from sightline.evals.service.eval_log import LineWriter
from sightline.exchange.outbound import Prepared
from sightline.exchange.recording.exchange_record import RecordedExchange
from sightline.journal.journal import FactFormat, Journal
from sightline.model.exchange import AttemptStarted, ExchangeFinished
from sightline.model.reply import Reply
from sightline.store.entries import FactEntry
from sightline.store.store import Logbook, Store
from sightline.store.summary import PriceList, summary_of
from sightline.transport.waiting import Clock

PREFIX = "eval-answers:"


class _Line(msgspec.Struct, frozen=True):
    key: str
    exchange: str


_FORMAT: FactFormat[_Line] = FactFormat(
    lambda line: (msgspec.json.encode(line), line), lambda line: msgspec.json.decode(line.data, type=_Line)
)


@dataclass(frozen=True, slots=True)
class Found:
    """A cached answer, and how long it took originally."""

    reply: Reply
    exchange: str
    seconds: float


class Answers(Protocol):
    """The cached answers of one target, wherever they are stored."""

    async def find(self, key: str, sha256: str) -> Found | None:
        """The cached answer to a request with this hash; None if there is none."""

    def keep(self, key: str, exchange: str) -> None:
        """Remember that this exchange answered the request with this key."""


def key_of(prepared: Prepared, target: str, sample: int) -> str:
    """The key of a request: a hash of its bytes, where they are sent, and which sample of the answers is wanted."""
    choice = prepared.choice
    identity = (prepared.sha256, choice.provider_name, choice.model, str(prepared.call.url), target, str(sample))
    return hashlib.sha256("\0".join(identity).encode("utf-8", "surrogatepass")).hexdigest()


def answer_in(exchange: str, facts: Sequence[FactEntry], sha256: str, prices: PriceList) -> Found | None:
    """The answer of a recorded exchange; None if it has none, or belongs to another request."""
    recorded = RecordedExchange(summary_of(exchange, facts, prices), tuple(facts), b"", b"")
    if not isinstance(recorded.end, ExchangeFinished) or recorded.attempt is None or recorded.attempt.sha256 != sha256:
        return None
    # As it was measured when it was new: without holds, and without attempts that the provider refused.
    began = next(each.at for each in reversed(facts) if isinstance(each.fact, AttemptStarted))
    ended = next(each.at for each in facts if isinstance(each.fact, ExchangeFinished))
    return Found(recorded.reply(), exchange, max(0.0, ended - began))


class AnswerCache:
    def __init__(self, logbook: Logbook, store: Store, target: str, prices: PriceList, clock: Clock) -> None:
        self._store = store
        self._prices = prices
        self._known: dict[str, str] = {}
        self._journal: Journal[_Line, dict[str, str], None] = Journal(
            logbook, PREFIX + target, _FORMAT, self._known, self._add, now=clock.now
        )
        self._writer = LineWriter(self._journal.write)

    async def load(self) -> None:
        """Read the entries that were logged so far."""
        await self._journal.catch_up()

    async def find(self, key: str, sha256: str) -> Found | None:
        """The cached answer; None if there is none, or the record no longer has it."""
        exchange, facts = await self.facts(key)
        return answer_in(exchange, facts, sha256, self._prices) if exchange else None

    async def facts(self, key: str) -> tuple[str, Sequence[FactEntry]]:
        """The exchange that answered a request and its facts on record; an empty id if it has not been sent yet."""
        exchange = self._known.get(key, "")
        facts = await self._store.facts(exchange) if exchange else []
        if exchange and (not facts or not isinstance(facts[-1].fact, ExchangeFinished)):
            await self._store.settle()
            facts = await self._store.facts(exchange)
        return exchange, facts

    def keep(self, key: str, exchange: str) -> None:
        self._known[key] = exchange
        self._writer.add(msgspec.json.encode(_Line(key, exchange)))

    def _add(self, line: _Line, _at: float) -> None:
        self._known[line.key] = line.exchange

    async def flush(self) -> None:
        await self._writer.flush()
