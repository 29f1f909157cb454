"""The account of one model of one provider: what was used in its windows, and what the provider's headers reported.

Usage is counted in time slots, so that memory stays bounded however much is sent.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from operator import itemgetter
from typing import Annotated, Literal, NamedTuple, Self, TypeAlias

import msgspec

from sightline.catalog.facts import Facts
from sightline.tokens.rate_headers import DAY, MINUTE, Allowance, Counted, allowances, amount_needed
from sightline.wire.cache import BoundedCache

Metric: TypeAlias = Literal["requests", "tokens"]
RateName: TypeAlias = Literal["rpm", "tpm", "rpd", "tpd"]
RATES: tuple[tuple[RateName, Metric, float], ...] = (
    ("rpm", "requests", MINUTE),
    ("tpm", "tokens", MINUTE),
    ("rpd", "requests", DAY),
    ("tpd", "tokens", DAY),
)
"""Each limit, what it counts and in how many seconds; in the order of `RateLimits`."""
Count: TypeAlias = tuple[float, int, int]
_FIRST, _SECOND = itemgetter(0), itemgetter(1)


@dataclass(slots=True)
class Slot:
    """What was used in a short time from `start` on, and how much of it is already saved."""

    start: float
    requests: int
    tokens: int
    kept_requests: int = 0
    kept_tokens: int = 0

    def count(self, metric: Metric) -> int:
        """The count of this metric."""
        return self.requests if metric == "requests" else self.tokens


class SlidingWindow:
    """Requests and tokens of the last `span` seconds, with a resolution of `step` seconds.

    When in doubt, usage counts as still inside: a slot expires when its last moment does. Times must not go back.
    """

    def __init__(self, span: float, step: float) -> None:
        self._span = span
        self._step = step
        self._slots: deque[Slot] = deque()
        self._requests = 0
        self._tokens = 0

    def add(self, at: float, requests: int, tokens: int) -> None:
        """Add usage."""
        slots = self._slots
        if not slots or at >= slots[-1].start + self._step:
            self._expire(at)
            slots.append(Slot(at, 0, 0))
        slots[-1].requests += requests
        slots[-1].tokens += tokens
        self._requests += requests
        self._tokens += tokens

    def add_all(self, counts: dict[float, list[int]]) -> None:
        """Add requests and tokens by their times, in ascending order."""
        last = self._slots[-1] if self._slots else None
        if last is not None and counts and next(reversed(counts)) < last.start + self._step:  # as nearly always
            last.requests += (requests := sum(map(_FIRST, counts.values())))
            last.tokens += (tokens := sum(map(_SECOND, counts.values())))
            self._requests += requests
            self._tokens += tokens
            return
        for at, (requests, tokens) in counts.items():
            self.add(at, requests, tokens)

    def correct(self, at: float, tokens: int, *, requests: int = 0) -> None:
        """Change what was counted at that time by these amounts; no effect if that time has left the window."""
        for slot in reversed(self._slots):
            if slot.start <= at:
                if at < slot.start + self._step:
                    self._change(slot, requests, tokens)
                return

    def usage(self, at: float, metric: Metric) -> int:
        """The usage of the window that ends now."""
        self._expire(at)
        return self._requests if metric == "requests" else self._tokens

    def wait(self, at: float, metric: Metric, need: int, limit: int) -> float:
        """The seconds until `need` more fit below the limit; if `need` exceeds the limit, until the window is empty."""
        excess = self.usage(at, metric) + need - limit
        seconds = 0.0
        for slot in self._slots:
            if excess <= 0:
                break
            excess -= slot.count(metric)
            seconds = self._end(slot) - at
        return seconds

    def since(self, at: float) -> tuple[int, int]:
        """Requests and tokens of the slots that began after this time."""
        late = [slot for slot in self._slots if slot.start > at]
        return sum(slot.requests for slot in late), sum(slot.tokens for slot in late)

    def news(self) -> list[Count]:
        """The changes since the last save: time, requests, tokens."""
        changes = ((s.start, s.requests - s.kept_requests, s.tokens - s.kept_tokens) for s in self._slots)
        return [change for change in changes if change[1] or change[2]]

    def mark_saved(self) -> None:
        """Mark everything as saved."""
        for slot in self._slots:
            slot.kept_requests, slot.kept_tokens = slot.requests, slot.tokens

    def merge(self, news: list[Count], ahead: float) -> None:
        """Add the counts of another window, whose times are `ahead` seconds behind ours."""
        merged: list[Slot] = []
        moved = [(start + ahead, requests, tokens) for start, requests, tokens in news]
        for start, requests, tokens in sorted([*self.slots(), *moved]):
            if not merged or start >= merged[-1].start + self._step:
                merged.append(Slot(start, 0, 0))
            merged[-1].requests += requests
            merged[-1].tokens += tokens
        self._slots.clear()
        self._requests = self._tokens = 0
        for slot in merged:
            self._slots.append(Slot(slot.start, 0, 0))
            self._change(self._slots[-1], slot.requests, slot.tokens)

    def slots(self) -> list[Count]:
        """All counts, to be stored."""
        return [(slot.start, slot.requests, slot.tokens) for slot in self._slots]

    def _change(self, slot: Slot, requests: int, tokens: int) -> None:
        if requests < 0 or tokens < 0:
            requests, tokens = max(requests, -slot.requests), max(tokens, -slot.tokens)
        slot.requests += requests
        slot.tokens += tokens
        self._requests += requests
        self._tokens += tokens

    def _end(self, slot: Slot) -> float:
        return slot.start + self._step + self._span

    def _expire(self, at: float) -> None:
        while self._slots and self._end(self._slots[0]) <= at:
            gone = self._slots.popleft()
            self._requests -= gone.requests
            self._tokens -= gone.tokens


_Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=10**15)]
_Time: TypeAlias = Annotated[float, msgspec.Meta(ge=-1e12, le=1e12)]


class RateLimits(NamedTuple):
    """Limits of requests and tokens per minute and per day; None if unknown."""

    rpm: int | None = None
    tpm: int | None = None
    rpd: int | None = None
    tpd: int | None = None


class AllowanceObservation(msgspec.Struct, forbid_unknown_fields=True):
    """An allowance, when it was reported, and what has been sent since."""

    allowance: Allowance
    at: _Time
    requests: _Count = 0
    tokens: _Count = 0

    @property
    def ends(self) -> float:
        """When it expires, because the reported limit is full again."""
        reported = self.allowance
        return self.at + (reported.reset if reported.reset is not None else reported.window or MINUTE)

    def wait(self, now: float, tokens: int) -> float:
        """The seconds until a request of this size fits into what was left."""
        reported = self.allowance
        if reported.remaining is None or now >= self.ends:
            return 0.0
        need = amount_needed(reported.counted, tokens)
        if reported.limit is not None:
            need = min(need, int(reported.limit))
        is_by_token = reported.counted in ("tokens", "input_tokens")
        spent = self.requests if reported.counted == "requests" else self.tokens if is_by_token else 0
        rate = (
            (reported.limit - reported.remaining) / reported.reset
            if reported.refills and reported.limit and reported.reset
            else 0.0
        )
        left = reported.remaining - spent + rate * (now - self.at)
        if left > 0 and left >= need:
            return 0.0
        until_whole = self.ends - now
        return min(until_whole, (max(need, 1) - left) / rate) if rate > 0 else until_whole


class AccountState(msgspec.Struct, forbid_unknown_fields=True):
    """Everything known about one model of one provider, to be stored."""

    provider: str
    model: str
    latest: _Time
    minute: list[tuple[_Time, _Count, _Count]]
    day: list[tuple[_Time, _Count, _Count]]
    observations: list[AllowanceObservation]
    quiet_until: _Time = 0.0


_MOST_UNREAD = 32
_MOST_UNCOUNTED = 64


@dataclass(slots=True)
class _UnreadHeaders:
    """Headers of a response that have not been parsed yet, and what has been sent since."""

    names: tuple[bytes, ...]
    values: tuple[bytes, ...]
    reported: float
    """By the machine's clock."""
    at: float
    requests: int = 0
    tokens: int = 0


