"""Lookups in the record: the facts of an exchange, its summary and its replays. Also deletes exchanges, on
request or by the retention settings.
"""

import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, TypeAlias

import msgspec

from sightline.errors import Code, Fault
from sightline.exchange.recording.exchange_record import RecordedExchange, load_exchange
from sightline.filters.expression import EVERYTHING, AgeTerm, Expression, TextTerm, both
from sightline.filters.parsing import parse
from sightline.filters.predicate import literal
from sightline.store.entries import FactEntry
from sightline.store.store import Logbook, LoggedValue, Store
from sightline.store.summary import OPEN_STATES, PriceList, Summary, summary_of
from sightline.transport.waiting import Clock

Unwritten = Callable[[str], Awaitable[list[FactEntry]]]

MOST_REPLAYS = 100


class Records:
    """Reads the store; `unwritten` returns the facts of active exchanges that are not there yet."""

    def __init__(
        self, store: Store, now: Callable[[], float], prices: PriceList, unwritten: Unwritten | None = None
    ) -> None:
        self.store = store
        self._now = now
        self._prices = prices
        self._unwritten = unwritten

    async def facts(self, exchange: str) -> list[FactEntry]:
        """All facts of an exchange in order. Raises a fault if there is no such exchange."""
        # Before the store is read: facts that are written meanwhile are then found twice instead of missed.
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
        """The summary of an exchange: what its facts say, and what the record has read in its request."""
        computed = summary_of(exchange, facts, self._prices)
        return await self._line(exchange) or computed

    async def read(self, exchange: str) -> RecordedExchange:
        """All of an exchange, with its bodies. Raises a fault if the record no longer has them."""
        return await load_exchange(self.store, await self.summary(exchange, await self.facts(exchange)))

    async def previous(self, exchange: str) -> RecordedExchange | None:
        """The exchange that this one continues; None if there is none, or the record no longer has it."""
        await self.store.settle()
        line = await self._line(exchange)
        before = await self._line(line.previous) if line is not None and line.previous else None
        if before is None:
            return None
        try:
            return await load_exchange(self.store, before)
        except Fault:
            return None  # retention has removed its bodies

    async def replays(self, exchange: str) -> tuple[str, ...]:
        """The exchanges that sent this one again, the oldest first."""
        found = await self.store.find(TextTerm("origin", literal(exchange)), now=self._now(), limit=MOST_REPLAYS)
        return tuple(summary.id for summary in reversed(found) if summary.origin == exchange)

    async def list_ids(self, wanted: Expression) -> list[str]:
        """The exchanges that the filter matches, the oldest first."""
        await self.store.settle()
        return [summary.id async for summary in read_summaries(self.store, wanted, self._now())][::-1]

    async def _line(self, exchange: str) -> Summary | None:
        found = await self.store.find(TextTerm("id", literal(exchange)), now=self._now(), limit=1)
        return next((summary for summary in found if summary.id == exchange), None)


class ForgetResult(msgspec.Struct, frozen=True):
    """What was forgotten, or would be: how many exchanges, and roughly how many bytes they take. `under_way` counts
    exchanges that match but stay, because they have not ended. `copies` are the logs of chats, runs and eval runs that
    refer to these exchanges and have texts of their own."""

    exchanges: int
    bytes: int
    under_way: int = 0
    copies: tuple[str, ...] = ()


Selection: TypeAlias = Expression | frozenset[str]
"""The exchanges that a filter matches, or those with these ids, of which there is at least one."""
_PAGE = 2_000


def read_selection(text: str, exchanges: Sequence[str]) -> Selection:
    """The selection of a filter or a list of ids; a list may be longer than a filter. Raises a Fault if both are
    given."""
    if text.strip() and exchanges:
        message = "there are both a filter and a list of exchanges"
        raise Fault(Code.INVALID_REQUEST, message, hint="Send one of them.", status=400)
    return frozenset(exchanges) if exchanges else parse(text)


async def read_summaries(store: Store, wanted: Selection, now: float) -> AsyncIterator[Summary]:
    """All exchanges of a selection, newest first."""
    if not isinstance(wanted, frozenset):
        before, last, condition, limit = "", "", wanted, _PAGE
    else:
        # Ids are ordered by time, and exchanges that are selected together arrived at about the same time: one walk
        # from the latest to the earliest reads little else. As terms of a filter, each id would be compared with the
        # whole record.
        before, last, condition, limit = f"{max(wanted)}0", min(wanted), EVERYTHING, min(2 * len(wanted), _PAGE)
    while page := await store.find(condition, now=now, before=before, limit=limit):
        for summary in page:
            if not isinstance(wanted, frozenset) or summary.id in wanted:
                yield summary
        before = page[-1].id
        if len(page) < limit or before <= last:
            return


