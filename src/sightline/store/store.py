"""What a store does: eight verbs and its logs, the same for every engine behind them."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from sightline.errors import Fault
from sightline.filters.expression import Expression
from sightline.store.entries import Entry, FactEntry
from sightline.store.logbook import Logbook
from sightline.store.summary import Summary


@dataclass(frozen=True, slots=True)
class Pruned:
    """What retention took away, and what is left."""

    exchanges: int
    bytes_freed: int
    bytes_left: int


class Store(Protocol):
    """The record of one data folder, or of one database that several share."""

    @property
    def trouble(self) -> Fault | None:
        """Why what is recorded does not reach the database at the moment, or is not even kept; None if all is well."""
        ...

    @property
    def logbook(self) -> Logbook:
        """The logs beside the record."""
        ...

    def record(self, entries: Sequence[Entry]) -> None:
        """Take these entries; once it returns, the end of this process cannot lose them."""
        ...

    async def settle(self) -> None:
        """Return once all that was recorded can be read."""
        ...

    async def facts(self, exchange: str) -> list[FactEntry]:
        """The facts of an exchange in their order; none if there is no such exchange."""
        ...

    async def body(self, sha256: str) -> bytes | None:
        """The body with this hash."""
        ...

    async def find(self, wanted: Expression, *, now: float, before: str = "", limit: int = 100) -> list[Summary]:
        """Exchanges that the filter takes, newest first, from behind the exchange `before`."""
        ...

    async def prune(self, *, older_than: float | None = None, larger_than: int | None = None) -> Pruned:
        """Forget exchanges from before a time of day, and the oldest until the record has at most that many bytes."""
        ...

    def export(self, wanted: Expression, *, now: float) -> AsyncIterator[Entry]:
        """All entries of these exchanges, oldest first, each body before the fact that names it. Recorded elsewhere,
        they are the same exchanges."""
        ...

    async def close(self) -> None:
        """Finish what is under way."""
        ...
