"""What a user sets on the page and the server stores: saved filters of the traffic list, retention, and raised caps.

All of it is in the record or in logs beside it, so that every browser, every port and every replica that shares the
record has it, which the storage of one browser could not do.
"""

from collections.abc import Callable
from typing import Annotated

import msgspec

from sightline.catalog.problem import quote_word
from sightline.errors import Code, Fault
from sightline.exchange.caps import Caps
from sightline.exchange.recording.records import Retention, RetentionSettings, read_summaries
from sightline.filters.fields import FilterScope
from sightline.filters.parsing import parse
from sightline.settings import CapSettings
from sightline.store.store import Logbook, LoggedValue
from sightline.tokens.caps import (
    BILLION,
    BucketKey,
    CapUse,
    Unit,
    bucket_of,
    cap_words,
    limit_in,
    limit_of,
    share_of,
    unit_of,
    values_of,
)
from sightline.web.asgi import Receive
from sightline.web.bodies import read_body
from sightline.web.routes import ApiCall, Calls


class TrafficFilter(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A filter of the traffic list, and its unique name."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=60)]
    filter: Annotated[str, msgspec.Meta(min_length=1)]


class TrafficFilters(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All saved filters, in order."""

    filters: tuple[TrafficFilter, ...]


FILTERS_LOG = "page:filters"


class SavedTrafficFilters:
    """The calls `GET` and `PUT /api/filters`."""

    def __init__(self, logbook: Logbook, now: Callable[[], float]) -> None:
        self._kept = LoggedValue(logbook, FILTERS_LOG, TrafficFilters, now)

    async def read(self) -> TrafficFilters:
        return await self._kept.read() or TrafficFilters(())

    async def replace(self, receive: Receive) -> TrafficFilters:
        """Replace all saved filters. Raises a Fault if a name occurs twice or a filter is not valid."""
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
    """The record: where it is, its size, how many exchanges it has, and the time of the oldest. `retention` is what is
    kept for how long; with `is_configured`, it is that of the configuration, because the page sets nothing."""

    place: str
    bytes: int
    exchanges: int
    oldest: float | None
    retention: RetentionSettings
    is_configured: bool


class RecordCalls:
    """The calls `GET` and `PUT /api/record`. `place` tells the user where the record is."""

    def __init__(self, retention: Retention, place: str) -> None:
        self._retention, self._place = retention, place

    async def read(self) -> RecordShown:
        store, clock = self._retention.store, self._retention.clock
        await store.settle()
        count, oldest = 0, None
        async for summary in read_summaries(store, parse(""), clock.now()):
            count, oldest = count + 1, summary.at
        size = (await store.prune()).bytes_left
        settings, is_configured = await self._retention.settings()
        return RecordShown(self._place, size, count, oldest, settings, is_configured)

    async def replace(self, receive: Receive) -> RecordShown:
        """Set the retention; older exchanges are removed at once."""
        hint = 'Send {"days": 30, "megabytes": 500, "rules": [{"filter": "session:demo", "days": 1}]}; 0 is no limit.'
        wanted = await read_body(receive, RetentionSettings, hint=hint)
        for rule in wanted.rules:
            _check_filter(rule.filter)
        await self._retention.set(wanted)
        return await self.read()


class CapBucket(msgspec.Struct, frozen=True, kw_only=True):
    """One bucket of a cap: its counts for one set of `per` values in one window. Amounts are dollars or tokens."""

    label: str
    bucket: str
    period: str
    values: tuple[str, ...]
    spent: float
    reserved: float
    limit: float
    share: float
    is_current: bool


class CapShown(msgspec.Struct, frozen=True, kw_only=True):
    """A cap with its buckets, the fullest first."""

    name: str
    unit: Unit
    limit: float
    filter: str
    per: tuple[str, ...]
    window: str
    action: str
    buckets: tuple[CapBucket, ...]


class CapsShown(msgspec.Struct, frozen=True):
    """All caps."""

    caps: tuple[CapShown, ...] = ()


class RaiseWanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Raise the limit of a bucket. Without `bucket` and `period`, it is the current bucket of a cap without `per`."""

    name: str
    limit: Annotated[float, msgspec.Meta(gt=0, le=1e9)]
    bucket: str | None = None
    period: str | None = None


_MOST_BUCKETS = 200


async def list_caps(caps: Caps, now: float) -> CapsShown:
    """The caps with their counts."""
    await caps.wait_until_settled()
    uses = await caps.counts.uses()
    return CapsShown(tuple(_show(cap, uses, now) for cap in caps.settings))


def _show(cap: CapSettings, uses: list[CapUse], now: float) -> CapShown:
    unit, limit = unit_of(cap), limit_of(cap)
    current = bucket_of(cap, {}, now).period
    mine = [use for use in uses if (use.key.cap, use.key.unit) == (cap.name, unit)]
    mine.sort(key=lambda use: (use.key.period != current, -share_of(use, limit), use.key.bucket))
    return CapShown(
        name=cap.name,
        unit=unit,
        limit=_amount(unit, limit),
        filter=cap.filter,
        per=cap.per,
        window=cap.window,
        action=cap.action,
        buckets=tuple(_bucket(cap, use, is_current=use.key.period == current) for use in mine[:_MOST_BUCKETS]),
    )


def _bucket(cap: CapSettings, use: CapUse, *, is_current: bool) -> CapBucket:
    unit = use.key.unit
    return CapBucket(
        label=cap_words(use.key, cap.per),
        bucket=use.key.bucket,
        period=use.key.period,
        values=values_of(use.key),
        spent=_amount(unit, use.spent),
        reserved=_amount(unit, use.reserved),
        limit=_amount(unit, limit_in(use, limit_of(cap))),
        share=share_of(use, limit_of(cap)),
        is_current=is_current,
    )


def _amount(unit: Unit, amount: int) -> float:
    return amount / BILLION if unit == "dollars" else float(amount)


def cap_calls(caps: Caps | None) -> Calls:
    """The calls that list and raise caps; a server without caps lists none."""

    async def show(_call: ApiCall) -> CapsShown:
        return CapsShown() if caps is None else await list_caps(caps, caps.now())

    async def raise_cap(call: ApiCall) -> CapsShown:
        wanted = await read_body(call.receive, RaiseWanted)
        settings = () if caps is None else caps.settings
        cap = next((each for each in settings if each.name == wanted.name), None)
        if caps is None or cap is None:
            hint = "GET /api/caps lists them."
            raise Fault(Code.USAGE, f"there is no cap {quote_word(wanted.name)}", hint=hint, status=404)
        key = bucket_of(cap, {}, caps.now())
        if cap.per and wanted.bucket is None:
            hint = "Name the bucket as GET /api/caps lists it."
            raise Fault(Code.INVALID_REQUEST, f"the cap {cap.name} is per {', '.join(cap.per)}", hint=hint, status=422)
        bucket = key.bucket if wanted.bucket is None else wanted.bucket
        period = key.period if wanted.period is None else wanted.period
        key = BucketKey(cap.name, key.unit, bucket, period)
        if key not in {use.key for use in await caps.counts.uses()} and (cap.per or wanted.period is not None):
            hint = "GET /api/caps lists what is counted."
            raise Fault(Code.USAGE, f"nothing is counted in this bucket of the cap {cap.name}", hint=hint, status=404)
        limit = round(wanted.limit * BILLION) if key.unit == "dollars" else round(wanted.limit)
        await caps.counts.raise_limit(key, limit)
        return await list_caps(caps, caps.now())

    return {"caps": {"GET": show, "PUT": raise_cap}}
