"""A cache of earlier answers, keyed by request, target and sample.

A log for each target names the exchange that answered; the answer itself is read from the record. If the record no
longer has it, the request is sent again.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import msgspec

from sightline.errors import Fault
from sightline.evals.service.line_writer import LineWriter
from sightline.exchange.prepare import Prepared
from sightline.exchange.recording.exchange_record import RecordedExchange
from sightline.model.exchange import AttemptStarted, ExchangeFinished, Received
from sightline.model.reply import Reply
from sightline.store.entries import FactEntry
from sightline.store.folding import PriceList, summary_of
from sightline.store.logbook import Logbook
from sightline.store.store import Store
from sightline.transport.clock import Clock

PREFIX = "eval-answers:"
_CHANGED = 409


class _Line(msgspec.Struct, frozen=True):
    key: str
    exchange: str


@dataclass(frozen=True, slots=True)
class Found:
    """A cached answer and how many seconds it took originally."""

    reply: Reply
    exchange: str
    seconds: float


class Answers(Protocol):
    """The cached answers of one target, local or remote."""

    def key(self, prepared: Prepared, sample: int) -> str:
        """The cache key of a request."""
        ...

    async def find(self, key: str, sha256: str) -> Found | None:
        """The cached answer to a request with this hash, or None."""
        ...

    def keep(self, key: str, exchange: str) -> None:
        """Remember that this exchange answered the request."""
        ...

    async def flush(self) -> None:
        """Wait until everything added so far is stored."""
        ...


def key_of(prepared: Prepared, target: str, sample: int) -> str:
    """The cache key: a hash of the request's bytes, its destination and the number of the sample."""
    choice = prepared.choice
    identity = (prepared.sha256, choice.provider_name, choice.model, str(prepared.call.url), target, str(sample))
    return hashlib.sha256("\0".join(identity).encode("utf-8", "surrogatepass")).hexdigest()


def answer_in(exchange: str, facts: Sequence[FactEntry], sha256: str, prices: PriceList) -> Found | None:
    """The answer of a recorded exchange; None if it has no answer or answered a different request."""
    recorded = RecordedExchange(summary_of(exchange, facts, prices), tuple(facts), b"", b"")
    if not isinstance(recorded.end, ExchangeFinished) or recorded.attempt is None or recorded.attempt.sha256 != sha256:
        return None
    began = next((each.at for each in facts if isinstance(each.fact, AttemptStarted | Received)), 0.0)
    ended = next((each.at for each in facts if isinstance(each.fact, ExchangeFinished)), began)
    return Found(recorded.reply(), exchange, max(0.0, ended - began))


class AnswerCache:
    """The cached answers of one target in the logbook."""

    def __init__(self, logbook: Logbook, store: Store, target: str, prices: PriceList, clock: Clock) -> None:
        self._logbook = logbook
        self._store = store
        self._target = target
        self._prices = prices
        self._clock = clock
        self._known: dict[str, str] = {}
        self._lines = 0
        self._writer = LineWriter(self._append)

    async def load(self) -> None:
        """Read the lines of the log that were not read before."""
        for line in await self._logbook.lines(PREFIX + self._target, self._lines):
            entry = msgspec.json.decode(line.data, type=_Line)
            self._known[entry.key] = entry.exchange
            self._lines = line.n

    def key(self, prepared: Prepared, sample: int) -> str:
        """The cache key of a request."""
        return key_of(prepared, self._target, sample)

    async def find(self, key: str, sha256: str) -> Found | None:
        exchange, facts = await self.facts(key)
        return answer_in(exchange, facts, sha256, self._prices) if exchange else None

    async def facts(self, key: str) -> tuple[str, Sequence[FactEntry]]:
        """The exchange that answered this key and its recorded facts; `("", ())` if there is none."""
        exchange = self._known.get(key, "")
        facts = await self._store.facts(exchange) if exchange else []
        if exchange and (not facts or not isinstance(facts[-1].fact, ExchangeFinished)):
            await self._store.settle()
            facts = await self._store.facts(exchange)
        return exchange, facts

    def keep(self, key: str, exchange: str) -> None:
        """Remember that this exchange answered the request."""
        self._known[key] = exchange
        self._writer.add(msgspec.json.encode(_Line(key, exchange)))

    async def flush(self) -> None:
        """Wait until everything added so far is stored."""
        await self._writer.flush()

    async def _append(self, lines: Sequence[bytes]) -> None:
        while True:
            try:
                await self._logbook.append(PREFIX + self._target, self._lines, lines, self._clock.now())
            except Fault as fault:
                if fault.status != _CHANGED:
                    raise
                await self.load()  # another run has appended to the log meanwhile
            else:
                self._lines += len(lines)
                return
