"""What has been used of each provider's limits, and when the next request can be sent.

There are two sources: our own counts of the last minute and the last day, and the provider's headers. A recent report
of the provider takes precedence, because others may use the same account.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, Self, TypeAlias

import msgspec

from sightline.catalog.facts import Facts
from sightline.model.json import Json
from sightline.tokens.account import RATES, Account, AccountState, AllowanceObservation, RateLimits, RateName
from sightline.tokens.estimate import is_possible
from sightline.tokens.rate_headers import Counted, allowances, amount_needed
from sightline.wire.cache import BoundedCache
from sightline.wire.retry_after import retry_after

Reason: TypeAlias = Literal["", "used_up", "reported", "asked", "too_large"]
LimitName: TypeAlias = Literal["", "retry_after"] | RateName | Counted

MOST_ACCOUNTS = 1000


@dataclass(frozen=True, slots=True)
class Wait:
    """How long until a request can be sent, and why not now.

    `used_up` is by our own count, `reported` by the provider's numbers, `asked` by its `Retry-After`; a request that is
    `too_large` for the rate by itself can never be sent. `limit` is the exceeded limit, `allowed` how much it allows.
    """

    seconds: float = 0.0
    reason: Reason = ""
    limit: LimitName = ""
    allowed: float | None = None

    @property
    def is_over(self) -> bool:
        """Whether the request can be sent now."""
        return self.seconds <= 0

    @property
    def is_endless(self) -> bool:
        """Whether the request can never be sent."""
        return math.isinf(self.seconds)


READY = Wait()


class SentRequest(msgspec.Struct, frozen=True):
    """One request that was counted, so that its estimate can be replaced by its actual usage.

    `at` is by the account's own clock, which is never set back. `account` is where it was counted, if that is in this
    ledger.
    """

    provider: str
    model: str
    tokens: int
    at: float
    account: Account | None = None


class LedgerState(msgspec.Struct, forbid_unknown_fields=True):
    """The stored form of a ledger."""

    version: Literal[1]
    accounts: list[AccountState]


class Ledger:
    """Usage and limits by provider and model. Times are seconds since 1970; the clock may go back."""

    def __init__(self) -> None:
        self._accounts: BoundedCache[tuple[str, str], Account] = BoundedCache(MOST_ACCOUNTS)
        self._latest: tuple[str, str, Account | None] = ("", "", None)
        self.has_news = False
        """Whether anything was counted or reported since it was saved."""
        self.catch_up: Callable[[], None] | None = None
        """Called before a limit is read, if other processes count for this ledger: it adds what they have sent."""

    def add_request(self, provider: str, model: str, tokens: int, at: float) -> SentRequest:
        """Count a request that is sent; `tokens` is its estimate."""
        account = self._find(provider, model)
        self.has_news = True
        return SentRequest(provider, model, tokens, account.add(at, tokens), account)

    def settle(self, sent: SentRequest, tokens: int, at: float) -> SentRequest:
        """Replace the estimate of a request by its actual tokens. The returned request can be settled again.

        An absurd number changes nothing.
        """
        if not is_possible(tokens, sent.tokens):
            return sent
        account = sent.account or self._account(sent.provider, sent.model, at)[0]
        account.correct(sent.at, tokens - sent.tokens)
        self.has_news = True
        return SentRequest(sent.provider, sent.model, tokens, sent.at, account)

    def unsent(self, sent: SentRequest, at: float) -> None:
        """Remove a request that was never sent: neither the request nor its tokens were used."""
        account, _ = self._account(sent.provider, sent.model, at)
        account.correct(sent.at, -sent.tokens, requests=-1)
        self.has_news = True

    def observe_headers(self, provider: str, model: str, headers: Mapping[str, str], at: float) -> None:
        """Apply the headers of a response. Their names are in lower case."""
        account, now = self._account(provider, model, at)
        for allowance in allowances(headers, at):
            account.observe(AllowanceObservation(allowance, now))
        pause = retry_after(headers, at)
        if pause is not None:
            account.quiet_until = max(account.quiet_until, now + pause)
        self.has_news = True

    def keep_headers(self, sent: SentRequest, names: tuple[bytes, ...], values: tuple[bytes, ...], at: float) -> None:
        """Keep the headers of its response, which asks for no pause; they are parsed when a limit is needed."""
        account = sent.account or self._account(sent.provider, sent.model, at)[0]
        account.keep_headers(names, values, at)
        self.has_news = True

    def limits(self, provider: str, model: str, facts: Facts | None = None) -> RateLimits:
        """The limits that the provider reported, otherwise those in the catalogue."""
        if self.catch_up is not None:
            self.catch_up()
        return (self._accounts.peek((provider, model)) or Account()).limits(facts)

    def wait(self, provider: str, model: str, tokens: int, at: float, facts: Facts | None = None) -> Wait:
        """How long a request of this size must wait; if several limits are exceeded, the longest wait."""
        if self.catch_up is not None:
            self.catch_up()
        account, now = self._account(provider, model, at)
        waits = [Wait(account.quiet_until - now, "asked", "retry_after")]
        for allowed, (name, metric, span) in zip(account.limits(facts), RATES, strict=True):
            if allowed is None:
                continue
            need = amount_needed(metric, tokens)
            if metric == "tokens" and need > allowed:
                return Wait(math.inf, "too_large", name, allowed)
            if not account.has_current_allowance(metric, span, now):
                waits.append(Wait(account.window(span).wait(now, metric, need, allowed), "used_up", name, allowed))
        waits += [
            Wait(seen.wait(now, tokens), "reported", seen.allowance.counted, seen.allowance.limit)
            for seen in account.observations.values()
        ]
        longest = max(waits, key=lambda wait: wait.seconds)
        return READY if longest.is_over else longest

    def usage(self, provider: str, model: str, at: float) -> RateLimits:
        """Our own counts of the last minute and the last day, in the order of the limits."""
        if self.catch_up is not None:
            self.catch_up()
        account, now = self._account(provider, model, at)
        return RateLimits(*(account.window(span).usage(now, metric) for _, metric, span in RATES))

    def mark_saved(self) -> None:
        """All of it is kept now, and is no news any more."""
        self.has_news = False
        for account in self._accounts.values():
            account.mark_saved()

    def merge(self, other: "Ledger", at: float) -> None:
        """Add the unsaved counts of another ledger, each at its own time."""
        for (provider, model), theirs in other._accounts.items():
            theirs.time(at)
            self._account(provider, model, at)[0].merge(theirs)

    def snapshot(self) -> Json:
        """The whole ledger as JSON, to be stored for the next run: the day's count outlives the process."""
        kept = [account.state(provider, model) for (provider, model), account in self._accounts.items()]
        written: Json = msgspec.to_builtins(LedgerState(1, kept))
        return written

    @classmethod
    def from_snapshot(cls, snapshot: Json, now: float) -> Self:
        """Restore a stored ledger. Raises `msgspec.ValidationError` for anything else."""
        ledger = cls()
        for state in msgspec.convert(snapshot, LedgerState).accounts:
            account = Account.from_state(state)
            account.time(now)
            ledger._accounts.put((state.provider, state.model), account)
        return ledger

    def _account(self, provider: str, model: str, at: float) -> tuple[Account, float]:
        """The account, and this time by its own clock."""
        account = self._find(provider, model)
        return account, account.time(at)

    def _find(self, provider: str, model: str) -> Account:
        name, asked, account = self._latest
        if name == provider and asked == model and account is not None:
            return account  # another step of the same request
        key = provider, model
        account = self._accounts.get(key)
        if account is None:
            account = Account()
            self._accounts.put(key, account)
        self._latest = provider, model, account
        return account
