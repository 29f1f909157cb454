"""What a user sets on the page and the server keeps: saved filters of the traffic list, and how long what is kept.

Both are in logs beside the record. So every browser, every port and every replica that shares the record has them,
which the storage of one browser could not do.
"""

from collections.abc import Callable
from typing import Annotated

import msgspec

from sightline.errors import Code, Fault
from sightline.exchange.recording.records import Retention, RetentionSettings, read_summaries
from sightline.filters.fields import FilterScope
from sightline.filters.parsing import parse
from sightline.store.store import Logbook, LoggedValue
from sightline.web.asgi import Receive
from sightline.web.bodies import read_body


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
        self._kept = LoggedValue(logbook, FILTERS_LOG, TrafficFilters, now)

    async def read(self) -> TrafficFilters:
        """The saved filters."""
        return await self._kept.read() or TrafficFilters(())

    async def replace(self, receive: Receive) -> TrafficFilters:
        """Keep these in place of all before; a fault for a name that occurs twice or a filter that is wrong."""
        wanted = await read_body(receive, TrafficFilters, hint='Send {"filters": [{"name": "…", "filter": "…"}]}.')
        names = [each.name.strip().lower() for each in wanted.filters]
        if "" in names or len(set(names)) < len(names):
            message = "the saved filters need names of their own"
            raise Fault(Code.INVALID_REQUEST, message, hint="Give each another name.", status=422)
        for each in wanted.filters:
            _check_filter(each.filter)
        await self._kept.write(wanted)
        return wanted


def _check_filter(text: str) -> None:
    try:
        parse(text, scope=FilterScope.TRAFFIC)
    except Fault as fault:
        fault.status = 422
        raise


class RecordShown(msgspec.Struct, frozen=True):
    """The record: where it is, how much room it takes, how many exchanges it has, and when the oldest came. `retention`
    is what is kept for how long; with `is_configured`, as the configuration says, because the page sets nothing."""

    place: str
    bytes: int
    exchanges: int
    oldest: float | None
    retention: RetentionSettings
    is_configured: bool


class RecordCalls:
    """The calls `GET` and `PUT /api/record`. `place` is where the record is, for a person."""

    def __init__(self, retention: Retention, place: str) -> None:
        self._retention, self._place = retention, place

    async def read(self) -> RecordShown:
        """The record as it is now."""
        store, clock = self._retention.store, self._retention.clock
        await store.settle()
        count, oldest = 0, None
        async for summary in read_summaries(store, parse(""), clock.now()):
            count, oldest = count + 1, summary.at
        size = (await store.prune()).bytes_left
        settings, is_configured = await self._retention.settings()
        return RecordShown(self._place, size, count, oldest, settings, is_configured)

    async def replace(self, receive: Receive) -> RecordShown:
        """Keep things for so long from now on; what is older goes at once."""
        hint = 'Send {"days": 30, "megabytes": 500, "rules": [{"filter": "session:demo", "days": 1}]}; 0 is no limit.'
        wanted = await read_body(receive, RetentionSettings, hint=hint)
        for rule in wanted.rules:
            _check_filter(rule.filter)
        await self._retention.set(wanted)
        return await self.read()
