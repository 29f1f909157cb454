"""Answers that were given before: found by the whole request, who was asked, and which sample it is.

A log for each target says which exchange answered; the answer itself is in the record, and where it is there no more,
it is asked for again.
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
from sightline.model.exchange import AttemptStarted, ExchangeFinished, Received
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
    """An earlier answer, and how long it took then."""

    reply: Reply
    exchange: str
    seconds: float


class Answers(Protocol):
    """The earlier answers of one target, wherever they are kept."""

    async def find(self, key: str, sha256: str) -> Found | None:
        """The earlier answer to a request with this hash; None where there is none."""

    def keep(self, key: str, exchange: str) -> None:
        """This exchange answered it."""


def key_of(prepared: Prepared, target: str, sample: int) -> str:
    """What makes a request the same: its bytes, where they go, and which sample of the answers is wanted."""
    choice = prepared.choice
    identity = (prepared.sha256, choice.provider_name, choice.model, str(prepared.call.url), target, str(sample))
    return hashlib.sha256("\0".join(identity).encode("utf-8", "surrogatepass")).hexdigest()


def answer_in(exchange: str, facts: Sequence[FactEntry], sha256: str, prices: PriceList) -> Found | None:
    """The answer of an exchange on record; None where it has none, or is another request's."""
    recorded = RecordedExchange(summary_of(exchange, facts, prices), tuple(facts), b"", b"")
    if not isinstance(recorded.end, ExchangeFinished) or recorded.attempt is None or recorded.attempt.sha256 != sha256:
        return None
    began = next((each.at for each in facts if isinstance(each.fact, AttemptStarted | Received)), 0.0)
    ended = next((each.at for each in facts if isinstance(each.fact, ExchangeFinished)), began)
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
        """Take in what is written down by now."""
        await self._journal.catch_up()

    async def find(self, key: str, sha256: str) -> Found | None:
        """The earlier answer; None where there is none, or the record holds it no more."""
        exchange, facts = await self.facts(key)
        return answer_in(exchange, facts, sha256, self._prices) if exchange else None

    async def facts(self, key: str) -> tuple[str, Sequence[FactEntry]]:
        """The exchange that answered it and its facts on record; an empty id if the request has not been sent yet."""
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
