"""The limits of a run, what it has used, and what happens when it reaches a limit; and when a request can be sent,
given the usage of the account and the provider's rate limits."""

import json
from collections.abc import Iterable
from typing import Final, Literal, TypeAlias, get_args

import msgspec

from sightline.agent.core.tool import ToolOutcome
from sightline.catalog.facts import Facts, Prices
from sightline.errors import Code, Fault
from sightline.model.json import Json
from sightline.model.reply import Usage, possible
from sightline.tokens.cost import cost_of
from sightline.tokens.ledger import Ledger, Wait
from sightline.tokens.ledger import LimitName as AccountLimit

_ACCOUNT_WORDS: Final[dict[AccountLimit, str]] = {
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


class Quota(msgspec.Struct, frozen=True):
    """What a send waits for; `line` describes it for a person. `can_go_at` is the time of day at which it can be sent,
    None if never."""

    line: str
    can_go_at: float | None


def quota_of(ledger: Ledger, provider: str, model: str, tokens: int, now: float, facts: Facts | None = None) -> Quota:
    """When a send of this size can go."""
    wait = ledger.wait(provider, model, tokens, now, facts)
    return Quota(line_of(wait, tokens), None if wait.is_endless else now + max(0.0, wait.seconds))


def line_of(wait: Wait, tokens: int) -> str:
    """A description of the wait for a person; empty if there is no wait."""
    if wait.is_over:
        return ""
    what = _ACCOUNT_WORDS.get(wait.limit, wait.limit)
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


LimitName: TypeAlias = Literal["requests", "tool_calls", "tokens", "cost", "seconds", "repeats", "mistakes"]
Behaviour: TypeAlias = Literal["stop", "confirm"]

NAMES: tuple[LimitName, ...] = get_args(LimitName)
BEFORE_ASK: tuple[LimitName, ...] = ("requests", "tokens", "cost", "seconds", "repeats", "mistakes")
"""Without `tool_calls`: a run that has used up its tool calls may still let the model answer with what it has."""

BEFORE_USE: tuple[LimitName, ...] = ("requests", "tool_calls", "tokens", "cost", "seconds")
"""With `requests`: if no request is left, no model would get the result, so the tool is not run."""

_WORDS: dict[LimitName, str] = {
    "requests": "model requests",
    "tool_calls": "tool calls",
    "tokens": "tokens",
    "cost": "US dollars",
    "seconds": "seconds",
    "repeats": "identical calls with the same result",
    "mistakes": "rounds in a row with a call that could not be run",
}


class RunLimits(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The limits of a run. None means unlimited, 0 means none at all, and N requests means that N are sent.

    `repeats` is how often the same call may have the same result, `mistakes` how many rounds in a row may have a call
    that could not be run. With the behaviour `confirm`, a person is asked whether to raise a limit by half.
    """

    requests: int | None = 50
    tool_calls: int | None = None
    tokens: int | None = None
    cost: float | None = None
    seconds: float | None = None
    repeats: int | None = 5
    mistakes: int | None = 5
    behaviour: Behaviour = "stop"

    def check(self) -> None:
        """Raise a fault if a limit is negative or not a number."""
        for name in NAMES:
            most = self.most(name)
            if most is not None and not most >= 0:
                raise Fault(
                    Code.USAGE, f"the limit of {_WORDS[name]} is {most}", hint="Give 0 or more, or leave it out."
                )

    def most(self, name: LimitName) -> float | None:
        limit: float | None = getattr(self, name)
        # A program may give a whole number of dollars or seconds, which is raised like any other amount.
        return float(limit) if limit is not None and name in ("cost", "seconds") else limit

    def raise_limit(self, name: LimitName) -> "RunLimits":
        most = self.most(name)
        return self if most is None else msgspec.structs.replace(self, **{name: next_limit(most)})


class RunUsage(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What a run has used. `unmeasured` names the counts that are unknown, so that their limits cannot be checked. If
    `is_estimated`, a provider reported no usage, and tokens and cost are partly an estimate."""

    requests: int = 0
    tool_calls: int = 0
    tokens: int = 0
    cost: float = 0.0
    seconds: float = 0.0
    repeats: int = 0
    mistakes: int = 0
    unmeasured: tuple[LimitName, ...] = ()
    is_estimated: bool = False

    @property
    def known_cost(self) -> float | None:
        """The cost in US dollars; None if the price of a reply is unknown."""
        return None if "cost" in self.unmeasured else self.cost

    def of(self, name: LimitName) -> float:
        spent: float = getattr(self, name)
        return spent


class Reached(msgspec.Struct, frozen=True, omit_defaults=True):
    """A limit that has been reached. `raised` is what it would be raised to, None if it cannot be raised."""

    name: LimitName
    limit: float
    spent: float
    raised: float | None = None
    is_unmeasured: bool = False

    @property
    def words(self) -> str:
        if self.is_unmeasured:
            why = "the cost so far is not known" if self.name == "cost" else "the provider does not tell"
            return f"the limit of {self.limit:g} {_WORDS[self.name]} cannot be held: {why}"
        return f"the limit of {self.limit:g} {_WORDS[self.name]} is reached"


def next_limit(limit: float) -> float:
    """The limit raised by half; integers are rounded half up."""
    return (3 * limit + 1) // 2 if isinstance(limit, int) else limit * 1.5


def find_reached_limit(
    limits: RunLimits, spent: RunUsage, names: tuple[LimitName, ...], calls: int = 0
) -> Reached | None:
    """The first of these limits that has been reached, or that this many more calls would exceed; None if none has."""
    for name in names:
        most = limits.most(name)
        if most is None:
            continue
        if name in spent.unmeasured:
            return Reached(name, most, spent.of(name), is_unmeasured=True)
        if spent.of(name) >= most or (name == "tool_calls" and spent.tool_calls + calls > most):
            more = next_limit(most)
            can_grow = limits.behaviour == "confirm" and more > most
            return Reached(name, most, spent.of(name), more if can_grow else None)
    return None


def usage_of(usage: Usage | None, estimate: Usage | None) -> Usage | None:
    """The counts that the provider reported, with estimates for those that it did not."""
    usage = possible(usage)
    if usage is None or estimate is None:
        return usage or estimate
    return msgspec.structs.replace(
        usage,
        input_tokens=estimate.input_tokens if usage.input_tokens is None else usage.input_tokens,
        output_tokens=estimate.output_tokens if usage.output_tokens is None else usage.output_tokens,
        is_estimated=usage.is_estimated or None in (usage.input_tokens, usage.output_tokens),
    )


def total_usage(usages: Iterable[Usage | None]) -> Usage:
    """The sum of these usages. A count that none of them has is None. The sum is estimated if one of them is."""
    known = [each for each in usages if each is not None]

    def total(name: str) -> int | None:
        counts = [count for each in known if (count := getattr(each, name)) is not None]
        return sum(counts) if counts else None

    counted = {name: total(name) for name in Usage.__struct_fields__ if name.endswith("_tokens")}
    return msgspec.structs.replace(Usage(), **counted, is_estimated=any(each.is_estimated for each in known))


def charge(
    spent: RunUsage,
    usage: Usage | None,
    prices: Prices | None,
    *,
    cost: float | None = None,
    is_estimated: bool = False,
) -> tuple[RunUsage, float | None]:
    """Add a reply to the usage. Returns the new usage and the cost of the reply, which is `cost` if given. Counts that
    are unknown or estimated are marked."""
    tokens = None
    if usage is not None and usage.input_tokens is not None and usage.output_tokens is not None:
        tokens = usage.input_tokens + usage.output_tokens
        if cost is None and (known := cost_of(usage, prices)) is not None:
            cost = known.dollars
    unmeasured: list[LimitName] = []
    if tokens is None:
        unmeasured.append("tokens")
    if cost is None:
        unmeasured.append("cost")
    after = msgspec.structs.replace(
        spent,
        tokens=spent.tokens + (tokens or 0),
        cost=spent.cost + (cost or 0.0),
        unmeasured=tuple(dict.fromkeys((*spent.unmeasured, *unmeasured))),
        is_estimated=spent.is_estimated or is_estimated,
    )
    return after, cost


class Repeats:
    """Counts identical calls with identical results. A different result is progress and restarts the count."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[ToolOutcome, int]] = {}

    def add(self, name: str, arguments: Json, outcome: ToolOutcome) -> int:
        """Count this call. Returns how many times in a row it has had this result."""
        mark = json.dumps([name, arguments], sort_keys=True)
        before, count = self._seen.get(mark, (outcome, 0))
        count = count + 1 if before == outcome else 1
        self._seen[mark] = (outcome, count)
        return count
