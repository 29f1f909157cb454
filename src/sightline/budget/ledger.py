"""What has been used of each provider's limits, and when the next request can go.

Two sources: own counts of the last minute and the last day, and what the provider's headers said. Where the provider
has spoken lately, it knows better, because others may use the same account.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple, TypeAlias

import msgspec

from sightline.budget.rate_headers import DAY, MINUTE, Allowance, Counted, allowances, needed, retry_after
from sightline.budget.window import Metric, SlidingWindow
from sightline.catalog.facts import Facts
from sightline.model.json import Json

Reason: TypeAlias = Literal["", "used_up", "told", "asked", "too_large"]
LimitName: TypeAlias = Literal["", "rpm", "tpm", "rpd", "tpd", "retry_after"] | Counted

MOST_ACCOUNTS = 1000
_MINUTE_STEP = 1.0
_DAY_STEP = 300.0
_MOST_OBSERVATIONS = 32
_BY_TOKEN = ("tokens", "input_tokens")
_Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0)]


class Limits(NamedTuple):
    """Requests and tokens by minute and day; None is not known."""

    rpm: int | None = None
    tpm: int | None = None
    rpd: int | None = None
    tpd: int | None = None


@dataclass(frozen=True, slots=True)
class Wait:
    """How long until a request can go, and why not now.

    `used_up` is by own count, `told` by the provider's numbers, `asked` for by its `Retry-After`; a request that is
    `too_large` for the rate by itself never can. `limit` names what stands in the way, `allowed` how much it allows.
    """

    seconds: float = 0.0
    reason: Reason = ""
    limit: LimitName = ""
    allowed: float | None = None

    @property
    def is_over(self) -> bool:
        """Whether the request can go now."""
        return self.seconds <= 0

    @property
    def is_endless(self) -> bool:
        """Whether it can never go."""
        return math.isinf(self.seconds)


READY = Wait()


@dataclass(frozen=True, slots=True)
class Sent:
    """One request that was counted, so that its estimate can be replaced by what it really took."""

    provider: str
    model: str
    tokens: int
    at: float


class Observation(msgspec.Struct, forbid_unknown_fields=True):
    """An allowance, when it was told, and what has been sent since."""

    allowance: Allowance
    at: float
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
        need = needed(told.counted, tokens)
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
    latest: float
    minute: list[tuple[float, _Count, _Count]]
    day: list[tuple[float, _Count, _Count]]
    observations: list[Observation]
    quiet_until: float = 0.0


class LedgerState(msgspec.Struct, forbid_unknown_fields=True):
    """A ledger, to be kept."""

    version: Literal[1]
    accounts: list[AccountState]


class _Account:
    def __init__(self) -> None:
        self.latest = 0.0
        self.minute = SlidingWindow(MINUTE, _MINUTE_STEP)
        self.day = SlidingWindow(DAY, _DAY_STEP)
        self.observations: dict[tuple[Counted, float | None], Observation] = {}
        self.quiet_until = 0.0

    def moved_to(self, now: float) -> None:
        """Time has come to this point. A clock that was set back does not keep what it had counted for longer."""
        back = self.latest - now
        self.latest = now
        if back <= 0:
            return
        self.minute.shifted(back)
        self.day.shifted(back)
        self.quiet_until -= back
        for seen in self.observations.values():
            seen.at -= back

    def observe(self, seen: Observation) -> None:
        key = seen.allowance.counted, seen.allowance.window
        self.observations.pop(key, None)
        self.observations[key] = seen
        if len(self.observations) > _MOST_OBSERVATIONS:
            del self.observations[next(iter(self.observations))]

    def limits(self, facts: Facts | None) -> Limits:
        known = Limits(facts.rpm, facts.tpm, facts.rpd, facts.tpd) if facts else Limits()
        told = {
            (seen.allowance.counted, seen.allowance.window): int(seen.allowance.limit)
            for seen in self.observations.values()
            if seen.allowance.limit is not None
        }
        return Limits(
            told.get(("requests", MINUTE), known.rpm),
            told.get(("tokens", MINUTE), known.tpm),
            told.get(("requests", DAY), known.rpd),
            told.get(("tokens", DAY), known.tpd),
        )

    def told_lately(self, metric: Metric, window: float, now: float) -> bool:
        """Whether the provider's own number of what is left still holds for this limit."""
        seen = self.observations.get((metric, window))
        return seen is not None and seen.allowance.remaining is not None and now < seen.ends