class Account:
    """The windows of a minute and a day, and the provider's latest report on each limit.

    All times are by the account's own clock, which stands still while the machine's clock is set back, so that what was
    counted keeps its age and can still be found.
    """

    def __init__(self) -> None:
        self._minute = SlidingWindow(MINUTE, step=1.0)
        self._day = SlidingWindow(DAY, step=300.0)
        self._uncounted: dict[float, list[int]] = {}
        """Requests and tokens that the windows do not have yet, by their time: most are added, and corrected, long
        before they are needed."""
        self._observations: BoundedCache[tuple[Counted, float | None], AllowanceObservation] = BoundedCache(32)
        self._unread: dict[tuple[bytes, ...], _UnreadHeaders] = {}
        """By the names of the headers: only the latest response with the same names matters."""
        self._reports: list[AllowanceObservation | _UnreadHeaders] = []
        """All observations and all unread headers."""
        self.quiet_until = 0.0
        self._latest = 0.0
        self._clock_offset = 0.0

    def time(self, at: float) -> float:
        """Set the time by the machine's clock, and return the account's own time."""
        if at < self._latest:
            self._clock_offset += self._latest - at
        self._latest = at
        return at + self._clock_offset

    def window(self, span: float) -> SlidingWindow:
        """The usage of the last minute or of the last day."""
        self._count_all()
        return self._minute if span == MINUTE else self._day

    def _count_all(self) -> None:
        self._minute.add_all(self._uncounted)
        self._day.add_all(self._uncounted)
        self._uncounted.clear()

    def add(self, at: float, tokens: int) -> float:
        """Add a request that was sent at this time by the machine's clock, and return the account's own time."""
        at, uncounted = self.time(at), self._uncounted
        if at not in uncounted:
            if len(uncounted) >= _MOST_UNCOUNTED:
                self._count_all()
            uncounted[at] = [1, tokens]
        else:
            uncounted[at][0] += 1
            uncounted[at][1] += tokens
        for seen in self._reports:
            seen.requests += 1
            seen.tokens += tokens
        return at

    def correct(self, at: float, tokens: int, *, requests: int = 0) -> None:
        """Change what was counted at that time by these amounts."""
        counts = self._uncounted.get(at)
        if counts is not None:
            if requests:
                counts[0] = max(0, counts[0] + requests)
            counts[1] = max(0, counts[1] + tokens)
        else:
            self._minute.correct(at, tokens, requests=requests)
            self._day.correct(at, tokens, requests=requests)
        for seen in self._reports:
            if seen.at <= at:  # a later report already includes it
                seen.requests = max(0, seen.requests + requests)
                seen.tokens = max(0, seen.tokens + tokens)

    def observe(self, seen: AllowanceObservation) -> None:
        self._observations.put((seen.allowance.counted, seen.allowance.window), seen)
        self._reports = [*self._observations.values(), *self._unread.values()]

    def keep_headers(self, names: tuple[bytes, ...], values: tuple[bytes, ...], reported: float) -> None:
        """Keep the headers of a response. They are parsed later, because parsing takes tens of microseconds, and most
        are never needed."""
        at, unread = self.time(reported), self._unread.get(names)
        if unread is not None:  # as nearly always
            unread.values, unread.reported, unread.at = values, reported, at
            unread.requests = unread.tokens = 0
            return
        self._unread[names] = unread = _UnreadHeaders(names, values, reported, at)
        self._reports.append(unread)
        if len(self._unread) > _MOST_UNREAD:
            self._read_headers()

    @property
    def observations(self) -> BoundedCache[tuple[Counted, float | None], AllowanceObservation]:
        """The latest report on each limit, by what it counts and its window."""
        if self._unread:
            self._read_headers()
        return self._observations

    def _read_headers(self) -> None:
        waiting, self._unread = sorted(self._unread.values(), key=lambda seen: seen.at), {}
        self._reports = list(self._observations.values())
        for seen in waiting:
            for allowance in allowances(lower_case(zip(seen.names, seen.values, strict=True)), seen.reported):
                self.observe(AllowanceObservation(allowance, seen.at, seen.requests, seen.tokens))

    def limits(self, facts: Facts | None) -> RateLimits:
        known = RateLimits(facts.rpm, facts.tpm, facts.rpd, facts.tpd) if facts else RateLimits()
        reported = {
            (seen.allowance.counted, seen.allowance.window): int(seen.allowance.limit)
            for seen in self.observations.values()
            if seen.allowance.limit is not None
        }
        return RateLimits(*(reported.get((metric, span), getattr(known, name)) for name, metric, span in RATES))

    def has_current_allowance(self, metric: Metric, window: float, now: float) -> bool:
        """Whether the provider's own number of what is left is still valid for this limit."""
        seen = self.observations.peek((metric, window))
        return seen is not None and seen.allowance.remaining is not None and now < seen.ends

    def mark_saved(self) -> None:
        """Mark everything as saved."""
        self._count_all()
        self._minute.mark_saved()
        self._day.mark_saved()

    def merge(self, other: "Account") -> None:
        """Add the unsaved counts of another account of the same model. Both must have been set to the same time."""
        ahead = self._clock_offset - other._clock_offset
        for account in (self, other):
            account._count_all()
        self._minute.merge(other._minute.news(), ahead)
        self._day.merge(other._day.news(), ahead)
        self.quiet_until = max(self.quiet_until, other.quiet_until + ahead)
        reported = [msgspec.structs.replace(seen, at=seen.at + ahead) for seen in other.observations.values()]
        for seen in sorted([*self.observations.values(), *reported], key=lambda seen: seen.at):
            self.observe(seen)
        for seen in self.observations.values():
            for requests, tokens in (self._minute.since(seen.at), self._day.since(seen.at)):
                seen.requests, seen.tokens = max(seen.requests, requests), max(seen.tokens, tokens)

    def state(self, provider: str, model: str) -> AccountState:
        """The whole account by the machine's clock, to be stored."""
        self._count_all()
        back = self._clock_offset
        return AccountState(
            provider,
            model,
            self._latest,
            [(start - back, requests, tokens) for start, requests, tokens in self._minute.slots()],
            [(start - back, requests, tokens) for start, requests, tokens in self._day.slots()],
            [msgspec.structs.replace(seen, at=seen.at - back) for seen in self.observations.values()],
            self.quiet_until - back,
        )

    @classmethod
    def from_state(cls, state: AccountState) -> Self:
        """Restore a stored account."""
        account = cls()
        account.time(state.latest)
        account._minute.merge(state.minute, 0.0)
        account._day.merge(state.day, 0.0)
        for seen in state.observations:
            account.observe(seen)
        account.quiet_until = state.quiet_until
        account.mark_saved()
        return account


def lower_case(headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """The first value of each header, by its name in lower case."""
    lowered: dict[str, str] = {}
    for name, value in headers:
        lowered.setdefault(name.decode("latin-1").lower(), value.decode("latin-1"))
    return lowered
