"""Caps: the most that requests may cost in a window, in money or in tokens, as values and arithmetic.

Each cap counts in buckets: one for each combination of its `per` values, and for each day or month. Amounts are whole
numbers, tokens or billionths of a dollar, so that a million of them add up without an error.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, tzinfo
from math import ceil
from typing import Literal, TypeAlias

import msgspec

from sightline.catalog.facts import Facts, Prices
from sightline.model.reply import MOST_TOKENS, Usage, possible
from sightline.model.request import Request
from sightline.settings import CapSettings
from sightline.tokens.cost import cost_of
from sightline.wire.jsontext import decode, encode

Unit: TypeAlias = Literal["dollars", "tokens"]

BILLION = 1_000_000_000
WARN_AT = 0.8
"""A warning is given from this share of a cap on."""
_LARGEST = 10**18
"""The largest amount; the integers of databases end soon after it."""
_LONGEST_REPLY = 32_000
"""Tokens of the longest reply, if neither the request nor the model's facts limit it."""
_BYTES_PER_TOKEN = 2
"""An interrupted answer has at most about one token per this many bytes of its text; usually it is one in four."""


class BucketKey(msgspec.Struct, frozen=True, order=True):
    """A bucket: the cap and its unit, its `per` values as a JSON list, and the window."""

    cap: str
    unit: Unit
    bucket: str
    period: str


class CapUse(msgspec.Struct, frozen=True):
    """What was counted in a bucket: `spent` by requests that have ended, `reserved` by those under way. `raised` is the
    limit that a user has set for this bucket, 0 if none has."""

    key: BucketKey
    spent: int = 0
    reserved: int = 0
    raised: int = 0


@dataclass(frozen=True, slots=True)
class Claim:
    """The amount that a request needs of a bucket, and the bucket's configured limit."""

    key: BucketKey
    amount: int
    limit: int


@dataclass(frozen=True, slots=True)
class RequestBound:
    """The most that a request can use. `billionths` is None if its price is unknown."""

    input_tokens: int
    output_tokens: int
    billionths: int | None

    def amount(self, unit: Unit) -> int | None:
        """The same in the unit of a cap; None if unknown."""
        return self.billionths if unit == "dollars" else self.input_tokens + self.output_tokens


def unit_of(cap: CapSettings) -> Unit:
    """The unit of a cap."""
    return "tokens" if cap.dollars is None else "dollars"


def limit_of(cap: CapSettings) -> int:
    """How much a cap allows, as a whole number of its unit; at least 1."""
    amount = (cap.tokens or 0) if cap.dollars is None else min(cap.dollars, 1e9) * BILLION
    return max(1, min(round(amount), _LARGEST))


def bucket_of(cap: CapSettings, subject: Mapping[str, str], at: float, zone: tzinfo | None = None) -> BucketKey:
    """The bucket in which a cap counts a request with these values. Days are those of `zone`, by default this
    machine's."""
    values = encode([subject.get(name, "") for name in cap.per]).decode()
    date = "" if cap.window == "always" else datetime.fromtimestamp(at, zone).date().isoformat()
    return BucketKey(cap.name, unit_of(cap), values, date[:7] if cap.window == "month" else date)


def values_of(key: BucketKey) -> tuple[str, ...]:
    """The bucket's `per` values."""
    values = decode(key.bucket)
    return tuple(str(value) for value in values) if isinstance(values, list) else ()


def measure_bound(
    request: Request | None, tokens: int, facts: Facts, prices: Prices | None, body: bytes
) -> RequestBound:
    """The most that a request can use if its prompt has at most this many tokens. `request` is None if its body cannot
    be parsed; then it counts as many tokens as it has bytes."""
    if request is None:
        tokens = len(body)
    longest = None if request is None else request.options.max_tokens
    if longest is None or longest < 0:  # llama.cpp and LM Studio read -1 as no limit
        longest = facts.max_output or _LONGEST_REPLY
    replies = 1 if request is None else max(1, request.options.n or 1)
    written = min(longest * replies, MOST_TOKENS)  # more has no cost, and databases have no larger integers
    # Tokens that are written to a cache cost more than others, most of all those that are cached for an hour.
    an_hour = tokens if b'"1h"' in body else 0
    usage = Usage(
        input_tokens=max(1, tokens),
        output_tokens=written,
        cache_write_tokens=tokens if prices is not None and (prices.cache_write or an_hour) else 0,
        cache_write_1h_tokens=an_hour,
    )
    cost = cost_of(usage, prices)
    return RequestBound(tokens, written, None if cost is None else ceil(cost.dollars * BILLION))


def measure_raw_bound(body: bytes, facts: Facts, prices: Prices | None, *, has_output: bool) -> RequestBound:
    """The most that a request can use if no dialect can parse it: as many tokens as it has bytes, and an output unless
    it asks for embeddings."""
    longest = (facts.max_output or _LONGEST_REPLY) if has_output else 0
    cost = cost_of(Usage(input_tokens=max(1, len(body)), output_tokens=longest), prices)
    return RequestBound(len(body), longest, None if cost is None else ceil(cost.dollars * BILLION))


def amount_used(unit: Unit, usage: Usage | None, bound: RequestBound, prices: Prices | None) -> int:
    """What a request that has ended used: as the provider counted it, otherwise what was reserved for it."""
    counted = possible(usage)
    if unit == "dollars":
        cost = None if counted is None else cost_of(counted, prices)
        return (bound.billionths or 0) if cost is None else round(cost.dollars * BILLION)
    if counted is None:
        return bound.input_tokens + bound.output_tokens
    asked, written = counted.input_tokens, counted.output_tokens
    return (bound.input_tokens if asked is None else asked) + (bound.output_tokens if written is None else written)


def usage_so_far(usage: Usage | None, text_bytes: int, bound: RequestBound) -> Usage:
    """The most that an interrupted answer can have used: what was counted, and an estimate from its text so far."""
    counted = possible(usage) or Usage()
    written = min(bound.output_tokens, -(-text_bytes // _BYTES_PER_TOKEN))
    return msgspec.structs.replace(
        counted,
        input_tokens=counted.input_tokens or bound.input_tokens,
        output_tokens=max(written, counted.output_tokens or 0),
    )


def limit_in(use: CapUse, limit: int) -> int:
    """How much is allowed in this bucket."""
    return max(limit, use.raised)


def share_of(use: CapUse, limit: int) -> float:
    """How much of a bucket is spent, as a share of what is allowed."""
    return use.spent / limit_in(use, limit)


def amount_words(unit: Unit, amount: int) -> str:
    """An amount as text for users."""
    return f"{amount:,} tokens" if unit == "tokens" else f"${amount / BILLION:,.4f}".rstrip("0").rstrip(".")


def cap_words(key: BucketKey, per: tuple[str, ...]) -> str:
    """A cap and its bucket as text for users: `daily (session fix@shop, 2026-11-16)`."""
    named = [f"{name} {value or 'none'}" for name, value in zip(per, values_of(key), strict=False)]
    inside = ", ".join([*named, *([key.period] if key.period else [])])
    return f"{key.cap} ({inside})" if inside else key.cap