EraseChats: TypeAlias = Callable[[Sequence[str]], Awaitable[object]]
"""Deletes what chats have copied of these exchanges."""
_NAME = re.compile(rb"x_\w+")
_WITHOUT_TEXT = ("eval-answers:", "chat-sending:", "page:")
"""Logs that refer to exchanges and contain none of their texts."""


async def forget_exchanges(
    store: Store,
    wanted: Selection,
    *,
    now: float,
    is_dry_run: bool = False,
    with_copies: bool = False,
    erase_chats: EraseChats | None = None,
) -> tuple[ForgetResult, list[str]]:
    """Forget every exchange of the selection that has ended; returns the result, and the ids. With `with_copies`, the
    logs of runs and eval runs that refer to them are deleted too, and `erase_chats` deletes what chats have of them. A
    dry run only counts."""
    await store.settle()
    found = [summary async for summary in read_summaries(store, wanted, now)]
    ids = [summary.id for summary in found if summary.state not in OPEN_STATES]
    copies = await _logs_naming(store.logbook, set(ids)) if ids else ()
    if with_copies and not is_dry_run:
        for log in copies:
            if is_removable(log):
                await store.logbook.forget(log)
        if erase_chats is not None and ids:
            await erase_chats(ids)
    # Even if nothing is found: what an earlier attempt could not erase is erased now.
    gone = await store.forget(ids, is_dry_run=is_dry_run)
    return ForgetResult(gone.exchanges, gone.bytes, len(found) - len(ids), copies), ids


def is_removable(log: str) -> bool:
    """Whether a log with copies is deleted as a whole: that of a run is; in a chat, only the pairs of these exchanges
    are."""
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


RETENTION_LOG = "page:retention"


class RetentionRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Exchanges that the filter matches are forgotten after this many days."""

    filter: Annotated[str, msgspec.Meta(min_length=1)]
    days: Annotated[int, msgspec.Meta(ge=1)]


class RetentionSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Exchanges are forgotten after `days`, the oldest ones beyond `megabytes`, and those that a rule matches after the
    days of that rule; 0 means no limit."""

    days: Annotated[int, msgspec.Meta(ge=0)]
    megabytes: Annotated[int, msgspec.Meta(ge=0)]
    rules: tuple[RetentionRule, ...]


@dataclass(frozen=True, slots=True)
class Retention:
    """Forgets exchanges that are older than `days`, and the oldest ones beyond `megabytes`; 0 means no limit. Settings
    in `kept`, in which the page stores them, replace both."""

    store: Store
    clock: Clock
    days: int = 0
    megabytes: int = 0
    kept: LoggedValue[RetentionSettings] | None = None

    async def settings(self) -> tuple[RetentionSettings, bool]:
        """The active settings, and whether they are those of the configuration."""
        found = None if self.kept is None else await self.kept.read()
        return (RetentionSettings(self.days, self.megabytes, ()), True) if found is None else (found, False)

    async def set(self, settings: RetentionSettings) -> None:
        """Store these settings, and forget at once what exceeds them."""
        assert self.kept is not None  # only the page calls this, and it has one
        await self.kept.write(settings)
        await self.once()

    async def run(self) -> None:
        """Forget what exceeds the settings, now and every hour, until cancelled."""
        while self.kept is not None or self.days or self.megabytes:
            await self.once()
            await self.clock.sleep(EVERY)

    async def once(self) -> None:
        """Forget what exceeds the settings. If the record cannot be changed now, the next run does it."""
        try:
            await self._forget_old()
        except Fault as fault:
            _LOG.warning("the record could not be pruned: %s", fault.message)

    async def _forget_old(self) -> None:
        settings, _ = await self.settings()
        now = self.clock.now()
        for rule in settings.rules:
            wanted = both(parse(rule.filter), AgeTerm(">", rule.days * _DAY))
            gone, _ = await forget_exchanges(self.store, wanted, now=now)
            if gone.exchanges:
                _LOG.info("%d exchanges of %s were forgotten", gone.exchanges, rule.filter)
        if not settings.days and not settings.megabytes:
            return
        older = now - settings.days * _DAY if settings.days else None
        larger = settings.megabytes << 20 if settings.megabytes else None
        pruned = await self.store.prune(older_than=older, larger_than=larger)
        if pruned.exchanges:
            _LOG.info("%d exchanges were forgotten, %d bytes freed", pruned.exchanges, pruned.bytes_freed)
