"""Lookups in the record: the facts of an exchange, its summary and its replays; and how long they are kept."""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from sightline.errors import Code, Fault
from sightline.exchange.recording.exchange_record import RecordedExchange, load_exchange
from sightline.filters.expression import TextTerm
from sightline.filters.predicate import literal
from sightline.store.entries import FactEntry
from sightline.store.store import Store
from sightline.store.summary import PriceList, Summary, summary_of
from sightline.transport.clock import Clock

Unwritten = Callable[[str], Awaitable[list[FactEntry]]]

MOST_REPLAYS = 100


class Records:
    """Reads the store; `unwritten` has the facts of exchanges under way that are not there yet."""

    def __init__(
        self, store: Store, now: Callable[[], float], prices: PriceList, unwritten: Unwritten | None = None
    ) -> None:
        self.store = store
        self._now = now
        self._prices = prices
        self._unwritten = unwritten

    async def facts(self, exchange: str) -> list[FactEntry]:
        """All facts of an exchange in their order; a fault if there is no such exchange."""
        # First: what is written meanwhile is then found twice, and not missed.
        waiting = [] if self._unwritten is None else await self._unwritten(exchange)
        await self.store.settle()
        facts = await self.store.facts(exchange)
        if waiting:
            known = {entry.n: entry for entry in (*waiting, *facts)}
            facts = [known[n] for n in sorted(known)]
        if not facts:
            hint = "GET /api/exchanges lists the exchanges."
            raise Fault(Code.USAGE, f"there is no exchange {exchange!r}", hint=hint, status=404)
        return facts

    async def summary(self, exchange: str, facts: list[FactEntry]) -> Summary:
        """Its line: what its facts tell, and what the record has read in its request."""
        computed = summary_of(exchange, facts, self._prices)
        return await self._line(exchange) or computed

    async def read(self, exchange: str) -> RecordedExchange:
        """All of an exchange, with its bodies; a fault if the record no longer holds them."""
        return await load_exchange(self.store, await self.summary(exchange, await self.facts(exchange)))

    async def previous(self, exchange: str) -> RecordedExchange | None:
        """The exchange that this one continues; None where there is none, or the record no longer holds it."""
        await self.store.settle()
        line = await self._line(exchange)
        before = await self._line(line.previous) if line is not None and line.previous else None
        if before is None:
            return None
        try:
            return await load_exchange(self.store, before)
        except Fault:
            return None  # retention has taken its bodies

    async def replays(self, exchange: str) -> tuple[str, ...]:
        """The exchanges that sent this one again, the oldest first."""
        found = await self.store.find(TextTerm("origin", literal(exchange)), now=self._now(), limit=MOST_REPLAYS)
        return tuple(summary.id for summary in reversed(found) if summary.origin == exchange)

    async def _line(self, exchange: str) -> Summary | None:
        found = await self.store.find(TextTerm("id", literal(exchange)), now=self._now(), limit=1)
        return next((summary for summary in found if summary.id == exchange), None)


EVERY = 3600.0
_DAY = 86_400.0
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Retention:
    """Forgets exchanges that are older than `days`, and the oldest of more than `megabytes`; 0 is without a limit."""

    store: Store
    clock: Clock
    days: int = 0
    megabytes: int = 0

    async def run(self) -> None:
        """Look after it at once and every hour, until cancelled."""
        while self.days or self.megabytes:
            await self.once()
            await self.clock.sleep(EVERY)

    async def once(self) -> None:
        """Forget what is over. A record that cannot be changed now is looked after the next time."""
        older = self.clock.now() - self.days * _DAY if self.days else None
        larger = self.megabytes << 20 if self.megabytes else None
        try:
            pruned = await self.store.prune(older_than=older, larger_than=larger)
        except Fault as fault:
            _LOG.warning("the record could not be pruned: %s", fault.message)
            return
        if pruned.exchanges:
            _LOG.info("%d exchanges were forgotten, %d bytes freed", pruned.exchanges, pruned.bytes_freed)
