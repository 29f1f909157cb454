"""All that is known of one model of one provider: what was used of it, what was told of it, and by which clock."""

from typing import Annotated, NamedTuple, Self, TypeAlias

import msgspec

from sightline.catalog.facts import Facts
from sightline.tokens.rate_headers import DAY, MINUTE, Allowance, Counted, amount_needed
from sightline.tokens.window import Metric, SlidingWindow

_MINUTE_STEP = 1.0
_DAY_STEP = 300.0
_MOST_OBSERVATIONS = 32
_BY_TOKEN = ("tokens", "input_tokens")
_Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=10**15)]
_Time: TypeAlias = Annotated[float, msgspec.Meta(ge=-1e12, le=1e12)]


class RateLimits(NamedTuple):
    """Requests and tokens by minute and day; None is not known."""

    rpm: int | None = None
    tpm: int | None = None
    rpd: int | None = None
    tpd: int | None = None


class AllowanceObservation(msgspec.Struct, forbid_unknown_fields=True):
    """An allowance, when it was told, and what has been sent since."""

    allowance: Allowance
    at: _Time
    requests: _Count = 0
    tokens: _Count = 0

    @property
    def ends(self) -> float:
        """When it no longer says anything: what it told of is whole again."""
        told = self.allowance
        return self.at + (told.reset if told.reset is not None else told.window or MINUTE)

    def wait(self, now: float, tokens: int) -> float:
        """The seconds until a request of this size fits into what was left."""
        told = self.allowance
        if told.remaining is None or now >= self.ends:
            return 0.0
        need = amount_needed(told.counted, tokens)
        if told.limit is not None:
            need = min(need, int(told.limit))
        spent = self.requests if told.counted == "requests" else self.tokens if told.counted in _BY_TOKEN else 0
        rate = (told.limit - told.remaining) / told.reset if told.refills and told.limit and told.reset else 0.0
        left = told.remaining - spent + rate * (now - self.at)
        if left > 0 and left >= need:
            return 0.0
        until_whole = self.ends - now
        return min(until_whole, (max(need, 1) - left) / rate) if rate > 0 else until_whole


class AccountState(msgspec.Struct, forbid_unknown_fields=True):
    """All that is known of one model of one provider, to be kept."""

    provider: str
    model: str
    latest: _Time
    minute: list[tuple[_Time, _Count, _Count]]
    day: list[tuple[_Time, _Count, _Count]]
    observations: list[AllowanceObservation]
    quiet_until: _Time = 0.0


class Account:
    """The windows of a minute and a day, and the provider's latest words on each limit.

    All its times are by a clock of its own, which stands still while the machine's is set back: so what was counted
    ages from where it was, and is found again.
    """

    def __init__(self) -> None:
        self.minute = SlidingWindow(MINUTE, _MINUTE_STEP)
        self.day = SlidingWindow(DAY, _DAY_STEP)
        self.observations: dict[tuple[Counted, float | None], AllowanceObservation] = {}
        self.quiet_until = 0.0
        self._latest = 0.0
        self._ahead = 0.0

    def time(self, at: float) -> float:
        """It is this time on the machine's clock; the account's own time."""
        self._ahead += max(0.0, self._latest - at)
        self._latest = at
        return at + self._ahead

    def add(self, at: float, tokens: int) -> None:
        """A request went out."""
        self.minute.add(at, 1, tokens)
        self.day.add(at, 1, tokens)
        for seen in self.observations.values():
            seen.requests += 1
            seen.tokens += tokens

    def correct(self, at: float, tokens: int, *, requests: int = 0) -> None:
        """What went out at that time is so much more."""
        self.minute.correct(at, tokens, requests=requests)
        self.day.correct(at, tokens, requests=requests)
        for seen in self.observations.values():
            if seen.at <= at:  # what was told later has the provider's own count of it
                seen.requests = max(0, seen.requests + requests)
                seen.tokens = max(0, seen.tokens + tokens)

    def observe(self, seen: AllowanceObservation) -> None:
        key = seen.allowance.counted, seen.allowance.window
        self.observations.pop(key, None)
        self.observations[key] = seen
        if len(self.observations) > _MOST_OBSERVATIONS:
            del self.observations[next(iter(self.observations))]

    def limits(self, facts: Facts | None) -> RateLimits:
        known = RateLimits(facts.rpm, facts.tpm, facts.rpd, facts.tpd) if facts else RateLimits()
        told = {
            (seen.allowance.counted, seen.allowance.window): int(seen.allowance.limit)
            for seen in self.observations.values()
            if seen.allowance.limit is not None
        }
        return RateLimits(
            told.get(("requests", MINUTE), known.rpm),
            told.get(("tokens", MINUTE), known.tpm),
            told.get(("requests", DAY), known.rpd),
            told.get(("tokens", DAY), known.tpd),
        )

    def has_current_allowance(self, metric: Metric, window: float, now: float) -> bool:
        """Whether the provider's own number of what is left still holds for this limit."""
        seen = self.observations.get((metric, window))
        return seen is not None and seen.allowance.remaining is not None and now < seen.ends

    def mark_saved(self) -> None:
        """All of it is kept now."""
        self.minute.mark_saved()
        self.day.mark_saved()

    def merge(self, other: "Account") -> None:
        """Take in the news of another account of the same model; both have come to the same time."""
        ahead = self._ahead - other._ahead
        self.minute.merge(other.minute.news(), ahead)
        self.day.merge(other.day.news(), ahead)
        self.quiet_until = max(self.quiet_until, other.quiet_until + ahead)
        told = [msgspec.structs.replace(seen, at=seen.at + ahead) for seen in other.observations.values()]
        for seen in sorted([*self.observations.values(), *told], key=lambda seen: seen.at):
            self.observe(seen)
        for seen in self.observations.values():
            for requests, tokens in (self.minute.since(seen.at), self.day.since(seen.at)):
                seen.requests, seen.tokens = max(seen.requests, requests), max(seen.tokens, tokens)

    def state(self, provider: str, model: str) -> AccountState:
        """All of it by the machine's clock, to be kept."""
        back = self._ahead
        return AccountState(
            provider,
            model,
            self._latest,
            [(start - back, requests, tokens) for start, requests, tokens in self.minute.slots()],
            [(start - back, requests, tokens) for start, requests, tokens in self.day.slots()],
            [msgspec.structs.replace(seen, at=seen.at - back) for seen in self.observations.values()],
            self.quiet_until - back,
        )

    @classmethod
    def from_state(cls, state: AccountState) -> Self:
        """The account that was kept."""
        account = cls()
        account.time(state.latest)
        account.minute.merge(state.minute, 0.0)
        account.day.merge(state.day, 0.0)
        for seen in state.observations:
            account.observe(seen)
        account.quiet_until = state.quiet_until
        account.mark_saved()
        return account
