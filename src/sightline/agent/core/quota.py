"""When a send can go, by what was used of the account and what its provider allows."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from sightline.catalog.facts import Facts
from sightline.tokens.account import RateLimits
from sightline.tokens.ledger import Ledger, LimitName, Wait

_NAMES: Final[dict[LimitName, str]] = {
    "rpm": "requests per minute",
    "tpm": "tokens per minute",
    "rpd": "requests per day",
    "tpd": "tokens per day",
    "retry_after": "the pause that the provider asked for",
    "requests": "requests",
    "tokens": "tokens",
    "input_tokens": "input tokens",
    "output_tokens": "output tokens",
}


@dataclass(frozen=True, slots=True)
class Quota:
    """`can_go_at` is the time of day at which the send can go, None where it never can. `line` says so to a person."""

    wait: Wait
    can_go_at: float | None
    used: RateLimits
    limits: RateLimits
    line: str

    @property
    def can_wait(self) -> bool:
        """Whether waiting is worth offering."""
        return not self.wait.is_over and self.can_go_at is not None


def quota_of(ledger: Ledger, provider: str, model: str, tokens: int, now: float, facts: Facts | None = None) -> Quota:
    """Whether a send of this size can go now, else when."""
    wait = ledger.wait(provider, model, tokens, now, facts)
    return Quota(
        wait,
        None if wait.is_endless else now + max(0.0, wait.seconds),
        ledger.usage(provider, model, now),
        ledger.limits(provider, model, facts),
        line_of(wait, tokens),
    )


def waiting_by(
    ledger: Ledger, provider: str, model: str, clock: Callable[[], float], facts: Facts | None = None
) -> Callable[[int], Wait]:
    """What `sending` asks before each attempt."""
    return lambda tokens: ledger.wait(provider, model, tokens, clock(), facts)


def line_of(wait: Wait, tokens: int) -> str:
    """The text about a wait for a person; empty if there is none."""
    if wait.is_over:
        return ""
    what = _NAMES.get(wait.limit, wait.limit)
    allowed = "" if wait.allowed is None else f" ({wait.allowed:,.0f})"
    if wait.is_endless:
        return f"{tokens:,} tokens are more than {what} allow{allowed}; make the request smaller"
    return f"can go in {_duration(wait.seconds)}: {what}{allowed}"


def _duration(seconds: float) -> str:
    whole = max(1, round(seconds))
    if whole < 120:
        return f"{whole} s"
    minutes = round(whole / 60)
    return f"{minutes} min" if minutes < 120 else f"{round(minutes / 60)} h"