class Ledger:
    """Use and limits by provider and model. Times are seconds since 1970; a clock that goes back is borne."""

    def __init__(self) -> None:
        self._accounts: dict[tuple[str, str], _Account] = {}

    def sent(self, provider: str, model: str, tokens: int, at: float) -> Sent:
        """A request went out; `tokens` is what it is thought to take."""
        account = self._account(provider, model, at)
        account.minute.add(at, 1, tokens)
        account.day.add(at, 1, tokens)
        for seen in account.observations.values():
            seen.requests += 1
            seen.tokens += tokens
        return Sent(provider, model, tokens, at)

    def settled(self, sent: Sent, tokens: int, at: float) -> Sent:
        """It took so many tokens, in place of what was thought. What is returned can be settled again."""
        account = self._account(sent.provider, sent.model, at)
        more = tokens - sent.tokens
        account.minute.correct(sent.at, more)
        account.day.correct(sent.at, more)
        for seen in account.observations.values():
            if seen.at <= sent.at:  # what was told later has the provider's own count of it
                seen.tokens = max(0, seen.tokens + more)
        return Sent(sent.provider, sent.model, tokens, sent.at)

    def observed(self, provider: str, model: str, headers: Mapping[str, str], at: float) -> None:
        """These headers came with an answer. Their names are in lower case."""
        account = self._account(provider, model, at)
        for allowance in allowances(headers, at):
            account.observe(Observation(allowance, at))
        pause = retry_after(headers, at)
        if pause is not None:
            account.quiet_until = max(account.quiet_until, at + pause)

    def limits(self, provider: str, model: str, facts: Facts | None = None) -> Limits:
        """What is allowed: as the provider told it, else as the catalogue has it."""
        return self._accounts.get((provider, model), _Account()).limits(facts)

    def wait(self, provider: str, model: str, tokens: int, at: float, facts: Facts | None = None) -> Wait:
        """How long a request of this size must wait; of several limits that stand in its way, for the last to go."""
        account = self._account(provider, model, at)
        limits = account.limits(facts)
        sizes: tuple[tuple[LimitName, int | None], ...] = (("tpm", limits.tpm), ("tpd", limits.tpd))
        for name, most in sizes:
            if most is not None and tokens > most:
                return Wait(math.inf, "too_large", name, most)
        waits = [Wait(account.quiet_until - at, "asked", "retry_after"), *_own_counts(account, limits, tokens, at)]
        waits += [
            Wait(seen.wait(at, tokens), "told", seen.allowance.counted, seen.allowance.limit)
            for seen in account.observations.values()
        ]
        longest = max(waits, key=lambda wait: wait.seconds)
        return READY if longest.is_over else longest

    def used(self, provider: str, model: str, at: float) -> Limits:
        """Own counts of the last minute and the last day, in the order of the limits."""
        account = self._account(provider, model, at)
        return Limits(
            account.minute.used(at, "requests"),
            account.minute.used(at, "tokens"),
            account.day.used(at, "requests"),
            account.day.used(at, "tokens"),
        )

    def snapshot(self) -> Json:
        """All of it as JSON, to be kept until the next run: the day's count outlives the process."""
        kept = [
            AccountState(
                provider,
                model,
                account.latest,
                account.minute.slots(),
                account.day.slots(),
                list(account.observations.values()),
                account.quiet_until,
            )
            for (provider, model), account in self._accounts.items()
        ]
        written: Json = msgspec.to_builtins(LedgerState(1, kept))
        return written

    @classmethod
    def restored(cls, snapshot: Json, now: float) -> "Ledger":
        """The ledger that was kept. Anything else than a snapshot is a `msgspec.ValidationError`."""
        ledger = cls()
        for state in msgspec.convert(snapshot, LedgerState).accounts[-MOST_ACCOUNTS:]:
            account = ledger._account(state.provider, state.model, state.latest)
            for window, slots in ((account.minute, state.minute), (account.day, state.day)):
                for start, requests, tokens in sorted(slots):
                    window.add(start, requests, tokens)
            for seen in state.observations:
                account.observe(seen)
            account.quiet_until = state.quiet_until
            account.moved_to(now)
        return ledger

    def _account(self, provider: str, model: str, now: float) -> _Account:
        key = provider, model
        account = self._accounts.pop(key, None) or _Account()
        self._accounts[key] = account  # at the end: the one at the front was left alone for longest
        if len(self._accounts) > MOST_ACCOUNTS:
            del self._accounts[next(iter(self._accounts))]
        account.moved_to(now)
        return account


def _own_counts(account: _Account, limits: Limits, tokens: int, now: float) -> list[Wait]:
    waits: list[Wait] = []
    rows: tuple[tuple[LimitName, SlidingWindow, float, Metric, int, int | None], ...] = (
        ("rpm", account.minute, MINUTE, "requests", 1, limits.rpm),
        ("tpm", account.minute, MINUTE, "tokens", tokens, limits.tpm),
        ("rpd", account.day, DAY, "requests", 1, limits.rpd),
        ("tpd", account.day, DAY, "tokens", tokens, limits.tpd),
    )
    for name, window, span, metric, need, allowed in rows:
        if allowed is not None and not account.told_lately(metric, span, now):
            waits.append(Wait(window.wait(now, metric, need, allowed), "used_up", name, allowed))
    return waits
