"""The interface of a store, the same for every database: the record of exchanges, and append-only logs beside it.

A chat is such a log, and so is a run of tools. Only the writer of a log understands its lines, and removes secrets
before it adds them. Retention leaves logs alone.
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
    """Line number `n` of a log, from 1, and the time of day at which it was added."""

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
    """The logs of one data folder, or of one database that several share."""

    async def append(self, log: str, after: int, data: Sequence[bytes], at: float) -> None:
        """Add these lines behind line number `after`; once it returns, the end of this process cannot lose them.

        A log that has another number of lines by now is left as it is, and the fault has the status 409.
        """

    async def lines(self, log: str, after: int = 0) -> list[Line]:
        """The lines behind line number `after`, in their order; none if there is no such log."""

    async def logs(self, prefix: str = "") -> list[Log]:
        """The logs whose names begin so, the one that was added to latest first."""

    async def rewrite(self, log: str, lines: Mapping[int, bytes]) -> None:
        """Put other data into lines that are there, by their numbers. Only what must be forgotten is changed so."""

    async def forget(self, log: str) -> None:
        """Take a log away with all its lines."""


T = TypeVar("T")
_MOST_LINES = 100


class LoggedValue(Generic[T]):
    """One value in a log of its own, whose last line counts."""

    def __init__(self, logbook: Logbook, name: str, kind: type[T], now: Callable[[], float]) -> None:
        self._logbook, self._name, self._kind, self._now = logbook, name, kind, now

    async def read(self) -> T | None:
        """The value that was kept last; None if there is none."""
        lines = await self._logbook.lines(self._name)
        return msgspec.json.decode(lines[-1].data, type=self._kind) if lines else None

    async def write(self, value: T) -> None:
        """Keep this value; a fault if another process has kept one at the same moment."""
        lines = await self._logbook.lines(self._name)
        after = lines[-1].n if lines else 0
        if after >= _MOST_LINES:
            await self._logbook.forget(self._name)
            after = 0
        await self._logbook.append(self._name, after, [msgspec.json.encode(value)], self._now())


class Migration(NamedTuple):
    """Step number `version` on the way to the tables of this version."""

    version: int
    sql: str


def load_migrations(database: Literal["sqlite", "postgres"]) -> list[Migration]:
    """All steps, first to last."""
    folder = Path(__file__).parent / "migrations" / database  # `importlib.resources` would cost a megabyte of memory
    return sorted(
        Migration(int(each.name.partition("_")[0]), each.read_text("utf-8"))
        for each in folder.iterdir()
        if each.name.endswith(".sql")
    )


def overtaken(log: str) -> Fault:
    """The fault of one who did not know all lines of a log."""
    hint = "Read what was added there meanwhile, and try again."
    return Fault(Code.USAGE, f"the log {log!r} was changed by another process", hint=hint, status=409)


@dataclass(frozen=True, slots=True)
class Pruned:
    """What retention took away, and what is left."""

    exchanges: int
    bytes_freed: int
    bytes_left: int


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What was forgotten, or would be: how many exchanges, and how many bytes of the record are theirs alone."""

    exchanges: int
    bytes: int


class Store(Protocol):
    """The record of one data folder, or of one database that several share."""

    @property
    def trouble(self) -> Fault | None:
        """Why what is recorded does not reach the database at the moment, or is not even kept; None if all is well."""

    @property
    def logbook(self) -> Logbook:
        """The logs beside the record."""

    def record(self, entries: Sequence[KeptEntry]) -> None:
        """Take these entries; once it returns, the end of this process cannot lose them."""

    def append(self, data: bytes) -> None:
        """The same for entries that are encoded; see `store.whole.join_entries`."""

    async def settle(self) -> None:
        """Return once all that was recorded can be read."""

    async def facts(self, exchange: str) -> list[FactEntry]:
        """The facts of an exchange in their order; none if there is no such exchange."""

    async def body(self, exchange: str, sha256: str) -> bytes | None:
        """The body of an exchange with this hash."""

    async def find(self, wanted: Expression, *, now: float, before: str = "", limit: int = 100) -> list[Summary]:
        """Exchanges that the filter takes, newest first, from behind the exchange `before`."""

    async def sums(self, wanted: Expression, by: Sequence[str], *, now: float) -> list[SummedExchanges] | None:
        """The sums of all exchanges that the filter takes, apart for each value of these columns of a summary; None
        where only each exchange tells whether the filter takes it."""

    async def prune(self, *, older_than: float | None = None, larger_than: int | None = None) -> Pruned:
        """Forget exchanges from before a time of day, and the oldest until the record has at most that many bytes."""

    async def forget(self, exchanges: Sequence[str], *, is_dry_run: bool = False) -> Forgotten:
        """Remove these exchanges, so that neither the database nor a file of the data folder holds what was recorded
        of them. Those that are under way stay, and are not counted. A dry run only measures."""

    async def entries(self, exchange: str) -> list[Entry]:
        """All entries of one exchange, each body before the fact that names it; none if there is no such exchange."""

    def export(self, wanted: Expression, *, now: float) -> AsyncIterator[Entry]:
        """All entries of these exchanges, oldest first, each body before the fact that names it. Recorded elsewhere,
        they are the same exchanges."""

    async def close(self) -> None:
        """Finish what is under way."""
