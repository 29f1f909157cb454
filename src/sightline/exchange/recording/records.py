"""Lookups in the record: the facts of an exchange, its summary and its replays; what is forgotten, and how long
the rest is kept."""

import logging
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import msgspec

from sightline.errors import Code, Fault
from sightline.exchange.recording.exchange_record import RecordedExchange, load_exchange
from sightline.filters.expression import Expression, TextTerm
from sightline.filters.predicate import literal
from sightline.store.entries import FactEntry
from sightline.store.store import Logbook, Store
from sightline.store.summary import OPEN_STATES, PriceList, Summary, summary_of
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

    async def list_ids(self, wanted: Expression) -> list[str]:
        """The exchanges that the filter takes, the oldest first."""
        await self.store.settle()
        found: list[str] = []
        while page := await self.store.find(wanted, now=self._now(), before=found[-1] if found else "", limit=_PAGE):
            found += [summary.id for summary in page]
        return found[::-1]

    async def _line(self, exchange: str) -> Summary | None:
        found = await self.store.find(TextTerm("id", literal(exchange)), now=self._now(), limit=1)
        return next((summary for summary in found if summary.id == exchange), None)


class ForgetResult(msgspec.Struct, frozen=True):
    """What was forgotten, or would be: how many exchanges, and about how many bytes they take. `under_way`
    are exchanges that match and stay, because they have not ended. `copies` are the logs of chats, runs and eval runs
    that name these exchanges and have texts of their own."""

    exchanges: int
    bytes: int
    under_way: int = 0
    copies: tuple[str, ...] = ()


_PAGE = 500
_NAME = re.compile(rb"x_\w+")
_WITHOUT_TEXT = ("eval-answers:", "chat-sending:", "page:")
"""Logs that name exchanges and have nothing of what they say."""


async def forget_exchanges(
    store: Store, wanted: Expression, *, now: float, is_dry_run: bool = False, with_copies: bool = False
) -> tuple[ForgetResult, list[str]]:
    """Forget every exchange that the filter takes and that has ended; returns what went, and the ids. With
    `with_copies` the logs of runs and eval runs that name them go too. A dry run only counts."""
    await store.settle()
    ids: list[str] = []
    under_way, before = 0, ""
    while page := await store.find(wanted, now=now, before=before, limit=_PAGE):
        ended = [summary.id for summary in page if summary.state not in OPEN_STATES]
        ids += ended
        under_way += len(page) - len(ended)
        before = page[-1].id
    copies = await _logs_naming(store.logbook, set(ids)) if ids else ()
    if with_copies and not is_dry_run:
        for log in copies:
            if is_removable(log):
                await store.logbook.forget(log)
    # Also where nothing is found: what an earlier attempt could not erase is erased now.
    found = await store.forget(ids, is_dry_run=is_dry_run)
    return ForgetResult(found.exchanges, found.bytes, under_way, copies), ids


def is_removable(log: str) -> bool:
    """Whether a log with copies can go as a whole: that of a run can, that of the chat holds everything else too."""
    return log.startswith(("run:", "eval:"))


async def _logs_naming(logbook: Logbook, exchanges: set[str]) -> tuple[str, ...]:
    found = []
    for log in await logbook.logs():
        if log.name.startswith(_WITHOUT_TEXT):
            continue
        lines = await logbook.lines(log.name)
        if any(name.decode() in exchanges for line in lines for name in _NAME.findall(line.data)):
            found.append(log.name)
    return tuple(found)


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
