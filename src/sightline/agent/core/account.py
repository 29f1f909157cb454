"""What a reply and its calls add to what a run has spent."""

import json
from collections.abc import Iterable

import msgspec

from sightline.agent.core.limits import LimitName, RunUsage
from sightline.agent.core.output import ToolOutcome
from sightline.catalog.facts import Prices
from sightline.model.json import Json
from sightline.model.usage import Usage, possible
from sightline.tokens.estimate import cost_of


def usage_of(usage: Usage | None, estimate: Usage | None) -> Usage | None:
    """The counts that the provider told, and where it told none the estimated ones."""
    usage = possible(usage)
    if usage is None or estimate is None:
        return usage or estimate
    return msgspec.structs.replace(
        usage,
        input_tokens=estimate.input_tokens if usage.input_tokens is None else usage.input_tokens,
        output_tokens=estimate.output_tokens if usage.output_tokens is None else usage.output_tokens,
    )


def total_usage(usages: Iterable[Usage | None]) -> Usage:
    """All that these replies took together; what none of them tells is None."""
    told = [each for each in usages if each is not None]

    def total(name: str) -> int | None:
        counts = [count for each in told if (count := getattr(each, name)) is not None]
        return sum(counts) if counts else None

    return Usage(
        input_tokens=total("input_tokens"),
        output_tokens=total("output_tokens"),
        cached_tokens=total("cached_tokens"),
        cache_write_tokens=total("cache_write_tokens"),
        reasoning_tokens=total("reasoning_tokens"),
        cache_write_1h_tokens=total("cache_write_1h_tokens"),
    )


def charge(
    spent: RunUsage, usage: Usage | None, prices: Prices | None, *, is_estimated: bool = False
) -> tuple[RunUsage, float | None]:
    """What is spent after a reply with this usage, and what the reply cost, which no estimate tells. What cannot be
    counted is marked."""
    unmeasured: list[LimitName] = []
    tokens = cost = None
    if usage is not None and usage.input_tokens is not None and usage.output_tokens is not None:
        tokens = usage.input_tokens + usage.output_tokens
        known = cost_of(usage, prices)
        cost = None if known is None else known.dollars
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
    return after, None if is_estimated else cost


class Repeats:
    """Notices the same call with the same result. A result that differs is progress, and counting begins again."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[ToolOutcome, int]] = {}

    def add(self, name: str, arguments: Json, outcome: ToolOutcome) -> int:
        """How often this call has now brought this result."""
        mark = json.dumps([name, arguments], sort_keys=True)
        before, count = self._seen.get(mark, (outcome, 0))
        count = count + 1 if before == outcome else 1
        self._seen[mark] = (outcome, count)
        return count
