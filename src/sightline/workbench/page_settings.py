"""What a user sets on the page and the server keeps: saved filters of the traffic list.

It is kept in a log beside the record, whose last line counts. So every browser, every port and every replica that
shares the record has it, which the storage of one browser could not do.
"""

from collections.abc import Callable
from typing import Annotated, Generic, TypeVar

import msgspec

from sightline.errors import Code, Fault
from sightline.filters.fields import FilterScope
from sightline.filters.parsing import parse
from sightline.store.store import Logbook
from sightline.web.asgi import Receive
from sightline.web.bodies import read_body

T = TypeVar("T")
_MOST_LINES = 100


class LoggedValue(Generic[T]):
    """One value in a log of its own; `initial` where nothing was kept."""

    def __init__(self, logbook: Logbook, name: str, kind: type[T], initial: T, now: Callable[[], float]) -> None:
        self._logbook, self._name, self._kind, self._initial, self._now = logbook, name, kind, initial, now

    async def read(self) -> T:
        """The value that was kept last."""
        lines = await self._logbook.lines(self._name)
        return msgspec.json.decode(lines[-1].data, type=self._kind) if lines else self._initial

    async def write(self, value: T) -> None:
        """Keep this value; a fault if another process has kept one at the same moment."""
        lines = await self._logbook.lines(self._name)
        after = lines[-1].n if lines else 0
        if after >= _MOST_LINES:
            await self._logbook.forget(self._name)
            after = 0
        await self._logbook.append(self._name, after, [msgspec.json.encode(value)], self._now())


class TrafficFilter(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A filter of the traffic list, and its name, which no other one has."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=60)]
    filter: Annotated[str, msgspec.Meta(min_length=1)]


class TrafficFilters(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All saved filters, in their order."""

    filters: tuple[TrafficFilter, ...]


FILTERS_LOG = "page:filters"


class SavedTrafficFilters:
    """The calls `GET` and `PUT /api/filters`."""

    def __init__(self, logbook: Logbook, now: Callable[[], float]) -> None:
        self._kept = LoggedValue(logbook, FILTERS_LOG, TrafficFilters, TrafficFilters(()), now)

    async def read(self) -> TrafficFilters:
        """The saved filters."""
        return await self._kept.read()

    async def replace(self, receive: Receive) -> TrafficFilters:
        """Keep these in place of all before; a fault for a name that occurs twice or a filter that is wrong."""
        wanted = await read_body(receive, TrafficFilters, hint='Send {"filters": [{"name": "…", "filter": "…"}]}.')
        names = [each.name.strip().lower() for each in wanted.filters]
        if "" in names or len(set(names)) < len(names):
            message = "the saved filters need names of their own"
            raise Fault(Code.INVALID_REQUEST, message, hint="Give each another name.", status=422)
        for each in wanted.filters:
            try:
                parse(each.filter, scope=FilterScope.TRAFFIC)
            except Fault as fault:
                fault.status = 422
                raise
        await self._kept.write(wanted)
        return wanted
