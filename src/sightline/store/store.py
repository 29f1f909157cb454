"""The interface of a store, the same for every database: the record of exchanges, and append-only logs beside it.

Chats and tool runs are such logs. Only the writer of a log understands its lines, and removes secrets before adding
them. Retention does not remove logs.
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Literal, NamedTuple, Protocol, TypeVar

import msgspec

from sightline.errors import Code, Fault
from sightline.filters.expression import Expression
from sightline.store.entries import Entry, FactEntry, KeptEntry
from sightline.store.summary import Summary, SummedExchanges


class Line(msgspec.Struct, frozen=True):
    """Line number `n` of a log, counted from 1, and the time of day at which it was added."""

    n: int
    at: float
    data: bytes


class Log(msgspec.Struct, frozen=True):
    """A log: how many lines it has, and when the first and the latest of them were added."""

    name: str
    lines: int
    began: float
    latest: float


class Logbook(Protocol):
    """The logs of one data folder, or of one database that several folders share."""

    async def append(self, log: str, after: int, data: Sequence[bytes], at: float) -> None:
        """Add these lines after line number `after`. Once this returns, the end of this process cannot lose them.

        If the log has a different number of lines by now, nothing is added and a Fault with status 409 is raised.
        """

    async def lines(self, log: str, after: int = 0) -> list[Line]:
        """The lines after line number `after`, in order; empty if there is no such log."""

    async def logs(self, prefix: str = "") -> list[Log]:
        """The logs whose names begin with `prefix`, the most recently changed first."""

    async def rewrite(self, log: str, lines: Mapping[int, bytes]) -> None:
        """Replace the data of existing lines, by their numbers. Only used to remove data that must be forgotten."""

    async def forget(self, log: str) -> None:
        """Remove a log with all its lines."""


T = TypeVar("T")
_MOST_LINES = 100


class LoggedValue(Generic[T]):
    """One value in its own log, of which the last line counts."""

    def __init__(self, logbook: Logbook, name: str, kind: type[T], now: Callable[[], float]) -> None:
        self._logbook, self._name, self._kind, self._now = logbook, name, kind, now

    async def read(self) -> T | None:
        """The stored value; None if there is none."""
        lines = await self._logbook.lines(self._name)
        return msgspec.json.decode(lines[-1].data, type=self._kind) if lines else None

    async def write(self, value: T) -> None:
        """Store this value. Raises a Fault if another process stores one at the same moment."""
        lines = await self._logbook.lines(self._name)
        after = lines[-1].n if lines else 0
        if after >= _MOST_LINES:
            await self._logbook.forget(self._name)
            after = 0
        await self._logbook.append(self._name, after, [msgspec.json.encode(value)], self._now())


class Migration(NamedTuple):
    """Migration number `version` of the tables."""

    version: int
    sql: str


def load_migrations(database: Literal["sqlite", "postgres"]) -> list[Migration]:
    """All migrations, in order."""
    folder = Path(__file__).parent / "migrations" / database  # `importlib.resources` would cost a megabyte of memory
    return sorted(
        Migration(int(each.name.partition("_")[0]), each.read_text("utf-8"))
        for each in folder.iterdir()
        if each.name.endswith(".sql")
    )


def overtaken(log: str) -> Fault:
    """The fault for adding to a log without knowing all its lines."""
    hint = "Read what was added there meanwhile, and try again."
    return Fault(Code.USAGE, f"the log {log!r} was changed by another process", hint=hint, status=409)


@dataclass(frozen=True, slots=True)
class Pruned:
    """What retention removed, and what is left."""

    exchanges: int
    bytes_freed: int
    bytes_left: int


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What was removed, or would be: how many exchanges, and how many bytes of the record only they use."""

    exchanges: int
    bytes: int


class Store(Protocol):
    """The record of one data folder, or of one database that several folders share."""

    @property
    def trouble(self) -> Fault | None:
        """Why entries currently do not reach the database, or cannot even be written to the journal; None if all is
        well."""

    @property
    def logbook(self) -> Logbook:
        """The logs beside the record."""

    def record(self, entries: Sequence[KeptEntry]) -> None:
        """Record these entries. Once this returns, the end of this process cannot lose them."""

    def append(self, data: bytes) -> None:
        """Record entries that are already encoded; see `store.whole.join_entries`."""

    async def settle(self) -> None:
        """Return once everything recorded so far can be read."""

    async def facts(self, exchange: str) -> list[FactEntry]:
        """The facts of an exchange in order; empty if there is no such exchange."""

    async def body(self, exchange: str, sha256: str) -> bytes | None:
        """The body of an exchange with this hash; None if there is none."""

    async def find(self, wanted: Expression, *, now: float, before: str = "", limit: int = 100) -> list[Summary]:
        """At most `limit` exchanges that match the filter, newest first, starting after the exchange `before`."""

    async def sums(self, wanted: Expression, by: Sequence[str], *, now: float) -> list[SummedExchanges] | None:
        """The sums of all exchanges that match the filter, grouped by these columns of a summary; None if columns are
        not enough to decide which exchanges match."""

    async def prune(self, *, older_than: float | None = None, larger_than: int | None = None) -> Pruned:
        """Remove exchanges from before a time of day, and the oldest until the record has at most so many bytes."""

    async def forget(self, exchanges: Sequence[str], *, is_dry_run: bool = False) -> Forgotten:
        """Remove these exchanges, so that neither the database nor a file of the data folder contains their data.
        Exchanges in progress stay, and are not counted. A dry run only measures."""

    async def entries(self, exchange: str) -> list[Entry]:
        """All entries of one exchange, each body before the fact that names it; empty if there is no such exchange."""

    def export(self, wanted: Expression, *, now: float) -> AsyncIterator[Entry]:
        """All entries of the exchanges that match the filter, oldest first, each body before the fact that names it.
        Recording them in another store gives the same exchanges."""

    async def close(self) -> None:
        """Finish the work in progress, and close the store."""
